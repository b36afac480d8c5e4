// SPDX-License-Identifier: Apache-2.0
//
// Numbers in place of strings; core/op/engine/string_numbers.h says which. Also what joins and
// splits texts.
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

// The standard's algorithm has no other way out than an exception, which does not leave here.
Status sort(const Call& call, std::vector<std::string_view>& texts) {
  struct Stopped {
    Code code;
  };
  uint64_t comparisons = 0;
  try {
    std::sort(texts.begin(), texts.end(), [&](std::string_view a, std::string_view b) {
      if (++comparisons % 4096 == 0)
        if (const Code code = call.control.stop(); code != Code::kOK) throw Stopped{code};
      return a < b;
    });
    return {};
  } catch (const Stopped& stopped) {
    return stop_status(stopped.code);
  }
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
    PFRT_TRY(call.look(k));
    if (distinct[k] != distinct[kept - 1]) distinct[kept++] = distinct[k];
  }
  distinct.resize(kept);
  for (size_t i = 0; i < texts.size() && i < call.out.size(); ++i) {
    PFRT_ASSIGN(Tensor numbers, Tensor::allocate(PFRT_DTYPE_INT64, call.in[i]->tensor.dims, false));
    for (size_t k = 0; k < texts[i].size(); ++k) {
      PFRT_TRY(call.look(k));
      numbers.as<int64_t>()[k] =
          std::lower_bound(distinct.begin(), distinct.end(), view(texts[i][k])) - distinct.begin();
    }
    call.out[i] = Value::of(std::move(numbers));
  }
  if (call.out.size() <= texts.size()) return {};
  PFRT_ASSIGN(Tensor all,
              Tensor::allocate(PFRT_DTYPE_STRING, {static_cast<int64_t>(distinct.size())}));
  for (size_t k = 0; k < distinct.size(); ++k) {
    PFRT_TRY(call.look(k));
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
    PFRT_TRY(call.look(i));
    const int64_t number = numbers->as<const int64_t>()[i];
    if (number < 0) return error(Code::kINVALID_ARGUMENT, "there is no string ", number);
    auto at = static_cast<uint64_t>(number);
    size_t part = 0;
    while (part < texts.size() && at >= texts[part].size()) at -= texts[part++].size();
    if (part == texts.size()) return error(Code::kINVALID_ARGUMENT, "there is no string ", number);
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
