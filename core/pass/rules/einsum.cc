// SPDX-License-Identifier: Apache-2.0
//
// Writes an Einsum as the operators that its letters stand for: Transpose and ReduceSum of one
// operand; MatMul or Mul of two, after each was reduced, transposed and its letters joined to rows,
// columns and sums. A letter that one operand has twice is left to the operator.
#include <algorithm>
#include <array>
#include <string>

#include "core/pass/rules/moves.h"
#include "core/pass/rules/raise.h"
#include "core/pass/rules/rule_tables.h"

namespace pfrt {
namespace {

// Dimensions of ellipses are letters too: the last one is 1, the one before it 2, and so on.
constexpr size_t kMostOpen = 'A' - 1;

struct Factor {
  ValueId value;
  std::string letters;
  Shape dims;  // of the letters

  bool has(char letter) const { return letters.find(letter) != std::string::npos; }
  const Dim& dim(char letter) const { return dims[letters.find(letter)]; }
};

struct Equation {
  std::vector<Factor> inputs;
  std::string output;
};

// The letters of |term| for |rank| dimensions; nullopt where it has another number of them or one
// letter twice. |open| is the largest number of an ellipsis's dimensions so far.
std::optional<std::string> letters_of(std::string_view term, size_t rank, size_t& open) {
  constexpr std::string_view kEllipsis = "...";
  std::string out;
  const size_t at = term.find(kEllipsis);
  for (size_t i = 0; i < term.size(); ++i) {
    if (i != at) {
      out += term[i];
      continue;
    }
    const size_t named = term.size() - kEllipsis.size();
    if (rank < named || rank - named > kMostOpen) return std::nullopt;
    open = std::max(open, rank - named);
    for (size_t k = rank - named; k > 0; --k) out += static_cast<char>(k);
    i += kEllipsis.size() - 1;
  }
  if (out.size() != rank) return std::nullopt;
  for (size_t i = 0; i < out.size(); ++i)
    if (out.find(out[i], i + 1) != std::string::npos) return std::nullopt;
  return out;
}

std::optional<Equation> equation_of(const Editor& editor, const Node& node) {
  const std::string_view text = node.attr_string("equation", "");
  const size_t arrow = text.find("->");
  const std::optional<size_t> rank = editor.rank(node.outputs[0]);
  if (arrow == std::string_view::npos || !rank) return std::nullopt;
  Equation out;
  size_t open = 0, at = 0;
  for (const ValueId in : node.inputs) {
    const Type& type = editor.type(in);
    if (in == kNoId || at > arrow || !type.is_tensor() || !type.has_shape) return std::nullopt;
    const size_t end = std::min(text.find(',', at), arrow);
    auto letters = letters_of(text.substr(at, end - at), type.shape.size(), open);
    if (!letters) return std::nullopt;
    out.inputs.push_back({in, std::move(*letters), type.shape});
    at = end + 1;
  }
  if (at != arrow + 1) return std::nullopt;
  // What the ellipses stand for has to be in the output.
  size_t named = 0;
  auto letters = letters_of(text.substr(arrow + 2), *rank, named);
  if (!letters || named != open) return std::nullopt;
  out.output = std::move(*letters);
  return out;
}

std::vector<int64_t> order_of(const std::string& from, const std::string& to) {
  std::vector<int64_t> out;
  out.reserve(to.size());
  for (const char letter : to) out.push_back(static_cast<int64_t>(from.find(letter)));
  return out;
}

class NodeWriter {
 public:
  NodeWriter(Editor& editor, const Node& node) : editor_(editor), stem_(node.name) {}

  Result<ValueId> transposed(ValueId value, const std::string& from, const std::string& to) {
    if (from == to) return value;
    return editor_.add("Transpose", stem_, {value},
                       {Attribute::of_ints("perm", order_of(from, to))});
  }
  Result<ValueId> reshaped(ValueId value, const std::vector<int64_t>& numbers) {
    return with_list("Reshape", value, numbers, "allowzero");
  }
  Result<ValueId> unsqueezed(ValueId value, const std::vector<int64_t>& axes) {
    if (axes.empty()) return value;
    return with_list("Unsqueeze", value, axes, {});
  }
  Result<ValueId> summed(ValueId value, const std::vector<int64_t>& axes) {
    if (axes.empty()) return value;
    return with_list("ReduceSum", value, axes, "keepdims");
  }
  Result<ValueId> product(std::string_view op, ValueId a, ValueId b) {
    return editor_.add(op, stem_, {a, b});
  }

 private:
  // Adds a node of |value| and |list|, whose attribute |off|, if it has one, is 0.
  Result<ValueId> with_list(std::string_view op, ValueId value, const std::vector<int64_t>& list,
                            const std::string& off) {
    PFRT_ASSIGN(const ValueId numbers, editor_.int64s(message(stem_, "/list"), list));
    std::vector<Attribute> attrs;
    if (!off.empty()) attrs.push_back(Attribute::of_int(off, 0));
    return editor_.add(op, stem_, {value, numbers}, std::move(attrs));
  }

  Editor& editor_;
  const std::string stem_;
};

// The letters of two operands by what becomes of them, each in the order of the output.
struct Roles {
  std::string batch, rows, columns, sums;
};

// An operand as a matrix for each index of the batch: the order of its letters, and the numbers for
// Reshape; none where each part is one letter already.
struct Matrices {
  std::string order;
  std::optional<std::vector<int64_t>> numbers;
};

Dim size_of(SymbolTable& symbols, const Factor& operand, const std::string& letters) {
  Shape dims;
  for (const char letter : letters) dims.push_back(operand.dim(letter));
  return symbols.product(dims);
}

// nullopt where the sizes do not follow from what is known. Where |open| the letters of |first| are
// dimensions of their own: MatMul takes any number of rows by one matrix.
std::optional<Matrices> matrices_of(SymbolTable& symbols, const Factor& operand,
                                    const std::string& batch, const std::string& first,
                                    const std::string& second, bool open) {
  Matrices out{batch + first + second, std::nullopt};
  if ((open || first.size() == 1) && (second.size() == 1 || (open && second.empty()))) return out;
  Shape from, to;
  for (const char letter : out.order) from.push_back(operand.dim(letter));
  for (const char letter : open ? first : batch) to.push_back(operand.dim(letter));
  if (!open) to.push_back(size_of(symbols, operand, first));
  to.push_back(size_of(symbols, operand, second));
  out.numbers = reshape_numbers(symbols, from, to);
  if (!out.numbers) return std::nullopt;
  return out;
}

Result<ValueId> as_matrices(NodeWriter& writer, const Factor& operand, const Matrices& matrices) {
  PFRT_ASSIGN(const ValueId moved,
              writer.transposed(operand.value, operand.letters, matrices.order));
  if (!matrices.numbers) return moved;
  return writer.reshaped(moved, *matrices.numbers);
}

// Multiplies element by element: each operand gets the output's dimensions, 1 for those it lacks,
// and |sums| behind them.
Result<ValueId> elementwise(NodeWriter& writer, const Factor& a, const Factor& b,
                            const std::string& output, const std::string& sums) {
  const std::string all = output + sums;
  std::array<ValueId, 2> values{};
  const std::array<const Factor*, 2> operands{&a, &b};
  for (size_t i = 0; i < 2; ++i) {
    std::string own;
    std::vector<int64_t> lacks, begins;
    for (size_t k = 0; k < all.size(); ++k)
      if (operands[i]->has(all[k]))
        own += all[k];
      else
        lacks.push_back(static_cast<int64_t>(k));
    PFRT_ASSIGN(const ValueId moved,
                writer.transposed(operands[i]->value, operands[i]->letters, own));
    // Leading dimensions of 1 are broadcast anyway.
    size_t lead = 0;
    while (lead < lacks.size() && lacks[lead] == static_cast<int64_t>(lead)) ++lead;
    for (size_t k = lead; k < lacks.size(); ++k)
      begins.push_back(lacks[k] - static_cast<int64_t>(lead));
    PFRT_ASSIGN(values[i], writer.unsqueezed(moved, begins));
  }
  PFRT_ASSIGN(const ValueId made, writer.product("Mul", values[0], values[1]));
  std::vector<int64_t> axes;
  for (size_t k = output.size(); k < all.size(); ++k) axes.push_back(static_cast<int64_t>(k));
  return writer.summed(made, axes);
}

// Sums over the letters that the output does not have.
Result<bool> one_operand(Editor& editor, Node& node, const Equation& equation) {
  const ValueId out = node.outputs[0];
  const Factor& x = equation.inputs[0];
  if (x.letters == equation.output) return stand_in(editor, node, x.value);
  std::string left;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < x.letters.size(); ++i)
    if (equation.output.find(x.letters[i]) != std::string::npos)
      left += x.letters[i];
    else
      axes.push_back(static_cast<int64_t>(i));
  NodeWriter writer(editor, node);
  PFRT_ASSIGN(const ValueId sum, writer.summed(x.value, axes));
  PFRT_ASSIGN(const ValueId made, writer.transposed(sum, left, equation.output));
  editor.replace(out, made);
  return true;
}

// nullopt where one operand alone would be summed over a letter, or sizes may differ.
std::optional<Roles> roles_of(const Factor& a, const Factor& b, const std::string& output) {
  Roles out;
  for (const char letter : output) {
    const bool in_a = a.has(letter), in_b = b.has(letter);
    if (!in_a && !in_b) return std::nullopt;
    (in_a && in_b ? out.batch : in_a ? out.rows : out.columns) += letter;
  }
  const auto is_out = [&](char letter) { return output.find(letter) != std::string::npos; };
  for (const char letter : b.letters)
    if (!a.has(letter) && !is_out(letter)) return std::nullopt;
  for (const char letter : a.letters) {
    if (is_out(letter)) continue;
    if (!b.has(letter) || !(a.dim(letter) == b.dim(letter))) return std::nullopt;
    out.sums += letter;
  }
  return out;
}

// A plan for MatMul; nullopt where some size does not follow from what is known.
struct ProductPlan {
  Matrices left, right;
  std::string order;                            // of the letters of the result
  std::optional<std::vector<int64_t>> numbers;  // for a Reshape of the result
};

std::optional<ProductPlan> product_of(SymbolTable& symbols, const Factor& a, const Factor& b,
                                      const Roles& roles, const Factor& out) {
  const bool open = roles.batch.empty();
  const auto left = matrices_of(symbols, a, roles.batch, roles.rows, roles.sums, open);
  const bool vector = open && roles.columns.empty() && roles.sums.size() == 1;
  const auto right = vector
                         ? Matrices{roles.sums, std::nullopt}
                         : matrices_of(symbols, b, roles.batch, roles.sums, roles.columns, false);
  if (!left || !right) return std::nullopt;
  ProductPlan made{*left, *right, roles.batch + roles.rows + roles.columns, std::nullopt};
  if (vector || ((open || roles.rows.size() == 1) && roles.columns.size() == 1)) return made;
  Shape from, to;
  for (const char letter : open ? roles.rows : roles.batch) from.push_back(out.dim(letter));
  if (!open) from.push_back(size_of(symbols, out, roles.rows));
  from.push_back(size_of(symbols, out, roles.columns));
  for (const char letter : made.order) to.push_back(out.dim(letter));
  made.numbers = reshape_numbers(symbols, from, to);
  if (!made.numbers) return std::nullopt;
  return made;
}

Result<bool> two_operands(Editor& editor, Node& node, const Equation& equation) {
  const ValueId out = node.outputs[0];
  const pfrt_dtype dtype = editor.type(out).dtype;
  Factor a = equation.inputs[0], b = equation.inputs[1];
  const Factor result{out, equation.output, editor.type(out).shape};
  std::optional<Roles> roles = roles_of(a, b, result.letters);
  if (!roles) return false;
  // Constants are on the right, where providers pack them. Else the side is chosen that leaves the
  // result in order.
  const bool constant_a = editor.constant(a.value) != nullptr,
             constant_b = editor.constant(b.value) != nullptr;
  const bool other_order = result.letters == roles->batch + roles->columns + roles->rows &&
                           result.letters != roles->batch + roles->rows + roles->columns;
  if (constant_a != constant_b ? constant_a : other_order) {
    std::swap(a, b);
    std::swap(roles->rows, roles->columns);
    std::string order;  // of the sums is that of the left operand
    for (const char letter : a.letters)
      if (roles->sums.find(letter) != std::string::npos) order += letter;
    roles->sums = order;
  }
  const bool multiplies = !roles->sums.empty() && !(roles->rows + roles->columns).empty();
  // Products that are added by another operator are rounded, which loses too much of 16 bits.
  const bool is_short = dtype == PFRT_DTYPE_FLOAT16 || dtype == PFRT_DTYPE_BFLOAT16;
  if (is_short && !multiplies && !roles->sums.empty()) return false;
  std::optional<ProductPlan> product;
  if (multiplies) {
    product = product_of(*editor.graph().symbols, a, b, *roles, result);
    if (!product) return false;
  }
  NodeWriter writer(editor, node);
  ValueId made = kNoId;
  if (product) {
    PFRT_ASSIGN(const ValueId rows, as_matrices(writer, a, product->left));
    PFRT_ASSIGN(const ValueId columns, as_matrices(writer, b, product->right));
    PFRT_ASSIGN(made, writer.product("MatMul", rows, columns));
    if (product->numbers) {
      PFRT_ASSIGN(made, writer.reshaped(made, *product->numbers));
    }
    PFRT_ASSIGN(made, writer.transposed(made, product->order, result.letters));
  } else {
    PFRT_ASSIGN(made, elementwise(writer, a, b, result.letters, roles->sums));
  }
  editor.replace(out, made);
  return true;
}

Result<bool> by_letters(Editor& editor, Node& node, const RuleContext&) {
  const std::optional<Equation> equation = equation_of(editor, node);
  if (!equation || !raisable(editor.type(node.outputs[0]).dtype)) return false;
  switch (equation->inputs.size()) {
    case 1:
      return one_operand(editor, node, *equation);
    case 2:
      return two_operands(editor, node, *equation);
    default:
      return false;
  }
}

constexpr Rule kEinsumRules[] = {
    {"EinsumByLetters", "Einsum",
     "Einsum of one or two -> Transpose, ReduceSum, Reshape, MatMul or Mul", kExtended, true,
     by_letters},
};

}  // namespace

std::span<const Rule> einsum_rules() { return kEinsumRules; }

}  // namespace pfrt
