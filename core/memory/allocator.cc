// SPDX-License-Identifier: Apache-2.0
#include "core/memory/allocator.h"

#include <utility>

namespace pfrt {
namespace {

thread_local const AllocatorPtr* in_scope = nullptr;

}  // namespace

AllocatorScope::AllocatorScope(AllocatorPtr allocator)
    : allocator_(std::move(allocator)), before_(in_scope) {
  in_scope = &allocator_;
}

AllocatorScope::~AllocatorScope() { in_scope = before_; }

AllocatorPtr AllocatorScope::current() { return in_scope ? *in_scope : nullptr; }

}  // namespace pfrt
