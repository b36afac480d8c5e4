// SPDX-License-Identifier: Apache-2.0
//
// Softmax and reductions: sums and maxima along axes.
#include <algorithm>

#include "providers/wse/operators/families.h"
#include "providers/wse/operators/rounding.h"
#include "providers/wse/operators/tensor.h"
#include "providers/wse/operators/walk.h"

namespace pfrt::wse {
namespace rows {
namespace {

// ------------------------------------------------------------------------------------- softmax

// The exponentials' sum is divided once a row; each element takes a multiplication by that.
template <typename R>
void softmax(R round, AxisJoin& join, std::span<float> row) {
  const float most = join(row, Join::kMax);
  for (float& x : row) x = round.exp(round(x - most));
  const float share = round.divide(1, join(row, Join::kAdd));
  for (float& x : row) x = round(x * share);
}

template <typename R>
void log_softmax(R round, AxisJoin& join, std::span<float> row, std::span<float> exponentials) {
  const float most = join(row, Join::kMax);
  for (float& x : row) x = round(x - most);
  for (size_t i = 0; i < row.size(); ++i) exponentials[i] = round.exp(row[i]);
  const float sum = join(exponentials, Join::kAdd);
  const float below = round.wide(std::log(static_cast<double>(sum)));
  for (float& x : row) x = round(x - below);
}

template <bool logarithm>
bool run_softmax(const Call& call, std::string* why) {
  if (!sound(call, 1, why) || !output_has_dims(call, 0, call.in[0].dims, why)) return false;
  const Tensor &x = call.in[0], &y = call.out[0];
  const int64_t given = call.node.attr_int("axis", -1), axis = axis_of(given, x.rank());
  if (axis < 0)
    return fault(call, why, "axis ", given, " is not one of dimensions ", text_of(x.dims));
  if (x.count() == 0) return true;
  std::vector<bool> reduced(x.dims.size(), false);
  reduced[static_cast<size_t>(axis)] = true;
  const Groups groups = groups_of(x.dims, reduced);
  const size_t length = groups.steps.size();
  std::vector<float> row(length), more(logarithm ? length : 0);
  AxisJoin join(call);
  with_rounding(call.arithmetic, [&](auto round) {
    for (const int64_t start : groups.starts) {
      for (size_t i = 0; i < length; ++i) row[i] = round(x.as()[start + groups.steps[i]]);
      if constexpr (logarithm)
        log_softmax(round, join, row, more);
      else
        softmax(round, join, row);
      for (size_t i = 0; i < length; ++i) y.as()[start + groups.steps[i]] = row[i];
    }
  });
  return true;
}

std::string refuse_softmax(const SnapshotNode& node) { return refuse_types(node, kFloat); }

// ---------------------------------------------------------------------------------- reductions

enum class Reduction : uint8_t { kMean, kSum, kMax, kMin, kL2, kSumSquare };

constexpr bool squares(Reduction r) { return r == Reduction::kL2 || r == Reduction::kSumSquare; }

template <Reduction kind, typename R>
float before(R round, float x) {
  if constexpr (squares(kind)) return round(x * x);
  return kind == Reduction::kMin ? -x : x;
}

template <Reduction kind, typename R>
float after(R round, float joined, size_t count) {
  if constexpr (kind == Reduction::kMean)
    return round.divide(joined, static_cast<float>(count));
  else if constexpr (kind == Reduction::kL2)
    return round.square_root(joined);
  else
    return kind == Reduction::kMin ? -joined : joined;
}

// False where an axis is none of the input's.
bool read_axes(const Call& call, std::vector<bool>* reduced, bool* none) {
  std::vector<int64_t> axes = integers(call, 1);
  const auto listed = call.node.attr_ints("axes");
  if (!has_input(call, 1)) axes.assign(listed.begin(), listed.end());
  *none = axes.empty() && call.node.attr_int("noop_with_empty_axes", 0) != 0;
  reduced->assign(call.in[0].dims.size(), axes.empty() && !*none);
  for (const int64_t given : axes) {
    const int64_t axis = axis_of(given, call.in[0].rank());
    if (axis < 0) return false;
    (*reduced)[static_cast<size_t>(axis)] = true;
  }
  return true;
}

template <Reduction kind>
bool run_reduction(const Call& call, std::string* why) {
  if (!sound(call, 1, why)) return false;
  const Tensor &x = call.in[0], &y = call.out[0];
  std::vector<bool> reduced;
  bool none = false;
  if (!read_axes(call, &reduced, &none))
    return fault(call, why, "an axis is not one of dimensions ", text_of(x.dims));
  const Groups groups = groups_of(x.dims, reduced);
  const size_t length = groups.steps.size();
  if (y.count() != static_cast<int64_t>(groups.starts.size()))
    return fault(call, why, "the axes leave ", groups.starts.size(),
                 " elements, the output has dimensions ", text_of(y.dims));
  std::vector<float> row(length);
  AxisJoin join(call);
  constexpr bool kLargest = kind == Reduction::kMax || kind == Reduction::kMin;
  with_rounding(call.arithmetic, [&](auto round) {
    for (size_t g = 0; g < groups.starts.size(); ++g) {
      const float* const from = x.as() + groups.starts[g];
      for (size_t i = 0; i < length; ++i) {
        const float element = round(from[groups.steps[i]]);
        row[i] = none ? element : before<kind>(round, element);
      }
      y.as()[g] =
          none ? row[0] : after<kind>(round, join(row, kLargest ? Join::kMax : Join::kAdd), length);
    }
  });
  return true;
}

std::string refuse_reduction(const SnapshotNode& node) {
  return first_of({refuse_unlike_output(node, 0, kFloat), refuse_input(node, 1, kIndex),
                   refuse_run_time(node, 1, "axes")});
}

// --------------------------------------------------------------------------------------- rows

template <Reduction kind>
constexpr Operator reduction(std::string_view op, double vector_operations = 0) {
  const Work work{.vector_operations = vector_operations, .sums = 1, .all_reduces = 1};
  return {"", op, Family::kRows, work, refuse_reduction, run_reduction<kind>};
}

constexpr Work kSoftmaxWork{.vector_operations = 2, .exponentials = 1, .sums = 2, .all_reduces = 2};

constexpr Operator kOperators[] = {
    {"", "Softmax", Family::kRows, kSoftmaxWork, refuse_softmax, run_softmax<false>},
    {"", "LogSoftmax", Family::kRows, kSoftmaxWork, refuse_softmax, run_softmax<true>},
    reduction<Reduction::kMean>("ReduceMean"),
    reduction<Reduction::kSum>("ReduceSum"),
    reduction<Reduction::kMax>("ReduceMax"),
    reduction<Reduction::kMin>("ReduceMin", 1),
    reduction<Reduction::kL2>("ReduceL2", 1),
    reduction<Reduction::kSumSquare>("ReduceSumSquare", 1),
};

}  // namespace
}  // namespace rows

std::span<const Operator> row_operators() { return rows::kOperators; }

}  // namespace pfrt::wse
