// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/complex.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/elementwise/elementwise.h"

namespace pfrt::cpu {
namespace {

constexpr Types kReals = kNumbers | kBool | kFloat8 | kSubByte | Types{PFRT_DTYPE_FLOAT8E8M0};
constexpr int64_t kTask = 16 * kBlock;

// Attributes that concern 8-bit floats.
struct Narrowing {
  bool saturate = true;
  PowerRounding rounding = PowerRounding::kUp;
};

// Through the input's compute type: load_block is exact, store_block rounds once.
template <typename T>
Kernel cast_kernel(pfrt_dtype from, pfrt_dtype to, int64_t elements, const Narrowing& narrowing) {
  const bool small = is_small_float(to);
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
        else if (small)
          store_small_floats(to, read_block(from, x, i, n, block), n, element(to, y, i),
                             narrowing.saturate, narrowing.rounding);
        else
          store_block(to, read_block(from, x, i, n, block), n, element(to, y, i));
      }
      run.apply_epilogue(begin, end);
    });
    return run.stop();
  };
  return kernel;
}

Kernel copy_kernel(pfrt_dtype dtype, int64_t elements) {
  Kernel kernel;
  kernel.run = [elements, size = static_cast<int64_t>(stored_size(dtype))](const Run& run) {
    const char* x = run.input<char>(0);
    char* y = run.output<char>(0);
    run.blocks(elements, kTask, [&](int64_t begin, int64_t end) {
      if (x != y)
        std::memcpy(y + begin * size, x + begin * size, static_cast<size_t>((end - begin) * size));
      run.apply_epilogue(begin, end);
    });
    return run.stop();
  };
  kernel.may_alias = 0;
  return kernel;
}

// A pair of float or double an element; a real number has no imaginary part, and a complex one
// loses it (but is not false for its sake).
Kernel complex_kernel(pfrt_dtype from, pfrt_dtype to, int64_t elements) {
  Kernel kernel;
  kernel.run = [=](const Run& run) {
    const pfrt_dtype from_component = component_dtype(from), to_component = component_dtype(to);
    const int64_t from_components = components_of(from), to_components = components_of(to);
    run.blocks(elements, kTask, [&](int64_t begin, int64_t end) {
      double number[2 * kBlock], out[2 * kBlock];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t n = std::min(kBlock, end - i);
        load_block(from_component, element(from_component, run.input(0), i * from_components),
                   n * from_components, number);
        for (int64_t k = 0; k < n; ++k) {
          out[k * to_components] = number[k * from_components];
          if (to_components == 2)
            out[k * 2 + 1] = from_components == 2 ? number[k * 2 + 1] : 0;
          else if (to == PFRT_DTYPE_BOOL && number[k * 2] == 0)
            out[k] = number[k * 2 + 1];
        }
        store_block(to_component, out, n * to_components,
                    element(to_component, run.output(0), i * to_components));
      }
      run.apply_epilogue(begin, end);
    });
    return run.stop();
  };
  return kernel;
}

std::string refuse_cast(const KernelRequest& node) {
  const pfrt_dtype to = node.output_dtype(0);
  if ((kReals | kComplex).has(to)) return {};
  return message("conversion to ", dtype_name(to), " is not available, only to ", kReals.text());
}

Result<Narrowing> narrowing_of(const SnapshotNode& node) {
  Narrowing out;
  out.saturate = node.attr_int("saturate", 1) != 0;
  const std::string_view mode = node.attr_string("round_mode", "up");
  if (mode == "down")
    out.rounding = PowerRounding::kDown;
  else if (mode == "nearest")
    out.rounding = PowerRounding::kNearest;
  else if (mode != "up")
    return kernel_error("attribute round_mode is '", mode, "': up, down or nearest");
  return out;
}

Result<Kernel> make_cast(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  const pfrt_dtype from = node.input_dtype(0), to = node.output_dtype(0);
  const int64_t elements = node.output_elements(0);
  PFRT_ASSIGN(const Narrowing narrowing, narrowing_of(node));
  if (from == to && from != PFRT_DTYPE_BOOL) return copy_kernel(from, elements);
  if (kComplex.has(from) || kComplex.has(to)) return complex_kernel(from, to, elements);
  return with_compute_type(from, [&](auto zero) -> Result<Kernel> {
    Kernel kernel = cast_kernel<decltype(zero)>(from, to, elements, narrowing);
    kernel.flops = static_cast<double>(elements);
    return kernel;
  });
}

std::string refuse_bit_cast(const KernelRequest& node) {
  const pfrt_dtype from = node.input_dtype(0), to = node.output_dtype(0);
  if (kElements.has(to) && dtype_bits(from) == dtype_bits(to)) return {};
  return message(dtype_name(from), " and ", dtype_name(to), " do not have the same size");
}

Result<Kernel> make_bit_cast(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  return copy_kernel(node.input_dtype(0), node.output_elements(0));
}

// Several elements share a byte, and their bits stay where they are.
Result<Kernel> make_sub_byte_bit_cast(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  const auto bytes = tensor_bytes(node.input_dtype(0), node.output_elements(0));
  return copy_kernel(PFRT_DTYPE_UINT8, static_cast<int64_t>(bytes));
}

constexpr KernelRow kRows[] = {
    with_epilogue({"", "Cast", kReals | kComplex, "cast_ref", "generic", refuse_cast, make_cast}),
    with_epilogue(
        {"", "CastLike", kReals | kComplex, "cast_like_ref", "generic", refuse_cast, make_cast}),
    {"", "BitCast", kMovable, "bit_cast_ref", "generic", refuse_bit_cast, make_bit_cast},
    sub_byte_as_is({"", "BitCast", kSubByte, "bit_cast_sub_byte", "generic", refuse_bit_cast,
                    make_sub_byte_bit_cast}),
};

}  // namespace

std::span<const KernelRow> cast_kernels() { return kRows; }

}  // namespace pfrt::cpu
