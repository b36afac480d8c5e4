// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/op/defs/common/families.h"
#include "core/op/defs/common/helpers.h"
#include "core/op/defs/common/shapes.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

Status canonical_string_normalizer(Rewriter& rewriter) {
  Node& node = rewriter.node();
  const std::string action(node.attr_string("case_change_action", "NONE"));
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return rewriter.fail("attribute 'case_change_action' is '", action,
                         "', expected NONE, LOWER or UPPER");
  node.set_attr(Attribute::of_string("case_change_action", action));
  node.set_attr(Attribute::of_int("is_case_sensitive", node.attr_int("is_case_sensitive", 0)));
  // Case is mapped by Unicode, as in all locales except those with two letters i.
  const std::string_view locale = node.attr_string("locale", "");
  const std::string_view language = locale.substr(0, locale.find_first_of("_.@-"));
  if (action != "NONE" && (language == "tr" || language == "az"))
    return rewriter.unsupported("attribute 'locale' is '", locale,
                                "'; the case rules of Turkish and Azerbaijani are not supported");
  return {};
}

// The output is [C] or [1, C], with fewer elements where stop words are removed.
Status infer_string_normalizer(Inference& in) {
  const Type& input = in.input(0);
  if (input.dtype != PFRT_DTYPE_UNSET && input.dtype != PFRT_DTYPE_STRING)
    return wrong_dtype(in, 0, PFRT_DTYPE_STRING);
  if (!input.has_shape) {
    in.set_output_unknown_shape(0, PFRT_DTYPE_STRING);
    return {};
  }
  Shape shape = input.shape;
  if (shape.empty() || shape.size() > 2 ||
      (shape.size() == 2 && shape[0].known() && !shape[0].is(1)))
    return in.fail("the input has shape ", in.symbols().text(shape), ", expected [C] or [1,C]");
  const Attribute* stopwords = in.node().attr("stopwords");
  if (stopwords && !stopwords->strings.empty()) shape.back() = Dim();
  in.set_output(0, PFRT_DTYPE_STRING, std::move(shape));
  return {};
}

Status expect_strings(const Inference& in, size_t i) {
  const Type& input = in.input(i);
  if (input.kind != PFRT_VALUE_UNSET && !input.is_tensor())
    return error(Code::kVALIDATION, describe(in.graph(), in.node()), ": input ", i,
                 " is not a tensor");
  return !input.dtype || input.dtype == PFRT_DTYPE_STRING ? Status()
                                                          : wrong_dtype(in, i, PFRT_DTYPE_STRING);
}

Status infer_string_concat(Inference& in) {
  for (size_t i = 0; i < 2; ++i) PFRT_TRY(expect_strings(in, i));
  if (!in.has_shape(0) || !in.has_shape(1)) {
    in.set_output_unknown_shape(0, PFRT_DTYPE_STRING);
    return {};
  }
  PFRT_ASSIGN(Shape shape, in.broadcast(in.shape(0), in.shape(1)));
  in.set_output(0, PFRT_DTYPE_STRING, std::move(shape));
  return {};
}

Status canonical_string_split(Rewriter& rewriter) {
  PFRT_TRY(fill_string(rewriter, "delimiter", ""));
  const Attribute* most = rewriter.node().attr("maxsplit");
  if (most && most->type != PFRT_ATTR_INT)
    return rewriter.fail("attribute 'maxsplit' has type ", most->type, ", expected an integer");
  return {};
}

Status infer_string_split(Inference& in) {
  PFRT_TRY(expect_strings(in, 0));
  Type parts = in.input(0), counts = in.input(0);
  parts.kind = counts.kind = PFRT_VALUE_TENSOR;
  parts.dtype = PFRT_DTYPE_STRING;
  counts.dtype = PFRT_DTYPE_INT64;
  if (parts.has_shape) parts.shape.push_back(Dim());
  in.set_output(0, std::move(parts));
  in.set_output(1, std::move(counts));
  return {};
}

// Checks the attributes. The output has as many columns as the largest of "ngram_indexes", plus
// one.
Status canonical_tf_idf(Rewriter& rewriter) {
  const Node& node = rewriter.node();
  const std::string_view mode = node.attr_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return rewriter.fail("attribute 'mode' is '", mode, "', expected TF, IDF or TFIDF");
  for (const char* name : {"min_gram_length", "max_gram_length", "max_skip_count"}) {
    const Attribute* a = node.attr(name);
    if (!a || a->type != PFRT_ATTR_INT)
      return rewriter.fail("attribute '", name, "' is absent or no integer");
  }
  const int64_t least = node.attr_int("min_gram_length", 0),
                most = node.attr_int("max_gram_length", 0),
                skip = node.attr_int("max_skip_count", 0);
  if (least < 1 || most < least)
    return rewriter.fail("'min_gram_length' is ", least, " and 'max_gram_length' ", most,
                         ", expected 1 <= min <= max");
  if (skip < 0) return rewriter.fail("attribute 'max_skip_count' is ", skip, ", expected >= 0");
  const std::vector<int64_t>* counts = node.attr_ints("ngram_counts");
  const std::vector<int64_t>* columns = node.attr_ints("ngram_indexes");
  if (!counts || counts->empty())
    return rewriter.fail("attribute 'ngram_counts' is absent or empty");
  if (!columns || columns->empty())
    return rewriter.fail("attribute 'ngram_indexes' is absent or empty");
  constexpr size_t kMostLength = 1000;
  if (counts->size() > kMostLength)
    return rewriter.unsupported("attribute 'ngram_counts' has n-grams of ", counts->size(),
                                " items, the most supported are ", kMostLength);
  const Attribute *ints = node.attr("pool_int64s"), *strings = node.attr("pool_strings");
  if (!ints == !strings)
    return rewriter.fail("needs one of the attributes 'pool_int64s' and 'pool_strings'");
  const auto pool = static_cast<int64_t>(ints ? ints->ints.size() : strings->strings.size());
  int64_t grams = 0;
  for (size_t n = 0; n < counts->size(); ++n) {
    const int64_t begin = (*counts)[n], end = n + 1 < counts->size() ? (*counts)[n + 1] : pool;
    const auto size = static_cast<int64_t>(n) + 1;
    if (begin < 0 || end < begin || end > pool || (end - begin) % size != 0)
      return rewriter.fail("attribute 'ngram_counts': the ", size, "-grams are elements [", begin,
                           ", ", end, ") of a pool of ", pool,
                           "; they must lie in it and be a multiple of ", size);
    grams += (end - begin) / size;
  }
  if (grams > static_cast<int64_t>(columns->size()))
    return rewriter.fail("attribute 'ngram_indexes' has ", columns->size(), " elements for ", grams,
                         " n-grams");
  constexpr int64_t kMostColumns = int64_t{1} << 31;
  for (const int64_t column : *columns)
    if (column < 0 || column >= kMostColumns)
      return rewriter.fail("attribute 'ngram_indexes' has ", column, ", expected [0, 2^31)");
  const Attribute* weights = node.attr("weights");
  if (weights && !weights->floats.empty() && weights->floats.size() != columns->size())
    return rewriter.fail("attribute 'weights' has ", weights->floats.size(), " elements for ",
                         columns->size(), " n-grams");
  return {};
}

Status infer_tf_idf(Inference& in) {
  const pfrt_dtype dtype = in.input(0).dtype;
  const bool texts = in.node().attr("pool_strings") != nullptr;
  if (dtype &&
      (texts ? dtype != PFRT_DTYPE_STRING : dtype != PFRT_DTYPE_INT32 && dtype != PFRT_DTYPE_INT64))
    return wrong_dtype(in, 0, texts ? PFRT_DTYPE_STRING : PFRT_DTYPE_INT64);
  const std::vector<int64_t>* columns = in.node().attr_ints("ngram_indexes");
  if (!in.has_shape(0) || !columns || columns->empty()) {
    in.set_output_unknown_shape(0, PFRT_DTYPE_FLOAT32);
    return {};
  }
  if (in.rank(0) > 2) return in.fail("the input has rank ", in.rank(0), ", expected [C] or [N,C]");
  Shape shape;
  if (in.rank(0) == 2) shape.push_back(in.shape(0)[0]);
  shape.push_back(*std::max_element(columns->begin(), columns->end()) + 1);
  in.set_output(0, PFRT_DTYPE_FLOAT32, std::move(shape));
  return {};
}

constexpr OperatorDef kTextOperators[] = {
    // domain, name, opsets, inputs, outputs, flags, shape inputs, canonicalise, infer, flops
    {"", "StringNormalizer", 10, 0, 1, 1, 1, 1, kOpHost | kOpDataDependent, 0,
     canonical_string_normalizer, infer_string_normalizer, nullptr},
    {"", "StringConcat", 20, 0, 2, 2, 1, 1, kOpHost, 0, nullptr, infer_string_concat, nullptr},
    {"", "StringSplit", 20, 0, 1, 1, 1, 2, kOpHost | kOpDataDependent, 0, canonical_string_split,
     infer_string_split, nullptr},
    {"", "TfIdfVectorizer", 9, 0, 1, 1, 1, 1, kOpHost, 0, canonical_tf_idf, infer_tf_idf, nullptr},
};

}  // namespace

std::span<const OperatorDef> text_operators() { return kTextOperators; }

}  // namespace pfrt
