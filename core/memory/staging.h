// SPDX-License-Identifier: Apache-2.0
//
// Memory in which deferred constants are made for readers that read them once. One constant after
// another uses the same memory, so that its pages are taken once and stay in the caches. Externally
// synchronised.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/memory/tensor.h"

namespace pfrt {

class Staging {
 public:
  // Like Tensor::readable; a copy is valid until clear().
  Result<Tensor> readable(const Tensor& tensor);
  // Ends the use of all copies. Large memory is given back.
  void clear();

 private:
  std::vector<std::shared_ptr<Buffer>> blocks_;
  size_t used_ = 0;  // blocks that hold a copy
};

}  // namespace pfrt
