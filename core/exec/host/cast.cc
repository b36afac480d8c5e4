// SPDX-License-Identifier: Apache-2.0
//
// Cast to and from strings. Numbers become the shortest text that reads back as the same element of
// its type, positional from 1e-4 to below 1e16, whole ones without a point; infinities and NaN
// become the standard's literals. Texts become numbers as in Python; a fraction is cut off on the
// way to an integer, as the standard says.
#include <locale.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "core/base/half.h"
#include "core/exec/host/call.h"

namespace pfrt::host {
namespace {

// Writes "d.ddde+xx" in the usual form, |positional| or not.
std::string laid_out(std::string_view scientific, bool positional) {
  std::string out;
  if (scientific.front() == '-') {
    out = "-";
    scientific.remove_prefix(1);
  }
  const size_t e = scientific.find('e');
  int exponent = 0;
  const std::string_view power = scientific.substr(e + (scientific[e + 1] == '+' ? 2 : 1));
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  std::string digits;
  for (const char c : scientific.substr(0, e))
    if (c != '.') digits += c;
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  if (!positional) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    const std::string size = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (size.size() < 2 ? "0" : "") + size;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent) - 1, '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const std::string fraction = digits.substr(whole);
  return out + digits.substr(0, whole) + (fraction.empty() ? "" : "." + fraction);
}

// |same| tells whether a number reads back as the element. Null: |value| has its type's precision.
template <typename T>
std::string text_of(T value, bool (*same)(float, float) = nullptr) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  for (int precision = 0; same && precision < 9; ++precision) {
    end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific,
                        precision);
    float back = 0;
    std::from_chars(buffer, end.ptr, back);
    if (same(back, static_cast<float>(value))) break;
  }
  // The number decides, not its text: 0.0001 in float32 is a little less.
  const double size = std::abs(static_cast<double>(value));
  const bool positional = size == 0 || (size >= 1e-4 && size < 1e16);
  return laid_out({buffer, static_cast<size_t>(end.ptr - buffer)}, positional);
}

bool same_half(float a, float b) { return float_to_float16(a) == float_to_float16(b); }
bool same_bfloat16(float a, float b) { return float_to_bfloat16(a) == float_to_bfloat16(b); }

template <typename T>
T element(const Tensor& t, int64_t i) {
  T value;
  std::memcpy(&value, t.as<char>() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

Result<std::string> text_at(const Tensor& t, int64_t i) {
  switch (t.dtype) {
    case PFRT_DTYPE_FLOAT32:
      return text_of(element<float>(t, i));
    case PFRT_DTYPE_FLOAT64:
      return text_of(element<double>(t, i));
    case PFRT_DTYPE_FLOAT16:
      return text_of(float16_to_float(element<uint16_t>(t, i)), same_half);
    case PFRT_DTYPE_BFLOAT16:
      return text_of(bfloat16_to_float(element<uint16_t>(t, i)), same_bfloat16);
    case PFRT_DTYPE_BOOL:
      return std::string(element<uint8_t>(t, i) ? "True" : "False");
    case PFRT_DTYPE_INT8:
      return std::to_string(element<int8_t>(t, i));
    case PFRT_DTYPE_INT16:
      return std::to_string(element<int16_t>(t, i));
    case PFRT_DTYPE_INT32:
      return std::to_string(element<int32_t>(t, i));
    case PFRT_DTYPE_INT64:
      return std::to_string(element<int64_t>(t, i));
    case PFRT_DTYPE_UINT8:
      return std::to_string(element<uint8_t>(t, i));
    case PFRT_DTYPE_UINT16:
      return std::to_string(element<uint16_t>(t, i));
    case PFRT_DTYPE_UINT32:
      return std::to_string(element<uint32_t>(t, i));
    case PFRT_DTYPE_UINT64:
      return std::to_string(element<uint64_t>(t, i));
    default:
      return error(Code::kUNSUPPORTED, dtype_name(t.dtype), " has no text");
  }
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n\v\f\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n\v\f\r") - begin + 1);
}

Status no_number(std::string_view text, int64_t i, pfrt_dtype to) {
  return error(Code::kINVALID_ARGUMENT, "element ", i, " is '", text.substr(0, 40),
               "', which is no number of type ", dtype_name(to));
}

Result<double> real(std::string_view text, int64_t i, pfrt_dtype to) {
  std::string_view number = trimmed(text);
  if (number.size() > 1 && number.front() == '+' && number[1] != '-') number.remove_prefix(1);
  double value = 0;
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (end != number.data() + number.size() || number.empty() ||
      (fault != std::errc() && fault != std::errc::result_out_of_range) ||
      number.find('(') != std::string_view::npos)
    return no_number(text, i, to);
  if (fault == std::errc()) return value;
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(std::string(number).c_str(), nullptr, plain);  // 0 or infinity
}

template <typename T>
Status integers(const Call& call, const Tensor& from, Tensor& to) {
  for (int64_t i = 0; i < from.count(); ++i) {
    const std::string_view text = view(from.as<const pfrt_string>()[i]);
    PFRT_TRY(call.walked(text.size()));
    std::string_view number = trimmed(text);
    if (number.size() > 1 && number.front() == '+' && number[1] != '-') number.remove_prefix(1);
    T value = 0;
    const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (fault != std::errc() || end != number.data() + number.size()) {
      PFRT_ASSIGN(const double wide, real(text, i, to.dtype));
      const double whole = std::trunc(wide);
      if (!(whole >= static_cast<double>(std::numeric_limits<T>::min())) ||
          !(whole < std::ldexp(1.0, std::numeric_limits<T>::digits)))
        return no_number(text, i, to.dtype);
      value = static_cast<T>(whole);
    }
    to.as<T>()[i] = value;
  }
  return {};
}

template <typename T, typename Convert>
Status reals(const Call& call, const Tensor& from, Tensor& to, Convert convert) {
  for (int64_t i = 0; i < from.count(); ++i) {
    const std::string_view text = view(from.as<const pfrt_string>()[i]);
    PFRT_TRY(call.walked(text.size()));
    PFRT_ASSIGN(const double value, real(text, i, to.dtype));
    to.as<T>()[i] = convert(value);
  }
  return {};
}

// Numbers beyond the largest float32 become infinity.
float narrowed(double value) {
  if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
    const double limit = std::ldexp(1.0, 128) - std::ldexp(1.0, 103);  // rounds to 2^128
    const float sign = value < 0 ? -1.0f : 1.0f;
    return std::abs(value) >= limit ? sign * std::numeric_limits<float>::infinity()
                                    : sign * std::numeric_limits<float>::max();
  }
  return static_cast<float>(value);
}

Status booleans(const Call& call, const Tensor& from, Tensor& to) {
  for (int64_t i = 0; i < from.count(); ++i) {
    const std::string_view text = view(from.as<const pfrt_string>()[i]);
    PFRT_TRY(call.walked(text.size()));
    const std::string_view word = trimmed(text);
    if (word == "True" || word == "true") {
      to.as<uint8_t>()[i] = 1;
    } else if (word == "False" || word == "false") {
      to.as<uint8_t>()[i] = 0;
    } else {
      PFRT_ASSIGN(const double value, real(text, i, to.dtype));
      to.as<uint8_t>()[i] = value != 0;
    }
  }
  return {};
}

Status parse(const Call& call, const Tensor& from, Tensor& to) {
  switch (to.dtype) {
    case PFRT_DTYPE_FLOAT32:
      return reals<float>(call, from, to, narrowed);
    case PFRT_DTYPE_FLOAT64:
      return reals<double>(call, from, to, [](double v) { return v; });
    case PFRT_DTYPE_FLOAT16:
      return reals<uint16_t>(call, from, to,
                             [](double v) { return float_to_float16(narrowed(v)); });
    case PFRT_DTYPE_BFLOAT16:
      return reals<uint16_t>(call, from, to,
                             [](double v) { return float_to_bfloat16(narrowed(v)); });
    case PFRT_DTYPE_BOOL:
      return booleans(call, from, to);
    case PFRT_DTYPE_INT8:
      return integers<int8_t>(call, from, to);
    case PFRT_DTYPE_INT16:
      return integers<int16_t>(call, from, to);
    case PFRT_DTYPE_INT32:
      return integers<int32_t>(call, from, to);
    case PFRT_DTYPE_INT64:
      return integers<int64_t>(call, from, to);
    case PFRT_DTYPE_UINT8:
      return integers<uint8_t>(call, from, to);
    case PFRT_DTYPE_UINT16:
      return integers<uint16_t>(call, from, to);
    case PFRT_DTYPE_UINT32:
      return integers<uint32_t>(call, from, to);
    case PFRT_DTYPE_UINT64:
      return integers<uint64_t>(call, from, to);
    default:
      return error(Code::kUNSUPPORTED, "strings cannot be read as ", dtype_name(to.dtype));
  }
}

Status cast(const Call& call) {
  PFRT_ASSIGN(const Value* value, need(call, 0, PFRT_VALUE_TENSOR, "a tensor"));
  const Tensor& from = value->tensor;
  const auto to = static_cast<pfrt_dtype>(call.node.attr_int("to", 0));
  if (to == from.dtype) {
    call.out[0] = call.in[0];
    return {};
  }
  PFRT_ASSIGN(Tensor out, Tensor::allocate(to, from.dims));
  if (from.dtype == PFRT_DTYPE_STRING) {
    PFRT_TRY(parse(call, from, out));
  } else if (to == PFRT_DTYPE_STRING) {
    for (int64_t i = 0; i < from.count(); ++i) {
      PFRT_TRY(call.look(i));
      PFRT_ASSIGN(const std::string text, text_at(from, i));
      PFRT_TRY(out.buffer->set_string(static_cast<uint64_t>(i), text));
    }
  } else {
    return error(Code::kUNSUPPORTED, "the input is ", dtype_name(from.dtype),
                 ", which was not known when the graph was planned; declare its type");
  }
  call.out[0] = Value::of(std::move(out));
  return {};
}

constexpr HostOp kCastOps[] = {
    {"", "Cast", cast},
};

}  // namespace

std::span<const HostOp> cast_ops() { return kCastOps; }

}  // namespace pfrt::host
