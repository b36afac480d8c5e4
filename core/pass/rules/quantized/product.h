// SPDX-License-Identifier: Apache-2.0
//
// Products of dequantized factors that are quantized again, and what their rewrites have in common.
// Pure but for the editor.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/pass/engine/run_rules.h"
#include "core/pass/rules/quantized/quantized.h"

namespace pfrt {

constexpr int64_t kLargestSum = int64_t{1} << 31;

// A product of two dequantized factors, perhaps with a bias, in front of a QuantizeLinear.
struct QuantizedProduct {
  Node* node = nullptr;  // Conv, ConvTranspose, MatMul or Gemm
  Quantization a, b, out;
  ValueId bias = kNoId;  // of numbers
  int64_t depth = 0;     // terms of a sum, or more
};

bool is_product(const Node& node);
std::optional<int64_t> known_dim(const Type& type, size_t axis);

// What a rule answers that says why not; |why| may be null.
template <typename... Parts>
std::nullopt_t refuse_because(std::string* why, const Parts&... parts) {
  if (why) *why = message(parts...);
  return std::nullopt;
}

// Of the product |node|; |out| is to be filled in. nullopt with the reason in |why| (may be null)
// where a factor is not made of bytes, or sums may need more than 32 bits.
std::optional<QuantizedProduct> product_of(Editor& editor, Node& node, std::string* why = nullptr);

// What lies between a product and its QuantizeLinear, and cuts some of its steps off.
struct Cut {
  const Node* node = nullptr;  // Relu or Clip
  int64_t low = 0, high = 0;   // the first and the last step left
};

// The product in front of |quantize|, which gives bytes; |cut| may lie between.
std::optional<QuantizedProduct> product_before(Editor& editor, const Node& quantize,
                                               std::optional<Cut>& cut);
// What the cut leaves of |steps|, which are of |dtype|.
Result<ValueId> cut_steps(Editor& editor, const Cut& cut, pfrt_dtype dtype, ValueId steps);

// The scale of a sum, one or one a channel.
std::optional<std::vector<double>> sum_scales(const Editor& editor, const QuantizedProduct& p);
// The numbers of a constant list, dequantized or not.
std::optional<std::vector<double>> numbers_of(Editor& editor, ValueId value);
// The bias as int32 in steps of the sum, of |channels|; nullopt when it is none of those.
Result<std::optional<Tensor>> bias_steps(Editor& editor, const QuantizedProduct& p,
                                         size_t channels);
// {a, its scale and zero point, b, its scale and zero point, the output's scale and zero point}.
Result<std::vector<ValueId>> product_operands(Editor& editor, const QuantizedProduct& p);
// Whether the provider that a rule works for refuses |node|.
bool is_refused(Editor& editor, const Node& node, const RuleContext& context);

}  // namespace pfrt
