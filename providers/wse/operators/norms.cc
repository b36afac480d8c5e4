// SPDX-License-Identifier: Apache-2.0
//
// Normalisations. Mean and variance are taken one after the other, from elements that the mean is
// taken from already; an element takes a multiplication by the inverse of the deviation.
#include <algorithm>

#include "providers/wse/operators/families.h"
#include "providers/wse/operators/rounding.h"
#include "providers/wse/operators/tensor.h"
#include "providers/wse/operators/walk.h"

namespace pfrt::wse {
namespace norms {
namespace {

// Computes the norm of a line of consecutive elements.
class Line {
 public:
  Line(const Call& call, int64_t length, float epsilon, bool centred)
      : row(static_cast<size_t>(length)),
        squares_(row.size()),
        join_(call),
        epsilon_(round_to(call.arithmetic, epsilon)),
        centred_(centred) {}

  template <typename R>
  void normalise(R round) {
    const auto count = static_cast<float>(row.size());
    if (centred_) {
      const float mean = round.divide(join_(row, Join::kAdd), count);
      for (float& x : row) x = round(x - mean);
    }
    for (size_t i = 0; i < row.size(); ++i) squares_[i] = round(row[i] * row[i]);
    const float variance = round.divide(join_(squares_, Join::kAdd), count);
    const float inverse = round.divide(1, round.square_root(round(variance + epsilon_)));
    for (float& x : row) x = round(x * inverse);
  }

  std::vector<float> row;

 private:
  std::vector<float> squares_;
  AxisJoin join_;
  float epsilon_;
  bool centred_;
};

// Scales or shifts for elements: one for each of a line's, or of all lines'.
struct Factors {
  std::vector<float> values;
  int64_t line = 0;  // elements from a line's to the next one's

  const float* of(int64_t i) const { return values.empty() ? nullptr : values.data() + i * line; }
};

// Input |i| repeated to a line, dimensions |dims| from |axis| on, or else to all of them.
bool read_factors(const Call& call, uint32_t i, const Dims& dims, int64_t axis, Factors* factors,
                  std::string* why) {
  if (!has_input(call, i)) return true;
  const Tensor& from = call.in[i];
  Dims to(dims.begin() + axis, dims.end());
  const bool a_line = broadcasts(from.dims, to);
  if (!a_line) to = dims;
  if (!broadcasts(from.dims, to))
    return fault(call, why, "input ", i, " of dimensions ", text_of(from.dims),
                 " does not broadcast to ", text_of(dims));
  factors->values.reserve(static_cast<size_t>(element_count(to.data(), to.size())));
  factors->line = a_line ? 0 : elements_of(dims, axis, static_cast<int64_t>(dims.size()));
  each_row<1>(
      to, {broadcast_strides(from.dims, to)},
      [&](int64_t length, const auto& at, const auto& step) {
        for (int64_t k = 0; k < length; ++k)
          factors->values.push_back(round_to(call.arithmetic, from.as()[at[0] + k * step[0]]));
      });
  return true;
}

template <typename R>
void scale_and_shift(R round, std::span<const float> x, const float* scale, const float* shift,
                     float* y) {
  for (size_t i = 0; i < x.size(); ++i) {
    const float scaled = scale == nullptr ? x[i] : round(x[i] * scale[i]);
    y[i] = shift == nullptr ? scaled : round(scaled + shift[i]);
  }
}

// ------------------------------------------------------------------- over the last dimensions

// |bias| is that of the skip forms, PFRT_NO_INDEX elsewhere.
struct LayerForm {
  bool centred;
  float epsilon;
  uint32_t scale, shift;
  bool skips = false;
  uint32_t bias = PFRT_NO_INDEX;
};

// Lines of x, or of the sum of x, what skips and the bias, which is also an output.
class Sum {
 public:
  bool read(const Call& call, const LayerForm& form, int64_t axis, std::string* why) {
    x_ = call.in[0].as();
    out_ = form.skips && wants(call, 3) ? call.out[3].as() : nullptr;
    const Dims& dims = call.in[0].dims;
    if (!form.skips) return true;
    if (out_ != nullptr && !output_has_dims(call, 3, dims, why)) return false;
    return read_factors(call, 1, dims, axis, &skip_, why) &&
           read_factors(call, form.bias, dims, axis, &bias_, why);
  }

  template <typename R>
  void line(R round, int64_t i, std::span<float> row) const {
    const auto length = static_cast<int64_t>(row.size());
    const float *const from = x_ + i * length, *const skip = skip_.of(i), *const bias = bias_.of(i);
    for (size_t k = 0; k < row.size(); ++k) {
      row[k] = round(from[k]);
      if (skip != nullptr) row[k] = round(row[k] + skip[k]);
      if (bias != nullptr) row[k] = round(row[k] + bias[k]);
    }
    if (out_ != nullptr) std::copy(row.begin(), row.end(), out_ + i * length);
  }

 private:
  const float* x_ = nullptr;
  float* out_ = nullptr;
  Factors skip_, bias_;
};

bool run_layer(const Call& call, const LayerForm& form, std::string* why) {
  if (!sound(call, form.skips ? 3 : 2, why) || !output_has_dims(call, 0, call.in[0].dims, why))
    return false;
  const Dims& dims = call.in[0].dims;
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t given = form.skips ? -1 : call.node.attr_int("axis", -1),
                axis = axis_of(given, rank);
  if (axis < 0)
    return fault(call, why, "axis ", given, " is not one of dimensions ", text_of(dims));
  if (call.in[0].count() == 0) return true;
  Factors scale, shift;
  Sum sum;
  if (!read_factors(call, form.scale, dims, axis, &scale, why) ||
      !read_factors(call, form.shift, dims, axis, &shift, why) || !sum.read(call, form, axis, why))
    return false;
  const int64_t length = elements_of(dims, axis, rank), lines = elements_of(dims, 0, axis);
  Line line(call, length, call.node.attr_float("epsilon", form.epsilon), form.centred);
  with_rounding(call.arithmetic, [&](auto round) {
    for (int64_t i = 0; i < lines; ++i) {
      sum.line(round, i, line.row);
      line.normalise(round);
      scale_and_shift(round, line.row, scale.of(i), shift.of(i), call.out[0].as() + i * length);
    }
  });
  return true;
}

bool run_layer_norm(const Call& call, std::string* why) {
  return run_layer(call, {true, 1e-5F, 1, 2}, why);
}
bool run_rms_norm(const Call& call, std::string* why) {
  return run_layer(call, {false, 1e-5F, 1, PFRT_NO_INDEX}, why);
}
bool run_skip_layer_norm(const Call& call, std::string* why) {
  return run_layer(call, {true, 1e-12F, 2, 3, true, 4}, why);
}
bool run_skip_rms_norm(const Call& call, std::string* why) {
  return run_layer(call, {false, 1e-12F, 2, PFRT_NO_INDEX, true, 3}, why);
}

// ----------------------------------------------------------------------------------- channels

// Lines of |per_line| channels, of |size| elements each.
struct Channels {
  int64_t images, channels, size, per_line;
};

bool read_channels(const Call& call, uint32_t inputs, Channels* c, std::string* why) {
  if (!sound(call, inputs, why) || !output_has_dims(call, 0, call.in[0].dims, why)) return false;
  const Dims& dims = call.in[0].dims;
  if (dims.empty()) return fault(call, why, "the input has no dimensions");
  const auto rank = static_cast<int64_t>(dims.size());
  *c = {dims[0], rank > 1 ? dims[1] : 1, rank > 2 ? elements_of(dims, 2, rank) : 1, 1};
  for (uint32_t i = 1; i < inputs; ++i)
    if (!has_dims(call, i, {c->channels}, why)) return false;
  return true;
}

// y = round(x * scale) + shift of the channel, line by line.
template <typename R>
void scale_channels(R round, const Call& call, const Channels& c, int64_t first,
                    std::span<const float> row, float* y) {
  for (int64_t k = 0; k < c.per_line; ++k) {
    const float scale = round(call.in[1].as()[first + k]),
                shift = round(call.in[2].as()[first + k]);
    for (int64_t i = k * c.size; i < (k + 1) * c.size; ++i)
      y[i] = round(round(row[static_cast<size_t>(i)] * scale) + shift);
  }
}

bool normalise_channels(const Call& call, const Channels& c) {
  const int64_t length = c.per_line * c.size;
  if (call.in[0].count() == 0) return true;
  Line line(call, length, call.node.attr_float("epsilon", 1e-5F), true);
  with_rounding(call.arithmetic, [&](auto round) {
    for (int64_t i = 0; i < c.images * c.channels / c.per_line; ++i) {
      const float* const x = call.in[0].as() + i * length;
      for (int64_t k = 0; k < length; ++k) line.row[static_cast<size_t>(k)] = round(x[k]);
      line.normalise(round);
      scale_channels(round, call, c, i * c.per_line % c.channels, line.row,
                     call.out[0].as() + i * length);
    }
  });
  return true;
}

bool run_instance_norm(const Call& call, std::string* why) {
  Channels c{};
  return read_channels(call, 3, &c, why) && normalise_channels(call, c);
}

bool run_group_norm(const Call& call, std::string* why) {
  Channels c{};
  if (!read_channels(call, 3, &c, why)) return false;
  const int64_t groups = call.node.attr_int("num_groups", 0);
  if (groups < 1 || c.channels % groups != 0)
    return fault(call, why, c.channels, " channels do not divide into ", groups, " groups");
  c.per_line = std::max<int64_t>(c.channels / groups, 1);
  return normalise_channels(call, c);
}

// The statistics of a channel make one factor, before the elements come.
bool run_batch_norm(const Call& call, std::string* why) {
  Channels c{};
  if (!read_channels(call, 5, &c, why)) return false;
  const auto of = [&](uint32_t input, int64_t k) {
    return round_to(call.arithmetic, call.in[input].as()[k]);
  };
  const float epsilon = round_to(call.arithmetic, call.node.attr_float("epsilon", 1e-5F));
  with_rounding(call.arithmetic, [&](auto round) {
    for (int64_t i = 0; i < c.images * c.channels; ++i) {
      const int64_t k = i % c.channels;
      const float mean = of(3, k), shift = of(2, k);
      const float deviation = round.square_root(round(of(4, k) + epsilon));
      const float scale = round(of(1, k) * round.divide(1, deviation));
      const float* const x = call.in[0].as() + i * c.size;
      float* const y = call.out[0].as() + i * c.size;
      for (int64_t e = 0; e < c.size; ++e)
        y[e] = round(round(round(round(x[e]) - mean) * scale) + shift);
    }
  });
  return true;
}

// ------------------------------------------------------------------------------------ refusals

std::string refuse_norm(const SnapshotNode& node) {
  return first_of({refuse_types(node, kFloat), refuse_outputs(node, 1, "a statistics")});
}

std::string refuse_skip_norm(const SnapshotNode& node) {
  if (node.has_output(1) || node.has_output(2))
    return message(node.op(), " with a statistics output: the result and the sum are made here");
  return refuse_types(node, kFloat);
}

std::string refuse_batch_norm(const SnapshotNode& node) {
  if (node.attr_int("training_mode", 0) != 0)
    return "BatchNormalization in training: that of inference is taken here";
  return refuse_norm(node);
}

std::string refuse_group_norm(const SnapshotNode& node) {
  const int64_t groups = node.attr_int("num_groups", 0);
  if (groups < 1)
    return message("GroupNormalization of ", groups, " groups: 1 or more are taken here");
  return refuse_norm(node);
}

// --------------------------------------------------------------------------------------- rows

constexpr Work work_of(double vector_operations, double statistics) {
  return {.vector_operations = vector_operations, .sums = statistics, .all_reduces = statistics};
}

constexpr Operator kOperators[] = {
    {"", "LayerNormalization", Family::kRows, work_of(5, 2), refuse_norm, run_layer_norm},
    {"", "RMSNormalization", Family::kRows, work_of(3, 1), refuse_norm, run_rms_norm},
    {"", "SimplifiedLayerNormalization", Family::kRows, work_of(3, 1), refuse_norm, run_rms_norm},
    {kMicrosoft, "SimplifiedLayerNormalization", Family::kRows, work_of(3, 1), refuse_norm,
     run_rms_norm},
    {kMicrosoft, "SkipLayerNormalization", Family::kRows, work_of(7, 2), refuse_skip_norm,
     run_skip_layer_norm},
    {kMicrosoft, "SkipSimplifiedLayerNormalization", Family::kRows, work_of(5, 1), refuse_skip_norm,
     run_skip_rms_norm},
    {"", "InstanceNormalization", Family::kRows, work_of(5, 2), refuse_norm, run_instance_norm},
    {"", "GroupNormalization", Family::kRows, work_of(5, 2), refuse_group_norm, run_group_norm},
    {"", "BatchNormalization", Family::kElementwise, work_of(3, 0), refuse_batch_norm,
     run_batch_norm},
};

}  // namespace
}  // namespace norms

std::span<const Operator> norm_operators() { return norms::kOperators; }

}  // namespace pfrt::wse
