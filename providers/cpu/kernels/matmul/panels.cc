// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/panels.h"

#include <algorithm>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/matmul/columns_16bit.h"
#include "providers/cpu/kernels/matmul/gemm.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel, kStreams = PanelMicrokernel::kMostStreams;
// The most k of one sum. The sums of such chains are then added, which keeps errors smaller than
// one long sum would.
constexpr int64_t kChain = 64, kLeastChain = 32;
// A pass multiplies all rows of a task by a part of k. A panel's part of at most so many k stays in
// the first-level cache, while all rows read it.
constexpr int64_t kPass = 384;
constexpr int64_t kFewRowBlocks = 4;  // at most so many fetch their own panels: see multiply
constexpr int64_t kReadRows = 16;     // rows of the constant that are packed at a time
constexpr int64_t kLeastTaskCols = 64, kTaskCols = 512, kCopyingTaskCols = 1024;
constexpr int64_t kWantedTasks = 8;
// The most elements of A in a task whose panels are multiplied one after another. Each reads them
// all, so they should stay in the second-level cache.
constexpr int64_t kTaskElements = 96 << 10, kLeastTaskRows = 32;
// Elements so far apart are in the same set of the first-level cache.
constexpr int64_t kSameSet = 1024;
// Offset of the sums in a scratch that begins with a pass of widened panels.
constexpr int64_t kWidened = PanelMicrokernel::kMostPanels * kPanel * kPass;

// At most |most| columns, or the two panels that hold more, so that tasks of |n| are of about equal
// size.
int64_t equal_cols(int64_t n, int64_t most) {
  return ceil_div(ceil_div(n, ceil_div(n, most)), 2 * kPanel) * 2 * kPanel;
}
// The k of a chain: where |k| is a multiple of one that is long enough, no pass is needed for a
// rest. The loop of the microkernel prefers multiples of what it does together; columns of 16 bits
// lie in pairs of k.
int64_t chain_of(int64_t k) {
  constexpr int64_t kTogether = PanelMicrokernel::kAheadDepth;
  for (int64_t chain = kChain; chain >= kLeastChain; chain -= kTogether)
    if (k % chain == 0) return chain;
  for (int64_t chain = kChain - 2; chain >= kLeastChain; chain -= 2)
    if (k % chain == 0) return chain;
  return kChain;
}
// The k of a pass: so many whole chains that passes are of about equal length. The last ones may be
// shorter.
int64_t pass_of(int64_t k, int64_t chain) {
  const int64_t wanted = ceil_div(ceil_div(k, ceil_div(k, kPass)), chain) * chain;
  return std::min(wanted, kPass / chain * chain);
}

// Whether a few rows, or many, are multiplied faster by packed columns.
bool few_rows_gain(const Columns& c) {
  // Contiguous columns are read fast as they are; many of them are not worth the time of packing.
  constexpr int64_t kLeastDepth = 32, kLeastColumns = 64, kMostElements = 4 << 20;
  return c.outer_stride == 1 ? c.k >= kLeastDepth && c.n >= kPanel / 2
                             : c.n >= kLeastColumns && c.n * c.k <= kMostElements;
}
bool many_rows_gain(const Columns& c) { return c.n >= 2; }

}  // namespace

std::optional<PackedInput> pack_panel_columns(const SnapshotNode& node, int64_t m, bool any,
                                              const Columns& c) {
  // With |any| there may be more rows in other runs, which gain where a few do not: then up to
  // kMaybe elements are packed.
  constexpr int64_t kFewRows = 4, kMostElements = 64 << 20, kMaybe = 4 << 20;
  const pfrt_dtype dtype = node.input_dtype(0);
  if (!kFloatsTo32.has(dtype) || node.input_dtype(1) != dtype || !node.is_constant(1) ||
      PanelMicrokernel::get() == nullptr || c.n < 1 || c.k < 1 || c.n > kMostElements / c.k)
    return std::nullopt;
  const bool gains = m > kFewRows ? many_rows_gain(c) : few_rows_gain(c);
  if (!pays(gains || (any && many_rows_gain(c) && c.n * c.k <= kMaybe))) return std::nullopt;
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message("panel_columns/", dtype_name(dtype), "/", c.n, "x", c.k, "/",
                          c.outer_stride, "/", c.k_stride);
  packed.bytes = panel_bytes(c);
  packed.pack = [=](const void* source, void* memory) {
    pack_panels(source, dtype, c, static_cast<float*>(memory));
  };
  return packed;
}

uint64_t panel_bytes(const Columns& c) {
  return static_cast<uint64_t>(ceil_div(c.n, kPanel) * kPanel * c.k) * sizeof(float);
}

void pack_panels(const void* source, pfrt_dtype dtype, const Columns& c, float* to) {
  const StridedSource<float> columns(source, dtype, 0, c.outer_stride, c.k_stride);
  // If rows of B are contiguous, a few of them are packed at a time, so that memory is read in
  // order.
  const int64_t rows = c.outer_stride == 1 ? kReadRows : c.k;
  for (int64_t k = 0; k < c.k; k += rows)
    for (int64_t first = 0; first < c.n; first += kPanel)
      columns.pack(to + first * c.k + k * kPanel, kPanel, first, std::min(kPanel, c.n - first), k,
                   std::min(rows, c.k - k));
}

void PackedPanels::pack(float* out, int64_t width, int64_t first, int64_t count, int64_t k0,
                        int64_t kn) const {
  if (width == kPanel && count == kPanel && first % kPanel == 0) {
    std::copy_n(panels_ + (first / kPanel * k_ + k0) * kPanel, kn * kPanel, out);
    return;
  }
  for (int64_t k = 0; k < kn; ++k, out += width) {
    for (int64_t j = 0; j < count; ++j) {
      const int64_t column = first + j, panel = column / kPanel;
      out[j] = panels_[(panel * k_ + k0 + k) * kPanel + column % kPanel];
    }
    std::fill(out + count, out + width, 0.0F);
  }
}

struct PanelMatmul::Task {
  const float* from;  // row 0 of A
  int64_t row, rows, col, cols;
};

// A task's rows of A, from some k on.
struct PanelMatmul::Rows {
  const float* from;
  int64_t stride;
};

// Panels of a task that are computed together. They are neighbours or, where they are read as
// streams (PanelMicrokernel::run_streams), |apart| panels from each other.
struct PanelMatmul::Block {
  int64_t col, panels;
  float* sums;     // rows by panels * kPanel
  float* out;      // in C; null: a panel has fewer columns there, so results stay in |sums|
  float* widened;  // scratch for a pass of widened panels
  int64_t apart = 1;
  bool streams = false;
};

// Panels that will be read next, to be fetched meanwhile. A line is one k of a panel: 16 columns.
struct PanelMatmul::Ahead {
  const float* from = nullptr;
  int64_t panels = 1, lines = 0, stride = 0;
};
static_assert(kPanel == PanelMicrokernel::kAheadLine);

PanelMatmul::PanelMatmul(int64_t m, const Columns& columns, Panels panels, const Blocking& blocking)
    : m_(m),
      n_(columns.n),
      k_(columns.k),
      panels_(panels),
      chain_(chain_of(std::max<int64_t>(columns.k, 1))),
      pass_(pass_of(std::max<int64_t>(columns.k, 1), chain_)),
      by_columns_(blocking.by_columns),
      microkernel_(panels == Panels::kBf16Dot ? PanelMicrokernel::get_bf16_dot()
                                              : PanelMicrokernel::get()) {
  for (size_t i = 0; i < offsets_.size(); ++i) offsets_[i] = static_cast<int64_t>(i) * chain_;
  if (m_ <= 0) return;
  static_assert(kMostChains * kLeastChain == kPass);
  by_passes_ = k_ > pass_ && m_ > kFewRowBlocks * microkernel_->rows();
  copies_ = by_passes_ && k_ % kSameSet == 0;
  const int64_t fit = by_passes_
                          ? blocking.task_rows
                          : std::max(kLeastTaskRows, kTaskElements / std::max<int64_t>(k_, 1));
  // Dividing twice makes tasks of about equal size.
  task_rows_ = ceil_div(m_, ceil_div(m_, std::min(blocking.task_rows, fit)));
  given_cols_ = blocking.task_cols > 0;
  task_cols_ = given_cols_ ? equal_cols(n_, blocking.task_cols) : task_cols(kWantedTasks / 2);
}

// Each task copies rows of A, where they are copied, so there are no more than needed.
int64_t PanelMatmul::task_cols(int64_t workers) const {
  if (given_cols_) return task_cols_;
  const int64_t wanted = copies_ ? workers : workers == 1 ? 1 : std::max(kWantedTasks, 2 * workers);
  return equal_cols(n_, std::clamp(ceil_div(n_, ceil_div(wanted, row_tasks())), kLeastTaskCols,
                                   copies_ ? kCopyingTaskCols : kTaskCols));
}
int64_t PanelMatmul::row_tasks() const { return ceil_div(m_, task_rows_); }
int64_t PanelMatmul::col_tasks() const { return ceil_div(n_, task_cols_); }

Parameters PanelMatmul::parameters() const {
  return {{"rows", task_rows_}, {"columns", task_cols_}, {"by_columns", by_columns_}};
}

std::vector<PanelMatmul> PanelMatmul::others(bool all) const {
  constexpr Blocking kUsual[] = {{64, 0},       {256, 0},       {128, 128}, {128, 256},
                                 {128, 512},    {128, 1024},    {32, 1024}, {128, 0, true},
                                 {64, 0, true}, {32, 256, true}};
  std::vector<Blocking> blockings(std::begin(kUsual), std::end(kUsual));
  for (const int64_t rows : {16, 32, 48, 64, 96, 128, 192, 256, 512})
    for (const int64_t cols : {0, 64, 96, 128, 192, 256, 384, 512, 768, 1024})
      for (const bool by_columns : {false, true})
        if (all) blockings.push_back({rows, cols, by_columns});
  std::vector<PanelMatmul> out;
  if (m_ <= 0) return out;
  for (const Blocking& blocking : blockings) {
    const PanelMatmul other = PanelMatmul(m_, {n_, k_, 1, n_}, panels_, blocking).at(packed_at_);
    const int64_t tasks = other.row_tasks() * other.col_tasks();
    if (other.by_columns_ && (other.row_tasks() == 1 || other.col_tasks() == 1)) continue;
    const bool known = std::ranges::any_of(
        out, [&](const PanelMatmul& o) { return o.parameters() == other.parameters(); });
    if (!known && other.parameters() != parameters() &&
        enough_tasks(tasks, row_tasks() * col_tasks(), kWantedTasks))
      out.push_back(other);
  }
  return out;
}

uint64_t PanelMatmul::scratch_bytes() const {
  const int64_t sums = by_passes_ ? task_rows_ * (task_cols(1) + (copies_ ? pass_ : 0))
                                  : kPanel * std::max(task_rows_ * PanelMicrokernel::kMostPanels,
                                                      PanelMicrokernel::kMostStreamRows * kStreams);
  return static_cast<uint64_t>(sums + (widens() ? kWidened : 0)) * sizeof(float);
}

void PanelMatmul::run(const Run& run, const float* from, const Finish& finish) const {
  if (m_ <= 0) return;
  const int64_t task_cols = this->task_cols(run.workers());
  const int64_t rows = row_tasks(), cols = ceil_div(n_, task_cols);
  run.parallel(rows * cols, [&](int64_t i, uint32_t worker) {
    if (run.stopped()) return;
    Task t{};
    t.from = from;
    t.row = (by_columns_ ? i / cols : i % rows) * task_rows_;
    t.rows = std::min(task_rows_, m_ - t.row);
    t.col = (by_columns_ ? i % cols : i / rows) * task_cols;
    t.cols = std::min(task_cols, n_ - t.col);
    multiply(run, t, run.scratch<float>(worker));
    float* const out = run.output<float>(0);
    for (int64_t r = t.row; r < t.row + t.rows; ++r) {
      if (finish) finish(out + r * n_ + t.col, r, t.col, t.cols);
      if (t.cols < n_) run.apply_epilogue(r * n_ + t.col, r * n_ + t.col + t.cols);
    }
    if (t.cols == n_) run.apply_epilogue(t.row * n_, (t.row + t.rows) * n_);
  });
}

void PanelMatmul::multiply(const Run& run, const Task& t, float* scratch) const {
  float* const sums = scratch + (widens() ? kWidened : 0);
  const int64_t wide = microkernel_->panels(microkernel_->row_blocks(t.rows).first()) * kPanel;
  float* const out = run.output<float>(0) + t.row * n_;
  int64_t j = t.col;
  if (t.rows <= microkernel_->stream_rows() && panels_ == Panels::kFp32) {
    // The panels of a few rows are read in several places at once, |apart| panels from each other.
    const int64_t streams = microkernel_->streams(t.rows);
    const int64_t apart = t.cols / (streams * kPanel);
    for (; j < t.col + apart * kPanel; j += kPanel)
      multiply(run, t, {j, streams, sums, out + j, nullptr, apart, true});
    j += (streams - 1) * apart * kPanel;
  }
  if (by_passes_) {
    multiply_by_passes(run, t, wide, scratch);
    return;
  }
  for (; j < t.col + t.cols; j += wide) {
    const int64_t cols = std::min(wide, t.col + t.cols - j);
    Block block{j, ceil_div(cols, kPanel), sums, nullptr, scratch};
    if (cols % kPanel == 0) block.out = out + j;
    multiply(run, t, block);
    if (block.out == nullptr) copy_sums(t, block, cols, out);
  }
}

void PanelMatmul::copy_sums(const Task& t, const Block& block, int64_t cols, float* out) const {
  for (int64_t r = 0; r < t.rows; ++r)
    std::copy_n(block.sums + r * block.panels * kPanel, cols, out + r * n_ + block.col);
}

// Every panel's part of a pass is multiplied before the next pass, so that many rows can share what
// is read of a panel while their part of a pass stays in the second-level cache. Rows that lie in
// the same sets of it are copied first.
void PanelMatmul::multiply_by_passes(const Run& run, const Task& t, int64_t wide,
                                     float* scratch) const {
  float* const copy = scratch + (widens() ? kWidened : 0);
  float* const sums = copy + (copies_ ? task_rows_ * pass_ : 0);
  float* const out = run.output<float>(0) + t.row * n_;
  const int64_t end = t.col + t.cols;
  for (int64_t k = 0; k < k_ && !run.stopped();) {
    const int64_t depth = depth_at(k);
    Rows rows{t.from + t.row * k_ + k, k_};
    if (copies_) {
      for (int64_t r = 0; r < t.rows; ++r) std::copy_n(rows.from + r * k_, depth, copy + r * depth);
      rows = {copy, depth};
    }
    for (int64_t j = t.col; j < end; j += wide) {
      const int64_t cols = std::min(wide, end - j);
      Block block{j, ceil_div(cols, kPanel), sums + (j - t.col) * t.rows, nullptr, scratch};
      if (cols % kPanel == 0) block.out = out + j;
      const bool last = j + wide >= end;
      const Ahead ahead = next_panels(run, t, last ? t.col : j + wide, last ? k + depth : k);
      multiply(run, t, block, k, rows, ahead);
      if (k + depth == k_ && block.out == nullptr) copy_sums(t, block, cols, out);
    }
    k += depth;
  }
}

// Between passes sums are kept in scratch, where they are contiguous. Rows of C may be so far apart
// that all of them fall into a few sets of the cache.
void PanelMatmul::multiply(const Run& run, const Task& t, const Block& block) const {
  for (int64_t k = 0; k < k_;) {
    const int64_t next = k + depth_at(k);
    const Ahead ahead = next < k_ ? next_panels(run, t, block.col, next)
                                  : next_panels(run, t, block.col + block.panels * kPanel, 0);
    multiply(run, t, block, k, {t.from + t.row * k_ + k, k_}, ahead);
    k = next;
  }
}

// The k of the pass that begins at |k|: whole chains, or the rest of the last one.
int64_t PanelMatmul::depth_at(int64_t k) const {
  const int64_t left = k_ - k;
  return left < chain_ ? left : std::min(pass_, left) / chain_ * chain_;
}

void PanelMatmul::multiply(const Run& run, const Task& t, const Block& block, int64_t k,
                           const Rows& rows, const Ahead& ahead) const {
  constexpr float kZeros[kStreams * kPanel] = {};
  const int64_t depth = depth_at(k), sums_row = block.panels * kPanel;
  PanelMicrokernel::Blocks p{};
  p.offsets = offsets_.data();
  p.a = rows.from;
  p.a_row = rows.stride;
  p.chain = 1;
  p.depth = std::min(chain_, depth);
  p.chunks = depth / p.depth;
  if (widens()) {
    const ColumnType type = panels_ == Panels::kFp16 ? ColumnType::kFp16 : ColumnType::kBf16;
    const uint32_t* const from =
        run.packed<uint32_t>() + block.col / kPanel * Panel16Bit::lanes(k_);
    p.b = block.widened;
    p.b_panel = kPanel * kPass;
    for (int64_t i = 0; i < block.panels; ++i)
      Panel16Bit::widen(type, from + i * Panel16Bit::lanes(k_), k, depth,
                        block.widened + i * p.b_panel);
  } else {
    p.b = panels(run) + block.col * k_ + k * kPanel;
    p.b_panel = kPanel * block.apart * k_;
  }
  const bool to_out = k + depth == k_ && block.out != nullptr;
  p.c = to_out ? block.out : block.sums;
  p.c_row = to_out ? n_ : sums_row;
  p.c_panel = to_out ? block.apart * kPanel : kPanel;
  p.start = k == 0 ? kZeros : block.sums;
  p.start_row = k == 0 ? 0 : sums_row;
  if (block.streams) {
    microkernel_->run_streams(t.rows, p);
    return;
  }
  PanelMicrokernel::RowBlocks row_blocks = microkernel_->row_blocks(t.rows);
  // Row blocks fetch the next panels while they are multiplied, but a few of them end too soon to
  // fetch all. So the first goes through run_streams, which fetches its own panels ahead of their
  // use.
  if (row_blocks.count <= kFewRowBlocks && row_blocks.first() <= microkernel_->stream_rows() &&
      panels_ == Panels::kFp32 && microkernel_->streams(row_blocks.first()) == block.panels) {
    microkernel_->run_streams(row_blocks.first(), p);
    row_blocks = row_blocks.rest();
  }
  for (int64_t i = 0; i < ahead.panels; ++i) {
    p.ahead = ahead.from + i * ahead.stride;
    p.ahead_end = p.ahead + ahead.lines * kPanel;
    microkernel_->run(row_blocks.share(i, ahead.panels), block.panels, p);
  }
}

// The memory that will be read next, from |k| on of the panels from |col| on: a pass of as many
// panels as are read together.
PanelMatmul::Ahead PanelMatmul::next_panels(const Run& run, const Task& t, int64_t col,
                                            int64_t k) const {
  if (widens() || col >= t.col + t.cols || k >= k_) return {};
  const int64_t wide = microkernel_->panels(microkernel_->row_blocks(t.rows).first());
  Ahead ahead;
  ahead.panels = std::min(wide, ceil_div(t.col + t.cols - col, kPanel));
  ahead.lines = std::min(pass_, k_ - k);
  ahead.from = panels(run) + col * k_ + k * kPanel;
  ahead.stride = k_ * kPanel;
  return ahead;
}

}  // namespace pfrt::cpu
