// SPDX-License-Identifier: Apache-2.0
//
// Memory for protobuf messages that survives running out of memory. Outside an arena it does not: a
// repeated field that cannot get memory for an element is left with one that its destructor then
// trips over. In an arena no message is destroyed, only strings are, and a string that was listed
// for that but not made yet is zeros here, which is harmless.
#pragma once

#include <google/protobuf/arena.h>

#include <cstdlib>
#include <new>

namespace pfrt::onnx {

inline google::protobuf::ArenaOptions arena_options() {
  google::protobuf::ArenaOptions options;
  options.block_alloc = [](size_t bytes) {
    void* block = std::calloc(1, bytes);
    if (!block) throw std::bad_alloc();
    return block;
  };
  options.block_dealloc = [](void* block, size_t) { std::free(block); };
  return options;
}

}  // namespace pfrt::onnx
