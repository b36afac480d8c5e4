// SPDX-License-Identifier: Apache-2.0
//
// Members of a value's handle.
#pragma once

#include <mutex>
#include <unordered_map>
#include <utility>

#include "capi/handle/counted.h"
#include "core/memory/tensor.h"
#include "pyflame_rt/pyflame_rt.h"

struct pfrt_value : pfrt::capi::Counted {
  explicit pfrt_value(pfrt::ValuePtr v) : value(std::move(v)) {}
  ~pfrt_value();
  // Returns a handle for a part of this value that lives as long as this one.
  pfrt_value* child(const pfrt::ValuePtr& part);

  pfrt::ValuePtr value;
  std::mutex mutex;
  std::unordered_map<const pfrt::Value*, pfrt_value*> children;
  pfrt_value* sparse_values = nullptr;  // parts of a sparse tensor, made on demand
  pfrt_value* sparse_indices = nullptr;
};
