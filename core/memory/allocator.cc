// SPDX-License-Identifier: Apache-2.0
#include "core/memory/allocator.h"

#include <utility>

namespace pfrt {
namespace {

constinit thread_local const MemorySource* in_scope = nullptr;

}  // namespace

std::string Allocator::refusal(uint64_t bytes) const {
  return message("allocating ", bytes, " bytes: no memory left");
}

MemoryScope::MemoryScope(MemorySource source) : source_(std::move(source)), before_(in_scope) {
  in_scope = &source_;
}

MemoryScope::MemoryScope(const MemorySource* source) : before_(in_scope) { in_scope = source; }

MemoryScope::~MemoryScope() { in_scope = before_; }

const MemorySource& MemoryScope::current() {
  static const MemorySource none;
  return in_scope ? *in_scope : none;
}

}  // namespace pfrt
