// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/elements/lines.h"
#include "providers/cpu/kernel/data_dependent_output.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/index/index.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 16 * kBlock;

// |count| copies of the element of |size| bytes at |value|.
void fill(const Run& run, void* out, int64_t count, const void* value, size_t size) {
  run.blocks(count, kTask, [&](int64_t begin, int64_t end) {
    char* to = static_cast<char*>(out) + begin * static_cast<int64_t>(size);
    const size_t bytes = static_cast<size_t>(end - begin) * size;
    if (bytes == 0) return;
    std::memcpy(to, value, size);
    for (size_t done = size; done < bytes; done *= 2)
      std::memcpy(to + done, to, std::min(done, bytes - done));
  });
}

// ConstantOfShape

// A byte full of the |bits|-wide element in the low bits of |value|.
char repeated(char value, uint32_t bits) {
  uint32_t byte = static_cast<uint8_t>(value) & ((1u << bits) - 1);
  for (; bits < 8; bits *= 2) byte |= byte << bits;
  return static_cast<char>(static_cast<uint8_t>(byte));
}

// Bits after the last of |count| elements become 0.
void clear_padding(uint8_t* last, int64_t count, uint32_t bits) {
  const uint32_t used = static_cast<uint32_t>(count % (8 / bits)) * bits;
  if (used != 0) *last = static_cast<uint8_t>(*last & ((1u << used) - 1));
}

std::string refuse_constant_of_shape(const KernelRequest& node) {
  if (kElements.has(node.output_dtype(0))) return {};
  return message("elements of ", dtype_name(node.output_dtype(0)),
                 " are not available: ", kElements.text());
}

Result<Kernel> make_constant_of_shape(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 0));
  if (node.input_rank(0) > 1) return kernel_error("the shape has rank ", node.input_rank(0), ": 1");
  const pfrt_dtype dtype = node.output_dtype(0);
  const size_t size = stored_size(dtype);
  std::array<char, 16> value{};
  if (size == 0 || size > value.size())
    return kernel_error("elements of ", dtype_name(dtype), " have no size");
  if (const pfrt_snapshot_attr* attr = node.attr("value")) {
    if (attr->tensor.dtype != node.output_dtype(0) || !attr->tensor.data ||
        attr->tensor.bytes < size)
      return kernel_error("attribute value is not one element of ",
                          dtype_name(node.output_dtype(0)));
    std::memcpy(value.data(), attr->tensor.data, size);
    if (kSubByte.has(dtype)) value[0] = repeated(value[0], dtype_bits(dtype));
  } else if (node.output_dtype(0) != PFRT_DTYPE_FLOAT32) {
    return kernel_error("without attribute value the output is float32, found ",
                        dtype_name(node.output_dtype(0)));
  }
  Kernel kernel;
  kernel.run = [value, size, dtype, rank = node.input_elements(0),
                outlet = Outlet(node, 0)](const Run& run) {
    const int64_t* dims = run.input<int64_t>(0);
    const std::span<const int64_t> shape(dims, static_cast<size_t>(rank));
    for (const int64_t d : shape)
      if (d < 0)
        return run.fail(Code::kSHAPE_MISMATCH, "the shape holds ", d,
                        ": dimensions are not negative");
    void* out = nullptr;
    if (const pfrt_code code = outlet.open(run, shape, &out)) return code;
    const int64_t count = element_count(shape.data(), shape.size());
    if (!kSubByte.has(dtype)) {
      fill(run, out, count, value.data(), size);
    } else if (count > 0) {
      const int64_t bytes = static_cast<int64_t>(tensor_bytes(dtype, count));
      fill(run, out, bytes, value.data(), 1);
      clear_padding(static_cast<uint8_t*>(out) + bytes - 1, count, dtype_bits(dtype));
    }
    return run.stop();
  };
  return kernel;
}

// Range

// Elements of a range; -1 when there is no such number.
template <typename T>
int64_t range_count(T start, T limit, T delta) {
  if constexpr (std::is_floating_point_v<T>) {
    const double count = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                   static_cast<double>(delta));
    if (!(count < 0x1p62)) return -1;
    return count > 0 ? static_cast<int64_t>(count) : 0;
  } else {
    const bool up = delta > T{0};
    if (up ? start >= limit : start <= limit) return 0;
    const uint64_t from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(limit);
    const uint64_t distance = up ? to - from : from - to;
    const uint64_t step =
        up ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
    const uint64_t count = distance / step + (distance % step != 0);
    return count >> 62 ? -1 : static_cast<int64_t>(count);
  }
}

template <typename T>
T range_element(T start, T delta, int64_t i) {
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(static_cast<double>(start) +
                          static_cast<double>(i) * static_cast<double>(delta));
  else
    return static_cast<T>(static_cast<uint64_t>(start) +
                          static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
}

template <typename T>
Kernel range_kernel(const SnapshotNode& node) {
  Kernel kernel;
  kernel.run = [dtype = node.output_dtype(0), outlet = Outlet(node, 0)](const Run& run) {
    const T start = load_scalar<T>(dtype, run.input(0)),
            limit = load_scalar<T>(dtype, run.input(1)),
            delta = load_scalar<T>(dtype, run.input(2));
    if (delta == T{0})
      return run.fail(Code::kINVALID_ARGUMENT, "a range with delta 0 does not end");
    int64_t count = range_count(start, limit, delta);
    // The host may have rounded a range of floats differently by one element.
    const auto* planned = outlet.planned();
    if (std::is_floating_point_v<T> && count >= 0 && planned && planned->size() == 1 &&
        std::abs(planned->front() - count) == 1)
      count = planned->front();
    if (count < 0)
      return run.fail(Code::kINVALID_ARGUMENT, "the range has no finite number of elements");
    void* out = nullptr;
    if (const pfrt_code code = outlet.open(run, {&count, 1}, &out)) return code;
    run.blocks(count, kTask, [&](int64_t begin, int64_t end) {
      T block[kBlock];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t n = std::min(kBlock, end - i);
        for (int64_t j = 0; j < n; ++j) block[j] = range_element(start, delta, i + j);
        store_block(dtype, block, n, element(dtype, out, i));
      }
    });
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_range(const KernelRequest& node) {
  for (uint32_t i = 0; i < 3; ++i) {
    PFRT_TRY(need_scalar(node, i));
    if (node.input_dtype(i) != node.output_dtype(0))
      return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                   ", the output ", dtype_name(node.output_dtype(0)));
  }
  return with_compute_type(node.output_dtype(0), [&](auto zero) -> Result<Kernel> {
    return range_kernel<decltype(zero)>(node);
  });
}

// EyeLike

std::string refuse_eye_like(const KernelRequest& node) {
  if ((kNumbers | kBool).has(node.output_dtype(0))) return {};
  return message("elements of ", dtype_name(node.output_dtype(0)),
                 " are not available: ", kNumbers.text());
}

Result<Kernel> make_eye_like(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  if (node.input_rank(0) != 2)
    return kernel_error("the input has rank ", node.input_rank(0), ": 2");
  const int64_t rows = node.output_dims(0)[0], columns = node.output_dims(0)[1];
  const int64_t k = std::clamp(node.attr_int("k", 0), -rows, columns);
  const pfrt_dtype dtype = node.output_dtype(0);
  const size_t bytes = static_cast<size_t>(rows * columns) * dtype_size(dtype);
  Kernel kernel;
  kernel.run = [=](const Run& run) {
    void* y = run.output(0);
    if (bytes == 0) return pfrt_code{PFRT_CODE_OK};
    constexpr char kZero = 0;  // all bits zero is 0 in every type here
    fill(run, y, static_cast<int64_t>(bytes), &kZero, 1);
    const float one = 1;
    Pace pace(run);
    if (run.stopped()) return run.stop();
    for (int64_t r = std::max<int64_t>(0, -k); r < rows && r + k < columns && !pace.stopped(64);
         ++r)
      store_block(dtype, &one, 1, element(dtype, y, r * columns + r + k));
    return run.stop();
  };
  return kernel;
}

// OneHot

std::string refuse_one_hot(const KernelRequest& node) {
  if (!kNumbers.has(node.input_dtype(0)) || !kNumbers.has(node.input_dtype(1)))
    return message("indices and depth are ", dtype_name(node.input_dtype(0)), " and ",
                   dtype_name(node.input_dtype(1)), ": ", kNumbers.text());
  return {};
}

struct HotLayout {
  int64_t outer = 1, inner = 1;
  size_t axis = 0;  // of the output
  std::vector<int64_t> index_dims;
};

// Output rows [outer][depth][inner]: all |off|, then |on| where an index says so. Indices outside
// the depth are off.
void write_hot(const Run& run, const HotLayout& layout, int64_t depth, pfrt_dtype index_type,
               size_t size, char* y) {
  const char* off = run.input<char>(2);
  const char* on = off + size;
  fill(run, y, layout.outer * depth * layout.inner, off, size);
  const int64_t indices = layout.outer * layout.inner;
  run.blocks(indices, kTask, [&](int64_t begin, int64_t end) {
    int64_t block[kBlock];
    for (int64_t i = begin; i < end; i += kBlock) {
      const int64_t n = std::min(kBlock, end - i);
      load_block(index_type, element(index_type, run.input(0), i), n, block);
      for (int64_t j = 0; j < n; ++j) {
        const int64_t hot = block[j] < 0 ? block[j] + depth : block[j];
        if (hot < 0 || hot >= depth) continue;
        const int64_t at =
            ((i + j) / layout.inner * depth + hot) * layout.inner + (i + j) % layout.inner;
        std::memcpy(y + at * static_cast<int64_t>(size), on, size);
      }
    }
  });
}

Result<Kernel> make_one_hot(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 0));
  PFRT_TRY(need_scalar(node, 1));
  if (node.input_elements(2) != 2)
    return kernel_error("values has ", node.input_elements(2), " elements: off and on");
  if (node.output_dtype(0) != node.input_dtype(2))
    return error(Code::kDTYPE_MISMATCH, "values are ", dtype_name(node.input_dtype(2)),
                 ", the output ", dtype_name(node.output_dtype(0)));
  const auto dims = node.input_dims(0);
  PFRT_ASSIGN(const int64_t axis, axis_of(node.attr_int("axis", -1), dims.size() + 1));
  HotLayout layout;
  layout.axis = static_cast<size_t>(axis);
  layout.index_dims.assign(dims.begin(), dims.end());
  for (size_t d = 0; d < dims.size(); ++d)
    (d < layout.axis ? layout.outer : layout.inner) *= dims[d];
  Kernel kernel;
  kernel.run = [layout = std::move(layout), index_type = node.input_dtype(0),
                depth_type = node.input_dtype(1), size = dtype_size(node.output_dtype(0)),
                outlet = Outlet(node, 0)](const Run& run) {
    const int64_t depth = load_scalar<int64_t>(depth_type, run.input(1));
    if (depth < 0) return run.fail(Code::kINVALID_ARGUMENT, "depth is ", depth, ": not negative");
    std::vector<int64_t> out_dims = layout.index_dims;
    out_dims.insert(out_dims.begin() + static_cast<std::ptrdiff_t>(layout.axis), depth);
    void* y = nullptr;
    if (const pfrt_code code = outlet.open(run, out_dims, &y)) return code;
    if (element_count(out_dims.data(), out_dims.size()) > 0)
      write_hot(run, layout, depth, index_type, size, static_cast<char*>(y));
    return run.stop();
  };
  return kernel;
}

// Trilu

Result<Kernel> make_trilu(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_like_output(node, 0));
  if (node.has_input(1)) {
    PFRT_TRY(need_scalar(node, 1));
    if (!kIndices.has(node.input_dtype(1)))
      return error(Code::kDTYPE_MISMATCH, "k is ", dtype_name(node.input_dtype(1)), ": int64");
  }
  const auto dims = node.input_dims(0);
  if (dims.size() < 2) return kernel_error("the input has rank ", dims.size(), ": at least 2");
  const int64_t rows = dims[dims.size() - 2], columns = dims[dims.size() - 1];
  const int64_t all_rows = columns == 0 ? 0 : node.input_elements(0) / columns;
  const int64_t size = static_cast<int64_t>(stored_size(node.input_dtype(0)));
  Kernel kernel;
  kernel.may_alias = 0;
  kernel.run = [=, has_k = node.has_input(1), k_type = node.input_dtype(1),
                upper = node.attr_int("upper", 1) != 0](const Run& run) {
    const int64_t diagonal = has_k ? load_scalar<int64_t>(k_type, run.input(1)) : 0;
    const int64_t k = std::clamp(diagonal, -rows, columns);
    const int64_t rows_a_task = std::max<int64_t>(kTask / std::max<int64_t>(columns, 1), 1);
    run.blocks(all_rows, rows_a_task, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const char* x = run.input<char>(0) + r * columns * size;
        char* y = run.output<char>(0) + r * columns * size;
        // Columns from |border| on belong to the upper part, those before it to the lower.
        const int64_t border =
            std::clamp<int64_t>(r % rows + k + (upper ? 0 : 1), 0, columns) * size;
        const int64_t begin_kept = upper ? border : 0, end_kept = upper ? columns * size : border;
        if (x != y)
          std::memcpy(y + begin_kept, x + begin_kept, static_cast<size_t>(end_kept - begin_kept));
        std::memset(y, 0, static_cast<size_t>(begin_kept));
        std::memset(y + end_kept, 0, static_cast<size_t>(columns * size - end_kept));
      }
    });
    return run.stop();
  };
  return kernel;
}

constexpr KernelRow kRows[] = {
    sub_byte_as_is({"", "ConstantOfShape", Types{PFRT_DTYPE_INT64}, "constant_of_shape_ref",
                    "generic", refuse_constant_of_shape, make_constant_of_shape}),
    checks_inputs({"", "Range", kNumbers, "range_ref", "generic", nullptr, make_range}),
    {"", "EyeLike", kNumbers | kBool, "eye_like_ref", "generic", refuse_eye_like, make_eye_like},
    checks_inputs(
        {"", "OneHot", kMovable, "one_hot_ref", "generic", refuse_one_hot, make_one_hot, 2}),
    {"", "Trilu", kElements, "trilu_ref", "generic", nullptr, make_trilu},
};

}  // namespace

std::span<const KernelRow> fill_rows() { return kRows; }

}  // namespace pfrt::cpu
