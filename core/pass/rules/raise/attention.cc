// SPDX-License-Identifier: Apache-2.0
//
// Raises Attention from two products with a softmax between them: Softmax(scale Q K' + mask) V.
// Queries, keys and values have rank 4, or 3 as one head. A query that sees no key at all gives
// zeros, where the decomposition gives NaN: a mask that may take all keys of a query is made NaN
// there. Scores that are NaN or infinite survive an added mask and not a Where: attribute |masking|
// tells which it was, and |zero_nan_weights| that a test for NaN follows. Neither is the
// standard's.
#include "core/pass/rules/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Added to this float32 number, scores of any sensible size vanish.
constexpr double kVanishes = -1e30;
// The exponential of this, beside a score that is kept, is zero.
constexpr double kNegligible = -1e4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A step from bare scores to masked ones.
struct MaskStep {
  ValueId added = kNoId;                    // scores + added, or
  ValueId condition = kNoId, fill = kNoId;  // Where(condition, scores, fill),
  bool keeps = true;                        // or, if false, with the last two exchanged
  bool exact = false;                       // the fill is minus infinity
  bool sure = false;                        // each query keeps a key
};

struct Scores {
  ValueId q = kNoId, kt = kNoId, product = kNoId;
  double scale = 1;
  bool scaled = false;          // in the descent: no mask may follow
  bool zeros = false;           // a query without keys gives zeros, by a test for NaN
  std::vector<MaskStep> masks;  // the outermost first
};

// Whether every row along the last axis of a constant has an element equal to |wanted|.
bool each_row_has(const Tensor* tensor, bool wanted) {
  if (!tensor || tensor->dtype != PFRT_DTYPE_BOOL || tensor->dims.empty()) return false;
  const int64_t width = tensor->dims.back(), count = tensor->count();
  if (width < 1) return false;
  for (int64_t row = 0; row < count; row += width) {
    const auto* at = tensor->as<const uint8_t>() + row;
    if (std::none_of(at, at + width, [&](uint8_t b) { return (b != 0) == wanted; })) return false;
  }
  return true;
}

// Matches Where(condition, scores, fill), or with the last two exchanged, and sets |next| to the
// scores.
std::optional<MaskStep> filling(const Editor& editor, const Node& where, ValueId* next) {
  for (const size_t side : {1u, 2u}) {
    const auto fill = scalar(editor, where.inputs[3 - side]);
    if (!fill || editor.type(where.inputs[3 - side]).shape.size() > 1) continue;
    MaskStep step;
    step.condition = where.inputs[0];
    step.fill = where.inputs[3 - side];
    step.keeps = side == 1;
    step.exact = std::isinf(*fill) && *fill < 0;
    step.sure = *fill <= kNegligible && each_row_has(editor.constant(step.condition), step.keeps);
    const bool vanishes =
        *fill <= kVanishes && editor.type(where.outputs[0]).dtype == PFRT_DTYPE_FLOAT32;
    if (!step.exact && !step.sure && !vanishes) continue;
    *next = where.inputs[side];
    return step;
  }
  return std::nullopt;
}

// Finds the parts of the scores, from the outside in.
bool peel(Match& match, ValueId value, Scores& out, int depth) {
  Editor& editor = match.editor();
  if (const Node* product = match.take(value, "MatMul")) {
    out.q = product->inputs[0], out.kt = product->inputs[1], out.product = value;
    return true;
  }
  const Node* node = editor.producer(value);
  if (!node || !node->domain.empty() || depth == 0) return false;
  if (node->op == "Mul" || node->op == "Div") {
    const auto parts = with_scalar(editor, *node);
    if (!parts || (node->op == "Div" && (parts->side == 0 || parts->number == 0))) return false;
    out.scale = node->op == "Mul" ? out.scale * parts->number : out.scale / parts->number;
    out.scaled = true;
    match.take(*node);
    return peel(match, parts->other, out, depth - 1);
  }
  if (out.scaled) return false;
  if (node->op == "Where") {
    ValueId next = kNoId;
    const auto step = filling(editor, *node, &next);
    if (!step) return false;
    out.masks.push_back(*step);
    match.take(*node);
    return peel(match, next, out, depth - 1);
  }
  if (node->op != "Add" || node->inputs.size() != 2) return false;
  for (const size_t side : {0u, 1u}) {
    Match tried = match;
    Scores found = out;
    tried.take(*node);
    found.masks.push_back({.added = node->inputs[1 - side]});
    if (!peel(tried, node->inputs[side], found, depth - 1)) continue;
    match = tried;
    out = found;
    return true;
  }
  return false;
}

// |value| without a product with a one-element constant, which is multiplied into |scale|.
ValueId unscaled(Editor& editor, ValueId value, double* scale) {
  for (int depth = 0; depth < 4; ++depth) {
    const Node* node = editor.producer(value);
    if (!node || !node->domain.empty() || (node->op != "Mul" && node->op != "Div")) break;
    const auto parts = with_scalar(editor, *node);
    if (!parts || (node->op == "Div" && (parts->side == 0 || parts->number == 0)) ||
        !editor.same_type(parts->other, value))
      break;
    *scale = node->op == "Mul" ? *scale * parts->number : *scale / parts->number;
    value = parts->other;
  }
  return value;
}

// Whether |mask| broadcasts to |scores| without enlarging them, and covers all keys.
bool fits(const Editor& editor, ValueId mask, const Shape& scores) {
  const Type& type = editor.type(mask);
  if (!type.is_tensor() || !type.has_shape || type.shape.empty() ||
      type.shape.size() > scores.size() || !(type.shape.back() == scores.back()))
    return false;
  for (size_t i = 1; i < type.shape.size(); ++i) {
    const Dim have = type.shape[type.shape.size() - 1 - i], want = scores[scores.size() - 1 - i];
    if (!have.is(1) && !(have == want)) return false;
  }
  return true;
}

// Whether a constant square mask lets each query see itself and earlier keys.
bool is_causal(const Tensor* mask, const Shape& scores) {
  if (!mask || mask->dims.size() < 2) return false;
  const size_t rank = mask->dims.size();
  const int64_t n = mask->dims.back();
  if (mask->dims[rank - 2] != n || mask->count() != n * n || !scores[scores.size() - 2].is(n) ||
      n < 2)
    return false;
  const auto numbers = to_doubles(mask);
  const bool keeps = mask->dtype == PFRT_DTYPE_BOOL;
  if (!numbers && !keeps) return false;
  for (int64_t i = 0; i < n * n; ++i) {
    const bool later = i % n > i / n;
    const double number = numbers ? (*numbers)[static_cast<size_t>(i)] : 0;
    const bool seen = keeps ? mask->as<const uint8_t>()[i] != 0 : number == 0;
    if (seen == later || (later && !keeps && !(number <= kNegligible))) return false;
  }
  return true;
}

bool operands_agree(const Editor& editor, const Scores& s, ValueId v) {
  const Type &q = editor.type(s.q), &kt = editor.type(s.kt), &value = editor.type(v);
  if (!q.has_shape || !kt.has_shape || !value.has_shape || q.dtype != kt.dtype ||
      q.dtype != value.dtype || !raisable(q.dtype))
    return false;
  // The operator's own arithmetic is less precise.
  if (q.dtype == PFRT_DTYPE_FLOAT64) return false;
  const size_t rank = q.shape.size();
  if ((rank != 3 && rank != 4) || kt.shape.size() != rank || value.shape.size() != rank)
    return false;
  if (!(q.shape[0] == kt.shape[0]) || !(q.shape[0] == value.shape[0])) return false;
  // A single head of keys and values serves all queries.
  if (rank == 4 &&
      (!(kt.shape[1] == value.shape[1]) || !(q.shape[1] == kt.shape[1] || kt.shape[1].is(1))))
    return false;
  return q.shape.back() == kt.shape[rank - 2] && kt.shape.back() == value.shape[rank - 2];
}

// The form of a mask that joins all masks.
enum class MaskForm { kNone, kCausal, kBool, kNumbers, kImpossible };

MaskForm form_of(const Editor& editor, const Scores& s) {
  const Shape& scores = editor.type(s.product).shape;
  if (s.masks.empty()) return MaskForm::kNone;
  const pfrt_dtype dtype = editor.type(s.q).dtype;
  bool exact = true, adds = false, vanishes = true;
  for (const MaskStep& step : s.masks) {
    const bool number = step.added != kNoId;
    const ValueId mask = number ? step.added : step.condition;
    if (!fits(editor, mask, scores)) return MaskForm::kImpossible;
    if (number && editor.type(mask).dtype != dtype) return MaskForm::kImpossible;
    adds |= number;
    exact &= number || step.exact;
    vanishes &= number || step.exact || scalar(editor, step.fill).value_or(0) <= kVanishes;
  }
  const MaskStep& only = s.masks.front();
  if (s.masks.size() == 1 && only.keeps &&
      is_causal(editor.constant(adds ? only.added : only.condition), scores))
    return MaskForm::kCausal;
  const bool certain = s.zeros || (s.masks.size() == 1 && only.sure);
  if (!adds && certain && (exact || s.masks.size() == 1) && (exact || only.sure))
    return MaskForm::kBool;
  return vanishes ? MaskForm::kNumbers : MaskForm::kImpossible;
}

Result<ValueId> bool_mask(Editor& editor, const std::string& stem, const Scores& s) {
  ValueId mask = kNoId;
  for (const MaskStep& step : s.masks) {
    ValueId one = step.condition;
    if (!step.keeps) {
      PFRT_ASSIGN(one, editor.add("Not", stem, {one}));
    }
    if (mask == kNoId) {
      mask = one;
    } else {
      PFRT_ASSIGN(mask, editor.add("And", stem, {mask, one}));
    }
  }
  return mask;
}

// A mask of numbers: the steps from bare scores on, applied to zeros.
Result<ValueId> number_mask(Editor& editor, const std::string& stem, const Scores& s) {
  ValueId mask = kNoId;
  for (size_t i = s.masks.size(); i-- > 0;) {
    const MaskStep& step = s.masks[i];
    if (step.added != kNoId) {
      if (mask == kNoId) {
        mask = step.added;
      } else {
        PFRT_ASSIGN(mask, editor.add("Add", stem, {mask, step.added}));
      }
      continue;
    }
    if (mask == kNoId) {
      PFRT_ASSIGN(Tensor zero, from_doubles(editor.type(step.fill).dtype, {}, {0}));
      mask = editor.add_constant(stem + "/zero", std::move(zero));
    }
    std::vector<ValueId> inputs = {step.condition, mask, step.fill};
    if (!step.keeps) std::swap(inputs[1], inputs[2]);
    PFRT_ASSIGN(mask, editor.add("Where", stem, std::move(inputs)));
  }
  return mask;
}

// Whether every row of all steps together has a number above minus infinity: they are constants, or
// fill with numbers.
bool leaves_a_key(const Editor& editor, const Scores& s) {
  if (s.masks.size() != 1) return false;
  const MaskStep& only = s.masks.front();
  if (only.added == kNoId) return !only.exact || only.sure;
  const Tensor* mask = editor.constant(only.added);
  const auto numbers = to_doubles(mask);
  if (!numbers || mask->dims.empty() || mask->dims.back() < 1) return false;
  const auto width = static_cast<ptrdiff_t>(mask->dims.back());
  for (auto row = numbers->begin(); row != numbers->end(); row += width)
    if (std::none_of(row, row + width, [](double n) { return n > -kInfinity; })) return false;
  return true;
}

// |mask| with NaN in rows that are wholly minus infinity: m - m is NaN for infinite m.
Result<ValueId> with_nan_rows(Editor& editor, const std::string& stem, ValueId mask) {
  const auto last = static_cast<int64_t>(editor.rank(mask).value_or(1)) - 1;
  PFRT_ASSIGN(const ValueId axes, editor.int64s(stem + "/last", {last}));
  PFRT_ASSIGN(const ValueId most, editor.add("ReduceMax", stem, {mask, axes},
                                             {Attribute::of_int("keepdims", 1),
                                              Attribute::of_int("noop_with_empty_axes", 0)}));
  PFRT_ASSIGN(const ValueId nothing, editor.add("Sub", stem, {most, most}));
  return editor.add("Add", stem, {mask, nothing});
}

Result<ValueId> mask_of(Editor& editor, const std::string& stem, const Scores& s, MaskForm form,
                        size_t rank) {
  if (form != MaskForm::kBool && form != MaskForm::kNumbers) return kNoId;
  PFRT_ASSIGN(ValueId mask,
              form == MaskForm::kBool ? bool_mask(editor, stem, s) : number_mask(editor, stem, s));
  if (form == MaskForm::kNumbers && !s.zeros && !leaves_a_key(editor, s)) {
    PFRT_ASSIGN(mask, with_nan_rows(editor, stem, mask));
  }
  // Scores of rank 3 are batches of one head each; the operator takes the first dimension of a mask
  // of rank 3 for heads.
  const size_t have = editor.rank(mask).value_or(4);
  if (have != 1 && !(rank == 3 && have == 3)) return mask;
  PFRT_ASSIGN(const ValueId axes, editor.int64s(stem + "/axes", {have == 1 ? 0 : 1}));
  return editor.add("Unsqueeze", stem, {mask, axes});
}

// Keys, given by their transposes: the dimensions of |from| in the order |perm|.
struct Keys {
  ValueId from;
  std::vector<int64_t> perm;
  bool straight() const { return std::ranges::is_sorted(perm); }
};

Keys keys_of(Editor& editor, ValueId kt, size_t rank) {
  Keys keys{kt, std::vector<int64_t>(rank)};
  std::iota(keys.perm.begin(), keys.perm.end(), int64_t{0});
  const Node* turned = editor.maker(kt, "Transpose");
  const std::vector<int64_t>* own = turned ? turned->attr_ints("perm") : nullptr;
  if (own && own->size() == rank) keys = {turned->inputs[0], *own};
  std::swap(keys.perm[rank - 1], keys.perm[rank - 2]);
  return keys;
}

Result<bool> put(Editor& editor, const RuleContext& context, const Node& root, const Scores& s,
                 MaskForm form) {
  const ValueId out = root.outputs[0], v = root.inputs[1];
  const std::string stem = root.name;
  const Shape scores = editor.type(s.product).shape;
  const size_t rank = scores.size();
  double scale = s.scale;
  const ValueId q = unscaled(editor, s.q, &scale);
  Keys keys = keys_of(editor, unscaled(editor, s.kt, &scale), rank);
  if (keys.straight()) keys.from = unscaled(editor, keys.from, &scale);
  std::vector<Attribute> attrs = attention_attrs(scale);
  attrs.front().i = form == MaskForm::kCausal;
  const bool fills =
      std::ranges::any_of(s.masks, [](const MaskStep& step) { return step.condition != kNoId; });
  if (form == MaskForm::kCausal && !fills)
    attrs.push_back(Attribute::of_string("masking", "added"));
  if (form == MaskForm::kNumbers && fills)
    attrs.push_back(Attribute::of_string("masking", "replaced"));
  if (s.zeros) attrs.push_back(Attribute::of_int("zero_nan_weights", 1));
  if (rank == 3) {
    attrs.push_back(Attribute::of_int("q_num_heads", 1));
    attrs.push_back(Attribute::of_int("kv_num_heads", 1));
  }
  const pfrt_dtype dtype = editor.type(q).dtype;
  Shape key_shape = editor.type(v).shape;
  key_shape.back() = editor.type(q).shape.back();
  std::vector<ValueId> asked = {
      q, keys.straight() ? keys.from : placeholder(editor, Type::tensor(dtype, key_shape)), v};
  if (form == MaskForm::kBool || form == MaskForm::kNumbers)
    asked.push_back(placeholder(
        editor, Type::tensor(form == MaskForm::kBool ? pfrt_dtype{PFRT_DTYPE_BOOL} : dtype,
                             {scores[rank - 2], scores[rank - 1]})));
  if (!agreed(editor, context, node_of("Attention", asked, attrs), {out})) return false;
  ValueId k = keys.from;
  if (!keys.straight()) {
    PFRT_ASSIGN(k, editor.add("Transpose", stem, {k}, {Attribute::of_ints("perm", keys.perm)}));
  }
  PFRT_ASSIGN(const ValueId mask, mask_of(editor, stem, s, form, rank));
  std::vector<ValueId> inputs = {q, k, v};
  if (mask != kNoId) inputs.push_back(mask);
  PFRT_ASSIGN(const ValueId made,
              editor.add("Attention", stem, std::move(inputs), std::move(attrs)));
  editor.replace(out, made);
  return true;
}

// Matches a softmax over the last axis, with conversions to float32 around it or a test for NaN
// behind it.
const Node* softmax_of(Match& match, ValueId weights, ValueId* scores, bool* zeros) {
  Editor& editor = match.editor();
  if (Match tried = match; const Node* where = tried.take(weights, "Where")) {
    const Node* test = tried.take(where->inputs[0], "IsNaN");
    if (!test || test->inputs[0] != where->inputs[2] || scalar(editor, where->inputs[1]) != 0.0)
      return nullptr;
    match = tried;
    weights = where->inputs[2];
    *zeros = true;
  }
  const Node* narrow = match.take(weights, "Cast");
  const Node* softmax = match.take(narrow ? narrow->inputs[0] : weights, "Softmax");
  if (!softmax) return nullptr;
  *scores = softmax->inputs[0];
  if (narrow) {
    const Node* wide = match.take(*scores, "Cast");
    if (!wide || editor.type(*scores).dtype != PFRT_DTYPE_FLOAT32) return nullptr;
    *scores = wide->inputs[0];
  }
  const std::optional<size_t> rank = editor.rank(*scores);
  const int64_t axis = softmax->attr_int("axis", -1);
  const bool last = rank && (axis == -1 || axis == static_cast<int64_t>(*rank) - 1);
  return last ? softmax : nullptr;
}

Result<bool> to_attention(Editor& editor, Node& node, const RuleContext& context) {
  Match match(editor);
  match.take(node);
  ValueId scores = kNoId;
  Scores s;
  if (!softmax_of(match, node.inputs[0], &scores, &s.zeros)) return false;
  if (!peel(match, scores, s, 8) || !match.closed(node.outputs[0]) ||
      !operands_agree(editor, s, node.inputs[1]))
    return false;
  const MaskForm form = form_of(editor, s);
  return form == MaskForm::kImpossible ? false : put(editor, context, node, s, form);
}

constexpr Rule kRaiseAttentionRules[] = {
    {"Attention", "MatMul", "Softmax(scale Q K' + mask) V -> Attention", OptLevel::kExtended, true,
     to_attention},
};

}  // namespace

std::vector<Attribute> attention_attrs(double scale) {
  return {Attribute::of_int("is_causal", 0),
          Attribute::of_float("scale", static_cast<float>(scale)),
          Attribute::of_float("softcap", 0),
          Attribute::of_int("qk_matmul_output_mode", 0),
          Attribute::of_int("left_window_size", -1),
          Attribute::of_int("right_window_size", -1)};
}

std::span<const Rule> attention_rules() { return kRaiseAttentionRules; }

}  // namespace pfrt
