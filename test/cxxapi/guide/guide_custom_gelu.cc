// SPDX-License-Identifier: Apache-2.0
//
// The guide's "Adding Custom Operators", as printed: a static initialiser registers an operator
// before main.
#include <cmath>

#include "pyflame_rt/registry.hpp"
#include "pyflame_rt/tensor.hpp"

namespace pyflame_rt {
namespace ops {

namespace {

// Custom GELU variant
std::vector<Tensor> cpu_custom_gelu(const std::vector<const Tensor*>& inputs,
                                    const OpContext& ctx) {
  const Tensor& x = *inputs[0];
  Tensor result(x.shape(), x.dtype());

  const float* in = x.data_ptr<float>();
  float* out = result.data_ptr<float>();
  int64_t n = x.num_elements();

  // Get custom parameter
  float scale = ctx.node->get_attr<float>("scale", 1.0f);

  for (int64_t i = 0; i < n; ++i) {
    float val = in[i] * scale;
    // Approximate GELU
    out[i] = 0.5f * val * (1.0f + std::tanh(0.7978845608f * (val + 0.044715f * val * val * val)));
  }

  return {std::move(result)};
}

// Register at static initialization
struct CustomOpsRegistrar {
  CustomOpsRegistrar() { OperatorRegistry::instance().register_op("CustomGelu", cpu_custom_gelu); }
};

static CustomOpsRegistrar custom_ops_registrar;

}  // anonymous namespace
}  // namespace ops
}  // namespace pyflame_rt
