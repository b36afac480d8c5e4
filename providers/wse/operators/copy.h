// SPDX-License-Identifier: Apache-2.0
//
// Copying elements of any type from one tensor to another by strides. Thread-safe.
#pragma once

#include "providers/wse/operators/operators.h"

namespace pfrt::wse {

// A part of a tensor: where its first element is, and how far apart elements are along each axis.
struct Part {
  const Tensor& tensor;
  int64_t first;
  Dims strides;
};

// Both parts have |dims| and lie inside their tensors, which are of one type.
void copy_strided(const Part& from, const Part& to, const Dims& dims);

}  // namespace pfrt::wse
