// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/sweep.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/matmul/panels.h"
#include "providers/cpu/kernels/recurrent/sources.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLanePanels = 4;  // calls' rows of a lane
// An R beyond the second-level cache is read once a step and lane: fewer lanes have more rows.
constexpr int64_t kFarLanePanels = 12, kFarElements = 1 << 18;
constexpr int64_t kManyLanes = 8;        // enough to keep workers busy
constexpr int64_t kChunkRows = 192;      // rows of a matmul with W
constexpr int64_t kBlockWork = 1 << 17;  // multiply-adds of a block of units, at least
constexpr int64_t kMostBlocks = 32;

int64_t lane_panels(const Layer& layer) {
  return layer.gates() * layer.hidden * layer.hidden > kFarElements ? kFarLanePanels : kLanePanels;
}

// Columns of a row of gates for a unit: one a gate. A GRU that keeps the recurrent part of its
// candidate apart has one more.
int64_t columns_a_unit(const Layer& layer) {
  return layer.gates() + (layer.cell == Cell::kGru && layer.linear_before_reset ? 1 : 0);
}

// The microkernel that multiplies rows of T where they lie by packed panels; null: there is none.
template <typename T>
const PanelMicrokernel* panel_microkernel() {
  return std::is_same_v<T, float> ? PanelMicrokernel::get() : nullptr;
}

template <typename T>
int64_t panel_width() {
  return panel_microkernel<T>() != nullptr ? PanelMicrokernel::kPanel : micro_kernels<T>().cols;
}

template <typename T>
int64_t rows_of_call() {
  return panel_microkernel<T>() != nullptr ? panel_microkernel<T>()->rows()
                                           : micro_kernels<T>().rows;
}

// Multiplies |rows| rows by |count| panels |b_panel| apart; |p| holds the rest.
void multiply_panels(const Run& run, const PanelMicrokernel& microkernel, int64_t rows,
                     int64_t count, const PanelMicrokernel::Blocks& p) {
  const auto row_blocks = microkernel.row_blocks(rows);
  for (int64_t i = 0, n = 0; i < count && !run.stopped(); i += n) {
    n = std::min(count - i, microkernel.panels(row_blocks.first()));
    PanelMicrokernel::Blocks part = p;
    part.b += i * p.b_panel;
    part.c += i * p.c_panel;
    microkernel.run(row_blocks, n, part);
  }
}

// A product of one chunk, to columns that follow each other.
PanelMicrokernel::Blocks one_chunk(const float* a, int64_t a_row, int64_t depth) {
  static constexpr int64_t kOffset = 0;
  PanelMicrokernel::Blocks p{};
  p.a = a, p.a_row = a_row, p.offsets = &kOffset;
  p.chunks = p.chain = 1, p.depth = depth;
  p.c_panel = PanelMicrokernel::kPanel;
  return p;
}

template <typename T>
std::unique_ptr<T[]> array(int64_t n) {
  return std::make_unique_for_overwrite<T[]>(static_cast<size_t>(n));
}

}  // namespace

template <typename T>
Sweep<T>::Sweep(Layer layer, Packed packed)
    : layer_(std::move(layer)),
      packed_(packed),
      micro_(micro_kernels<T>()),
      panel_microkernel_(panel_microkernel<T>()),
      width_(panel_width<T>()),
      gemv_(std::is_same_v<T, float> ? gemv(width_) : nullptr),
      panels_(ceil_div(layer_.hidden, width_)),
      stride_(panels_ * width_),
      columns_(columns_a_unit(layer_) * stride_),
      lane_rows_(std::clamp<int64_t>(layer_.batch, 1, lane_panels(layer_) * rows_of_call<T>())),
      lanes_(layer_.directions * ceil_div(layer_.batch, lane_rows_)),
      chunk_(std::clamp<int64_t>(layer_.time, 1, ceil_div(kChunkRows, lane_rows_))),
      block_(panels_),
      blocks_(1),
      phases_(layer_.cell == Cell::kGru && !layer_.linear_before_reset ? 2 : 1),
      gemm_(chunk_ * lane_rows_, layer_.gates() * stride_, layer_.features) {
  if (panels_ == 0 || lanes_ >= kManyLanes) return;
  const int64_t panel_work = lane_rows_ * layer_.hidden * layer_.gates() * width_;
  block_ = std::clamp(ceil_div(kBlockWork, panel_work), ceil_div(panels_, kMostBlocks), panels_);
  blocks_ = ceil_div(panels_, block_);
}

template <typename T>
typename Sweep<T>::Lane Sweep<T>::lane(int64_t index) const {
  const int64_t each = lanes_ / layer_.directions;
  const int64_t row = index % each * lane_rows_;
  const int64_t rows = std::min(lane_rows_, layer_.batch - row);
  const int64_t together =
      panel_microkernel_ != nullptr ? 1 : ceil_div(rows, ceil_div(rows, micro_.rows));
  return {index, index / each, row, rows, together};
}

template <typename T>
pfrt_code Sweep<T>::read_lengths(const Run& run, Memory& memory) const {
  memory.lengths.assign(static_cast<size_t>(layer_.batch), layer_.time);
  if (!layer_.has(kInputLengths)) return PFRT_CODE_OK;
  const int32_t* lengths = run.input<int32_t>(kInputLengths);
  for (size_t b = 0; b < memory.lengths.size(); ++b) {
    if (lengths[b] < 0 || lengths[b] > layer_.time)
      return run.fail(Code::kINVALID_ARGUMENT, "sequence_lens[", b, "] is ", lengths[b],
                      ": X holds ", layer_.time, " steps");
    memory.lengths[b] = lengths[b];
  }
  return PFRT_CODE_OK;
}

template <typename T>
typename Sweep<T>::Memory Sweep<T>::allocate(const Run& run) const {
  Memory memory;
  const int64_t directions = layer_.directions, hidden = layer_.hidden, gates = layer_.gates();
  const int64_t state = directions * layer_.batch * hidden;
  for (auto& states : memory.states) states = array<T>(state);
  if (layer_.cell == Cell::kLstm) memory.cells = array<T>(state);
  if (phases_ == 2) memory.reset = array<T>(state);
  if (layer_.time == 0) return memory;
  memory.gates = array<T>(lanes_ * chunk_ * lane_rows_ * columns_);
  memory.bias.assign(static_cast<size_t>(directions * columns_), T{0});
  if (layer_.has(kInputB)) {
    std::vector<T> given(static_cast<size_t>(directions * 2 * gates * hidden));
    load_block(layer_.dtype, run.input(kInputB), static_cast<int64_t>(given.size()), given.data());
    const bool apart = columns_ > gates * stride_;
    for (int64_t d = 0; d < directions; ++d) {
      for (int64_t g = 0; g < 2 * gates; ++g) {
        const T* from = given.data() + (d * 2 * gates + g) * hidden;
        const int64_t gate = apart && g == 2 * gates - 1 ? gates : g % gates;
        T* to = memory.bias.data() + d * columns_ + gate * stride_;
        for (int64_t u = 0; u < hidden; ++u) to[u] += from[u];
      }
    }
  }
  if (layer_.has(kInputPeepholes)) {
    memory.peepholes.resize(static_cast<size_t>(directions * 3 * hidden));
    load_block(layer_.dtype, run.input(kInputPeepholes), directions * 3 * hidden,
               memory.peepholes.data());
  }
  return memory;
}

template <typename T>
void Sweep<T>::pack_recurrent(const Run& run, Memory& memory) const {
  const int64_t hidden = layer_.hidden, gates = layer_.gates(), panels = gates * panels_;
  memory.recurrent = packed_ != Packed::kNone ? run.packed<T>() : nullptr;
  if (packed_ == Packed::kBoth)
    memory.projection = memory.recurrent + layer_.directions * gates * stride_ * hidden;
  if (memory.recurrent != nullptr) return;
  memory.packed = array<T>(layer_.directions * gates * stride_ * hidden);
  memory.recurrent = memory.packed.get();
  run.parallel(layer_.directions * panels, [&](int64_t i, uint32_t) {
    const GateRows<T> r(run.input(kInputR), layer_.dtype, i / panels * gates * hidden * hidden,
                        hidden, hidden, stride_);
    r.pack(memory.packed.get() + i * hidden * width_, width_, i % panels * width_, width_, 0,
           hidden);
  });
}

bool takes_packed_projection() { return PanelMicrokernel::get() != nullptr; }

PackedInput pack_recurrent_weights(int64_t directions, int64_t gates, int64_t hidden,
                                   int64_t features) {
  const int64_t width = panel_width<float>(), stride = ceil_div(hidden, width) * width;
  PackedInput packed;
  packed.input = kInputR;
  packed.recipe = message("recurrent_panels/", directions, "/", gates, "/", hidden, "/", width);
  packed.bytes =
      static_cast<uint64_t>(directions * gates * stride * (hidden + features)) * sizeof(float);
  const auto pack = [=](const void* source, int64_t depth, int64_t panel, float* to) {
    for (int64_t d = 0; d < directions; ++d) {
      const GateRows<float> rows(source, PFRT_DTYPE_FLOAT32, d * gates * hidden * depth, depth,
                                 hidden, stride);
      for (int64_t at = 0; at < gates * stride; at += panel, to += panel * depth)
        rows.pack(to, panel, at, panel, 0, depth);
    }
    return to;
  };
  if (features > 0) {
    packed.recipe += message("/", features);
    packed.others = {kInputW};
    packed.pack_all = [=](const void* const* sources, void* memory) {
      float* const to = pack(sources[0], hidden, width, static_cast<float*>(memory));
      pack(sources[1], features, PanelMicrokernel::kPanel, to);
    };
  } else {
    packed.pack = [=](const void* source, void* memory) {
      pack(source, hidden, width, static_cast<float*>(memory));
    };
  }
  return packed;
}

template <typename T>
void Sweep<T>::load_states(const Run& run, Memory& memory) const {
  const int64_t hidden = layer_.hidden;
  run.parallel(lanes_, [&](int64_t index, uint32_t) {
    const Lane l = lane(index);
    T block[kBlock] = {};
    for (int64_t b = 0; b < l.rows; ++b) {
      const int64_t from = layer_.state_row(l.direction, l.row + b);
      const int64_t panel = b / l.together * l.together;
      const int64_t rows = std::min(l.together, l.rows - panel);
      const int64_t lane_start = (l.direction * layer_.batch + l.row) * hidden;
      T* to = memory.states[0].get() + lane_start + panel * hidden + (b - panel);
      T* cells = memory.cells ? memory.cells.get() + lane_start + b * hidden : nullptr;
      for (int64_t u = 0; u < hidden; u += kBlock) {
        const int64_t n = std::min(kBlock, hidden - u);
        if (layer_.has(kInputHidden))
          load_block(layer_.dtype, element(layer_.dtype, run.input(kInputHidden), from + u), n,
                     block);
        for (int64_t i = 0; i < n; ++i) to[(u + i) * rows] = block[i];
      }
      if (cells == nullptr) continue;
      if (layer_.has(kInputCell))
        load_block(layer_.dtype, element(layer_.dtype, run.input(kInputCell), from), hidden, cells);
      else
        std::fill_n(cells, hidden, T{0});
    }
  });
}

template <typename T>
void Sweep<T>::store_states(const Run& run, const Memory& memory) const {
  const int64_t hidden = layer_.hidden;
  const T* last = memory.states[layer_.time % 2].get();
  run.parallel(lanes_, [&](int64_t index, uint32_t) {
    const Lane l = lane(index);
    T block[kBlock];
    for (int64_t b = 0; b < l.rows; ++b) {
      const int64_t to = layer_.state_row(l.direction, l.row + b);
      const int64_t panel = b / l.together * l.together;
      const int64_t rows = std::min(l.together, l.rows - panel);
      const int64_t lane_start = (l.direction * layer_.batch + l.row) * hidden;
      const T* from = last + lane_start + panel * hidden + (b - panel);
      for (int64_t u = 0; layer_.wanted[1] && u < hidden; u += kBlock) {
        const int64_t n = std::min(kBlock, hidden - u);
        for (int64_t i = 0; i < n; ++i) block[i] = from[(u + i) * rows];
        store_block(layer_.dtype, block, n, element(layer_.dtype, run.output(1), to + u));
      }
      if (layer_.wanted[2])
        store_block(layer_.dtype, memory.cells.get() + lane_start + b * hidden, hidden,
                    element(layer_.dtype, run.output(2), to));
    }
  });
}

template <typename T>
void Sweep<T>::project(const Run& run, const Memory& memory, const Lane& l, int64_t first,
                       int64_t tile, T* scratch) const {
  const int64_t steps = std::min(chunk_, layer_.time - first), hidden = layer_.hidden;
  GemmTile t = gemm_.tile(tile);
  t.rows = std::min(t.rows, steps * l.rows - t.row);
  if (t.rows <= 0) return;
  T* to = gates(memory, l) + t.row * columns_ + t.col;
  if (!multiply_in_place(run, memory, l, first, t, to)) {
    const SequenceRows<T> x(layer_, run.input(kInputX), memory.lengths.data(),
                            layer_.reversed(l.direction), first, l.row, l.rows);
    const auto multiply_by = [&](const PanelSource<T>& w) {
      gemm_.compute(run, t, x, w, to, columns_, scratch);
    };
    const int64_t before = l.direction * layer_.gates();  // gates of other directions
    if (memory.projection == nullptr)
      multiply_by(GateRows<T>(run.input(kInputW), layer_.dtype, before * hidden * layer_.features,
                              layer_.features, hidden, stride_));
    else if constexpr (std::is_same_v<T, float>)
      multiply_by(
          PackedPanels(memory.projection + before * stride_ * layer_.features, layer_.features));
  }
  const T* bias = memory.bias.data() + l.direction * columns_ + t.col;
  // The tile of the last columns also holds columns that this matmul does not compute.
  const int64_t projected = layer_.gates() * stride_;
  const int64_t extra = t.col + t.cols == projected ? columns_ - projected : 0;
  for (int64_t r = 0; r < t.rows; ++r, to += columns_) {
    for (int64_t j = 0; j < t.cols; ++j) to[j] += bias[j];
    std::copy_n(bias + t.cols, extra, to + t.cols);
  }
}

template <typename T>
bool Sweep<T>::multiply_in_place(const Run& run, const Memory& memory, const Lane& l, int64_t first,
                                 const GemmTile& t, T* to) const {
  if constexpr (std::is_same_v<T, float>) {
    constexpr int64_t kPanel = PanelMicrokernel::kPanel;
    constexpr int64_t kCols = PanelMicrokernel::kMostPanels * kPanel;
    constexpr float kZeros[kCols] = {};
    if (memory.projection == nullptr || layer_.features == 0 || gemm_.splits(run.precision()) ||
        std::any_of(memory.lengths.begin() + l.row, memory.lengths.begin() + l.row + l.rows,
                    [&](int64_t length) { return length != layer_.time; }))
      return false;
    const int64_t features = layer_.features;
    const bool reversed = layer_.reversed(l.direction);
    const auto row_of = [&](int64_t r) {
      const int64_t s = first + r / l.rows;
      return layer_.x_row(reversed ? layer_.time - 1 - s : s, l.row + r % l.rows);
    };
    const int64_t a_row = l.rows > 1
                              ? row_of(1) - row_of(0)
                              : (reversed ? -1 : 1) * (layer_.x_row(1, 0) - layer_.x_row(0, 0));
    const float* const panels =
        memory.projection + (l.direction * layer_.gates() * stride_ + t.col) * features;
    // Panels are taken a few at a time, which stay in the cache while rows go by.
    for (int64_t j = 0; j < t.cols; j += kCols)
      for (int64_t k = 0; k < features && !run.stopped(); k += Gemm<T>::kDepth)
        for (int64_t r = t.row, rows = 0; r < t.row + t.rows; r += rows) {
          rows = t.row + t.rows - r;
          if (l.rows > 1) rows = std::min(rows, l.rows - r % l.rows);
          PanelMicrokernel::Blocks p = one_chunk(run.input<float>(kInputX) + row_of(r) + k, a_row,
                                                 std::min(Gemm<T>::kDepth, features - k));
          p.b = panels + j * features + k * kPanel;
          p.b_panel = kPanel * features;
          p.c = to + (r - t.row) * columns_ + j;
          p.c_row = columns_;
          p.start = k == 0 ? kZeros : nullptr;
          multiply_panels(run, *panel_microkernel_, rows, std::min(kCols, t.cols - j) / kPanel, p);
        }
    return true;
  }
  return false;
}

template <typename T>
void Sweep<T>::multiply(const Run& run, const Memory& memory, const Step& step, int64_t block,
                        int64_t begin, int64_t end, const T* state) const {
  const Lane& l = step.lane;
  const int64_t hidden = layer_.hidden, last = std::min(panels_, (block + 1) * block_);
  const int64_t gate_panels = layer_.gates() * panels_;
  T* const rows = gates(memory, l) + (step.s - step.first) * l.rows * columns_;
  const bool gru_apart = layer_.linear_before_reset && layer_.cell == Cell::kGru;
  state += (l.direction * layer_.batch + l.row) * hidden;
  if constexpr (std::is_same_v<T, float>) {
    const int64_t first = block * block_;
    const bool alone = l.rows == 1 && gemv_ != nullptr;
    // Gates whose panels and sums both follow each other are one product.
    for (int64_t g = begin, next; (alone || panel_microkernel_ != nullptr) && g < end; g = next) {
      if (run.stopped()) return;
      next = blocks_ > 1 ? g + 1 : gru_apart && g < 2 ? 2 : end;
      const int64_t panels = (next - g - 1) * panels_ + last - first;
      const float* const weights =
          memory.recurrent + (l.direction * gate_panels + g * panels_ + first) * hidden * width_;
      float* const to = rows + (gru_apart && g == 2 ? 3 : g) * stride_ + first * width_;
      if (alone) {
        gemv_(hidden, state, weights, panels, to);
        continue;
      }
      PanelMicrokernel::Blocks p = one_chunk(state, hidden, hidden);
      p.b = weights, p.b_panel = hidden * width_;
      p.c = to, p.c_row = columns_;
      multiply_panels(run, *panel_microkernel_, l.rows, panels, p);
    }
    if (alone || panel_microkernel_ != nullptr) return;
  }
  for (int64_t g = begin; g < end; ++g) {
    const bool apart = gru_apart && g == 2;
    for (int64_t p = block * block_; p < last; ++p) {
      if (run.stopped()) return;
      const T* panel =
          memory.recurrent + (l.direction * gate_panels + g * panels_ + p) * hidden * width_;
      T* const to = rows + (apart ? 3 : g) * stride_ + p * width_;
      for (int64_t b = 0; b < l.rows; b += l.together) {
        const int64_t n = std::min(l.together, l.rows - b);
        micro_.full[n - 1](hidden, state + b * hidden, panel, width_, to + b * columns_, columns_,
                           true);
      }
    }
  }
}

template <typename T>
void Sweep<T>::advance(const Run& run, const Memory& memory, const Step& step, int64_t phase,
                       int64_t block) const {
  const T* before = memory.states[step.s % 2].get();
  if (phases_ == 1)
    multiply(run, memory, step, block, 0, layer_.gates(), before);
  else if (phase == 0)
    multiply(run, memory, step, block, 0, 2, before);
  else
    multiply(run, memory, step, block, 2, 3, memory.reset.get());
  finish(run, memory, step, phase, block);
}

template <typename T>
void Sweep<T>::finish(const Run& run, const Memory& memory, const Step& step, int64_t phase,
                      int64_t block) const {
  constexpr int64_t kUnits = 256;
  const Lane& l = step.lane;
  const int64_t hidden = layer_.hidden;
  const int64_t begin = block * block_ * width_;
  const int64_t end = std::min(hidden, (block + 1) * block_ * width_);
  const int64_t lane_start = (l.direction * layer_.batch + l.row) * hidden;
  const Activation* const activations = layer_.activations(l.direction);
  const bool resets = phases_ == 2 && phase == 0;
  T* const next = resets ? memory.reset.get() : memory.states[(step.s + 1) % 2].get();
  T before[kUnits], after[kUnits];
  for (int64_t b = 0; b < l.rows; ++b) {
    const int64_t length = memory.lengths[static_cast<size_t>(l.row + b)];
    const bool over = step.s >= length;
    const int64_t t = layer_.reversed(l.direction) && !over ? length - 1 - step.s : step.s;
    const int64_t y = layer_.y_row(t, l.direction, l.row + b);
    const int64_t panel = b / l.together * l.together;
    const int64_t rows = std::min(l.together, l.rows - panel);
    const int64_t packed = lane_start + panel * hidden + (b - panel);
    T* const row = gates(memory, l) + ((step.s - step.first) * l.rows + b) * columns_;
    for (int64_t u = begin; u < end; u += kUnits) {
      Units<T> units{};
      units.n = std::min(kUnits, end - u);
      for (int64_t g = 0; g * stride_ < columns_; ++g) units.gates[g] = row + g * stride_ + u;
      if (memory.cells) units.state = memory.cells.get() + lane_start + b * hidden + u;
      if (!memory.peepholes.empty())
        for (int64_t g = 0; g < 3; ++g)
          units.peepholes[g] = memory.peepholes.data() + (l.direction * 3 + g) * hidden + u;
      const T* state = memory.states[step.s % 2].get() + packed + u * rows;
      T* const to = next + packed + u * rows;
      // The state of one sequence has the same order packed and unpacked.
      units.before = rows == 1 ? state : before;
      units.after = rows == 1 ? to : after;
      for (int64_t i = 0; rows > 1 && i < units.n; ++i) before[i] = state[i * rows];
      if (over)
        std::copy_n(units.before, units.n, units.after);
      else if (resets)
        reset_gru(layer_, activations, units);
      else if (layer_.cell == Cell::kGru)
        finish_gru(layer_, activations, units);
      else if (layer_.cell == Cell::kLstm)
        finish_lstm(layer_, activations, units);
      else
        finish_rnn(layer_, activations, units);
      for (int64_t i = 0; rows > 1 && i < units.n; ++i) to[i * rows] = after[i];
      if (resets || !layer_.wanted[0]) continue;
      if (over) std::fill_n(after, units.n, T{0});
      store_block(layer_.dtype, over ? after : units.after, units.n,
                  element(layer_.dtype, run.output(0), y + u));
    }
  }
}

template <typename T>
pfrt_code Sweep<T>::run(const Run& run) const {
  const bool wanted = layer_.wanted[0] || layer_.wanted[1] || layer_.wanted[2];
  if (!wanted || layer_.hidden == 0 || layer_.batch == 0) return PFRT_CODE_OK;
  if (layer_.time == 0 && !layer_.wanted[1] && !layer_.wanted[2]) return PFRT_CODE_OK;
  Memory memory = allocate(run);
  if (const pfrt_code code = read_lengths(run, memory)) return code;
  load_states(run, memory);
  if (layer_.time > 0) pack_recurrent(run, memory);

  const int64_t tiles = gemm_.tiles();
  const auto steps = [&](int64_t first, auto&& step) {
    for (int64_t s = first; s < std::min(first + chunk_, layer_.time); ++s)
      for (int64_t phase = 0; phase < phases_; ++phase) step(s, phase);
  };
  if (blocks_ == 1) {
    run.parallel(lanes_, [&](int64_t index, uint32_t worker) {
      const Lane l = lane(index);
      for (int64_t first = 0; first < layer_.time && !run.stopped(); first += chunk_) {
        for (int64_t tile = 0; tile < tiles; ++tile)
          project(run, memory, l, first, tile, run.scratch<T>(worker));
        steps(first, [&](int64_t s, int64_t phase) {
          if (!run.stopped()) advance(run, memory, Step{l, s, first}, phase, 0);
        });
      }
    });
  } else {
    for (int64_t first = 0; first < layer_.time; first += chunk_) {
      if (const pfrt_code code = run.stop()) return code;
      run.parallel(lanes_ * tiles, [&](int64_t i, uint32_t worker) {
        project(run, memory, lane(i / tiles), first, i % tiles, run.scratch<T>(worker));
      });
      steps(first, [&](int64_t s, int64_t phase) {
        if (run.stopped()) return;
        run.parallel(lanes_ * blocks_, [&](int64_t i, uint32_t) {
          advance(run, memory, Step{lane(i / blocks_), s, first}, phase, i % blocks_);
        });
      });
    }
  }
  store_states(run, memory);
  return run.stop();
}

template class Sweep<float>;
template class Sweep<double>;

}  // namespace pfrt::cpu
