// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/einsum/path.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>

namespace pfrt::cpu {
namespace {

// Letters, and the dimensions of ellipses: an operand of more than 63 has more elements than
// memory.
constexpr size_t kMostLabels = 128;
constexpr size_t kMostOfAllOrders = 8;
// More operands are taken in the order of their sizes: finding the cheapest pair takes a look at
// all others for each.
constexpr size_t kMostSearched = 256;
// Cost of writing and reading an element of a result, in multiplications.
constexpr double kElement = 4;

using Labels = std::bitset<kMostLabels>;

constexpr size_t kGone = SIZE_MAX;
struct Operand {
  size_t number;  // kGone: part of another now
  Labels labels;
  std::vector<int64_t> strides;
};

class Path {
 public:
  explicit Path(const EinsumShape& shape) : shape_(shape), next_(shape.strides.size()) {
    for (size_t l = 0; l < shape.output_labels; ++l)
      if (shape.sizes[l] > 1) output_.set(l);
    for (size_t i = 0; i < shape.strides.size(); ++i) {
      Operand operand{i, {}, shape.strides[i]};
      for (size_t l = 0; l < shape.sizes.size(); ++l)
        if (operand.strides[l] != 0) operand.labels.set(l);
      count(operand.labels, 1);
      operands_.push_back(std::move(operand));
    }
    live_ = operands_.size();
  }

  Result<std::vector<EinsumStep>> find() {
    if (operands_.size() == 1) {
      PFRT_TRY(contract(0, std::nullopt));
      return std::move(steps_);
    }
    for (size_t i = 0; i < operands_.size(); ++i)
      if (kept(i, std::nullopt) != operands_[i].labels) PFRT_TRY(contract(i, std::nullopt));
    if (operands_.size() > kMostSearched) PFRT_TRY(contract_smallest());
    while (operands_.size() > kMostOfAllOrders) PFRT_TRY(contract_cheapest());
    PFRT_TRY(contract_best());
    return std::move(steps_);
  }

 private:
  double size(const Labels& labels) const {
    double product = 1;
    for (size_t l = 0; l < shape_.sizes.size(); ++l)
      if (labels[l]) product *= static_cast<double>(shape_.sizes[l]);
    return product;
  }

  void count(const Labels& labels, int64_t more) {
    for (size_t l = 0; l < shape_.sizes.size(); ++l)
      if (labels[l]) holders_[l] += more;
  }

  // Labels that remain in the product of |a| and |b|, or in |a|, once it is summed over labels that
  // nothing else has.
  Labels kept(size_t a, std::optional<size_t> b) const {
    const Labels none, &one = operands_[a].labels, &other = b ? operands_[*b].labels : none;
    Labels out = one | other;
    for (size_t l = 0; l < shape_.sizes.size(); ++l)
      if (out[l] && !output_[l] && holders_[l] == int64_t{one[l]} + int64_t{other[l]}) out.reset(l);
    return out;
  }
  // Labels that remain in the product of |some|.
  Labels kept(const std::vector<size_t>& some) const {
    Labels inside, outside = output_;
    for (size_t i = 0; i < operands_.size(); ++i)
      (std::find(some.begin(), some.end(), i) != some.end() ? inside : outside) |=
          operands_[i].labels;
    return inside & outside;
  }

  // Operands |a| and |b| give place to their product, at |a|; |a| alone to what is summed of it.
  // |b| is gone then.
  Status contract(size_t a, std::optional<size_t> b) {
    EinsumStep step;
    step.a = operands_[a].number;
    step.a_strides = operands_[a].strides;
    step.b_strides.assign(shape_.sizes.size(), 0);
    if (b) {
      step.b = operands_[*b].number;
      step.b_strides = operands_[*b].strides;
    }
    const Labels labels = kept(a, b);
    const bool last = live_ == (b ? 2u : 1u);
    PFRT_TRY(lay_out(step, labels, last));
    count(operands_[a].labels, -1);
    if (b) count(operands_[*b].labels, -1);
    count(labels, 1);
    operands_[a] = {next_++, labels, step.out_strides};
    if (b) operands_[*b].number = kGone;
    if (b) --live_;
    steps_.push_back(std::move(step));
    return {};
  }

  // The output as its labels stand; another result by batch, rows and columns, in the order in
  // which its operands have them.
  Status lay_out(EinsumStep& step, const Labels& labels, bool last) const {
    std::vector<size_t> order;
    for (size_t l = 0; l < shape_.sizes.size(); ++l)
      if (labels[l]) order.push_back(l);
    const auto group = [&](size_t l) {
      return step.a_strides[l] == 0 ? 2 : step.b_strides[l] == 0 ? 1 : 0;
    };
    const auto stride = [&](size_t l) {
      return step.a_strides[l] != 0 ? step.a_strides[l] : step.b_strides[l];
    };
    if (!last)
      std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
        return group(x) != group(y) ? group(x) < group(y) : stride(x) > stride(y);
      });
    step.out_strides.assign(shape_.sizes.size(), 0);
    for (size_t i = order.size(); i-- > 0;) {
      step.out_strides[order[i]] = step.elements;
      if (step.elements > std::numeric_limits<int64_t>::max() / 16 / shape_.sizes[order[i]])
        return error(Code::kOUT_OF_MEMORY, "a product of two operands has ", size(labels),
                     " elements, more than memory can hold");
      step.elements *= shape_.sizes[order[i]];
    }
    return {};
  }

  Status contract_cheapest() {
    size_t a = 0;
    for (size_t i = 1; i < operands_.size(); ++i)
      if (size(operands_[i].labels) < size(operands_[a].labels)) a = i;
    std::optional<size_t> b;
    double least = 0;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (i == a) continue;
      const double cost =
          size(operands_[a].labels | operands_[i].labels) - size(operands_[i].labels);
      if (!b || cost < least) b = i, least = cost;
    }
    PFRT_TRY(contract(a, b));
    drop_gone();
    return {};
  }

  // The two smallest, again and again, until few enough are left to choose among.
  Status contract_smallest() {
    using Entry = std::tuple<double, size_t, size_t>;  // size, number, index
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> smallest;
    const auto add = [&](size_t i) {
      smallest.push({size(operands_[i].labels), operands_[i].number, i});
    };
    const auto take = [&] {
      const size_t i = std::get<2>(smallest.top());
      smallest.pop();
      return i;
    };
    for (size_t i = 0; i < operands_.size(); ++i) add(i);
    while (live_ > kMostSearched) {
      const size_t a = take(), b = take();
      PFRT_TRY(contract(a, b));
      add(a);
    }
    drop_gone();
    return {};
  }

  void drop_gone() {
    std::erase_if(operands_, [](const Operand& operand) { return operand.number == kGone; });
  }

  // Dynamic programming over the sets of operands.
  Status contract_best() {
    struct Best {
      Labels labels;
      double cost = 0;
      uint32_t left = 0;
    };
    const auto n = static_cast<uint32_t>(operands_.size());
    std::vector<Best> best(size_t{1} << n);
    for (uint32_t set = 1; set < best.size(); ++set) {
      std::vector<size_t> members;
      for (uint32_t i = 0; i < n; ++i)
        if (set >> i & 1u) members.push_back(i);
      best[set].labels = kept(members);
      if (members.size() == 1) continue;
      best[set].cost = std::numeric_limits<double>::infinity();
      for (uint32_t left = (set - 1) & set; left > 0; left = (left - 1) & set) {
        const uint32_t right = set ^ left;
        if (left < right) break;  // pairs repeat from here on
        const double cost =
            best[left].cost + best[right].cost + size(best[left].labels | best[right].labels);
        if (best[set].left == 0 || cost < best[set].cost) {
          best[set].cost = cost;
          best[set].left = left;
        }
      }
      best[set].cost += kElement * size(best[set].labels);
    }
    // Results are found again by their number, which nothing changes.
    std::vector<size_t> numbers;
    numbers.reserve(operands_.size());
    for (const Operand& operand : operands_) numbers.push_back(operand.number);
    const auto place = [&](size_t number) {
      size_t at = 0;
      while (operands_[at].number != number) ++at;
      return at;
    };
    const auto make = [&](const auto& self, uint32_t set) -> Result<size_t> {
      const uint32_t left = best[set].left;
      if (left == 0) {
        size_t i = 0;
        while (!(set >> i & 1u)) ++i;
        return numbers[i];
      }
      PFRT_ASSIGN(const size_t a, self(self, left));
      PFRT_ASSIGN(const size_t b, self(self, set ^ left));
      PFRT_TRY(contract(place(a), place(b)));
      return next_ - 1;
    };
    PFRT_ASSIGN(const size_t whole, make(make, static_cast<uint32_t>(best.size() - 1)));
    static_cast<void>(whole);
    return {};
  }

  const EinsumShape& shape_;
  size_t next_;  // number of the next result
  Labels output_;
  std::vector<Operand> operands_;
  size_t live_ = 0;                    // operands that are not gone
  int64_t holders_[kMostLabels] = {};  // operands that have a label
  std::vector<EinsumStep> steps_;
};

}  // namespace

Result<std::vector<EinsumStep>> einsum_path(const EinsumShape& shape) {
  if (shape.sizes.size() > kMostLabels)
    return error(Code::kUNSUPPORTED, "the equation has ", shape.sizes.size(), " labels, more than ",
                 kMostLabels);
  return Path(shape).find();
}

}  // namespace pfrt::cpu
