// SPDX-License-Identifier: Apache-2.0
#include "test/providers/cpu/one_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>

#include "core/base/half.h"
#include "core/base/small_float.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/attrs.h"
#include "test/providers/cpu/step_host.h"

namespace pfrt::test {
namespace {

struct Fp16 {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

// Floats of 8 bits and fewer, and integers of fewer than 8, each in a byte.
template <pfrt_dtype dtype>
struct Small {
  static constexpr pfrt_dtype kDtype = dtype;
  uint8_t bits;
};
template <typename T>
concept IsSmall = requires {
  T::kDtype;
};

template <typename T>
T from_double(double v) {
  if constexpr (IsSmall<T>) {
    if (is_small_float(T::kDtype)) return {float_to_small_float(T::kDtype, static_cast<float>(v))};
    const auto range = int64_t{1} << dtype_bits(T::kDtype);
    int64_t low = static_cast<int64_t>(v) & (range - 1);
    if (dtype_is_signed(T::kDtype) && low >= range / 2) low -= range;
    return {static_cast<uint8_t>(low)};
  } else if constexpr (std::is_same_v<T, Fp16>)
    return {float_to_float16(static_cast<float>(v))};
  else if constexpr (std::is_same_v<T, Brain>)
    return {float_to_bfloat16(static_cast<float>(v))};
  else if constexpr (std::is_same_v<T, bool>)
    return v != 0;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return v < 0 ? static_cast<uint64_t>(static_cast<int64_t>(v)) : static_cast<uint64_t>(v);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<int64_t>(v));
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(v);
  else
    return T(static_cast<typename T::value_type>(v), static_cast<typename T::value_type>(v / 2));
}

template <typename T>
double to_double(T v) {
  if constexpr (IsSmall<T>) {
    if (is_small_float(T::kDtype))
      return static_cast<double>(small_float_to_float(T::kDtype, v.bits));
    return dtype_is_signed(T::kDtype) ? static_cast<int8_t>(v.bits) : v.bits;
  } else if constexpr (std::is_same_v<T, Fp16>)
    return static_cast<double>(float16_to_float(v.bits));
  else if constexpr (std::is_same_v<T, Brain>)
    return static_cast<double>(bfloat16_to_float(v.bits));
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(v);
  else
    return static_cast<double>(v.real());
}

template <typename Fn>
auto with_type(pfrt_dtype dtype, Fn fn) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
      return fn(float{});
    case PFRT_DTYPE_FLOAT64:
      return fn(double{});
    case PFRT_DTYPE_FLOAT16:
      return fn(Fp16{});
    case PFRT_DTYPE_BFLOAT16:
      return fn(Brain{});
    case PFRT_DTYPE_INT8:
      return fn(int8_t{});
    case PFRT_DTYPE_INT16:
      return fn(int16_t{});
    case PFRT_DTYPE_INT32:
      return fn(int32_t{});
    case PFRT_DTYPE_INT64:
      return fn(int64_t{});
    case PFRT_DTYPE_UINT16:
      return fn(uint16_t{});
    case PFRT_DTYPE_UINT32:
      return fn(uint32_t{});
    case PFRT_DTYPE_UINT64:
      return fn(uint64_t{});
    case PFRT_DTYPE_BOOL:
      return fn(bool{});
    case PFRT_DTYPE_COMPLEX64:
      return fn(std::complex<float>{});
    case PFRT_DTYPE_COMPLEX128:
      return fn(std::complex<double>{});
    case PFRT_DTYPE_FLOAT8E4M3FN:
      return fn(Small<PFRT_DTYPE_FLOAT8E4M3FN>{});
    case PFRT_DTYPE_FLOAT8E4M3FNUZ:
      return fn(Small<PFRT_DTYPE_FLOAT8E4M3FNUZ>{});
    case PFRT_DTYPE_FLOAT8E5M2:
      return fn(Small<PFRT_DTYPE_FLOAT8E5M2>{});
    case PFRT_DTYPE_FLOAT8E5M2FNUZ:
      return fn(Small<PFRT_DTYPE_FLOAT8E5M2FNUZ>{});
    case PFRT_DTYPE_FLOAT8E8M0:
      return fn(Small<PFRT_DTYPE_FLOAT8E8M0>{});
    case PFRT_DTYPE_FLOAT4E2M1:
      return fn(Small<PFRT_DTYPE_FLOAT4E2M1>{});
    case PFRT_DTYPE_INT4:
      return fn(Small<PFRT_DTYPE_INT4>{});
    case PFRT_DTYPE_UINT4:
      return fn(Small<PFRT_DTYPE_UINT4>{});
    case PFRT_DTYPE_INT2:
      return fn(Small<PFRT_DTYPE_INT2>{});
    case PFRT_DTYPE_UINT2:
      return fn(Small<PFRT_DTYPE_UINT2>{});
    default:
      return fn(uint8_t{});
  }
}

// Size for kernels, which see sub-byte types as a byte for each element.
uint64_t stored_bytes(pfrt_dtype dtype, int64_t elements) {
  return static_cast<uint64_t>(elements) * cpu::stored_size(dtype);
}

// The snapshot of a case: its node, and the values that it names.
class Snapshot {
 public:
  Snapshot(const cpu::KernelRow& row, const Case& c, const std::vector<Guarded>& inputs)
      : attrs_(c.attrs) {
    for (size_t i = 0; i < c.inputs.size(); ++i)
      inputs_.push_back(add(c.inputs[i], c.inputs[i].constant ? inputs[i].data() : nullptr));
    for (const Data& output : c.outputs) outputs_.push_back(add(output, nullptr));
    node_.op = to_c(row.op);
    node_.domain = to_c(row.domain);
    node_.canonical = 1;
    node_.inputs = inputs_.data();
    node_.input_count = static_cast<uint32_t>(inputs_.size());
    node_.outputs = outputs_.data();
    node_.output_count = static_cast<uint32_t>(outputs_.size());
    node_.attrs = attrs_.data();
    node_.attr_count = attrs_.size();
    snapshot_.struct_size = sizeof snapshot_;
    snapshot_.abi = PFRT_ABI_VERSION;
    snapshot_.node_size = sizeof(pfrt_snapshot_node);
    snapshot_.value_size = sizeof(pfrt_snapshot_value);
    snapshot_.attr_size = sizeof(pfrt_snapshot_attr);
    snapshot_.node_count = 1;
    snapshot_.value_count = static_cast<uint32_t>(values_.size());
    snapshot_.nodes = &node_;
    snapshot_.values = values_.data();
  }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  SnapshotNode node(Precision precision) const { return {snapshot_, 0, nullptr, precision}; }
  const std::vector<uint32_t>& inputs() const { return inputs_; }
  const std::vector<uint32_t>& outputs() const { return outputs_; }

 private:
  uint32_t add(const Data& data, const void* constant) {
    if (data.dtype == 0) return PFRT_NO_INDEX;
    pfrt_snapshot_value v{};
    v.dtype = data.dtype;
    v.rank = static_cast<int32_t>(data.dims.size());
    v.dims = data.late ? unknown_.data() : data.dims.data();
    v.producer = PFRT_NO_INDEX;
    if (constant != nullptr) {
      v.flags = PFRT_SNAPSHOT_CONSTANT;
      v.data = constant;
      v.bytes = stored_bytes(data.dtype, count(data.dims));
    }
    values_.push_back(v);
    return static_cast<uint32_t>(values_.size() - 1);
  }
  std::vector<uint32_t> inputs_, outputs_;
  Dims unknown_ = Dims(8, -1);
  std::vector<pfrt_snapshot_value> values_;
  const Attrs attrs_;
  pfrt_snapshot_node node_{};
  pfrt_snapshot snapshot_{};
};

std::string refusal(const cpu::KernelRow& row, const SnapshotNode& node) {
  const auto needs = cpu::isa_from_name(row.isa);
  if (!needs.ok() || needs.value() > cpu::isa()) return message("needs ", row.isa);
  const pfrt_dtype dtype = node.input_count() > row.typed_input ? node.input_dtype(row.typed_input)
                                                                : node.output_dtype(0);
  if (!row.types.has(dtype)) return message("does not take ", dtype_name(dtype));
  for (uint32_t i = 0; row.has(cpu::kSubByteAsIs) && i < node.input_count(); ++i)
    if (node.has_input(i) && cpu::kSubByte.has(node.input_dtype(i)))
      return "takes sub-byte elements as they lie, cases have a byte each";
  return row.refuse == nullptr ? std::string() : row.refuse(cpu::KernelRequest(node));
}

Result<cpu::Kernel> made(const cpu::KernelRow& row, const SnapshotNode& node) {
  cpu::KernelRequest request(node);
  std::optional<cpu::PackedInput> packed;
  if (row.pack != nullptr) packed = row.pack(node);
  if (packed) request.packed = &*packed;
  if (row.prepare != nullptr) {
    PFRT_ASSIGN(request.prepared, row.prepare(node));
  }
  return row.make(request);
}

std::string text_of(const Dims& dims) {
  std::string out = "[";
  for (int64_t d : dims) out += (out.size() > 1 ? "," : "") + std::to_string(d);
  return out + "]";
}

std::string text_of(const Data& data) {
  if (data.dtype == 0) return "-";
  return message(dtype_name(data.dtype), text_of(data.dims), data.constant ? "c" : "");
}

}  // namespace

void store(pfrt_dtype dtype, const Values& values, void* out) {
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < values.size(); ++i) {
      const T element = from_double<T>(values[i]);
      std::memcpy(static_cast<char*>(out) + i * sizeof(T), &element, sizeof(T));
    }
  });
}

Values load(pfrt_dtype dtype, const void* data, size_t count) {
  Values out(count);
  with_type(dtype, [&](auto element) {
    using T = decltype(element);
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(&element, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
      out[i] = to_double(element);
    }
  });
  return out;
}

Values rounded(pfrt_dtype dtype, const Values& values) {
  std::vector<char> bytes(values.size() * 16 + 1);
  store(dtype, values, bytes.data());
  return load(dtype, bytes.data(), values.size());
}

double epsilon(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
      return 0x1p-24;
    case PFRT_DTYPE_FLOAT64:
      return 0x1p-53;
    case PFRT_DTYPE_FLOAT16:
      return 0x1p-11;
    case PFRT_DTYPE_BFLOAT16:
      return 0x1p-8;
    default:
      return 0;
  }
}

double step_error(pfrt_dtype dtype) {
  return std::min(epsilon(dtype), epsilon(PFRT_DTYPE_FLOAT32));
}

int64_t count(const Dims& dims) { return element_count(dims.data(), dims.size()); }

std::string Case::text() const {
  std::ostringstream out;
  for (const Data& input : inputs) out << text_of(input) << " ";
  for (const Attr& attr : attrs) {
    out << attr.name << "=";
    if (const auto* ints = std::get_if<Dims>(&attr.value))
      out << text_of(*ints);
    else if (const auto* i = std::get_if<int64_t>(&attr.value))
      out << *i;
    else if (const auto* f = std::get_if<float>(&attr.value))
      out << *f;
    else if (const auto* s = std::get_if<std::string>(&attr.value))
      out << *s;
    else if (const auto* words = std::get_if<std::vector<std::string>>(&attr.value))
      for (const std::string& word : *words) out << word << ",";
    else if (const auto* tensor = std::get_if<Data>(&attr.value))
      out << text_of(*tensor);
    else
      out << std::get<std::vector<float>>(attr.value).size() << " floats";
    out << " ";
  }
  out << "->";
  for (const Data& output : outputs) out << " " << text_of(output);
  return out.str();
}

Outcome run(const cpu::KernelRow& row, const Case& c, const RunForm& form) {
  Outcome outcome;
  std::vector<Guarded> inputs;
  for (const Data& input : c.inputs) {
    inputs.emplace_back(input.dtype == 0 ? 0 : stored_bytes(input.dtype, count(input.dims)),
                        form.placed);
    if (input.dtype != 0) store(input.dtype, input.values, inputs.back().data());
  }
  const Snapshot snapshot(row, c, inputs);
  const SnapshotNode node = snapshot.node(form.precision);
  outcome.refused = refusal(row, node);
  if (!outcome.refused.empty()) return outcome;
  auto kernel = made(row, node);
  if (!kernel.ok()) {
    outcome.fault = kernel.status().message();
    return outcome;
  }
  auto offered = kernel->alternatives ? kernel->alternatives(form.all) : cpu::Alternatives();
  for (const cpu::Alternative& other : offered.others) {
    std::string& text = outcome.alternatives.emplace_back();
    for (const cpu::TuningParameter& p : other.parameters)
      text += message(p.name, " ", p.value, " ");
  }
  if (form.alternative > 0) *kernel = std::move(offered.others.at(form.alternative - 1).kernel);
  for (const Data& output : c.outputs)
    outcome.outputs.emplace_back(
        output.dtype == 0 || output.late ? 0 : stored_bytes(output.dtype, count(output.dims)),
        form.placed);

  std::vector<void*> buffers;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (c.inputs[i].dtype != 0) buffers.push_back(inputs[i].data());
  for (size_t i = 0; i < outcome.outputs.size(); ++i)
    if (c.outputs[i].dtype != 0) buffers.push_back(outcome.outputs[i].data());
  const auto alias = static_cast<size_t>(std::max(kernel->may_alias, 0));
  outcome.aliased = form.in_place && kernel->may_alias >= 0 && c.outputs[0].dtype != 0 &&
                    inputs[alias].size() == outcome.outputs[0].size();
  if (outcome.aliased) {
    std::memcpy(outcome.outputs[0].data(), inputs[alias].data(), inputs[alias].size());
    buffers[snapshot.inputs()[alias]] = outcome.outputs[0].data();
  }
  cpu::Run::Extras extras;
  extras.precision = form.precision;
  const auto packed = row.pack == nullptr ? std::nullopt : row.pack(node);
  // The memory is 64-byte aligned, like the host's.
  Guarded packed_bytes((packed ? packed->bytes + 63 : 0) / 64 * 64, Placed::kAtEnd);
  if (packed) {
    std::vector<const void*> sources = {inputs[packed->input].data()};
    for (const uint32_t i : packed->others) sources.push_back(inputs[i].data());
    packed->write(sources.data(), packed_bytes.data());
    packed_bytes.make_read_only();
    extras.packed = static_cast<uint32_t>(buffers.size());
    buffers.push_back(packed_bytes.data());
  }
  Guarded shared((kernel->shared_bytes + 63) / 64 * 64, Placed::kAtEnd);
  extras.shared = static_cast<uint32_t>(buffers.size());
  buffers.push_back(shared.data());
  for (Guarded& input : inputs) input.make_read_only();
  std::map<uint32_t, size_t> late;  // output by buffer
  for (size_t i = 0; i < c.outputs.size(); ++i)
    if (c.outputs[i].late) late[snapshot.outputs()[i]] = i;
  StepHost host(std::move(buffers), form.workers, kernel->scratch_bytes, form.looks);
  std::string wrong;
  host.set_alloc([&](uint32_t buffer, const Dims& dims) -> void* {
    const auto found = late.find(buffer);
    if (found == late.end()) {
      wrong = "alloc_output for an output whose dimensions are known";
      return nullptr;
    }
    const Data& output = c.outputs[found->second];
    if (dims != output.dims)
      wrong = message("output ", found->second, " has dimensions ", text_of(dims), ", not ",
                      text_of(output.dims));
    outcome.outputs[found->second] = Guarded(stored_bytes(output.dtype, count(dims)), form.placed);
    return outcome.outputs[found->second].data();
  });
  const pfrt_code code = kernel->run(
      cpu::Run(host.context(), snapshot.inputs().data(), snapshot.outputs().data(), extras));
  outcome.looks = host.looks();
  outcome.cancelled = code == PFRT_CODE_CANCELLED;
  if (code != PFRT_CODE_OK) outcome.fault = message("run: ", host.message());
  if (!wrong.empty()) outcome.fault = wrong;
  return outcome;
}

std::string difference(const Case& c, const Outcome& outcome) {
  for (size_t o = 0; o < c.outputs.size(); ++o) {
    const Data& want = c.outputs[o];
    if (want.dtype == 0) continue;
    const Values expected = rounded(want.dtype, want.values);
    if (expected.size() != static_cast<size_t>(count(want.dims)))
      return message("the case expects ", expected.size(), " values");
    const Values got = load(want.dtype, outcome.outputs[o].data(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]))) continue;
      const double rounding = epsilon(want.dtype) + c.relative * step_error(want.dtype);
      const double reach = c.relative == 0 && c.absolute == 0
                               ? 0
                               : rounding * std::fabs(want.values[i]) + c.absolute;
      if (std::fabs(got[i] - want.values[i]) <= reach) continue;
      std::ostringstream out;
      out.precision(17);
      out << "output " << o << " element " << i << " is " << got[i] << ", not " << want.values[i]
          << " (allowed " << reach << ")";
      return out.str();
    }
  }
  return {};
}

std::vector<float> floats_by(std::string_view name, const Case& c, Precision precision) {
  for (std::span<const cpu::KernelRow> family : cpu::kernels())
    for (const cpu::KernelRow& row : family) {
      if (row.name != name) continue;
      const Outcome outcome = run(row, c, {.precision = precision});
      EXPECT_EQ(outcome.refused + outcome.fault, "");
      if (outcome.outputs.empty()) return {};
      const auto* const data = reinterpret_cast<const float*>(outcome.outputs[0].data());
      return std::vector<float>(data, data + outcome.outputs[0].size() / sizeof(float));
    }
  ADD_FAILURE() << "no row " << name;
  return {};
}

double rms_error(const std::vector<float>& got, const std::vector<double>& want) {
  double squares = 0;
  for (size_t i = 0; i < got.size(); ++i)
    squares += std::pow(static_cast<double>(got[i]) - want[i], 2);
  return std::sqrt(squares / static_cast<double>(got.size()));
}

}  // namespace pfrt::test
