// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/op/defs/ml/ml.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

Result<const Attribute*> typed(Rewriter& rewriter, std::string_view name, pfrt_attr_type type,
                               const char* what) {
  const Attribute* attr = rewriter.node().attr(name);
  if (attr && attr->type != type)
    return rewriter.fail("attribute '", name, "' has type ", attr->type, ", expected ", what);
  return attr;
}

// A short form for the most frequent step below: an operator on values, and its result.
class Formula {
 public:
  Formula(Rewriter& rewriter, pfrt_dtype dtype) : rewriter_(rewriter), dtype_(dtype) {}
  Result<ValueId> number(double value) { return ml_constant(rewriter_, dtype_, {}, {value}); }
  Result<ValueId> op(std::string_view name, std::vector<ValueId> inputs) {
    return rewriter_.before(name, std::move(inputs));
  }
  // Applies |name| to |value| and a number.
  Result<ValueId> op(std::string_view name, ValueId value, double with) {
    PFRT_ASSIGN(const ValueId constant, number(with));
    return op(name, {value, constant});
  }
  // Reduces the columns.
  Result<ValueId> rows(std::string_view name, ValueId value) {
    PFRT_ASSIGN(const ValueId axes, rewriter_.int64s("axes", {1}));
    return rewriter_.before(
        name, {value, axes},
        {Attribute::of_int("keepdims", 1), Attribute::of_int("noop_with_empty_axes", 0)});
  }

 private:
  Rewriter& rewriter_;
  pfrt_dtype dtype_;
};

// Softmax that leaves zeros zero, although exp(0) is 1.
Result<ValueId> softmax_zero(Formula formula, ValueId scores) {
  PFRT_ASSIGN(const ValueId most, formula.rows("ReduceMax", scores));
  PFRT_ASSIGN(const ValueId below, formula.op("Sub", {scores, most}));
  PFRT_ASSIGN(const ValueId grown, formula.op("Exp", {below}));
  PFRT_ASSIGN(const ValueId size, formula.op("Abs", {scores}));
  PFRT_ASSIGN(const ValueId zero, formula.op("LessOrEqual", size, 1e-7));
  PFRT_ASSIGN(const ValueId nothing, formula.number(0));
  PFRT_ASSIGN(const ValueId counted, formula.op("Where", {zero, nothing, grown}));
  PFRT_ASSIGN(const ValueId sum, formula.rows("ReduceSum", counted));
  PFRT_ASSIGN(const ValueId minus, formula.op("Neg", {most}));
  PFRT_ASSIGN(const ValueId factor, formula.op("Exp", {minus}));
  PFRT_ASSIGN(const ValueId small, formula.op("Mul", {scores, factor}));
  PFRT_ASSIGN(const ValueId terms, formula.op("Where", {zero, small, grown}));
  return formula.op("Div", {terms, sum});
}

// Computes sqrt(2) erfinv(2 p - 1) with Winitzki's approximation of the inverse error function,
// which the standard's reference implementation uses.
Result<ValueId> probit(Formula formula, ValueId scores) {
  constexpr double kA = 0.147, kPi = 3.14159265358979323846;
  PFRT_ASSIGN(const ValueId twice, formula.op("Mul", scores, 2));
  PFRT_ASSIGN(const ValueId x, formula.op("Sub", twice, 1));
  PFRT_ASSIGN(const ValueId square, formula.op("Mul", {x, x}));
  PFRT_ASSIGN(const ValueId one, formula.number(1));
  PFRT_ASSIGN(const ValueId rest, formula.op("Sub", {one, square}));
  PFRT_ASSIGN(const ValueId log, formula.op("Log", {rest}));
  PFRT_ASSIGN(const ValueId half, formula.op("Mul", log, 0.5));
  PFRT_ASSIGN(const ValueId v, formula.op("Add", half, 2 / (kPi * kA)));
  PFRT_ASSIGN(const ValueId over, formula.op("Mul", log, 1 / kA));
  PFRT_ASSIGN(const ValueId vv, formula.op("Mul", {v, v}));
  PFRT_ASSIGN(const ValueId inside, formula.op("Sub", {vv, over}));
  PFRT_ASSIGN(const ValueId root, formula.op("Sqrt", {inside}));
  PFRT_ASSIGN(const ValueId outer, formula.op("Sub", {root, v}));
  PFRT_ASSIGN(const ValueId size, formula.op("Sqrt", {outer}));
  PFRT_ASSIGN(const ValueId sign, formula.op("Sign", {x}));
  PFRT_ASSIGN(const ValueId result, formula.op("Mul", {sign, size}));
  return formula.op("Mul", result, 1.41421356237309504880);
}

}  // namespace

Result<std::vector<float>> ml_floats(Rewriter& rewriter, std::string_view name) {
  PFRT_ASSIGN(const Attribute* attr, typed(rewriter, name, PFRT_ATTR_FLOATS, "floats"));
  return attr ? attr->floats : std::vector<float>();
}

Result<std::vector<int64_t>> ml_ints(Rewriter& rewriter, std::string_view name) {
  PFRT_ASSIGN(const Attribute* attr, typed(rewriter, name, PFRT_ATTR_INTS, "integers"));
  return attr ? attr->ints : std::vector<int64_t>();
}

Result<std::vector<std::string>> ml_strings(Rewriter& rewriter, std::string_view name) {
  PFRT_ASSIGN(const Attribute* attr, typed(rewriter, name, PFRT_ATTR_STRINGS, "strings"));
  return attr ? attr->strings : std::vector<std::string>();
}

Result<std::string> ml_word(Rewriter& rewriter, std::string_view name,
                            const std::vector<std::string_view>& words) {
  PFRT_ASSIGN(const Attribute* attr, typed(rewriter, name, PFRT_ATTR_STRING, "a string"));
  if (!attr) return std::string(words.front());
  if (std::find(words.begin(), words.end(), attr->s) != words.end()) return attr->s;
  std::string list;
  for (std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return rewriter.fail("attribute '", name, "' is '", attr->s, "', expected one of ", list);
}

Result<std::string> ml_post_transform(Rewriter& rewriter) {
  return ml_word(rewriter, "post_transform",
                 {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"});
}

Result<MlLabels> ml_labels(Rewriter& rewriter, std::string_view ints, std::string_view strings) {
  MlLabels labels;
  PFRT_ASSIGN(labels.ints, ml_ints(rewriter, ints));
  PFRT_ASSIGN(labels.strings, ml_strings(rewriter, strings));
  if (!labels.ints.empty() && !labels.strings.empty())
    return rewriter.fail("has both attributes '", ints, "' and '", strings,
                         "'; one list of labels is allowed");
  return labels;
}

Result<ValueId> ml_constant(Rewriter& rewriter, pfrt_dtype dtype, std::vector<int64_t> dims,
                            const std::vector<double>& values) {
  PFRT_ASSIGN(Tensor tensor, Tensor::allocate(dtype, std::move(dims)));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (dtype) {
      case PFRT_DTYPE_FLOAT32:
        tensor.as<float>()[i] = static_cast<float>(values[i]);
        break;
      case PFRT_DTYPE_FLOAT64:
        tensor.as<double>()[i] = values[i];
        break;
      case PFRT_DTYPE_INT64:
        tensor.as<int64_t>()[i] = static_cast<int64_t>(values[i]);
        break;
      default:
        return error(Code::kUNSUPPORTED, "constants of ", dtype_name(dtype), " are not made here");
    }
  }
  return rewriter.constant_value(rewriter.node().op, std::move(tensor));
}

Result<ValueId> ml_cast(Rewriter& rewriter, ValueId value, pfrt_dtype from, pfrt_dtype to) {
  if (from == to) return value;
  return rewriter.before("Cast", {value},
                         {Attribute::of_int("to", to), Attribute::of_int("saturate", 1)});
}

Result<ValueId> ml_matrix(Rewriter& rewriter, ValueId value) {
  if (rewriter.has_shape(0) && rewriter.rank(0) == 2) return value;
  if (rewriter.has_shape(0) && rewriter.rank(0) != 1)
    return rewriter.fail("input 0 has rank ", rewriter.rank(0), ", expected [N, C] or [C]");
  return rewriter.before("Flatten", {value}, {Attribute::of_int("axis", -1)});
}

Result<ValueId> ml_transformed(Rewriter& rewriter, ValueId scores, pfrt_dtype dtype,
                               std::string_view post) {
  if (post == "LOGISTIC") return rewriter.before("Sigmoid", {scores});
  if (post == "SOFTMAX")
    return rewriter.before("Softmax", {scores}, {Attribute::of_int("axis", 1)});
  if (post == "SOFTMAX_ZERO") return softmax_zero({rewriter, dtype}, scores);
  if (post == "PROBIT") return probit({rewriter, dtype}, scores);
  return scores;
}

Result<ValueId> ml_label_of(Rewriter& rewriter, ValueId indices, const MlLabels& labels) {
  if (!labels.strings.empty()) {
    Node encoder;
    encoder.domain = kMl;
    encoder.op = "LabelEncoder";
    encoder.inputs = {indices};
    std::vector<int64_t> keys(labels.strings.size());
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
    PFRT_ASSIGN(Tensor key_tensor, Tensor::of_int64(keys));
    const Dims dims{static_cast<int64_t>(keys.size())};
    PFRT_ASSIGN(Tensor texts, Tensor::allocate(PFRT_DTYPE_STRING, dims));
    for (size_t i = 0; i < keys.size(); ++i)
      PFRT_TRY(texts.buffer->set_string(i, labels.strings[i]));
    PFRT_ASSIGN(Tensor none, Tensor::allocate(PFRT_DTYPE_STRING, {1}));
    encoder.attrs = {Attribute::of_tensor("keys_tensor", std::move(key_tensor)),
                     Attribute::of_tensor("values_tensor", std::move(texts)),
                     Attribute::of_tensor("default_tensor", std::move(none))};
    PFRT_ASSIGN(const std::vector<ValueId> out, rewriter.put_before(std::move(encoder), 1));
    return out.front();
  }
  PFRT_ASSIGN(const ValueId list, rewriter.int64s("labels", labels.ints));
  return rewriter.before("Gather", {list, indices}, {Attribute::of_int("axis", 0)});
}

pfrt_dtype ml_compute_type(pfrt_dtype dtype) {
  return dtype == PFRT_DTYPE_FLOAT64 ? PFRT_DTYPE_FLOAT64 : PFRT_DTYPE_FLOAT32;
}

Status ml_expect(Rewriter& rewriter, const std::vector<pfrt_dtype>& dtypes) {
  const pfrt_dtype found = rewriter.input(0).dtype;
  if (found == PFRT_DTYPE_UNSET)
    return rewriter.unsupported(
        "the element type of input 0 is not known; declare it in the model");
  if (std::find(dtypes.begin(), dtypes.end(), found) != dtypes.end()) return {};
  std::string list;
  for (pfrt_dtype d : dtypes) list += (list.empty() ? "" : ", ") + std::string(dtype_name(d));
  return error(Code::kDTYPE_MISMATCH, describe(rewriter.graph(), rewriter.node()),
               ": input 0 has type ", dtype_name(found), ", expected one of ", list,
               "; a Cast before would convert it");
}

}  // namespace pfrt
