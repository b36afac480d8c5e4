// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/tensors/elements.h"

#include <cmath>
#include <complex>
#include <limits>

#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

using pyflame_rt::DType;
using pyflame_rt::Tensor;

// Reads an 8-bit (or smaller) float with |mantissa_bits| and |bias|; the caller handles special
// values.
double small_float(uint32_t bits, uint32_t sign_bit, uint32_t mantissa_bits, int bias) {
  const uint32_t magnitude = bits & (sign_bit - 1);
  const uint32_t exponent = magnitude >> mantissa_bits;
  const uint32_t mantissa = magnitude & ((1u << mantissa_bits) - 1);
  const double scale = 1u << mantissa_bits;
  const double value = exponent == 0
                           ? std::ldexp(mantissa / scale, 1 - bias)
                           : std::ldexp(1 + mantissa / scale, static_cast<int>(exponent) - bias);
  return (bits & sign_bit) != 0 ? -value : value;
}

double float8(DType dtype, uint8_t bits) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  switch (dtype) {
    case DType::Float8E4M3FN:
      return (bits & 0x7f) == 0x7f ? kNaN : small_float(bits, 0x80, 3, 7);
    case DType::Float8E4M3FNUZ:
      return bits == 0x80 ? kNaN : small_float(bits, 0x80, 3, 8);
    case DType::Float8E5M2:
      if ((bits & 0x7f) > 0x7c) return kNaN;
      if ((bits & 0x7f) == 0x7c) return (bits & 0x80) != 0 ? -kInf : kInf;
      return small_float(bits, 0x80, 2, 15);
    case DType::Float8E5M2FNUZ:
      return bits == 0x80 ? kNaN : small_float(bits, 0x80, 2, 16);
    default:  // Float8E8M0: a power of two
      return bits == 0xff ? kNaN : std::ldexp(1.0, static_cast<int>(bits) - 127);
  }
}

// Reads the |bits|-wide element |index| of packed data, low bits first.
uint32_t packed_at(const Tensor& tensor, int64_t index, uint32_t bits) {
  const uint32_t each = 8 / bits;
  const uint8_t byte = tensor.data_ptr<uint8_t>()[index / each];
  return (static_cast<uint32_t>(byte) >> (static_cast<uint32_t>(index % each) * bits)) &
         ((1u << bits) - 1);
}

int64_t sign_extended(uint32_t value, uint32_t bits) {
  const auto wide = static_cast<int64_t>(value);
  return (value >> (bits - 1)) != 0 ? wide - (int64_t{1} << bits) : wide;
}

}  // namespace

bool is_float(DType dtype) {
  switch (dtype) {
    case DType::Float32:
    case DType::Float64:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float8E4M3FN:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0:
    case DType::Float4E2M1:
      return true;
    default:
      return false;
  }
}

bool is_complex(DType dtype) { return dtype == DType::Complex64 || dtype == DType::Complex128; }

int64_t integer_at(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::Int8:
      return tensor.data_ptr<int8_t>()[i];
    case DType::Int16:
      return tensor.data_ptr<int16_t>()[i];
    case DType::Int32:
      return tensor.data_ptr<int32_t>()[i];
    case DType::Int64:
      return tensor.data_ptr<int64_t>()[i];
    case DType::UInt8:
      return tensor.data_ptr<uint8_t>()[i];
    case DType::UInt16:
      return tensor.data_ptr<uint16_t>()[i];
    case DType::UInt32:
      return tensor.data_ptr<uint32_t>()[i];
    case DType::UInt64:
      return static_cast<int64_t>(tensor.data_ptr<uint64_t>()[i]);
    case DType::Bool:
      return static_cast<const uint8_t*>(tensor.data())[i] != 0;
    case DType::Int4:
      return sign_extended(packed_at(tensor, i, 4), 4);
    case DType::UInt4:
      return packed_at(tensor, i, 4);
    case DType::Int2:
      return sign_extended(packed_at(tensor, i, 2), 2);
    case DType::UInt2:
      return packed_at(tensor, i, 2);
    default:
      return 0;
  }
}

double number_at(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::Float32:
      return static_cast<double>(tensor.data_ptr<float>()[i]);
    case DType::Float64:
      return tensor.data_ptr<double>()[i];
    case DType::Float16:
      return static_cast<double>(
          tensor.data_ptr<pyflame_rt::quantization::Float16>()[i].to_float());
    case DType::BFloat16:
      return static_cast<double>(
          tensor.data_ptr<pyflame_rt::quantization::BFloat16>()[i].to_float());
    case DType::Float8E4M3FN:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ:
    case DType::Float8E8M0:
      return float8(tensor.dtype(), tensor.data_ptr<uint8_t>()[i]);
    case DType::Float4E2M1:
      return small_float(packed_at(tensor, i, 4), 8, 1, 1);
    case DType::Complex64:
      return static_cast<double>(tensor.data_ptr<std::complex<float>>()[i].real());
    case DType::Complex128:
      return tensor.data_ptr<std::complex<double>>()[i].real();
    case DType::UInt64:
      return static_cast<double>(tensor.data_ptr<uint64_t>()[i]);
    default:
      return static_cast<double>(integer_at(tensor, i));
  }
}

double imaginary_at(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::Complex64) {
    return static_cast<double>(tensor.data_ptr<std::complex<float>>()[i].imag());
  }
  return tensor.dtype() == DType::Complex128 ? tensor.data_ptr<std::complex<double>>()[i].imag()
                                             : 0;
}

std::string text_at(const Tensor& tensor, int64_t i) {
  const DType dtype = tensor.dtype();
  if (dtype == DType::String) return std::string("\"").append(tensor.string_at(i)).append("\"");
  if (dtype == DType::UInt64) return std::to_string(tensor.data_ptr<uint64_t>()[i]);
  if (dtype == DType::Bool) return integer_at(tensor, i) != 0 ? "true" : "false";
  if (is_complex(dtype)) {
    return number_text(number_at(tensor, i)) + "+" + number_text(imaginary_at(tensor, i)) + "i";
  }
  if (is_float(dtype)) return number_text(number_at(tensor, i));
  return std::to_string(integer_at(tensor, i));
}

}  // namespace cli
