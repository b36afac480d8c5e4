// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/tensors/sizes.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <set>

#include "cxxapi/cli/line/usage_error.h"
#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;
using pyflame_rt::NodeArg;
using pyflame_rt::PyFlameRTError;

constexpr auto kBudget = std::chrono::seconds(10);
constexpr int64_t kLargestSize = 16384;
constexpr int64_t kMostElements = int64_t{1} << 22;  // of an input

struct OpenDims {
  std::vector<std::string> leading, others;
};

OpenDims open_dims(const Feeder& feeder) {
  std::set<std::string> leading, others;
  for (const NodeArg& input : feeder.made_up()) {
    for (size_t axis = 0; axis < input.shape.size(); ++axis) {
      const std::string name = dim_name(input, axis);
      if (input.shape[axis] || feeder.dims().count(name) != 0) continue;
      (axis == 0 && input.shape.size() > 1 ? leading : others).insert(name);
    }
  }
  for (const std::string& name : others) leading.erase(name);
  return {{leading.begin(), leading.end()}, {others.begin(), others.end()}};
}

// Returns the sets of dimensions that grow together, in the order in which they are tried.
std::vector<std::vector<std::string>> growing(const OpenDims& open) {
  std::vector<std::vector<std::string>> sets;
  sets.reserve(open.others.size());
  for (const std::string& name : open.others) sets.push_back({name});
  if (open.others.size() > 1) sets.push_back(open.others);
  for (const std::string& name : open.leading) sets.push_back({name});
  std::vector<std::string> all = open.others;
  all.insert(all.end(), open.leading.begin(), open.leading.end());
  if (all.size() > 1 && !open.leading.empty()) sets.push_back(std::move(all));
  return sets;
}

// Collects numbers of a message that stand alone: "512" of "covers 512 elements", not that of
// "Conv_512".
void add_numbers(const std::string& text, std::set<int64_t>* sizes) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  };
  for (size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    int64_t number = 0;
    for (; end < text.size() && is_digit(text[end]); ++end)
      number = std::min(10 * number + (text[end] - '0'), kLargestSize + 1);
    const bool alone = (at == 0 || !is_word(text[at - 1])) &&
                       (end == text.size() ||
                        (!std::isalpha(static_cast<unsigned char>(text[end])) && text[end] != '_'));
    if (alone && number > 1 && number <= kLargestSize) sizes->insert(number);
    at = end;
  }
}

std::set<int64_t> first_candidates(const Feeder& feeder) {
  std::set<int64_t> sizes;
  for (int64_t power = 2; power <= kLargestSize; power *= 2) sizes.insert(power);
  for (const NodeArg& input : feeder.made_up())
    for (const auto& dim : input.shape)
      if (dim && *dim > 1 && *dim <= kLargestSize) sizes.insert(*dim);
  return sizes;
}

bool is_small(const Feeder& feeder, const Dims& sizes) {
  Dims all = feeder.dims();
  all.insert(sizes.begin(), sizes.end());
  return std::all_of(feeder.made_up().begin(), feeder.made_up().end(), [&](const NodeArg& input) {
    int64_t elements = 1;
    for (const int64_t dim : fixed_shape(input, all)) {
      if (dim > kMostElements / elements) return false;
      elements *= std::max<int64_t>(dim, 1);
    }
    return true;
  });
}

// Whether the model may want another shape.
bool blames_shape(const PyFlameRTError& error) {
  return error.code() == PFRT_CODE_SHAPE_MISMATCH || error.code() == PFRT_CODE_INVALID_ARGUMENT;
}

std::string dims_text(const Dims& dims) {
  std::string out;
  for (const auto& [name, size] : dims)
    out += (out.empty() ? "" : ", ") + name + "=" + std::to_string(size);
  return out;
}

class Search {
 public:
  Search(const Feeder& feeder, const Attempt& attempt, const Dims& ones)
      : feeder_(feeder), attempt_(attempt), ones_(ones), sizes_(first_candidates(feeder)) {}

  // Tries sizes; returns whether some fit, with these in |found|. |refusal| is that of all sizes 1.
  bool run(const std::string& refusal, const std::vector<std::vector<std::string>>& sets,
           Dims* found) {
    add_numbers(refusal, &sizes_);
    while (!sizes_.empty()) {
      const int64_t size = *sizes_.begin();
      sizes_.erase(sizes_.begin());
      if (!tried_.insert(size).second) continue;
      for (const std::vector<std::string>& names : sets) {
        if (Clock::now() >= end_) return false;
        *found = ones_;
        for (const std::string& name : names) (*found)[name] = size;
        if (fits(*found)) return true;
      }
    }
    return false;
  }
  size_t attempts() const { return attempts_; }

 private:
  bool fits(const Dims& dims) {
    if (!is_small(feeder_, dims)) return false;
    ++attempts_;
    pyflame_rt::RunOptions options;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - Clock::now());
    options.timeout_ms = std::max<int64_t>(left.count(), 1);
    try {
      attempt_(feeder_.feed(dims), &options);
      return true;
    } catch (const PyFlameRTError& error) {
      if (blames_shape(error)) add_numbers(error.what(), &sizes_);
      return false;
    }
  }

  const Feeder& feeder_;
  const Attempt& attempt_;
  const Dims& ones_;
  std::set<int64_t> sizes_, tried_;
  size_t attempts_ = 0;
  const Clock::time_point end_ = Clock::now() + kBudget;
};

}  // namespace

Dims fit_sizes(const Feeder& feeder, const Attempt& attempt) {
  const OpenDims open = open_dims(feeder);
  Dims ones;
  for (const auto* names : {&open.leading, &open.others})
    for (const std::string& name : *names) ones[name] = 1;
  std::string refusal;
  try {
    attempt(feeder.feed(ones), nullptr);
    return ones;
  } catch (const PyFlameRTError& error) {
    if (ones.empty() || !blames_shape(error)) throw;
    refusal = error.what();
  }
  Search search(feeder, attempt, ones);
  Dims found;
  if (search.run(refusal, growing(open), &found)) return found;
  const std::string& name = open.others.empty() ? open.leading.front() : open.others.front();
  throw UsageError(one_line(refusal) + "; this is with " + dims_text(ones) +
                   " assumed, and none of " + std::to_string(search.attempts()) +
                   " other sizes tried fits: give --dim " + name + "=N" +
                   (ones.size() > 1 ? " and so on" : ""));
}

std::string assumed_text(const Dims& dims) {
  return dims_text(dims) + " assumed; --dim NAME=N gives others";
}

void write_assumed(const Dims& dims, Json* json) {
  json->object();
  for (const auto& [name, size] : dims) json->field(name, size);
  json->end();
}

Attempt run_once(const pyflame_rt::InferenceSession& session) {
  return [&session](const Feed& feed, const pyflame_rt::RunOptions* options) {
    if (options == nullptr) {
      (void)session.run_values({}, feed);
    } else {
      (void)session.run_values({}, feed, *options);
    }
  };
}

}  // namespace cli
