// SPDX-License-Identifier: Apache-2.0
//
// Whole values in one call: the texts of a tensor, and the parts of what is nested. A call for each
// costs callers from other languages more than the work.
#include <algorithm>
#include <cstring>

#include "capi/handle/guard.h"
#include "capi/handle/slots.h"
#include "capi/handle/tensor.h"
#include "capi/handle/value.h"

namespace pfrt::capi {
namespace {

Status fill(const Tensor& tensor, std::string_view text, const uint64_t* ends) {
  const auto count = static_cast<uint64_t>(tensor.count());
  uint64_t begin = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (ends[i] < begin || ends[i] > text.size())
      return error(Code::kINVALID_ARGUMENT, "creating a tensor of strings: string ", i,
                   " would be bytes ", begin, " to ", ends[i], " of ", text.size());
    PFRT_TRY(tensor.buffer->set_string(i, text.substr(begin, ends[i] - begin)));
    begin = ends[i];
  }
  return {};
}

// Writes parts as far as there is room, and counts on.
class PartList {
 public:
  PartList(pfrt_value_part* parts, size_t capacity)
      : parts_(parts), capacity_(capacity), stride_(capacity ? parts->struct_size : 0) {}

  size_t count() const { return count_; }

  Status add(const Value& value) {
    pfrt_value_part part{};
    part.struct_size = sizeof part;
    part.kind = value.kind;
    part.tensor.struct_size = sizeof part.tensor;
    switch (value.kind) {
      case PFRT_VALUE_TENSOR:
        return add_tensor(value.tensor);
      case PFRT_VALUE_SEQUENCE:
      case PFRT_VALUE_OPTIONAL:
        part.count = value.elements.size();
        PFRT_TRY(put(part));
        for (const ValuePtr& element : value.elements) PFRT_TRY(add(*element));
        return {};
      case PFRT_VALUE_MAP:
        part.count = 2;
        PFRT_TRY(put(part));
        PFRT_TRY(add(*value.keys));
        return add(*value.values);
      default:  // sparse
        part.count = 2;
        part.tensor.rank = static_cast<uint32_t>(value.dense_dims.size());
        part.tensor.dims = value.dense_dims.data();
        PFRT_TRY(put(part));
        PFRT_TRY(add_tensor(value.tensor));
        return add_tensor(value.indices);
    }
  }

 private:
  Status add_tensor(const Tensor& tensor) {
    pfrt_value_part part{};
    part.struct_size = sizeof part;
    part.kind = PFRT_VALUE_TENSOR;
    part.tensor = view_of(tensor);
    return put(part);
  }
  Status put(const pfrt_value_part& part) {
    if (count_ == kMost)
      return error(Code::kINVALID_ARGUMENT, "describing values: there are more than ", kMost,
                   " within them");
    const size_t i = count_++;
    if (i >= capacity_) return {};
    auto* const to =
        reinterpret_cast<pfrt_value_part*>(reinterpret_cast<char*>(parts_) + i * stride_);
    to->struct_size = static_cast<uint32_t>(stride_);
    return write(to, part);
  }

  // A sequence may have one element many times, on every level.
  static constexpr size_t kMost = size_t{1} << 24;

  pfrt_value_part* parts_;
  size_t capacity_, stride_, count_ = 0;
};

}  // namespace

pfrt_status* create_strings(const int64_t* dims, size_t rank, const char* text, size_t size,
                            const uint64_t* ends, pfrt_value** out) {
  return guard([&]() -> Status {
    if (!out || (!text && size)) return null_argument(out ? "text" : "out_value");
    *out = nullptr;
    PFRT_TRY(check_dims("creating a tensor of strings", dims, rank));
    PFRT_ASSIGN(Tensor tensor, Tensor::allocate(PFRT_DTYPE_STRING, Dims(dims, dims + rank)));
    const std::string_view all(size ? text : "", size);
    if (ends)
      PFRT_TRY(fill(tensor, all, ends));
    else
      PFRT_TRY(tensor.buffer->set_first_strings(all));
    *out = new pfrt_value(Value::of(std::move(tensor)));
    return {};
  });
}

pfrt_status* strings(const pfrt_value* value, char* text, size_t capacity, size_t* out_size,
                     uint64_t* ends) {
  return guard([&]() -> Status {
    if (!value || !out_size || (!text && capacity))
      return null_argument(!value ? "value" : !out_size ? "out_size" : "text");
    *out_size = 0;
    const Value& v = *value->value;
    if (v.kind != PFRT_VALUE_TENSOR || v.tensor.dtype != PFRT_DTYPE_STRING)
      return error(Code::kINVALID_ARGUMENT, "reading strings: the value is no tensor of strings");
    const std::span<const pfrt_string> all = v.tensor.strings();
    size_t size = ends || all.empty() ? 0 : all.size() - 1;
    for (const pfrt_string& one : all) size += one.size;
    *out_size = size;
    if (size > capacity) return {};
    char* to = text;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i > 0 && !ends) *to++ = 0;
      to = std::copy_n(all[i].data, all[i].size, to);
      if (ends) ends[i] = static_cast<uint64_t>(to - text);
    }
    return {};
  });
}

pfrt_status* value_parts(const pfrt_value* const* values, size_t value_count,
                         pfrt_value_part* parts, size_t capacity, size_t* out_count) {
  return guard([&]() -> Status {
    if (!out_count) return null_argument("out_count");
    *out_count = 0;
    if ((!values && value_count) || (!parts && capacity))
      return null_argument(parts || !capacity ? "values" : "parts");
    PartList list(parts, capacity);
    for (size_t i = 0; i < value_count; ++i) {
      if (!values[i])
        return error(Code::kINVALID_ARGUMENT, "describing values: number ", i, " is NULL");
      PFRT_TRY(list.add(*values[i]->value));
    }
    *out_count = list.count();
    return {};
  });
}

}  // namespace pfrt::capi
