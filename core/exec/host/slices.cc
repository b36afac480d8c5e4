// SPDX-License-Identifier: Apache-2.0
#include "core/exec/host/slices.h"

#include <algorithm>
#include <cstring>

namespace pfrt {
namespace {

bool packed(pfrt_dtype dtype) { return dtype_size(dtype) == 0; }

// Copies elements of types with several to a byte, the first in the lowest bits.
void copy_packed(const Tensor& from, int64_t from_at, Tensor& to, int64_t to_at, int64_t count) {
  const uint64_t bits = dtype_bits(from.dtype);
  const auto* source = from.as<const uint8_t>();
  auto* target = to.as<uint8_t>();
  const auto mask = static_cast<uint8_t>((1u << bits) - 1);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t f = static_cast<uint64_t>(from_at + i) * bits,
                   t = static_cast<uint64_t>(to_at + i) * bits;
    const auto element = static_cast<uint8_t>(source[f / 8] >> (f % 8) & mask);
    target[t / 8] =
        static_cast<uint8_t>((target[t / 8] & ~(mask << (t % 8))) | (element << (t % 8)));
  }
}

// Copies |count| elements that are contiguous in both.
Status copy_run(BytePace& pace, const Tensor& from, int64_t from_at, Tensor& to, int64_t to_at,
                int64_t count) {
  if (count <= 0) return {};
  if (from.dtype == PFRT_DTYPE_STRING) {
    for (int64_t i = 0; i < count; ++i) {
      const std::string_view text = view(from.as<const pfrt_string>()[from_at + i]);
      PFRT_TRY(pace.after(text.size()));
      PFRT_TRY(to.buffer->set_string(static_cast<uint64_t>(to_at + i), text));
    }
    return {};
  }
  if (packed(from.dtype)) {
    copy_packed(from, from_at, to, to_at, count);
    return {};
  }
  const size_t size = dtype_size(from.dtype);
  std::memcpy(to.as<char>() + static_cast<size_t>(to_at) * size,
              from.as<const char>() + static_cast<size_t>(from_at) * size,
              static_cast<size_t>(count) * size);
  return {};
}

// Cost in bytes of copying |count| elements of |tensor|, with that of the call.
uint64_t run_bytes(const Tensor& tensor, int64_t count) {
  constexpr uint64_t kCall = 32;
  return kCall + static_cast<uint64_t>(count) * std::max<size_t>(dtype_size(tensor.dtype), 1);
}

int64_t outer_count(const Dims& dims, size_t axis) { return element_count(dims.data(), axis); }
int64_t inner_count(const Dims& dims, size_t axis) {
  return element_count(dims.data() + axis + 1, dims.size() - axis - 1);
}

std::string dims_text(const Dims& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? "," : "") + std::to_string(dims[i]);
  return text + "]";
}

}  // namespace

Result<Tensor> slice(const RunControl& control, const Tensor& from, size_t axis, int64_t begin,
                     int64_t length) {
  const int64_t outer = outer_count(from.dims, axis), inner = inner_count(from.dims, axis);
  if (outer == 1 && !packed(from.dtype)) {
    Tensor out = from;
    out.dims[axis] = length;
    out.offset += static_cast<uint64_t>(begin * inner) * dtype_size(from.dtype);
    return out;
  }
  Dims dims = from.dims;
  dims[axis] = length;
  PFRT_ASSIGN(Tensor out, Tensor::allocate(from.dtype, std::move(dims)));
  if (out.count() == 0) return out;
  BytePace pace(control);
  for (int64_t o = 0; o < outer; ++o) {
    PFRT_TRY(copy_run(pace, from, (o * from.dims[axis] + begin) * inner, out, o * length * inner,
                      length * inner));
    PFRT_TRY(pace.after(run_bytes(out, length * inner)));
  }
  return out;
}

Result<Tensor> slice_at(const RunControl& control, const Tensor& from, size_t axis, int64_t index) {
  PFRT_ASSIGN(Tensor out, slice(control, from, axis, index, 1));
  out.dims.erase(out.dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return out;
}

Result<Tensor> concat(const RunControl& control, std::span<const Tensor> parts, size_t axis) {
  Dims dims = parts[0].dims;
  dims[axis] = 0;
  for (const Tensor& p : parts) {
    bool same = p.dtype == parts[0].dtype && p.dims.size() == dims.size();
    for (size_t i = 0; same && i < dims.size(); ++i) same = i == axis || p.dims[i] == dims[i];
    if (!same)
      return error(Code::kSHAPE_MISMATCH, "concatenating tensors along axis ", axis, ": one is ",
                   dtype_name(p.dtype), dims_text(p.dims), ", the first ",
                   dtype_name(parts[0].dtype), dims_text(parts[0].dims));
    if (__builtin_add_overflow(dims[axis], p.dims[axis], &dims[axis]))
      return error(Code::kSHAPE_MISMATCH, "concatenating tensors along axis ", axis,
                   ": their extents add up to more than 2^63");
  }
  PFRT_ASSIGN(Tensor whole, Tensor::allocate(parts[0].dtype, dims));
  const int64_t outer = outer_count(dims, axis), inner = inner_count(dims, axis);
  if (whole.count() == 0) return whole;
  BytePace pace(control);
  int64_t at = 0;
  for (const Tensor& p : parts) {
    const int64_t run = p.dims[axis] * inner;
    for (int64_t o = 0; o < outer && run > 0; ++o) {
      PFRT_TRY(copy_run(pace, p, o * run, whole, (o * dims[axis] + at) * inner, run));
      PFRT_TRY(pace.after(run_bytes(p, run)));
    }
    at += p.dims[axis];
  }
  return whole;
}

OutputRequest Stack::target() const {
  OutputRequest request;
  if (!whole_.valid() || added_ >= static_cast<size_t>(count_)) return request;
  const int64_t size = inner_count(whole_.dims, 0) * static_cast<int64_t>(dtype_size(whole_.dtype));
  request.bytes = static_cast<uint64_t>(size);
  request.data = whole_.as<char>() + row() * size;
  request.buffer = whole_.buffer;
  return request;
}

Status Stack::add(const Value& slice) {
  if (slice.kind != PFRT_VALUE_TENSOR)
    return error(Code::kINVALID_MODEL, "a scan output must be a tensor in each iteration");
  const Tensor& t = slice.tensor;
  const bool direct = count_ > 0 && t.dtype != PFRT_DTYPE_STRING && !packed(t.dtype);
  if (added_ == 0 && direct) {
    Dims dims = t.dims;
    dims.insert(dims.begin(), count_);
    PFRT_ASSIGN(whole_, Tensor::allocate(t.dtype, std::move(dims), false));
  }
  if (added_ > 0) {
    const Dims& first = direct ? whole_.dims : slices_[0].dims;
    const pfrt_dtype dtype = direct ? whole_.dtype : slices_[0].dtype;
    if (t.dtype != dtype ||
        !std::equal(first.begin() + (direct ? 1 : 0), first.end(), t.dims.begin(), t.dims.end()))
      return error(Code::kSHAPE_MISMATCH, "a scan output is ", dtype_name(t.dtype),
                   dims_text(t.dims), " in iteration ", added_, " and ", dtype_name(dtype),
                   dims_text(direct ? Dims(first.begin() + 1, first.end()) : first),
                   " in those before; it must be one type and shape in all");
  }
  if (direct) {
    const OutputRequest there = target();
    if (there.data && there.data != t.data() && there.bytes)
      std::memcpy(there.data, t.data(), there.bytes);
  } else {
    slices_.push_back(t);
  }
  ++added_;
  return {};
}

Result<Tensor> Stack::finish(const RunControl& control, const Type& like) {
  Tensor out;
  if (added_ == 0) {
    Dims dims{0};
    for (const Dim& d : like.shape) dims.push_back(d.known() ? d.value() : 0);
    PFRT_ASSIGN(out, Tensor::allocate(like.dtype, std::move(dims)));
  } else if (whole_.valid()) {
    out = std::move(whole_);
  } else {
    if (back_) std::reverse(slices_.begin(), slices_.end());
    for (Tensor& slice : slices_) slice.dims.insert(slice.dims.begin(), 1);
    PFRT_ASSIGN(out, concat(control, slices_, 0));
    slices_.clear();
  }
  const auto rank = static_cast<int64_t>(out.dims.size());
  if (axis_ < -rank || axis_ >= rank)
    return error(Code::kINVALID_MODEL, "axis ", axis_, " is not one of a tensor of rank ", rank);
  const int64_t axis = axis_ < 0 ? axis_ + rank : axis_;
  if (axis == 0) return out;
  // Moves [T, outer, inner] to [outer, T, inner].
  const int64_t times = out.dims[0];
  const int64_t inner = inner_count(out.dims, static_cast<size_t>(axis));
  const int64_t outer = element_count(out.dims.data() + 1, static_cast<size_t>(axis));
  Dims dims(out.dims.begin() + 1, out.dims.end());
  dims.insert(dims.begin() + axis, times);
  PFRT_ASSIGN(Tensor turned, Tensor::allocate(out.dtype, std::move(dims)));
  if (turned.count() == 0) return turned;
  BytePace pace(control);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t t = 0; t < times; ++t) {
      PFRT_TRY(
          copy_run(pace, out, (t * outer + o) * inner, turned, (o * times + t) * inner, inner));
      PFRT_TRY(pace.after(run_bytes(out, inner)));
    }
  return turned;
}

}  // namespace pfrt
