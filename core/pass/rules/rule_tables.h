// SPDX-License-Identifier: Apache-2.0
//
// All rules, by the pass they belong to. Each family of rules is a table in <family>.cc.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/pass/engine/run_rules.h"

namespace pfrt {

// Short names for levels in the tables.
inline constexpr OptLevel kBasic = OptLevel::kBasic, kExtended = OptLevel::kExtended,
                          kAll = OptLevel::kAll;

enum class RulePass { kFolding, kDeadCode, kCse, kFusion, kLayout, kDataflow };

// Families of rules, joined by rule_tables.cc.
std::span<const Rule> control_rules();     // bodies of known conditions
std::span<const Rule> identity_rules();    // nodes whose output is their input
std::span<const Rule> conv_rules();        // normalisation, scale, bias and padding into products
std::span<const Rule> batch_norm_rules();  // behind products, through movement
std::span<const Rule> tap_rules();         // windows that see padding
std::span<const Rule> normalization_rules();            // raised from arithmetic
std::span<const Rule> normalization_parameter_rules();  // scale and bias
std::span<const Rule> activation_rules();               // raised from arithmetic
std::span<const Rule> softmax_rules();                  // raised from arithmetic
std::span<const Rule> attention_rules();                // raised from arithmetic
std::span<const Rule> attention_input_rules();          // heads, repeated heads, the past
std::span<const Rule> merge_matmul_rules();             // products of one input
std::span<const Rule> merged_product_rules();           // any of them, where that is cheaper

std::span<const Rule> algebra_rules();            // arithmetic whose result is an operand
std::span<const Rule> noop_elimination_rules();   // nodes that move nothing
std::span<const Rule> reshape_rules();            // chains of shapes, shapes computed in the graph
std::span<const Rule> split_concat_rules();       // Slice, Split and Concat in a row
std::span<const Rule> shape_range_rules();        // parts of a Shape
std::span<const Rule> late_split_concat_rules();  // Splits in place of Slices
std::span<const Rule> scatter_rules();            // assignments to slices
std::span<const Rule> expand_rules();             // copies that broadcasting makes anyway
std::span<const Rule> einsum_rules();             // products, sums and transposes by letters
std::span<const Rule> pool_rules();               // maxima before activations
std::span<const Rule> cast_rules();               // chains of casts
std::span<const Rule> widen_rules();              // convolutions of float16 in float32
std::span<const Rule> transpose_chain_rules();    // transposes that meet
std::span<const Rule> transpose_rules();          // those, and transposes that move to meet
std::span<const Rule> quantized_move_rules();     // DequantizeLinear towards QuantizeLinear
std::span<const Rule> quantized_matmul_rules();   // products between the two, of integers
std::span<const Rule> quantized_transposed_rules();  // ConvTranspose between the two
std::span<const Rule> quantized_pool_rules();        // averages between the two, of bytes

struct RuleFamily {
  RulePass pass;
  std::string_view file;
  std::span<const Rule> (*rules)();
};
std::span<const RuleFamily> rule_families();
// Rules applied at |level|, in the order of the tables.
std::vector<const Rule*> rules_of(RulePass pass, OptLevel level);

// Every rewrite, also those that are no rules, for the page that lists them.
struct KnownRule {
  std::string_view pass, name, what;
  std::optional<OptLevel> level;  // nullopt: runs where its pass is asked for by name
};
const std::vector<KnownRule>& all_rules();

}  // namespace pfrt
