// SPDX-License-Identifier: Apache-2.0
//
// The part of oneDNN that programs measuring against it need. For one thread at a time.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

namespace bench {

using Memory = dnnl::memory;
using Type = Memory::data_type;
using Tag = Memory::format_tag;

template <typename T>
constexpr Type type_of();
template <>
constexpr Type type_of<float>() {
  return Type::f32;
}
template <>
constexpr Type type_of<int32_t>() {
  return Type::s32;
}
template <>
constexpr Type type_of<uint8_t>() {
  return Type::u8;
}
template <>
constexpr Type type_of<int8_t>() {
  return Type::s8;
}

class Dnn {
 public:
  Memory memory(const Memory::desc& desc) { return Memory(desc, engine_); }
  // Returns |values|, which have the layout |tag|, in the layout and type of |desc|.
  template <typename T>
  Memory memory(const Memory::desc& desc, const std::vector<T>& values, const Memory::dims& dims,
                Tag tag) {
    Memory plain({dims, type_of<T>(), tag}, engine_, const_cast<T*>(values.data()));
    Memory out(desc, engine_);
    dnnl::reorder(plain, out).execute(stream_, plain, out);
    stream_.wait();
    return out;
  }
  template <typename T = float>
  std::vector<T> values(Memory from, const Memory::dims& dims, Tag tag) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    std::vector<T> out(static_cast<size_t>(count));
    Memory plain({dims, type_of<T>(), tag}, engine_, out.data());
    dnnl::reorder(from, plain).execute(stream_, from, plain);
    stream_.wait();
    return out;
  }
  void run(const dnnl::primitive& primitive, const std::unordered_map<int, Memory>& args) {
    primitive.execute(stream_, args);
    stream_.wait();
  }
  const dnnl::engine& engine() const { return engine_; }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
};

}  // namespace bench
