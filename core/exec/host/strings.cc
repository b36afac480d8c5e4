// SPDX-License-Identifier: Apache-2.0
//
// Operators that put numbers in place of strings (core/op/engine/string_numbers.h says which), and
// that join and split texts.
#include <algorithm>
#include <numeric>

#include "core/exec/host/call.h"
#include "core/op/engine/lookup.h"

namespace pfrt::host {
namespace {

Result<std::vector<std::span<const pfrt_string>>> texts_of(const Call& call, size_t first) {
  std::vector<std::span<const pfrt_string>> texts;
  for (size_t i = first; i < call.in.size(); ++i) {
    PFRT_ASSIGN(const Tensor* t, need_tensor(call, i, PFRT_DTYPE_STRING));
    texts.push_back(t->strings());
  }
  return texts;
}

Status positions(const Call& call) {
  int64_t next = 0;
  for (size_t i = 0; i < call.in.size() && i < call.out.size(); ++i) {
    PFRT_ASSIGN(const Tensor* t, need_tensor(call, i, PFRT_DTYPE_STRING));
    PFRT_ASSIGN(Tensor numbers, Tensor::allocate(PFRT_DTYPE_INT64, t->dims, false));
    std::iota(numbers.as<int64_t>(), numbers.as<int64_t>() + numbers.count(), next);
    next += numbers.count();
    call.out[i] = Value::of(std::move(numbers));
  }
  return {};
}

// Thrown by an Order, since the standard's algorithms have no other way out.
struct Stopped {
  Code code;
};

// The order of texts as bytes.
struct Order {
  const Call& call;
  bool operator()(std::string_view a, std::string_view b) const {
    const Result<int> order = compare(call, a, b);
    if (!order.ok()) throw Stopped{order.status().code()};
    return order.value() < 0;
  }
};

Status sort(const Call& call, std::vector<std::string_view>& texts) try {
  std::sort(texts.begin(), texts.end(), Order{call});
  return {};
} catch (const Stopped& stopped) {
  return stop_status(stopped.code);
}

// The place of |text|, which is among |sorted|.
Result<int64_t> place_of(const Call& call, const std::vector<std::string_view>& sorted,
                         std::string_view text) try {
  return std::lower_bound(sorted.begin(), sorted.end(), text, Order{call}) - sorted.begin();
} catch (const Stopped& stopped) {
  return stop_status(stopped.code);
}

Status codes(const Call& call) {
  PFRT_ASSIGN(const auto texts, texts_of(call, 0));
  size_t count = 1;
  for (const auto& part : texts) count += part.size();
  std::vector<std::string_view> distinct;
  distinct.reserve(count);
  distinct.emplace_back();
  for (const auto& part : texts)
    for (const pfrt_string& s : part) {
      PFRT_TRY(call.look(distinct.size()));
      distinct.push_back(view(s));
    }
  PFRT_TRY(sort(call, distinct));
  size_t kept = 1;
  for (size_t k = 1; k < count; ++k) {
    PFRT_ASSIGN(const bool repeated, equal(call, distinct[k], distinct[kept - 1]));
    if (!repeated) distinct[kept++] = distinct[k];
  }
  distinct.resize(kept);
  for (size_t i = 0; i < texts.size() && i < call.out.size(); ++i) {
    PFRT_ASSIGN(Tensor numbers, Tensor::allocate(PFRT_DTYPE_INT64, call.in[i]->tensor.dims, false));
    for (size_t k = 0; k < texts[i].size(); ++k) {
      PFRT_ASSIGN(numbers.as<int64_t>()[k], place_of(call, distinct, view(texts[i][k])));
    }
    call.out[i] = Value::of(std::move(numbers));
  }
  if (call.out.size() <= texts.size()) return {};
  PFRT_ASSIGN(Tensor all,
              Tensor::allocate(PFRT_DTYPE_STRING, {static_cast<int64_t>(distinct.size())}));
  for (size_t k = 0; k < distinct.size(); ++k) {
    PFRT_TRY(call.walked(distinct[k].size()));
    PFRT_TRY(all.buffer->set_string(k, distinct[k]));
  }
  call.out[texts.size()] = Value::of(std::move(all));
  return {};
}

Status take(const Call& call) {
  PFRT_ASSIGN(const Tensor* numbers, need_tensor(call, 0, PFRT_DTYPE_INT64));
  PFRT_ASSIGN(const auto texts, texts_of(call, 1));
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_STRING, numbers->dims));
  for (int64_t i = 0; i < numbers->count(); ++i) {
    const int64_t number = numbers->as<const int64_t>()[i];
    if (number < 0) return error(Code::kINVALID_ARGUMENT, "there is no string ", number);
    auto at = static_cast<uint64_t>(number);
    size_t part = 0;
    while (part < texts.size() && at >= texts[part].size()) at -= texts[part++].size();
    if (part == texts.size()) return error(Code::kINVALID_ARGUMENT, "there is no string ", number);
    PFRT_TRY(call.walked(texts[part][at].size));
    PFRT_TRY(out.buffer->set_string(static_cast<uint64_t>(i), view(texts[part][at])));
  }
  call.out[0] = Value::of(std::move(out));
  return {};
}

constexpr HostOp kStringsOps[] = {
    {kStringDomain, "StringPositions", positions},
    {kStringDomain, "StringCodes", codes},
    {kStringDomain, "StringTake", take},
};

}  // namespace

std::span<const HostOp> string_ops() { return kStringsOps; }

}  // namespace pfrt::host
