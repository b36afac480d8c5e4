// SPDX-License-Identifier: Apache-2.0
//
// Parts of a state's values: the first steps of a sequence, and rows of a batch.
#include <algorithm>
#include <utility>

#include "core/session/state.h"

namespace pfrt {
namespace {

// The layout of a tensor around one axis: |outer| times |along| times |inner| bytes.
struct Strips {
  uint64_t outer, inner;

  static Result<Strips> of(const Tensor& t, size_t axis) {
    const uint64_t bits = dtype_bits(t.dtype);
    uint64_t outer = 1, inner = bits;
    for (size_t i = 0; i < t.dims.size(); ++i)
      (i < axis ? outer : inner) *= i == axis ? 1 : static_cast<uint64_t>(t.dims[i]);
    if (t.dtype == PFRT_DTYPE_STRING || inner % 8 != 0)
      return error(Code::kUNSUPPORTED, "a tensor of ", dtype_name(t.dtype),
                   " whose elements do not begin at a byte cannot be cut");
    return Strips{outer, inner / 8};
  }
};

// Adds the copies of the first parts of |from| along |axis|, as many as |to| has.
Status copy_first(const Tensor& from, size_t axis, const Tensor& to, Transfers& transfers) {
  PFRT_ASSIGN(const Strips strips, Strips::of(from, axis));
  const uint64_t step = strips.inner * static_cast<uint64_t>(from.dims[axis]);
  const uint64_t bytes = strips.inner * static_cast<uint64_t>(to.dims[axis]);
  for (uint64_t i = 0; i < strips.outer && bytes > 0; ++i)
    transfers.add(static_cast<char*>(to.data()) + i * bytes, to.device(),
                  static_cast<const char*>(from.data()) + i * step, from.device(), bytes);
  return {};
}

// Adds the copies of the rows |rows| of |from| along |axis|.
Status copy_rows(const Tensor& from, size_t axis, std::span<const int64_t> rows, const Tensor& to,
                 Transfers& transfers) {
  PFRT_ASSIGN(const Strips strips, Strips::of(from, axis));
  if (to.bytes() == 0) return {};
  const auto before = static_cast<uint64_t>(from.dims[axis]);
  for (uint64_t i = 0; i < strips.outer; ++i)
    for (size_t first = 0, end = 0; first < rows.size(); first = end) {
      // Rows that follow each other are one copy.
      for (end = first + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;) ++end;
      const uint64_t target = i * rows.size() + first;
      const uint64_t source = i * before + static_cast<uint64_t>(rows[first]);
      transfers.add(static_cast<char*>(to.data()) + target * strips.inner, to.device(),
                    static_cast<const char*>(from.data()) + source * strips.inner, from.device(),
                    (end - first) * strips.inner);
    }
  return {};
}

Result<Tensor> text_rows(const Tensor& from, size_t axis, std::span<const int64_t> rows,
                         Dims dims) {
  PFRT_ASSIGN(Tensor to, Tensor::allocate(from.dtype, std::move(dims)));
  const auto count = static_cast<uint64_t>(to.count());
  if (count == 0) return to;
  uint64_t inner = 1;
  for (size_t i = axis + 1; i < from.dims.size(); ++i) inner *= static_cast<uint64_t>(from.dims[i]);
  const auto before = static_cast<uint64_t>(from.dims[axis]);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t row = i / inner, outer = row / rows.size();
    const auto source = static_cast<uint64_t>(rows[row % rows.size()]);
    PFRT_TRY(to.buffer->set_string(
        i, view(from.strings()[(outer * before + source) * inner + i % inner])));
  }
  return to;
}

bool all_in_order(std::span<const int64_t> rows, int64_t count) {
  if (std::cmp_not_equal(rows.size(), count)) return false;
  for (size_t i = 0; i < rows.size(); ++i)
    if (std::cmp_not_equal(rows[i], i)) return false;
  return true;
}

}  // namespace

Status State::truncate(int64_t length) {
  std::vector<ValuePtr> values(entries_.size());
  const std::string doing = message("truncating a state to ", length);
  const std::lock_guard lock(mutex_);
  PFRT_TRY(idle(doing));
  if (length < 0) return error(Code::kINVALID_ARGUMENT, doing, ": a length is not negative");
  Transfers transfers;
  for (size_t i = 0; i < entries_.size() && length > 0; ++i) {
    const Entry& e = entries_[i];
    const std::string& name = input_of(e).name;
    if (e.in_place) {
      values[i] = e.value;
      continue;
    }
    if (!e.axis)
      return error(Code::kUNSUPPORTED, doing, ": '", name,
                   "' is replaced by each run, so that nothing is left of an earlier one; clone "
                   "the state before a run that may be undone");
    const int64_t now = length_of(e);
    if (now < length) return error(Code::kINVALID_ARGUMENT, doing, ": '", name, "' has ", now);
    if (now == length) {
      values[i] = e.value;
      continue;
    }
    const Tensor& t = e.value->tensor;
    Dims dims = t.dims;
    dims[*e.axis] = length;
    PFRT_ASSIGN(Tensor cut, like(t, std::move(dims)));
    PFRT_TRY(copy_first(t, *e.axis, cut, transfers).prepend(message(doing, ": '", name, "'")));
    values[i] = Value::of(std::move(cut));
  }
  PFRT_TRY(transfers.run_alone());
  for (size_t i = 0; i < entries_.size(); ++i) entries_[i].value.swap(values[i]);
  return {};
}

// Inputs that are not the state's have the batch's name too: most of them along axis 0, and those
// of recurrent layers, which have the sequence there, along axis 1.
std::string_view State::batch_name() const {
  const std::vector<PortInfo>& ports = session_->inputs();
  size_t rank = 0;
  for (const PortInfo& port : ports) rank = std::max(rank, port.dims.size());
  for (size_t axis = 0; axis < rank; ++axis)
    for (size_t i = 0; i < ports.size(); ++i) {
      if (axis >= ports[i].dims.size() || ports[i].dim_names[axis].empty()) continue;
      if (std::ranges::find(entries_, i, &Entry::input) != entries_.end()) continue;
      const std::string& name = ports[i].dim_names[axis];
      for (const Entry& e : entries_)
        if (axis_named(e, name)) return name;
    }
  return {};
}

// The axis with that name which the value does not grow along.
std::optional<size_t> State::axis_named(const Entry& e, std::string_view name) const {
  const std::vector<std::string>& names = input_of(e).dim_names;
  for (size_t i = 0; i < names.size() && !name.empty(); ++i)
    if (names[i] == name && e.axis != i) return i;
  return {};
}

// Returns null where the value stays as it is. Copies are there once |transfers| are done.
Result<ValuePtr> State::rows_of(const Entry& e, std::string_view batch,
                                std::span<const int64_t> rows, std::string_view doing,
                                Transfers& transfers) const {
  const auto fault = [&](Code code, const auto&... parts) {
    return error(code, doing, ": '", input_of(e).name, "' ", parts...);
  };
  const Tensor& t = e.value->tensor;
  if (e.value->kind != PFRT_VALUE_TENSOR)
    return fault(Code::kUNSUPPORTED, "is no tensor, so that it has no rows; set another value");
  if (t.dims.empty()) return ValuePtr();
  const std::optional<size_t> named = axis_named(e, batch);
  const std::vector<int64_t>& dims = input_of(e).dims;
  // A number where the batch may have any size: the value is one for all rows.
  if (!named && !batch.empty() && !dims.empty() && dims[0] >= 0) return ValuePtr();
  const size_t axis = named.value_or(0);
  if (e.axis == axis)
    return fault(Code::kUNSUPPORTED, "grows along axis ", axis,
                 ", and no other dimension of it has the name that the batch has in the session's "
                 "other inputs");
  const int64_t count = axis < t.dims.size() ? t.dims[axis] : 0;
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] >= count)
      return fault(Code::kINVALID_ARGUMENT, "has ", count, " rows along axis ", axis, ", and row ",
                   rows[i], " is asked for at place ", i);
  if (all_in_order(rows, count)) return ValuePtr();
  Value out;
  out.kind = PFRT_VALUE_TENSOR;
  out.tensor.dtype = t.dtype;
  out.tensor.dims = t.dims;
  out.tensor.dims[axis] = static_cast<int64_t>(rows.size());
  PFRT_TRY(check(e, out, message(doing, ":")));
  if (t.dtype == PFRT_DTYPE_STRING) {
    PFRT_ASSIGN(out.tensor, text_rows(t, axis, rows, std::move(out.tensor.dims)));
    return Value::of(std::move(out.tensor));
  }
  if (suits(e, out.tensor)) {
    out.tensor.buffer = e.spare;
  } else {
    PFRT_ASSIGN(out.tensor, like(t, std::move(out.tensor.dims)));
  }
  Status copied = copy_rows(t, axis, rows, out.tensor, transfers);
  if (!copied.ok()) return fault(copied.code(), "is ", copied.message());
  return Value::of(std::move(out.tensor));
}

Status State::select_rows(std::span<const int64_t> rows) {
  std::vector<ValuePtr> values(entries_.size());
  const std::string doing = message("selecting ", rows.size(), " rows of a state");
  const std::lock_guard lock(mutex_);
  PFRT_TRY(idle(doing));
  for (size_t i = 0; i < rows.size(); ++i)
    if (rows[i] < 0)
      return error(Code::kINVALID_ARGUMENT, doing, ": row ", rows[i], " is asked for at place ", i,
                   "; rows are counted from 0");
  const std::string_view batch = batch_name();
  Transfers transfers;
  for (size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].value) {
      PFRT_ASSIGN(values[i], rows_of(entries_[i], batch, rows, doing, transfers));
    }
  PFRT_TRY(transfers.run_alone());
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!values[i]) continue;
    Entry& e = entries_[i];
    e.value.swap(values[i]);
    if (e.value->tensor.buffer == e.spare) e.spare = nullptr;
    keep_memory(e, values[i]);
  }
  return {};
}

}  // namespace pfrt
