// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/elementwise/unary.h"

#include <cmath>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/elementwise/elementwise.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 16 * kBlock;

template <typename T>
Kernel unary_kernel(const SnapshotNode& node, UnaryLoop<T> loop, Coefficients coefficients) {
  Kernel kernel;
  kernel.run = [=, from = node.input_dtype(0), to = node.output_dtype(0),
                elements = node.output_elements(0)](const Run& run) {
    const void* x = run.input(0);
    void* y = run.output(0);
    run.blocks(elements, kTask, [&](int64_t begin, int64_t end) {
      T x_block[kBlock], y_block[kBlock];
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t n = std::min(kBlock, end - i);
        T* placed = place_block(to, y, i, y_block);
        loop(read_block(from, x, i, n, x_block), placed, n, coefficients);
        write_block(to, y, i, n, placed);
      }
      run.apply_epilogue(begin, end);
    });
    return run.stop();
  };
  return kernel;
}

template <typename T>
T negated(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x));
  else
    return -x;
}

template <typename T>
T magnitude(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fabs(x);
  else if constexpr (std::is_signed_v<T>)
    return x < 0 ? negated(x) : x;
  else
    return x;
}

template <typename T>
T sign(T x) {
  if constexpr (std::is_signed_v<T>) {
    if (x < T{0}) return T{-1};
  }
  return x > T{0} ? T{1} : x;  // zeros and NaN stay
}

// Attributes as 0 and 1.
Coefficients infinity_signs(const SnapshotNode& node) {
  return {static_cast<double>(node.attr_int("detect_negative", 1) != 0),
          static_cast<double>(node.attr_int("detect_positive", 1) != 0)};
}

constexpr KernelRow kRows[] = {
    unary_row<[](auto x) { return magnitude(x); }, On::kAny, 1>("Abs", kNumbers, "abs_ref"),
    unary_row<[](auto x) { return negated(x); }, On::kAny, 1>("Neg", kFloats | kSignedInts,
                                                              "neg_ref"),
    unary_row<[](auto x) { return sign(x); }, On::kAny, 1>("Sign", kNumbers, "sign_ref"),
    unary_row<[](auto x) { return std::sqrt(x); }, On::kFloat, 4>("Sqrt", kFloats, "sqrt_ref"),
    unary_row<[](auto x) { return decltype(x){1} / x; }, On::kFloat, 1>("Reciprocal", kFloats,
                                                                        "reciprocal_ref"),
    unary_row<[](auto x) { return std::exp(x); }, On::kFloat, 10>("Exp", kFloats, "exp_ref"),
    unary_row<[](auto x) { return std::log(x); }, On::kFloat, 10>("Log", kFloats, "log_ref"),
    unary_row<[](auto x) { return std::erf(x); }, On::kFloat, 15>("Erf", kFloats, "erf_ref"),
    unary_row<[](auto x) { return std::floor(x); }, On::kFloat, 1>("Floor", kFloats, "floor_ref"),
    unary_row<[](auto x) { return std::ceil(x); }, On::kFloat, 1>("Ceil", kFloats, "ceil_ref"),
    unary_row<[](auto x) { return std::nearbyint(x); }, On::kFloat, 1>("Round", kFloats,
                                                                       "round_ref"),
    unary_row<[](auto x) { return std::sin(x); }, On::kFloat, 15>("Sin", kFloats, "sin_ref"),
    unary_row<[](auto x) { return std::cos(x); }, On::kFloat, 15>("Cos", kFloats, "cos_ref"),
    unary_row<[](auto x) { return std::tan(x); }, On::kFloat, 20>("Tan", kFloats, "tan_ref"),
    unary_row<[](auto x) { return std::asin(x); }, On::kFloat, 15>("Asin", kFloats, "asin_ref"),
    unary_row<[](auto x) { return std::acos(x); }, On::kFloat, 15>("Acos", kFloats, "acos_ref"),
    unary_row<[](auto x) { return std::atan(x); }, On::kFloat, 15>("Atan", kFloats, "atan_ref"),
    unary_row<[](auto x) { return std::sinh(x); }, On::kFloat, 15>("Sinh", kFloats, "sinh_ref"),
    unary_row<[](auto x) { return std::cosh(x); }, On::kFloat, 15>("Cosh", kFloats, "cosh_ref"),
    unary_row<[](auto x) { return std::tanh(x); }, On::kFloat, 15>("Tanh", kFloats, "tanh_ref"),
    unary_row<[](auto x) { return std::asinh(x); }, On::kFloat, 20>("Asinh", kFloats, "asinh_ref"),
    unary_row<[](auto x) { return std::acosh(x); }, On::kFloat, 20>("Acosh", kFloats, "acosh_ref"),
    unary_row<[](auto x) { return std::atanh(x); }, On::kFloat, 20>("Atanh", kFloats, "atanh_ref"),
    unary_row<[](auto x) { return !x; }, On::kInteger, 1>("Not", kBool, "not_ref"),
    unary_row<[](auto x) { return ~x; }, On::kInteger, 1>("BitwiseNot", kInts, "bitwise_not_ref"),
    unary_row<[](auto x) { return std::isnan(x); }, On::kFloat, 1>("IsNaN", kFloats | kFloat8,
                                                                   "is_nan_ref"),
    unary_row<[](auto x, const Coefficients& c) {
      return std::isinf(x) && (x < 0 ? c.a : c.b) != 0;
    },
              On::kFloat, 1, infinity_signs>("IsInf", kFloats | kFloat8, "is_inf_ref"),
};

}  // namespace

Result<Kernel> make_unary(const SnapshotNode& node, const UnaryLoops& loops,
                          const Coefficients& coefficients, double cost) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  return with_compute_type(node.input_dtype(0), [&](auto zero) -> Result<Kernel> {
    using T = decltype(zero);
    const auto loop = std::get<UnaryLoop<T>>(loops);
    if (!loop)
      return kernel_error("element type ", dtype_name(node.input_dtype(0)), " is not computed");
    Kernel kernel = unary_kernel<T>(node, loop, coefficients);
    kernel.flops = cost * static_cast<double>(node.output_elements(0));
    if (like_output(node, 0)) kernel.may_alias = 0;
    return kernel;
  });
}

std::span<const KernelRow> unary_rows() { return kRows; }

}  // namespace pfrt::cpu
