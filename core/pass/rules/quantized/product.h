// SPDX-License-Identifier: Apache-2.0
//
// Products of dequantized factors that are quantized again, and shared parts of their rewrites. The
// functions change only the editor's graph.
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
  int64_t depth = 0;     // upper bound for the terms of a sum
};

bool is_product(const Node& node);
std::optional<int64_t> known_dim(const Type& type, size_t axis);

// Refuses, and puts the reason in |why|, which may be null.
template <typename... Parts>
std::nullopt_t refuse_because(std::string* why, const Parts&... parts) {
  if (why) *why = message(parts...);
  return std::nullopt;
}

// The quantized form of the product |node|, without |out|. nullopt, with the reason in |why| (may
// be null), where a factor is not made of bytes, or sums may need more than 32 bits.
std::optional<QuantizedProduct> product_of(Editor& editor, Node& node, std::string* why = nullptr);

// A node between a product and its QuantizeLinear that cuts some steps off.
struct Cut {
  const Node* node = nullptr;  // Relu or Clip
  int64_t low = 0, high = 0;   // first and last step that it leaves
};

// The product in front of |quantize|, which gives bytes; |cut| may lie between.
std::optional<QuantizedProduct> product_before(Editor& editor, const Node& quantize,
                                               std::optional<Cut>& cut);
// Applies the cut to |steps|, which are of |dtype|.
Result<ValueId> cut_steps(Editor& editor, const Cut& cut, pfrt_dtype dtype, ValueId steps);

// The scales of a sum: one for all, or one for each channel.
std::optional<std::vector<double>> sum_scales(const Editor& editor, const QuantizedProduct& p);
// The numbers of a constant list, dequantized or not.
std::optional<std::vector<double>> numbers_of(Editor& editor, ValueId value);
// The bias as int32 in steps of the sum, for |channels|; nullopt where that is not possible.
Result<std::optional<Tensor>> bias_steps(Editor& editor, const QuantizedProduct& p,
                                         size_t channels);
// {a, its scale and zero point, b, its scale and zero point, the output's scale and zero point}.
Result<std::vector<ValueId>> product_operands(Editor& editor, const QuantizedProduct& p);
// Whether the provider that a rule works for refuses |node|.
bool is_refused(Editor& editor, const Node& node, const RuleContext& context);

}  // namespace pfrt
