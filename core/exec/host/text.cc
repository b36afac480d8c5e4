// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include "core/exec/host/call.h"
#include "core/exec/host/utf8.h"

namespace pfrt::host {
namespace {

Result<std::string> change_case(BytePace& pace, std::string_view text, std::string_view action) {
  if (action != "UPPER" && action != "LOWER") return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    for (const size_t end = std::min(text.size(), at + BytePace::kBytes); at < end;) {
      const char32_t point = next_point(text, at);
      append(out, action == "UPPER" ? upper_case(point) : lower_case(point));
    }
    PFRT_TRY(pace.after(at - begin));
  }
  return out;
}

struct StopWords {
  std::unordered_set<std::string> words;
  size_t longest = 0;
};

Result<std::shared_ptr<const StopWords>> read_stop_words(const Call& call, const Attribute* list,
                                                         bool sensitive) {
  auto made = std::make_shared<StopWords>();
  for (size_t i = 0; list && i < list->strings.size(); ++i) {
    PFRT_TRY(call.walked(list->strings[i].size()));
    PFRT_ASSIGN(std::string word,
                change_case(call.pace, list->strings[i], sensitive ? "NONE" : "LOWER"));
    made->longest = std::max(made->longest, word.size());
    made->words.insert(std::move(word));
  }
  return std::shared_ptr<const StopWords>(std::move(made));
}

Status string_normalizer(const Call& call) {
  PFRT_ASSIGN(const Tensor* input, need_tensor(call, 0, PFRT_DTYPE_STRING));
  const Tensor& t = *input;
  const bool rows = t.dims.size() == 2 && t.dims[0] == 1;
  if (t.dims.size() != 1 && !rows)
    return error(Code::kSHAPE_MISMATCH, "input must be [C] or [1,C], its rank is ", t.dims.size());
  const std::string_view action = call.node.attr_string("case_change_action", "NONE");
  const bool sensitive = call.node.attr_int("is_case_sensitive", 0) != 0;
  PFRT_ASSIGN(const auto stop, call.prepared.get<StopWords>(call.control, [&] {
    return read_stop_words(call, call.node.attr("stopwords"), sensitive);
  }));
  std::vector<std::string> kept;
  for (const pfrt_string& s : t.strings()) {
    PFRT_TRY(call.walked(s.size));
    // A text longer than every stop word, in any case, is not looked up.
    PFRT_ASSIGN(const std::string compared,
                change_case(call.pace, view(s), sensitive ? "NONE" : "LOWER"));
    if (compared.size() <= stop->longest && stop->words.count(compared) != 0) continue;
    PFRT_ASSIGN(std::string changed, change_case(call.pace, view(s), action));
    kept.push_back(std::move(changed));
  }
  if (kept.empty()) kept.emplace_back();  // the standard asks for one empty string
  Dims dims = t.dims;
  dims.back() = static_cast<int64_t>(kept.size());
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_STRING, dims));
  for (size_t i = 0; i < kept.size(); ++i) {
    PFRT_TRY(call.walked(kept[i].size()));
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

// Counts through |dims| in row-major order and gives the position of the element in a tensor of
// |own| dimensions that is broadcast to |dims|.
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

Status append(const Call& call, std::string_view part, std::string& text) {
  constexpr size_t kPiece = size_t{1} << 20;
  do {
    const std::string_view piece = part.substr(0, kPiece);
    PFRT_TRY(call.walked(piece.size()));
    text += piece;
    part.remove_prefix(piece.size());
  } while (!part.empty());
  return {};
}

Status string_concat(const Call& call) {
  PFRT_ASSIGN(const Tensor* a, need_tensor(call, 0, PFRT_DTYPE_STRING));
  PFRT_ASSIGN(const Tensor* b, need_tensor(call, 1, PFRT_DTYPE_STRING));
  PFRT_ASSIGN(const Dims dims, broadcast(a->dims, b->dims));
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_STRING, dims));
  Walk first(dims, a->dims), second(dims, b->dims);
  for (int64_t i = 0; i < out.count(); ++i, first.next(), second.next()) {
    std::string text;
    const std::string_view parts[] = {view(a->strings()[first.at()]),
                                      view(b->strings()[second.at()])};
    text.reserve(parts[0].size() + parts[1].size());
    for (const std::string_view part : parts) PFRT_TRY(append(call, part, text));
    PFRT_TRY(out.buffer->set_string(static_cast<uint64_t>(i), text));
  }
  call.out[0] = Value::of(std::move(out));
  return {};
}

// The start of |part| in |text| from |at| on, or npos. memmem takes time in proportion to both
// sizes.
Result<size_t> find(BytePace& pace, std::string_view text, std::string_view part, size_t at) {
  const size_t window = std::max(BytePace::kBytes, part.size());
  for (; text.size() - at >= part.size(); at += window) {
    const char* const begin = text.data() + at;
    const size_t size = std::min(text.size() - at, window + part.size() - 1);
    const auto* found = static_cast<const char*>(memmem(begin, size, part.data(), part.size()));
    PFRT_TRY(pace.after(found ? static_cast<size_t>(found - begin) + part.size() : size));
    if (found) return static_cast<size_t>(found - text.data());
    if (text.size() - at <= window) break;
  }
  return std::string_view::npos;
}

// The first position from |at| on that is white space, or is not, as |space| says; the end when
// there is none.
Result<size_t> skip(BytePace& pace, std::string_view text, bool space, size_t at) {
  while (at < text.size()) {
    const size_t begin = at;
    for (const size_t end = std::min(text.size(), at + BytePace::kBytes); at < end;) {
      size_t next = at;
      if (is_space(next_point(text, next)) != space) {
        PFRT_TRY(pace.after(at - begin));
        return at;
      }
      at = next;
    }
    PFRT_TRY(pace.after(at - begin));
  }
  return at;
}

// Gives |each| the parts of |text| as Python splits: at white space when |delimiter| is empty, at
// most |most| times.
template <typename Fn>
Status split(BytePace& pace, std::string_view text, std::string_view delimiter, int64_t most,
             Fn&& each) {
  if (!delimiter.empty()) {
    size_t at = 0;
    for (int64_t n = 0; n < most; ++n) {
      PFRT_ASSIGN(const size_t end, find(pace, text, delimiter, at));
      if (end == std::string_view::npos) break;
      PFRT_TRY(each(text.substr(at, end - at)));
      at = end + delimiter.size();
    }
    return each(text.substr(at));
  }
  for (size_t at = 0, n = 0;; ++n) {
    PFRT_ASSIGN(at, skip(pace, text, true, at));
    if (at == text.size()) return {};
    size_t end = text.size();
    if (static_cast<int64_t>(n) != most) {
      PFRT_ASSIGN(end, skip(pace, text, false, at));
    }
    PFRT_TRY(each(text.substr(at, end - at)));
    at = end;
  }
}

Status string_split(const Call& call) {
  PFRT_ASSIGN(const Tensor* input, need_tensor(call, 0, PFRT_DTYPE_STRING));
  const std::string_view delimiter = call.node.attr_string("delimiter", "");
  const int64_t given = call.node.attr_int("maxsplit", -1);
  const int64_t most = given < 0 ? INT64_MAX : given;
  PFRT_ASSIGN(Tensor counts, Tensor::allocate(PFRT_DTYPE_INT64, input->dims));
  int64_t* const count = counts.as<int64_t>();
  BytePace& pace = call.pace;
  int64_t longest = 0;
  size_t i = 0;
  for (const pfrt_string& s : input->strings()) {
    PFRT_TRY(pace.after(1));
    PFRT_TRY(split(pace, view(s), delimiter, most, [&](std::string_view) {
      ++count[i];
      return Status();
    }));
    longest = std::max(longest, count[i++]);
  }
  Dims dims = input->dims;
  dims.push_back(longest);
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_STRING, std::move(dims)));
  uint64_t row = 0;
  for (const pfrt_string& s : input->strings()) {
    uint64_t at = row;
    PFRT_TRY(pace.after(1));
    const auto put = [&](std::string_view part) -> Status {
      PFRT_TRY(call.walked(part.size()));
      return out.buffer->set_string(at++, part);
    };
    PFRT_TRY(split(pace, view(s), delimiter, most, put));
    row += static_cast<uint64_t>(longest);
  }
  call.out[0] = Value::of(std::move(out));
  if (call.out.size() > 1) call.out[1] = Value::of(std::move(counts));
  return {};
}

constexpr HostOp kTextOps[] = {
    {"", "StringNormalizer", string_normalizer},
    {"", "StringConcat", string_concat},
    {"", "StringSplit", string_split},
};

}  // namespace

std::span<const HostOp> text_ops() { return kTextOps; }

}  // namespace pfrt::host
