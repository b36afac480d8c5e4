// SPDX-License-Identifier: Apache-2.0
//
// Memory in which deferred constants are made for who reads them once: the same for one after the
// other, so that its pages are taken once and stay in the caches. Externally synchronised.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/memory/tensor.h"

namespace pfrt {

class Staging {
 public:
  // As Tensor::readable; a copy is good until clear().
  Result<Tensor> readable(const Tensor& tensor);
  // Nothing that was read is needed any more. Large memory is given back.
  void clear();

 private:
  std::vector<std::shared_ptr<Buffer>> blocks_;
  size_t used_ = 0;  // blocks that hold a copy
};

}  // namespace pfrt
