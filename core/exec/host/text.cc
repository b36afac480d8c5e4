// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "core/exec/host/call.h"
#include "core/exec/host/utf8.h"

namespace pfrt::host {
namespace {

std::string change_case(std::string_view text, std::string_view action) {
  if (action != "UPPER" && action != "LOWER") return std::string(text);
  std::u32string points = decode(text);
  for (char32_t& p : points) p = action == "UPPER" ? upper_case(p) : lower_case(p);
  return encode(points);
}

Status string_normalizer(const Call& call) {
  PFRT_ASSIGN(const Tensor* input, need_tensor(call, 0, PFRT_DTYPE_STRING));
  const Tensor& t = *input;
  const bool rows = t.dims.size() == 2 && t.dims[0] == 1;
  if (t.dims.size() != 1 && !rows)
    return error(Code::kSHAPE_MISMATCH, "input must be [C] or [1,C], its rank is ", t.dims.size());
  const std::string_view action = call.node.attr_string("case_change_action", "NONE");
  const bool sensitive = call.node.attr_int("is_case_sensitive", 0) != 0;
  const Attribute* list = call.node.attr("stopwords");
  std::vector<std::string> stop = list ? list->strings : std::vector<std::string>();
  if (!sensitive)
    for (std::string& s : stop) s = change_case(s, "LOWER");
  std::vector<std::string> kept;
  size_t at = 0;
  for (const pfrt_string& s : t.strings()) {
    PFRT_TRY(call.look(at++));
    const std::string compared = sensitive ? std::string(view(s)) : change_case(view(s), "LOWER");
    if (std::find(stop.begin(), stop.end(), compared) == stop.end())
      kept.push_back(change_case(view(s), action));
  }
  if (kept.empty()) kept.emplace_back();  // the standard asks for one empty string
  Dims dims = t.dims;
  dims.back() = static_cast<int64_t>(kept.size());
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_STRING, dims));
  for (size_t i = 0; i < kept.size(); ++i) {
    PFRT_TRY(call.look(i));
    PFRT_TRY(out.buffer->set_string(i, kept[i]));
  }
  call.out[0] = Value::of(std::move(out));
  return {};
}

// Dimensions of two tensors broadcast together, or an error.
Result<Dims> broadcast(const Dims& a, const Dims& b) {
  Dims out = a.size() >= b.size() ? a : b;
  const Dims& other = a.size() >= b.size() ? b : a;
  const size_t lead = out.size() - other.size();
  for (size_t i = 0; i < other.size(); ++i) {
    int64_t& d = out[lead + i];
    if (d != other[i] && d != 1 && other[i] != 1)
      return error(Code::kSHAPE_MISMATCH, "dimensions ", d, " and ", other[i],
                   " do not broadcast; they must be equal or 1");
    if (d == 1) d = other[i];
  }
  return out;
}

// Counts through |dims| in row-major order and says where in a tensor of |own| dimensions,
// broadcast to these, the element stands.
class Walk {
 public:
  Walk(const Dims& dims, const Dims& own) : dims_(dims), steps_(dims.size()), place_(dims.size()) {
    int64_t step = 1;
    for (size_t i = own.size(); i-- > 0;) {
      const size_t d = dims.size() - own.size() + i;
      steps_[d] = own[i] == 1 ? 0 : step;
      step *= own[i];
    }
  }
  size_t at() const { return static_cast<size_t>(at_); }
  void next() {
    for (size_t d = dims_.size(); d-- > 0;) {
      at_ += steps_[d];
      if (++place_[d] < dims_[d]) return;
      at_ -= steps_[d] * dims_[d];
      place_[d] = 0;
    }
  }

 private:
  const Dims& dims_;
  Dims steps_, place_;
  int64_t at_ = 0;
};

Status string_concat(const Call& call) {
  PFRT_ASSIGN(const Tensor* a, need_tensor(call, 0, PFRT_DTYPE_STRING));
  PFRT_ASSIGN(const Tensor* b, need_tensor(call, 1, PFRT_DTYPE_STRING));
  PFRT_ASSIGN(const Dims dims, broadcast(a->dims, b->dims));
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_STRING, dims));
  Walk first(dims, a->dims), second(dims, b->dims);
  for (int64_t i = 0; i < out.count(); ++i, first.next(), second.next()) {
    PFRT_TRY(call.look(i));
    std::string text(view(a->strings()[first.at()]));
    text += view(b->strings()[second.at()]);
    PFRT_TRY(out.buffer->set_string(static_cast<uint64_t>(i), text));
  }
  call.out[0] = Value::of(std::move(out));
  return {};
}

// As Python splits: at white space when |delimiter| is empty, at most |most| times.
Result<std::vector<std::string>> split(const Call& call, std::string_view text,
                                       std::string_view delimiter, int64_t most) {
  std::vector<std::string> out;
  if (!delimiter.empty()) {
    for (int64_t n = 0; n < most; ++n) {
      PFRT_TRY(call.look(n));
      const size_t at = text.find(delimiter);
      if (at == std::string_view::npos) break;
      out.emplace_back(text.substr(0, at));
      text.remove_prefix(at + delimiter.size());
    }
    out.emplace_back(text);
    return out;
  }
  const std::u32string points = decode(text);
  const std::u32string_view all = points;
  size_t at = 0;
  while (true) {
    PFRT_TRY(call.look(out.size()));
    while (at < all.size() && is_space(all[at])) ++at;
    if (at == all.size()) return out;
    size_t end = at;
    while (end < all.size() && !is_space(all[end])) ++end;
    if (static_cast<int64_t>(out.size()) == most) end = all.size();
    out.push_back(encode(std::u32string(all.substr(at, end - at))));
    at = end;
  }
}

Status string_split(const Call& call) {
  PFRT_ASSIGN(const Tensor* input, need_tensor(call, 0, PFRT_DTYPE_STRING));
  const std::string_view delimiter = call.node.attr_string("delimiter", "");
  const int64_t given = call.node.attr_int("maxsplit", -1);
  std::vector<std::vector<std::string>> parts;
  size_t most = 0;
  PFRT_ASSIGN(Tensor counts, Tensor::allocate(PFRT_DTYPE_INT64, input->dims));
  for (const pfrt_string& s : input->strings()) {
    PFRT_TRY(call.look(parts.size()));
    PFRT_ASSIGN(auto some, split(call, view(s), delimiter, given < 0 ? INT64_MAX : given));
    parts.push_back(std::move(some));
    most = std::max(most, parts.back().size());
    counts.as<int64_t>()[parts.size() - 1] = static_cast<int64_t>(parts.back().size());
  }
  Dims dims = input->dims;
  dims.push_back(static_cast<int64_t>(most));
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_STRING, std::move(dims)));
  for (size_t i = 0; i < parts.size(); ++i)
    for (size_t k = 0; k < parts[i].size(); ++k) {
      PFRT_TRY(call.look(i + k));
      PFRT_TRY(out.buffer->set_string(i * most + k, parts[i][k]));
    }
  call.out[0] = Value::of(std::move(out));
  if (call.out.size() > 1) call.out[1] = Value::of(std::move(counts));
  return {};
}

constexpr HostOp kRows[] = {
    {"", "StringNormalizer", string_normalizer},
    {"", "StringConcat", string_concat},
    {"", "StringSplit", string_split},
};

}  // namespace

std::span<const HostOp> text_ops() { return kRows; }

}  // namespace pfrt::host
