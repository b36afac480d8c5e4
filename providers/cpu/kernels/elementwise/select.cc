// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/elementwise/broadcast.h"
#include "providers/cpu/kernels/elementwise/elementwise.h"

namespace pfrt::cpu {
namespace {

void copy_bytes(const Run& run, int64_t bytes) {
  const char* x = run.input<char>(0);
  char* y = run.output<char>(0);
  if (x == y) return;
  run.blocks(bytes, 64 * kBlock, [&](int64_t begin, int64_t end) {
    std::memcpy(y + begin, x + begin, static_cast<size_t>(end - begin));
  });
}

Result<Kernel> make_identity(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_like_output(node, 0));
  const uint64_t bytes = tensor_bytes(node.input_dtype(0), node.input_elements(0));
  if (bytes > static_cast<uint64_t>(INT64_MAX)) return kernel_error("the tensor is too large");
  Kernel kernel;
  kernel.may_alias = 0;
  kernel.run = [bytes = static_cast<int64_t>(bytes)](const Run& run) {
    copy_bytes(run, bytes);
    return run.stop();
  };
  return kernel;
}

std::string refuse_dropout(const KernelRequest& node) {
  if (!node.has_input(2)) return {};
  const auto training = node.constant_int64s(2);
  if (training.empty()) return "training_mode is known in a run only";
  if (training[0] != 0) return "training_mode is true: this kernel is for inference";
  return {};
}

// Dropout changes nothing in inference and without a mask.
std::optional<InPlace> dropout_in_place(const SnapshotNode& node) {
  if (node.has_output(1)) return std::nullopt;
  if (!node.has_input(2)) return InPlace{};
  const auto* training = static_cast<const uint8_t*>(node.input_constant(2));
  return training != nullptr && *training == 0 ? std::optional<InPlace>(InPlace{}) : std::nullopt;
}

Result<Kernel> make_dropout(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, node.has_output(1) ? 2 : 1));
  if (node.has_output(1)) PFRT_TRY(need_output_dims(node, 1, node.input_dims(0)));
  PFRT_ASSIGN(Kernel kernel, make_identity(node));
  if (!node.has_output(1)) return kernel;
  if (node.output_dtype(1) != PFRT_DTYPE_BOOL)
    return error(Code::kDTYPE_MISMATCH, "the mask is ", dtype_name(node.output_dtype(1)), ": bool");
  kernel.run = [copy = std::move(kernel.run), elements = node.output_elements(1)](const Run& run) {
    if (elements > 0) std::memset(run.output(1), 1, static_cast<size_t>(elements));
    return copy(run);
  };
  return kernel;
}

// Bounds cross over as min(max(x, low), high); NaN stays.
template <typename T>
void clip_loop(const T* x, T low, T high, T* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T raised = x[i] < low ? low : x[i];
    y[i] = raised > high ? high : raised;
  }
}

template <typename T>
Kernel clip_kernel(const SnapshotNode& node) {
  Kernel kernel;
  kernel.run = [dtype = node.input_dtype(0), elements = node.output_elements(0),
                has_low = node.has_input(1), has_high = node.has_input(2)](const Run& run) {
    const T low = has_low ? load_scalar<T>(dtype, run.input(1)) : lowest_of<T>(dtype);
    const T high = has_high ? load_scalar<T>(dtype, run.input(2)) : highest_of<T>(dtype);
    run.blocks(elements, Broadcast::kTask, [&](int64_t begin, int64_t end) {
      T x_block[kBlock], y_block[kBlock];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t n = std::min(kBlock, end - i);
        T* y = place_block(dtype, run.output(0), i, y_block);
        clip_loop(read_block(dtype, run.input(0), i, n, x_block), low, high, y, n);
        write_block(dtype, run.output(0), i, n, y);
      }
      run.apply_epilogue(begin, end);
    });
    return run.stop();
  };
  kernel.flops = 2.0 * static_cast<double>(node.output_elements(0));
  kernel.may_alias = 0;
  return kernel;
}

Result<Kernel> make_clip(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_like_output(node, 0));
  for (uint32_t i = 1; i <= 2; ++i) {
    if (!node.has_input(i)) continue;
    PFRT_TRY(need_scalar(node, i));
    if (node.input_dtype(i) != node.input_dtype(0))
      return error(Code::kDTYPE_MISMATCH, "bound ", i, " is ", dtype_name(node.input_dtype(i)),
                   ", the input ", dtype_name(node.input_dtype(0)));
  }
  return with_compute_type(node.input_dtype(0), [&](auto zero) -> Result<Kernel> {
    return clip_kernel<decltype(zero)>(node);
  });
}

struct Bytes16 {
  uint64_t halves[2];
};

template <typename Element>
Kernel where_kernel(Broadcast broadcast) {
  Kernel kernel;
  kernel.run = [broadcast = std::move(broadcast)](const Run& run) {
    const int64_t c_step = broadcast.step(0), a_step = broadcast.step(1),
                  b_step = broadcast.step(2);
    run.blocks(broadcast.elements(), Broadcast::kTask, [&](int64_t begin, int64_t end) {
      broadcast.walk(begin, end, [&](int64_t position, int64_t n, const int64_t* offsets) {
        const uint8_t* c = run.input<uint8_t>(0) + offsets[0];
        const Element* a = run.input<Element>(1) + offsets[1];
        const Element* b = run.input<Element>(2) + offsets[2];
        Element* y = run.output<Element>(0) + position;
        for (int64_t i = 0; i < n; ++i) y[i] = c[i * c_step] ? a[i * a_step] : b[i * b_step];
      });
      run.apply_epilogue(begin, end);
    });
    return run.stop();
  };
  return kernel;
}

std::string refuse_where(const KernelRequest& node) {
  if (node.input_dtype(0) == PFRT_DTYPE_BOOL) return {};
  return message("the condition is ", dtype_name(node.input_dtype(0)), ": bool");
}

Result<Kernel> make_where(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 1));
  if (node.input_dtype(1) != node.input_dtype(2) || node.input_dtype(1) != node.output_dtype(0))
    return error(Code::kDTYPE_MISMATCH, "inputs 1 and 2 are ", dtype_name(node.input_dtype(1)),
                 " and ", dtype_name(node.input_dtype(2)), ": cast one to the other's type");
  PFRT_ASSIGN(auto broadcast,
              Broadcast::make(node.output_dims(0),
                              {node.input_dims(0), node.input_dims(1), node.input_dims(2)}));
  const auto kernel_of = [&]() -> Result<Kernel> {
    switch (stored_size(node.output_dtype(0))) {
      case 1:
        return where_kernel<uint8_t>(std::move(broadcast));
      case 2:
        return where_kernel<uint16_t>(std::move(broadcast));
      case 4:
        return where_kernel<uint32_t>(std::move(broadcast));
      case 8:
        return where_kernel<uint64_t>(std::move(broadcast));
      case 16:
        return where_kernel<Bytes16>(std::move(broadcast));
      default:
        return kernel_error("element type ", dtype_name(node.output_dtype(0)),
                            " has no whole bytes");
    }
  };
  PFRT_ASSIGN(Kernel kernel, kernel_of());
  kernel.flops = static_cast<double>(node.output_elements(0));
  kernel.may_alias = like_output(node, 1) ? 1 : like_output(node, 2) ? 2 : -1;
  return kernel;
}

constexpr KernelRow kRows[] = {
    sub_byte_as_is(with_in_place(same_bytes, {"", "Identity", kElements, "identity_ref", "generic",
                                              nullptr, make_identity})),
    checks_inputs(optional_outputs(
        with_in_place(dropout_in_place, {"", "Dropout", kFloats | kFloat8, "dropout_ref", "generic",
                                         refuse_dropout, make_dropout}))),
    with_epilogue({"", "Clip", kNumbers, "clip_ref", "generic", nullptr, make_clip}),
    with_epilogue({"", "Where", kElements, "where_ref", "generic", refuse_where, make_where, 1}),
};

}  // namespace

std::span<const KernelRow> select_rows() { return kRows; }

}  // namespace pfrt::cpu
