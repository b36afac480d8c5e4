// SPDX-License-Identifier: Apache-2.0
#include "test/providers/cpu/attrs.h"

#include "core/base/dtype.h"

namespace pfrt::test {

void Attrs::add(const Attr& attr) {
  pfrt_snapshot_attr a{};
  a.name = to_c(attr.name);
  if (const auto* i = std::get_if<int64_t>(&attr.value)) {
    a.type = PFRT_ATTR_INT, a.i = *i;
  } else if (const auto* f = std::get_if<float>(&attr.value)) {
    a.type = PFRT_ATTR_FLOAT, a.f = *f;
  } else if (const auto* s = std::get_if<std::string>(&attr.value)) {
    a.type = PFRT_ATTR_STRING, a.s = to_c(*s);
  } else if (const auto* floats = std::get_if<std::vector<float>>(&attr.value)) {
    a.type = PFRT_ATTR_FLOATS, a.floats = floats->data(), a.count = floats->size();
  } else if (const auto* words = std::get_if<std::vector<std::string>>(&attr.value)) {
    std::vector<pfrt_string>& texts = texts_.emplace_back();
    for (const std::string& word : *words) texts.push_back(to_c(word));
    a.type = PFRT_ATTR_STRINGS, a.strings = texts.data(), a.count = texts.size();
  } else if (const auto* tensor = std::get_if<Data>(&attr.value)) {
    std::vector<char>& bytes =
        tensors_.emplace_back(tensor_bytes(tensor->dtype, count(tensor->dims)));
    store(tensor->dtype, tensor->values, bytes.data());
    a.type = PFRT_ATTR_TENSOR;
    a.tensor.struct_size = sizeof a.tensor;
    a.tensor.dtype = tensor->dtype;
    a.tensor.rank = static_cast<uint32_t>(tensor->dims.size());
    a.tensor.dims = tensor->dims.data();
    a.tensor.data = bytes.data();
    a.tensor.bytes = bytes.size();
  } else {
    const Dims& ints = std::get<Dims>(attr.value);
    a.type = PFRT_ATTR_INTS, a.ints = ints.data(), a.count = ints.size();
  }
  attrs_.push_back(a);
}

}  // namespace pfrt::test
