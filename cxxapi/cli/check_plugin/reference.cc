// SPDX-License-Identifier: Apache-2.0
//
// Plain loops in fp64, straight from the operators' definitions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "cxxapi/cli/check_plugin/cases.h"

namespace cli::check {
namespace {

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

int64_t attr_int(const CaseNode& node, const std::string& name, int64_t fallback) {
  for (const CaseAttr& a : node.attrs)
    if (a.name == name) return a.i;
  return fallback;
}
double attr_float(const CaseNode& node, const std::string& name, double fallback) {
  for (const CaseAttr& a : node.attrs)
    if (a.name == name) return static_cast<double>(a.f);
  return fallback;
}
std::vector<int64_t> attr_ints(const CaseNode& node, const std::string& name) {
  for (const CaseAttr& a : node.attrs)
    if (a.name == name) return a.ints;
  return {};
}

// Returns the index of the element of |from| that element |flat| of |dims| sees by broadcasting.
size_t broadcast(const std::vector<int64_t>& dims, int64_t flat, const std::vector<int64_t>& from) {
  int64_t index = 0, stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t axis = dims.size() - 1 - i;
    const int64_t at = flat % dims[axis];
    flat /= dims[axis];
    if (i >= from.size()) continue;
    const int64_t size = from[from.size() - 1 - i];
    if (size != 1) index += at * stride;
    stride *= size;
  }
  return static_cast<size_t>(index);
}

template <typename Fn>
void binary(const CaseValue& a, const CaseValue& b, CaseValue* out, Fn fn) {
  const size_t rank = std::max(a.dims.size(), b.dims.size());
  out->dims.assign(rank, 1);
  for (const CaseValue* v : {&a, &b})
    for (size_t i = 0; i < v->dims.size(); ++i) {
      int64_t& d = out->dims[rank - v->dims.size() + i];
      if (d == 1) d = v->dims[i];
    }
  const int64_t count = count_of(out->dims);
  for (int64_t i = 0; i < count; ++i)
    out->data.push_back(
        fn(a.data[broadcast(out->dims, i, a.dims)], b.data[broadcast(out->dims, i, b.dims)]));
}

template <typename Fn>
void unary(const CaseValue& x, CaseValue* out, Fn fn) {
  out->dims = x.dims;
  for (double v : x.data) out->data.push_back(fn(v));
}

// Multiplies a [..., m, k] by b [k, n] or by b of the same batch.
void mat_mul(const CaseValue& a, const CaseValue& b, CaseValue* out) {
  const int64_t m = a.dims[a.dims.size() - 2], k = a.dims.back(), n = b.dims.back();
  out->dims = a.dims;
  out->dims.back() = n;
  const int64_t batches = count_of(out->dims) == 0 ? 0 : count_of(out->dims) / (m * n);
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        const int64_t from = b.dims.size() > 2 ? batch * k * n : 0;
        for (int64_t p = 0; p < k; ++p)
          sum += a.data[static_cast<size_t>((batch * m + i) * k + p)] *
                 b.data[static_cast<size_t>(from + p * n + j)];
        out->data.push_back(sum);
      }
}

void gemm(const CaseNode& node, const std::vector<const CaseValue*>& in, CaseValue* out) {
  const bool ta = attr_int(node, "transA", 0) != 0, tb = attr_int(node, "transB", 0) != 0;
  const double alpha = attr_float(node, "alpha", 1), beta = attr_float(node, "beta", 1);
  const CaseValue &a = *in[0], &b = *in[1];
  const int64_t m = a.dims[ta ? 1 : 0], k = a.dims[ta ? 0 : 1], n = b.dims[tb ? 0 : 1];
  out->dims = {m, n};
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += a.data[static_cast<size_t>(ta ? p * m + i : i * k + p)] *
               b.data[static_cast<size_t>(tb ? j * k + p : p * n + j)];
      sum *= alpha;
      if (in.size() > 2 && in[2])
        sum += beta * in[2]->data[broadcast(out->dims, i * n + j, in[2]->dims)];
      out->data.push_back(sum);
    }
}

void conv(const CaseNode& node, const std::vector<const CaseValue*>& in, CaseValue* out) {
  const CaseValue &x = *in[0], &w = *in[1];
  const auto strides = attr_ints(node, "strides"), pads = attr_ints(node, "pads"),
             dilations = attr_ints(node, "dilations");
  const int64_t group = attr_int(node, "group", 1);
  const int64_t channels = x.dims[1], h = x.dims[2], wide = x.dims[3], maps = w.dims[0],
                deep = w.dims[1], kh = w.dims[2], kw = w.dims[3];
  const int64_t oh = (h + pads[0] + pads[2] - dilations[0] * (kh - 1) - 1) / strides[0] + 1;
  const int64_t ow = (wide + pads[1] + pads[3] - dilations[1] * (kw - 1) - 1) / strides[1] + 1;
  out->dims = {x.dims[0], maps, oh, ow};
  const int64_t count = count_of(out->dims);
  for (int64_t flat = 0; flat < count; ++flat) {
    const int64_t ox = flat % ow, oy = flat / ow % oh, map = flat / (ow * oh) % maps,
                  image = flat / (ow * oh * maps);
    double sum = in.size() > 2 && in[2] ? in[2]->data[static_cast<size_t>(map)] : 0;
    for (int64_t c = 0; c < deep; ++c)
      for (int64_t i = 0; i < kh; ++i)
        for (int64_t j = 0; j < kw; ++j) {
          const int64_t y = oy * strides[0] - pads[0] + i * dilations[0];
          const int64_t z = ox * strides[1] - pads[1] + j * dilations[1];
          if (y < 0 || y >= h || z < 0 || z >= wide) continue;
          const int64_t channel = map / (maps / group) * deep + c;
          sum += x.data[static_cast<size_t>(((image * channels + channel) * h + y) * wide + z)] *
                 w.data[static_cast<size_t>(((map * deep + c) * kh + i) * kw + j)];
        }
    out->data.push_back(sum);
  }
}

void softmax(const CaseValue& x, int64_t axis, CaseValue* out) {
  out->dims = x.dims;
  out->data = x.data;
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < x.dims.size(); ++i) inner *= x.dims[i];
  const int64_t size = x.dims[static_cast<size_t>(axis)];
  const int64_t count = count_of(x.dims);
  for (int64_t line = 0; size > 0 && line < count / size; ++line) {
    const int64_t start = line / inner * inner * size + line % inner;
    const auto at = [&](int64_t i) -> double& {
      return out->data[static_cast<size_t>(start + i * inner)];
    };
    double most = at(0), sum = 0;
    for (int64_t i = 1; i < size; ++i) most = std::max(most, at(i));
    for (int64_t i = 0; i < size; ++i) sum += at(i) = std::exp(at(i) - most);
    for (int64_t i = 0; i < size; ++i) at(i) /= sum;
  }
}

void concat(const std::vector<const CaseValue*>& in, int64_t axis, CaseValue* out) {
  const size_t along = static_cast<size_t>(axis);
  out->dims = in[0]->dims;
  out->dims[along] = 0;
  for (const CaseValue* v : in) out->dims[along] += v->dims[along];
  int64_t outer = 1;
  for (size_t i = 0; i < along; ++i) outer *= out->dims[i];
  for (int64_t o = 0; o < outer; ++o)
    for (const CaseValue* v : in) {
      const auto rows = static_cast<int64_t>(v->data.size()) / std::max<int64_t>(outer, 1);
      const auto begin = v->data.begin() + o * rows;
      out->data.insert(out->data.end(), begin, begin + rows);
    }
}

void transpose(const CaseValue& x, const std::vector<int64_t>& perm, CaseValue* out) {
  for (int64_t p : perm) out->dims.push_back(x.dims[static_cast<size_t>(p)]);
  const int64_t count = count_of(x.dims);
  for (int64_t flat = 0; flat < count; ++flat) {
    std::vector<int64_t> at(perm.size());
    int64_t left = flat;
    for (size_t i = perm.size(); i-- > 0;) {
      at[static_cast<size_t>(perm[i])] = left % out->dims[i];
      left /= out->dims[i];
    }
    int64_t index = 0;
    for (size_t i = 0; i < perm.size(); ++i) index = index * x.dims[i] + at[i];
    out->data.push_back(x.data[static_cast<size_t>(index)]);
  }
}

void reshape(const CaseValue& x, const CaseValue& shape, CaseValue* out) {
  int64_t rest = count_of(x.dims), unknown = -1;
  for (size_t i = 0; i < shape.data.size(); ++i) {
    const auto d = static_cast<int64_t>(shape.data[i]);
    out->dims.push_back(d == 0 ? x.dims[i] : d);
    if (d == -1) unknown = static_cast<int64_t>(i);
  }
  int64_t known = 1;
  for (int64_t d : out->dims)
    if (d != -1) known *= d;
  if (unknown >= 0) out->dims[static_cast<size_t>(unknown)] = known == 0 ? 0 : rest / known;
  out->data = x.data;
}

}  // namespace

void evaluate(const CaseNode& node, const std::vector<const CaseValue*>& in, CaseValue* out) {
  const std::string& op = node.op;
  const auto x = [&] { return *in[0]; };
  if (op == "Add") return binary(*in[0], *in[1], out, [](double a, double b) { return a + b; });
  if (op == "Sub") return binary(*in[0], *in[1], out, [](double a, double b) { return a - b; });
  if (op == "Mul") return binary(*in[0], *in[1], out, [](double a, double b) { return a * b; });
  if (op == "Relu") return unary(x(), out, [](double v) { return v > 0 ? v : 0; });
  if (op == "Neg") return unary(x(), out, [](double v) { return -v; });
  if (op == "Sigmoid") return unary(x(), out, [](double v) { return 1 / (1 + std::exp(-v)); });
  if (op == "Tanh") return unary(x(), out, [](double v) { return std::tanh(v); });
  if (op == "Identity") return unary(x(), out, [](double v) { return v; });
  if (op == "MatMul") return mat_mul(*in[0], *in[1], out);
  if (op == "Gemm") return gemm(node, in, out);
  if (op == "Conv") return conv(node, in, out);
  if (op == "Softmax") return softmax(*in[0], attr_int(node, "axis", 1), out);
  if (op == "Concat") return concat(in, attr_int(node, "axis", 0), out);
  if (op == "Transpose") return transpose(*in[0], attr_ints(node, "perm"), out);
  if (op == "Reshape") return reshape(*in[0], *in[1], out);
  throw std::logic_error("no reference for " + op);
}

size_t element_bytes(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
    case PFRT_DTYPE_INT32:
      return 4;
    case PFRT_DTYPE_FLOAT64:
    case PFRT_DTYPE_INT64:
      return 8;
    case PFRT_DTYPE_UINT8:
    case PFRT_DTYPE_BOOL:
      return 1;
    default:
      throw std::logic_error("no elements of this type are made here");
  }
}

namespace {

template <typename T>
void put(std::vector<char>* out, double v) {
  const T value = static_cast<T>(v);
  const char* bytes = reinterpret_cast<const char*>(&value);
  out->insert(out->end(), bytes, bytes + sizeof value);
}
template <typename T>
double get(const void* data, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof value, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

std::vector<char> to_bytes(pfrt_dtype dtype, const std::vector<double>& data) {
  std::vector<char> out;
  for (double v : data) {
    switch (dtype) {
      case PFRT_DTYPE_FLOAT32:
        put<float>(&out, v);
        break;
      case PFRT_DTYPE_FLOAT64:
        put<double>(&out, v);
        break;
      case PFRT_DTYPE_INT32:
        put<int32_t>(&out, v);
        break;
      case PFRT_DTYPE_INT64:
        put<int64_t>(&out, v);
        break;
      default:
        put<uint8_t>(&out, v);
    }
  }
  return out;
}

double element(pfrt_dtype dtype, const void* data, size_t index) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
      return get<float>(data, index);
    case PFRT_DTYPE_FLOAT64:
      return get<double>(data, index);
    case PFRT_DTYPE_INT32:
      return get<int32_t>(data, index);
    case PFRT_DTYPE_INT64:
      return get<int64_t>(data, index);
    default:
      return get<uint8_t>(data, index);
  }
}

}  // namespace cli::check
