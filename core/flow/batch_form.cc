// SPDX-License-Identifier: Apache-2.0
#include "core/flow/batch_form.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/dtype.h"

namespace pfrt {
namespace {

using Port = BatchRows::Port;

// Bytes of an input without rows that requests are compared by; larger ones fit together where they
// are the same memory.
constexpr uint64_t kCompared = 4096;

void add(std::string& key, const void* data, size_t bytes) {
  key.append(static_cast<const char*>(data), bytes);
}
template <typename T>
void add(std::string& key, T number) {
  add(key, &number, sizeof number);
}

// Whether |value| is memory of the host that can be compared and copied.
bool is_plain(const Value& value) {
  const Tensor& t = value.tensor;
  return value.kind == PFRT_VALUE_TENSOR && t.dtype != PFRT_DTYPE_STRING && !t.device();
}

// Whether rows can be copied from it, a whole number of bytes each.
bool has_rows(const Tensor& t) {
  return !t.dims.empty() && t.dims[0] > 0 && t.bytes() > 0 &&
         t.bytes() * 8 == static_cast<uint64_t>(t.count()) * dtype_bits(t.dtype) &&
         t.bytes() % static_cast<uint64_t>(t.dims[0]) == 0;
}

}  // namespace

BatchForm BatchForm::of(const Session& session) {
  BatchForm out;
  const std::shared_ptr<const Graph> graph = session.planned_graph();
  const auto known = batch_rows(*graph);
  if (!known.ok()) {
    out.unshared_ = known.status().message();
    return out;
  }
  // An initializer that may be fed has no place among these inputs: with it, a request runs alone.
  out.inputs_.assign(session.inputs().size(), Port::kMixed);
  out.outputs_.assign(session.outputs().size(), Port::kMixed);
  size_t next = 0;
  for (const ValueId id : graph->inputs) {
    if (graph->at(id).constant) continue;
    const std::string& name = graph->at(id).name;
    for (size_t i = 0; i < session.inputs().size(); ++i)
      if (session.inputs()[i].name == name) out.inputs_[i] = known->inputs[next];
    if (known->inputs[next] == Port::kMixed)
      out.unshared_ = message("input '", name, "' has the batch elsewhere than in front alone");
    ++next;
  }
  for (size_t i = 0; i < graph->outputs.size() && i < out.outputs_.size(); ++i) {
    out.outputs_[i] = known->outputs[i];
    const PortInfo& port = session.outputs()[i];
    const bool bytes = port.type.dtype != PFRT_DTYPE_STRING && dtype_bits(port.type.dtype) >= 8;
    if (known->outputs[i] == Port::kMixed)
      out.unshared_ = known->mixed_by[i];
    else if (known->outputs[i] == Port::kRows && (port.type.kind != PFRT_VALUE_TENSOR || !bytes))
      out.unshared_ = message("rows of output '", port.name, "' are no bytes of their own");
  }
  if (std::ranges::find(out.inputs_, Port::kRows) == out.inputs_.end() && out.unshared_.empty())
    out.unshared_ = "no input has a batch";
  return out;
}

BatchForm::Place BatchForm::place(const std::vector<ValuePtr>& inputs) const {
  Place alone;
  if (!unshared_.empty()) return alone;
  std::string shape;
  int64_t rows = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs[i]) {
      if (inputs_[i] != Port::kMixed) return alone;  // the run will say what is missing
      continue;
    }
    const Tensor& t = inputs[i]->tensor;
    if (inputs_[i] == Port::kMixed || !is_plain(*inputs[i])) return alone;
    add(shape, t.dtype);
    add(shape, t.dims.size());
    if (inputs_[i] == Port::kRows) {
      if (!has_rows(t)) return alone;
      if (rows != 0 && rows != t.dims[0]) return alone;
      rows = t.dims[0];
      add(shape, t.dims.data() + 1, (t.dims.size() - 1) * sizeof(int64_t));
      continue;
    }
    add(shape, t.dims.data(), t.dims.size() * sizeof(int64_t));
    if (t.bytes() > kCompared)
      add(shape, t.data());
    else if (t.bytes() != 0)
      add(shape, t.data(), t.bytes());
  }
  return {rows, std::move(shape)};
}

Result<std::vector<ValuePtr>> BatchForm::join(std::span<const Request* const> requests,
                                              int64_t rows, int64_t padded) const {
  std::vector<ValuePtr> out = requests[0]->inputs;
  if (requests.size() == 1 && rows == padded) return out;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i] || inputs_[i] != Port::kRows) continue;
    const Tensor& first = out[i]->tensor;
    Dims dims = first.dims;
    const uint64_t row = first.bytes() / static_cast<uint64_t>(dims[0]);
    dims[0] = padded;
    PFRT_ASSIGN(Tensor whole, Tensor::allocate(first.dtype, std::move(dims), false));
    char* to = whole.as<char>();
    for (const Request* request : requests) {
      const Tensor& t = request->inputs[i]->tensor;
      t.copy_to(to);
      to += t.bytes();
    }
    for (int64_t r = rows; r < padded; ++r, to += row) std::memcpy(to, to - row, row);
    out[i] = Value::of(std::move(whole));
  }
  return out;
}

Result<ValuePtr> BatchForm::part(size_t index, const ValuePtr& whole, int64_t first, int64_t count,
                                 int64_t padded) const {
  if (!whole || outputs_[index] != Port::kRows) return whole;
  const Tensor& t = whole->tensor;
  if (t.dims.empty() || t.dims[0] % padded != 0)
    return error(Code::kINTERNAL, "a batch of ", padded, " rows: output ", index,
                 " has other rows");
  Tensor out = t;
  out.dims[0] = t.dims[0] / padded * count;
  out.offset += t.bytes() / static_cast<uint64_t>(padded) * static_cast<uint64_t>(first);
  return Value::of(std::move(out));
}

}  // namespace pfrt
