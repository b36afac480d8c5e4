// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/quantized.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "providers/cpu/kernels/recurrent/cell.h"
#include "providers/cpu/row/convert.h"
#include "providers/cpu/row/requantize.h"
#include "providers/cpu/row/signature.h"

namespace pfrt::cpu {
namespace {

constexpr uint32_t kScaleW = 8, kZeroW = 9, kScaleR = 10, kZeroR = 11;
constexpr int64_t kColumns = 256;  // gate columns a task
constexpr Types kBytes{PFRT_DTYPE_INT8, PFRT_DTYPE_UINT8};

// Rows of floats quantized by their common range, which holds 0: value = level * scale. Levels are
// uint8 less their zero point, so that sums need no correction for it.
struct Levels {
  std::vector<int16_t> values;
  float scale = 1;

  void fill(const float* x, int64_t n) {
    float low = 0, high = 0;
    for (int64_t i = 0; i < n; ++i) {
      low = std::min(low, x[i]);
      high = std::max(high, x[i]);
    }
    scale = low == high ? 1.0f : (high - low) / 255.0f;
    const float zero = std::clamp(round_even(-low / scale), 0.0f, 255.0f);
    values.resize(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i)
      values[static_cast<size_t>(i)] =
          converted<int16_t>(std::clamp(round_even(x[i] / scale) + zero, 0.0f, 255.0f) - zero);
  }
};

// W or R, with a scale and a zero point a column; columns of one direction.
struct Weights {
  uint32_t input, scale_input, zero_input;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  int64_t depth = 0, columns = 0, parameters = 1;  // a direction

  static Result<Weights> make(const SnapshotNode& node, uint32_t input, uint32_t scale,
                              uint32_t zero) {
    Weights w{input, scale, zero, node.input_dtype(input)};
    const auto dims = node.input_dims(input);
    w.depth = dims[1];
    w.columns = dims[2];
    if (!kBytes.has(w.dtype))
      return error(Code::kDTYPE_MISMATCH, "input ", input, " is ", dtype_name(w.dtype),
                   ": int8 or uint8");
    for (const uint32_t i : {scale, zero}) {
      const pfrt_dtype wanted = i == scale ? pfrt_dtype{PFRT_DTYPE_FLOAT32} : w.dtype;
      if (node.input_dtype(i) != wanted)
        return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                     ": ", dtype_name(wanted));
      const int64_t whole[] = {dims[0]}, one[] = {dims[0], 1}, each[] = {dims[0], dims[2]};
      const auto found = node.input_dims(i);
      if (!same_dims(found, whole) && !same_dims(found, one) && !same_dims(found, each))
        return kernel_error("input ", i, " is ", dims_text(found), ": ", dims_text(whole), " or ",
                            dims_text(each));
      if (i == scale) {
        w.parameters = found.size() == 2 ? found[1] : 1;
      } else if (node.input_elements(i) != dims[0] * w.parameters) {
        return kernel_error("input ", i, " is ", dims_text(found), ", the scales have ",
                            w.parameters, " a direction");
      }
    }
    return w;
  }

  // out[j] += x . column j, as floats, for columns [begin, end).
  template <typename T>
  void add(const Run& run, int64_t direction, const int16_t* x, float scale, int64_t begin,
           int64_t end, float* out) const {
    int32_t sums[kColumns] = {};
    int32_t total = 0;
    const T* row = run.input<T>(input) + direction * depth * columns;
    for (int64_t k = 0; k < depth; ++k, row += columns) {
      const int32_t factor = x[k];
      total += factor;
      for (int64_t j = begin; j < end; ++j) sums[j - begin] += factor * row[j];
    }
    const float* const scales = run.input<float>(scale_input) + direction * parameters;
    const T* const zeros = run.input<T>(zero_input) + direction * parameters;
    for (int64_t j = begin; j < end; ++j) {
      const int64_t p = parameters == 1 ? 0 : j;
      out[j] += static_cast<float>(sums[j - begin] - total * zeros[p]) * (scale * scales[p]);
    }
  }
  void add_product(const Run& run, int64_t direction, const int16_t* x, float scale, int64_t begin,
                   int64_t end, float* out) const {
    if (dtype == PFRT_DTYPE_INT8)
      add<int8_t>(run, direction, x, scale, begin, end, out);
    else
      add<uint8_t>(run, direction, x, scale, begin, end, out);
  }
};

struct Lstm {
  Layer layer;
  Weights w, r;

  int64_t columns() const { return 4 * layer.hidden; }
  int64_t stretches() const { return (columns() + kColumns - 1) / kColumns; }
  // fn(row, begin, end) for ranges of columns that cover |rows| rows.
  template <typename Fn>
  void over_columns(const Run& run, int64_t rows, Fn&& fn) const {
    run.parallel(rows * stretches(), [&](int64_t task, uint32_t) {
      if (run.stopped()) return;
      const int64_t begin = task % stretches() * kColumns;
      fn(task / stretches(), begin, std::min(columns(), begin + kColumns));
    });
  }
  void sweep(const Run& run, int64_t direction, const Levels& x,
             const std::vector<int64_t>& lengths) const;
  pfrt_code run(const Run& run) const;
};

// All steps of one direction.
void Lstm::sweep(const Run& run, int64_t direction, const Levels& x,
                 const std::vector<int64_t>& lengths) const {
  const int64_t hidden = layer.hidden, batch = layer.batch, wide = columns();
  std::vector<float> gates(static_cast<size_t>(layer.time * batch * wide), 0.0f);
  const float* const bias =
      layer.has(kInputB) ? run.input<float>(kInputB) + direction * 2 * wide : nullptr;
  over_columns(run, layer.time * batch, [&](int64_t row, int64_t begin, int64_t end) {
    float* const to = gates.data() + row * wide;
    if (bias)
      for (int64_t j = begin; j < end; ++j) to[j] = bias[j] + bias[wide + j];
    w.add_product(run, direction, x.values.data() + row * layer.features, x.scale, begin, end, to);
  });

  const size_t states = static_cast<size_t>(batch * hidden);
  std::vector<float> state(states, 0.0f), next(states), cell(states, 0.0f);
  const int64_t first = direction * batch * hidden;
  if (layer.has(kInputHidden))
    std::copy_n(run.input<float>(kInputHidden) + first, states, state.begin());
  if (layer.has(kInputCell))
    std::copy_n(run.input<float>(kInputCell) + first, states, cell.begin());
  Levels levels;
  for (int64_t s = 0; s < layer.time && !run.stopped(); ++s) {
    levels.fill(state.data(), batch * hidden);
    const auto time_of = [&](int64_t b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      return layer.reversed(direction) && s < length ? length - 1 - s : s;
    };
    over_columns(run, batch, [&](int64_t b, int64_t begin, int64_t end) {
      r.add_product(run, direction, levels.values.data() + b * hidden, levels.scale, begin, end,
                    gates.data() + (time_of(b) * batch + b) * wide);
    });
    run.parallel(batch, [&](int64_t b, uint32_t) {
      const bool over = s >= lengths[static_cast<size_t>(b)];
      const int64_t t = time_of(b);
      float* const after = next.data() + b * hidden;
      if (over) {
        std::copy_n(state.data() + b * hidden, hidden, after);
      } else {
        Units<float> units{};
        units.n = hidden;
        for (int64_t g = 0; g < 4; ++g)
          units.gates[g] = gates.data() + (t * batch + b) * wide + g * hidden;
        units.before = state.data() + b * hidden;
        units.state = cell.data() + b * hidden;
        if (layer.has(kInputPeepholes))
          for (int64_t g = 0; g < 3; ++g)
            units.peepholes[g] = run.input<float>(kInputPeepholes) + (direction * 3 + g) * hidden;
        units.after = after;
        finish_lstm(layer, layer.activations(direction), units);
      }
      if (!layer.wanted[0]) return;
      float* const y = run.output<float>(0) + layer.y_row(t, direction, b);
      if (over)
        std::fill_n(y, hidden, 0.0f);
      else
        std::copy_n(after, hidden, y);
    });
    std::swap(state, next);
  }
  if (layer.wanted[1]) std::copy(state.begin(), state.end(), run.output<float>(1) + first);
  if (layer.wanted[2]) std::copy(cell.begin(), cell.end(), run.output<float>(2) + first);
}

pfrt_code Lstm::run(const Run& run) const {
  std::vector<int64_t> lengths(static_cast<size_t>(layer.batch), layer.time);
  if (layer.has(kInputLengths)) {
    for (size_t b = 0; b < lengths.size(); ++b) {
      const int32_t length = run.input<int32_t>(kInputLengths)[b];
      if (length < 0 || length > layer.time)
        return run.fail(Code::kINVALID_ARGUMENT, "sequence_lens[", b, "] is ", length, ": X holds ",
                        layer.time, " steps");
      lengths[b] = length;
    }
  }
  Levels x;
  x.fill(run.input<float>(kInputX), layer.time * layer.batch * layer.features);
  for (int64_t d = 0; d < layer.directions; ++d) sweep(run, d, x, lengths);
  return run.stop();
}

}  // namespace

Result<Kernel> make_quantized_lstm(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 0));
  for (const uint32_t i : {kScaleW, kZeroW, kScaleR, kZeroR})
    if (!node.has_input(i) || node.input_rank(i) < 0)
      return kernel_error("input ", i, " is required and absent");
  PFRT_ASSIGN(Layer layer, Layer::make(node));
  // Sums of products of levels stay within 32 bits.
  constexpr int64_t kDeepest = int64_t{1} << 14;
  if (layer.hidden > kDeepest || layer.features > kDeepest)
    return kernel_error("features and hidden size are ", layer.features, " and ", layer.hidden,
                        ": ", kDeepest, " or less");
  // The gates of a direction; X has no elements to bound them where it has no features.
  const int64_t gates[] = {layer.time, layer.batch, 4 * layer.hidden};
  const int64_t count = element_count(gates, 3);
  if (count < 0 || count > (int64_t{1} << 40))
    return kernel_error("gates of dimensions ", dims_text(gates), " are too large");
  PFRT_ASSIGN(const Weights w, Weights::make(node, kInputW, kScaleW, kZeroW));
  PFRT_ASSIGN(const Weights r, Weights::make(node, kInputR, kScaleR, kZeroR));
  Kernel kernel;
  const double units = static_cast<double>(layer.directions * 4 * layer.hidden);
  kernel.flops = 2.0 * static_cast<double>(layer.time) * static_cast<double>(layer.batch) * units *
                 static_cast<double>(layer.features + layer.hidden);
  const auto lstm = std::make_shared<const Lstm>(Lstm{std::move(layer), w, r});
  kernel.run = [lstm](const Run& run) { return lstm->run(run); };
  return kernel;
}

}  // namespace pfrt::cpu
