// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/elementwise/binary.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "providers/cpu/elements/arithmetic.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/elementwise/broadcast.h"
#include "providers/cpu/kernels/elementwise/elementwise.h"

namespace pfrt::cpu {
namespace {

template <typename T, typename R>
Result<Kernel> binary_kernel(const SnapshotNode& node, BinaryLoop<T, R> loop, Rejects rejects) {
  PFRT_ASSIGN(auto broadcast,
              Broadcast::make(node.output_dims(0), {node.input_dims(0), node.input_dims(1)}));
  const bool check = rejects == Rejects::kZeroDivisor && std::is_integral_v<T>;
  Kernel kernel;
  kernel.run = [=, broadcast = std::move(broadcast), a_type = node.input_dtype(0),
                b_type = node.input_dtype(1), y_type = node.output_dtype(0)](const Run& run) {
    const int64_t a_step = broadcast.step(0), b_step = broadcast.step(1);
    std::atomic<bool> zero_divisor{false};
    run.blocks(broadcast.elements(), Broadcast::kTask, [&](int64_t begin, int64_t end) {
      T a_block[kBlock], b_block[kBlock];
      R y_block[kBlock];
      broadcast.walk(begin, end, [&](int64_t position, int64_t n, const int64_t* offsets) {
        const T* a = read_block(a_type, run.input(0), offsets[0], a_step ? n : 1, a_block);
        const int64_t b_count = b_step ? n : 1;
        const T* b = read_block(b_type, run.input(1), offsets[1], b_count, b_block);
        if (check && std::find(b, b + b_count, T{0}) != b + b_count) {
          zero_divisor = true;
          return;
        }
        if constexpr (std::is_same_v<T, R>) {
          R* y = place_block(y_type, run.output(0), position, y_block);
          loop(a, a_step, b, b_step, y, n);
          write_block(y_type, run.output(0), position, n, y);
        } else {
          loop(a, a_step, b, b_step, run.output<R>(0) + position, n);
        }
      });
      run.apply_epilogue(begin, end);
    });
    if (zero_divisor)
      return run.fail(Code::kINVALID_ARGUMENT, "integer division by zero: input 1 holds a 0");
    return run.stop();
  };
  kernel.flops = static_cast<double>(node.output_elements(0));
  kernel.may_alias = like_output(node, 0) ? 0 : like_output(node, 1) ? 1 : -1;
  return kernel;
}

template <typename R, typename Loops>
Result<Kernel> make_with(const SnapshotNode& node, pfrt_dtype compute, const Loops& loops,
                         Rejects rejects) {
  PFRT_TRY(need(node, 2, 1));
  return with_compute_type(compute, [&](auto zero) -> Result<Kernel> {
    using T = decltype(zero);
    using Loop = BinaryLoop<T, std::conditional_t<std::is_void_v<R>, T, R>>;
    const auto loop = std::get<Loop>(loops);
    if (!loop) return kernel_error("element type ", dtype_name(compute), " is not computed");
    return binary_kernel(node, loop, rejects);
  });
}

Status need_equal_types(const SnapshotNode& node) {
  if (node.input_dtype(0) == node.input_dtype(1)) return {};
  return error(Code::kDTYPE_MISMATCH, "inputs are ", dtype_name(node.input_dtype(0)), " and ",
               dtype_name(node.input_dtype(1)), ": cast one to the other's type");
}

std::string refuse_pow(const KernelRequest& node) {
  if (kNumbers.has(node.input_dtype(1))) return {};
  return message("the exponent is ", dtype_name(node.input_dtype(1)), ": ", kNumbers.text());
}

// Integers stay integers unless the exponent has a fraction; the wider of two floats wins.
Result<Kernel> make_pow(const KernelRequest& node) {
  const pfrt_dtype base = node.input_dtype(0), exponent = node.input_dtype(1);
  const bool wide =
      exponent == PFRT_DTYPE_FLOAT64 || (dtype_is_float(exponent) && !dtype_is_float(base));
  auto kernel =
      make_binary_as(node, wide ? pfrt_dtype{PFRT_DTYPE_FLOAT64} : base,
                     binary_loops<[](auto a, auto b) { return power_of(a, b); }, On::kAny>());
  if (kernel.ok()) kernel->flops *= 20;
  return kernel;
}

// The remainder with the divisor's sign, which a zero of floats has too.
template <typename T>
T floored_modulus(T a, T b) {
  const T r = modulus_of(a, b);
  if constexpr (std::is_floating_point_v<T>)
    if (r == T{0}) return std::copysign(r, b);
  return r;
}

Result<Kernel> make_mod(const KernelRequest& node) {
  if (node.attr_int("fmod", 0) != 0)
    return make_binary(node,
                       binary_loops<[](auto a, auto b) { return remainder_of(a, b); }, On::kAny>(),
                       Rejects::kZeroDivisor);
  return make_binary(node,
                     binary_loops<[](auto a, auto b) { return floored_modulus(a, b); }, On::kAny>(),
                     Rejects::kZeroDivisor);
}

// Shifts lose bits beyond the element type: loads extend with zeros, or with the sign, and stores
// truncate. A shift by a negative number counts as one by all bits or more: nothing but the sign
// stays.
template <typename T>
T shifted_left(T a, T b) {
  const auto by = static_cast<uint64_t>(b);
  return by < 64 ? static_cast<T>(static_cast<uint64_t>(a) << by) : T{0};
}
template <typename T>
T shifted_right(T a, T b) {
  const auto by = static_cast<uint64_t>(b);
  if constexpr (std::is_signed_v<T>) return a >> std::min<uint64_t>(by, 63);
  return by < 64 ? static_cast<T>(a >> by) : T{0};
}

Result<Kernel> make_bit_shift(const KernelRequest& node) {
  constexpr BinaryLoops kLeft =
      binary_loops<[](auto a, auto b) { return shifted_left(a, b); }, On::kInteger>();
  constexpr BinaryLoops kRight =
      binary_loops<[](auto a, auto b) { return shifted_right(a, b); }, On::kInteger>();
  const std::string_view direction = node.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return kernel_error("attribute direction is '", direction, "': LEFT or RIGHT");
  return make_binary(node, direction == "LEFT" ? kLeft : kRight);
}

template <typename T>
T leaky(T x, T slope) {
  if constexpr (std::is_signed_v<T> || std::is_floating_point_v<T>)
    if (x < T{0}) return product_of(x, slope);
  return x;
}

constexpr KernelRow kRows[] = {
    binary_row<[](auto a, auto b) { return sum_of(a, b); }, On::kAny>("Add", kNumbers, "add_ref"),
    binary_row<[](auto a, auto b) { return difference_of(a, b); }, On::kAny>("Sub", kNumbers,
                                                                             "sub_ref"),
    binary_row<[](auto a, auto b) { return product_of(a, b); }, On::kAny>("Mul", kNumbers,
                                                                          "mul_ref"),
    checks_inputs(binary_row<[](auto a, auto b) { return quotient_of(a, b); }, On::kAny,
                             Rejects::kZeroDivisor>("Div", kNumbers, "div_ref")),
    with_epilogue({"", "Pow", kNumbers, "pow_ref", "generic", refuse_pow, make_pow}),
    with_epilogue(checks_inputs({"", "Mod", kNumbers, "mod_ref", "generic", nullptr, make_mod})),
    binary_row<[](auto x, auto slope) { return leaky(x, slope); }, On::kAny>("PRelu", kNumbers,
                                                                             "prelu_ref"),
    {"", "BitShift", kInts, "bit_shift_ref", "generic", nullptr, make_bit_shift},
    binary_row<[](auto a, auto b) { return a & b; }, On::kInteger>("And", kBool, "and_ref"),
    binary_row<[](auto a, auto b) { return a | b; }, On::kInteger>("Or", kBool, "or_ref"),
    binary_row<[](auto a, auto b) { return a ^ b; }, On::kInteger>("Xor", kBool, "xor_ref"),
    binary_row<[](auto a, auto b) { return a & b; }, On::kInteger>("BitwiseAnd", kInts,
                                                                   "bitwise_and_ref"),
    binary_row<[](auto a, auto b) { return a | b; }, On::kInteger>("BitwiseOr", kInts,
                                                                   "bitwise_or_ref"),
    binary_row<[](auto a, auto b) { return a ^ b; }, On::kInteger>("BitwiseXor", kInts,
                                                                   "bitwise_xor_ref"),
};

}  // namespace

Result<Kernel> make_binary(const SnapshotNode& node, const BinaryLoops& loops, Rejects rejects) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_equal_types(node));
  return make_binary_as(node, node.input_dtype(0), loops, rejects);
}

Result<Kernel> make_binary_as(const SnapshotNode& node, pfrt_dtype compute,
                              const BinaryLoops& loops, Rejects rejects) {
  return make_with<void>(node, compute, loops, rejects);
}

Result<Kernel> make_compare(const SnapshotNode& node, const CompareLoops& loops) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_equal_types(node));
  if (node.output_dtype(0) != PFRT_DTYPE_BOOL)
    return error(Code::kDTYPE_MISMATCH, "the output is ", dtype_name(node.output_dtype(0)),
                 ": bool");
  return make_with<uint8_t>(node, node.input_dtype(0), loops, Rejects::kNothing);
}

std::span<const KernelRow> binary_rows() { return kRows; }

}  // namespace pfrt::cpu
