// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pyflame_rt/tensor.hpp>
#include <vector>

namespace pfrt_test {

// Returns the elements of a float32 tensor.
inline std::vector<float> floats(const pyflame_rt::Tensor& t) {
  return {t.data_ptr<float>(), t.data_ptr<float>() + t.num_elements()};
}

}  // namespace pfrt_test
