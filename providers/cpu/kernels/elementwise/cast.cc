// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "providers/cpu/kernels/convert.h"
#include "providers/cpu/kernels/elementwise/elementwise.h"
#include "providers/cpu/kernels/signature.h"

namespace pfrt::cpu {
namespace {

constexpr Types kCast = kNumbers | kBool;
constexpr int64_t kTask = 16 * kBlock;

// Through the input's compute type: load_block is exact, store_block rounds once.
template <typename T>
Kernel cast_kernel(pfrt_dtype from, pfrt_dtype to, int64_t elements) {
  Kernel kernel;
  kernel.run = [=](const Run& run) {
    const void* x = run.input(0);
    void* y = run.output(0);
    run.blocks(elements, kTask, [&](int64_t begin, int64_t end) {
      T block[kBlock];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t n = std::min(kBlock, end - i);
        if (to == kDtypeOf<T>)
          load_block(from, element(from, x, i), n, static_cast<T*>(y) + i);
        else
          store_block(to, read_block(from, x, i, n, block), n, element(to, y, i));
      }
    });
    return run.stop();
  };
  return kernel;
}

Kernel copy_kernel(pfrt_dtype dtype, int64_t elements) {
  Kernel kernel;
  const int64_t bytes = elements * static_cast<int64_t>(dtype_size(dtype));
  kernel.run = [bytes](const Run& run) {
    const char* x = run.input<char>(0);
    char* y = run.output<char>(0);
    if (x == y) return run.stop();
    run.blocks(bytes, 64 * kBlock, [&](int64_t begin, int64_t end) {
      std::memcpy(y + begin, x + begin, static_cast<size_t>(end - begin));
    });
    return run.stop();
  };
  kernel.may_alias = 0;
  return kernel;
}

std::string refuse_cast(const SnapshotNode& node) {
  const pfrt_dtype to = node.output_dtype(0);
  if (kCast.has(to)) return {};
  return message("conversion to ", dtype_name(to), " is not available, only to ", kCast.text());
}

Result<Kernel> make_cast(const SnapshotNode& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  const pfrt_dtype from = node.input_dtype(0), to = node.output_dtype(0);
  const int64_t elements = node.output_elements(0);
  if (from == to && from != PFRT_DTYPE_BOOL) return copy_kernel(from, elements);
  return with_compute_type(from, [&](auto zero) -> Result<Kernel> {
    Kernel kernel = cast_kernel<decltype(zero)>(from, to, elements);
    kernel.flops = static_cast<double>(elements);
    return kernel;
  });
}

std::string refuse_bit_cast(const SnapshotNode& node) {
  const pfrt_dtype from = node.input_dtype(0), to = node.output_dtype(0);
  if (kMovable.has(to) && dtype_size(from) == dtype_size(to)) return {};
  return message(dtype_name(from), " and ", dtype_name(to), " do not have the same whole bytes");
}

Result<Kernel> make_bit_cast(const SnapshotNode& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  return copy_kernel(node.input_dtype(0), node.output_elements(0));
}

constexpr KernelRow kRows[] = {
    {"", "Cast", kCast, "cast_ref", "generic", refuse_cast, make_cast},
    {"", "CastLike", kCast, "cast_like_ref", "generic", refuse_cast, make_cast},
    {"", "BitCast", kMovable, "bit_cast_ref", "generic", refuse_bit_cast, make_bit_cast},
};

}  // namespace

std::span<const KernelRow> cast_kernels() { return kRows; }

}  // namespace pfrt::cpu
