// SPDX-License-Identifier: Apache-2.0
//
// Tokenizer of com.microsoft, which converters of scikit-learn's text features write: each text
// becomes a row of tokens, [C] a [C, D] and [N, C] a [N, C, D], where D is the largest number of
// tokens. Tokens are the matches of |tokenexp|, or what lies between those of |separators|, one
// after the other, or each character where the only separator is empty or |tokenexp| is ".".
// Matches are the longest. With |mark|, rows begin with U+0002 and end with U+0003, unless there is
// no token at all; |pad_value| fills them up. Where ONNX Runtime drops a dimension of an input
// without elements, the output here keeps its rank.
#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/ops/onnx_op.h"
#include "plugins/ops_text/operators.h"
#include "plugins/ops_text/regex.h"

namespace pfrt::ops {
namespace {

using Tokens = std::vector<std::string_view>;

// Bytes of the character that begins with |lead|; 0 where none does.
size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}

bool is_utf8(std::string_view words) {
  for (size_t i = 0; i < words.size();) {
    const size_t bytes = character_bytes(words[i]);
    if (bytes == 0 || bytes > words.size() - i) return false;
    for (size_t k = 1; k < bytes; ++k)
      if ((static_cast<unsigned char>(words[i + k]) & 0xc0) != 0x80) return false;
    i += bytes;
  }
  return true;
}

size_t character_count(std::string_view words) {
  return static_cast<size_t>(std::ranges::count_if(
      words, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// What a node's attributes say.
struct Rules {
  std::unique_ptr<re2::RE2> token;                    // null: separators
  std::vector<std::unique_ptr<re2::RE2>> separators;  // empty without |token|: characters
  size_t least = 1;                                   // characters of a token
  bool mark = false;
  std::string pad;
};

// Calls |found| with the place and the size of each match in |words|, from left to right.
template <typename Fn>
void each_match(const re2::RE2& pattern, std::string_view words, Fn found) {
  const re2::StringPiece all(words.data(), words.size());
  re2::StringPiece match;
  for (size_t from = 0; from <= words.size();) {
    if (!pattern.Match(all, from, words.size(), re2::RE2::UNANCHORED, &match, 1)) return;
    const auto at = static_cast<size_t>(match.data() - words.data());
    found(at, match.size());
    const size_t step = at < words.size() ? std::max<size_t>(1, character_bytes(words[at])) : 1;
    from = at + (match.empty() ? step : match.size());
  }
}

void split(const Rules& rules, std::string_view words, Tokens& out) {
  out.clear();
  const auto keep = [&](Tokens& tokens, std::string_view token) {
    if (!token.empty() && character_count(token) >= rules.least) tokens.push_back(token);
  };
  if (rules.token) {
    each_match(*rules.token, words,
               [&](size_t at, size_t size) { keep(out, words.substr(at, size)); });
    return;
  }
  if (rules.separators.empty()) {
    for (size_t i = 0; i < words.size(); i += character_bytes(words[i]))
      out.push_back(words.substr(i, character_bytes(words[i])));
    return;
  }
  out.push_back(words);
  Tokens parts;
  for (const auto& separator : rules.separators) {
    parts.clear();
    for (const std::string_view whole : out) {
      size_t begin = 0;
      each_match(*separator, whole, [&](size_t at, size_t size) {
        keep(parts, whole.substr(begin, at - begin));
        // A match of nothing takes the character behind it away.
        const size_t step = at < whole.size() ? std::max<size_t>(1, character_bytes(whole[at])) : 0;
        begin = std::min(whole.size(), at + (size == 0 ? step : size));
      });
      keep(parts, whole.substr(begin));
    }
    out.swap(parts);
  }
}

// ---- the node ----

// Returns what is wrong with the attributes, or nothing.
std::string read_rules(const pfrt_op_create& context, Rules& out) {
  const auto find = [&](std::string_view name, pfrt_attr_type type) {
    return attribute(*context.node, context.attr_size, name, type);
  };
  const auto *mark = find("mark", PFRT_ATTR_INT), *least = find("mincharnum", PFRT_ATTR_INT);
  const pfrt_snapshot_attr* pad = find("pad_value", PFRT_ATTR_STRING);
  if (!mark) return "attribute 'mark' is absent or no integer";
  if (!least) return "attribute 'mincharnum' is absent or no integer";
  if (!pad) return "attribute 'pad_value' is absent or no string";
  if (least->i < 1)
    return "attribute 'mincharnum' is " + std::to_string(least->i) + ", needs 1 or more";
  out.mark = mark->i != 0;
  out.least = static_cast<size_t>(least->i);
  out.pad = view(pad->s);
  re2::RE2::Options options;
  options.set_longest_match(true);
  std::string why;
  const pfrt_snapshot_attr* separators = find("separators", PFRT_ATTR_STRINGS);
  const pfrt_snapshot_attr* token = find("tokenexp", PFRT_ATTR_STRING);
  const bool separated = separators && separators->count > 0;
  if (!separated && (!token || token->s.size == 0))
    return "it has neither 'separators' nor 'tokenexp'";
  const bool characters = separated ? separators->count == 1 && separators->strings[0].size == 0
                                    : view(token->s) == ".";
  if (characters)
    return out.least == 1 ? "" : "attribute 'mincharnum' is above 1, but tokens are characters";
  if (separated) {
    for (uint64_t i = 0; i < separators->count; ++i) {
      auto made = compiled("separators", separators->strings[i], options, why);
      if (!made) return why;
      out.separators.push_back(std::move(made));
    }
    return {};
  }
  out.token = compiled("tokenexp", token->s, options, why);
  return why;
}

pfrt_code create_rules(void*, const pfrt_op_create* context, void** out_state) {
  try {
    auto rules = std::make_unique<Rules>();
    if (const std::string why = read_rules(*context, *rules); !why.empty())
      return context->fail(context, PFRT_CODE_INVALID_MODEL, text(why));
    *out_state = rules.release();
    return PFRT_CODE_OK;
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    return context->fail(context, PFRT_CODE_PLUGIN, text(error.what()));
  }
}

void release_rules(void*, void* state) { delete static_cast<Rules*>(state); }

pfrt_code infer(void*, const pfrt_op_infer* context) {
  const pfrt_snapshot_value& x = context->inputs[0];
  if (x.rank < 0) return context->set_output(context, 0, PFRT_DTYPE_STRING, -1, nullptr);
  if (x.rank != 1 && x.rank != 2)
    return context->fail(context, PFRT_CODE_SHAPE_MISMATCH,
                         text("the texts must be [C] or [N, C]"));
  int64_t dims[3] = {};
  std::copy_n(x.dims, x.rank, dims);
  dims[x.rank] = std::numeric_limits<int64_t>::min();
  return context->set_output(context, 0, PFRT_DTYPE_STRING, x.rank + 1, dims);
}

constexpr uint64_t kBlock = 64;
constexpr uint64_t kPace = uint64_t{1} << 16;  // bytes between two looks at whether to stop

struct Split {
  const pfrt_op_compute* call;
  const Rules& rules;
  std::vector<Tokens> rows;
  std::atomic<pfrt_code> failed{PFRT_CODE_OK};

  const pfrt_string* texts() const { return static_cast<const pfrt_string*>(call->inputs[0].data); }
  // Calls |each| with the rows of a block, until it returns false or the run is to stop.
  template <typename Fn>
  void in_block(uint64_t block, Fn each) try {
    uint64_t walked = 0;
    for (uint64_t i = block * kBlock; i < rows.size() && i < (block + 1) * kBlock; ++i) {
      if (!each(i)) return;
      walked += texts()[i].size;
      if (walked < kPace) continue;
      walked = 0;
      if (call->stop(call) != PFRT_CODE_OK) return;
    }
  } catch (const std::exception&) {
    failed = PFRT_CODE_OUT_OF_MEMORY;
  }
};

void split_block(void* arg, uint64_t block, uint32_t) {
  Split& s = *static_cast<Split*>(arg);
  s.in_block(block, [&](uint64_t i) {
    const std::string_view words = view(s.texts()[i]);
    if (!is_utf8(words)) {
      const std::string why = "text " + std::to_string(i) + " is not in UTF-8";
      s.failed = s.call->fail(s.call, PFRT_CODE_INVALID_ARGUMENT, text(why));
      return false;
    }
    split(s.rules, words, s.rows[i]);
    return true;
  });
}

struct Fill {
  Split& split;
  uint64_t width;
};

void fill_block(void* arg, uint64_t block, uint32_t) {
  const Fill& fill = *static_cast<const Fill*>(arg);
  const Rules& rules = fill.split.rules;
  fill.split.in_block(block, [&](uint64_t i) {
    std::vector<pfrt_string> row;
    row.reserve(fill.width);
    if (rules.mark) row.push_back(text("\x02"));
    for (const std::string_view token : fill.split.rows[i]) row.push_back(text(token));
    if (rules.mark) row.push_back(text("\x03"));
    row.resize(fill.width, text(rules.pad));
    const pfrt_op_compute* call = fill.split.call;
    return call->set_strings(call, 0, i * fill.width, row.data(), fill.width) == PFRT_CODE_OK;
  });
}

pfrt_code compute(void*, const pfrt_op_compute* context) try {
  const pfrt_tensor& x = context->inputs[0];
  uint64_t count = 1;
  for (uint32_t i = 0; i < x.rank; ++i) count *= static_cast<uint64_t>(x.dims[i]);
  if (x.rank != 1 && x.rank != 2)
    return context->fail(context, PFRT_CODE_SHAPE_MISMATCH,
                         text("the texts must be [C] or [N, C]"));
  Split split{context, *static_cast<const Rules*>(context->state), std::vector<Tokens>(count)};
  const uint64_t blocks = (count + kBlock - 1) / kBlock;
  context->parallel(context, blocks, split_block, &split);
  if (split.failed != PFRT_CODE_OK) return split.failed;
  if (const pfrt_code code = context->stop(context)) return code;
  size_t most = 0;
  for (const Tokens& row : split.rows) most = std::max(most, row.size());
  Fill fill{split, most + (most != 0 && split.rules.mark ? 2 : 0)};
  int64_t dims[3] = {};
  std::copy_n(x.dims, x.rank, dims);
  dims[x.rank] = static_cast<int64_t>(fill.width);
  void* memory = nullptr;
  if (const pfrt_code code =
          context->alloc_output(context, 0, PFRT_DTYPE_STRING, dims, x.rank + 1, &memory))
    return code;
  if (memory == nullptr || fill.width == 0) return PFRT_CODE_OK;
  context->parallel(context, blocks, fill_block, &fill);
  if (split.failed != PFRT_CODE_OK) return split.failed;
  return context->stop(context);
} catch (const std::bad_alloc&) {
  return PFRT_CODE_OUT_OF_MEMORY;
} catch (const std::length_error&) {
  return PFRT_CODE_OUT_OF_MEMORY;
}

constexpr pfrt_dtype kStrings = PFRT_DTYPE_STRING;

}  // namespace

pfrt_custom_op tokenizer() {
  pfrt_custom_op op = onnx_op("Tokenizer", 1, 1, PFRT_OP_DATA_DEPENDENT, infer, compute);
  op.domain = text("com.microsoft");
  set_types(op, kStrings, kStrings);
  op.create_state = create_rules;
  op.release_state = release_rules;
  return op;
}

}  // namespace pfrt::ops
