// SPDX-License-Identifier: Apache-2.0
//
// MatMulNBits with constant weights. A few rows take as long as the weights take to read, so they
// are read once, in several places at a time. With more rows, a pass of k of two panels is read at
// a time, and shared by as many rows as the second-level cache holds.
#include <algorithm>
#include <memory>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernels/matmul/make.h"
#include "providers/cpu/kernels/matmul/nbits/rows.h"
#include "providers/cpu/kernels/matmul/nbits/tiles.h"
#include "providers/cpu/kernels/matmul/nbits/weights.h"

namespace pfrt::cpu {
namespace {

using Rows = NBitsMicrokernel::Rows;
using RowBlocks = PanelMicrokernel::RowBlocks;
constexpr int64_t kColumns = NBitsPanel::kColumns;
constexpr int64_t kTaskBytes = 256 << 10, kLeastTaskBytes = 32 << 10;  // of weights
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kTaskRows = 256, kTaskPanels = 16, kPassBytes = 24 << 10;
constexpr int64_t kTogether = 2;                                // panels that many rows share
constexpr int64_t kWidenedRows = 48, kWidenedBytes = 48 << 10;  // from how many on, and of a pass
constexpr int64_t kRowTaskBytes = 64 << 10;

class NBitsMatmul {
 public:
  NBitsMatmul(int64_t m, std::shared_ptr<const NBitsWeights> weights, pfrt_dtype bias)
      : m_(m),
        w_(std::move(weights)),
        bias_(bias),
        microkernel_(w_->microkernel()),
        kind_(w_->rows()),
        row_bytes_(w_->panel.blocks * NBitsMicrokernel::row_bytes(kind_, w_->panel.block)) {
    // Float rows that are many share weights that were widened once.
    if (kind_ == Rows::kFloat && m_ >= kWidenedRows)
      widened_ = NBitsMicrokernel::get_widened(w_->form.bits);
    const NBitsMicrokernel& of_rows = widened_ != nullptr ? *widened_ : *microkernel_;
    if (m_ > 0) blocks_ = PanelMicrokernel::row_blocks(m_, of_rows.rows());
    few_ = blocks_.count <= 1;
    const int64_t bytes = w_->panel.bytes(), panels = w_->panels();
    if (few_) {
      const int64_t least = std::max<int64_t>(1, kLeastTaskBytes / bytes),
                    most = std::max<int64_t>(1, kTaskBytes / bytes);
      task_panels_ = std::clamp(panels / kWantedTasks, least, std::max(least, most));
      const int64_t together = m_ > 0 ? microkernel_->panels(m_) : 1;
      task_panels_ = ceil_div(task_panels_, together) * together;
      pass_ = w_->panel.blocks;
    } else {
      task_panels_ = kTaskPanels;
      const int64_t most = std::max<int64_t>(1, kTaskRows / blocks_.first()),
                    row_tasks = ceil_div(blocks_.count, most);
      task_blocks_ = ceil_div(blocks_.count, row_tasks);
      while (task_panels_ > kTogether && row_tasks * ceil_div(panels, task_panels_) < kWantedTasks)
        task_panels_ /= 2;
      const int64_t bytes_of_block = widened_ != nullptr
                                         ? NBitsMicrokernel::widened_bytes(w_->panel)
                                         : w_->panel.block_bytes();
      pass_ = std::clamp<int64_t>(
          (widened_ != nullptr ? kWidenedBytes : kPassBytes) / (kTogether * bytes_of_block), 1,
          w_->panel.blocks);
    }
  }

  uint64_t shared_bytes() const { return static_cast<uint64_t>(packs() ? m_ * row_bytes_ : 0); }
  uint64_t scratch_bytes() const {
    return static_cast<uint64_t>(std::max(sums() + widened_floats() * kTogether, spare())) * 4;
  }

  pfrt_code run(const Run& run) const {
    if (m_ == 0) return run.stop();
    if (packs()) pack_rows(run);
    const int64_t col_tasks = ceil_div(w_->panels(), task_panels_),
                  row_tasks = few_ ? 1 : ceil_div(blocks_.count, task_blocks_);
    run.parallel(col_tasks * row_tasks, [&](int64_t i, uint32_t worker) {
      if (run.stopped()) return;
      const int64_t first = i / row_tasks * task_panels_,
                    panels = std::min(task_panels_, w_->panels() - first);
      if (few_)
        multiply_few(run, first, panels, run.scratch<float>(worker));
      else
        multiply_many(run, i % row_tasks * task_blocks_, first, panels, run.scratch<float>(worker));
    });
    return run.stop();
  }

 private:
  // A single row of whole blocks is read where it lies.
  bool packs() const {
    return m_ != 1 || kind_ == Rows::kInt8 || !w_->order.empty() || w_->places() != w_->form.k;
  }
  int64_t spare() const { return w_->order.empty() ? 0 : w_->places(); }
  int64_t sums() const {
    if (m_ == 0) return 0;
    const int64_t rows = few_ ? m_ * microkernel_->panels(m_) : kTogether * task_rows();
    return rows * kColumns;
  }
  // Floats of a widened pass of one panel.
  int64_t widened_floats() const {
    return widened_ == nullptr ? 0 : pass_ * NBitsMicrokernel::widened_bytes(w_->panel) / 4;
  }
  int64_t task_rows() const { return std::min(m_, task_blocks_ * blocks_.first()); }
  int64_t begin_of(int64_t block) const {
    return block * blocks_.rows + std::min(block, blocks_.more);
  }
  int64_t rows_of(int64_t block) const { return blocks_.rows + (block < blocks_.more); }

  void pack_rows(const Run& run) const {
    const int64_t together = std::max<int64_t>(1, kRowTaskBytes / (row_bytes_ * blocks_.first()));
    run.parallel(ceil_div(blocks_.count, together), [&](int64_t i, uint32_t worker) {
      pack_blocks(run, i * together, std::min((i + 1) * together, blocks_.count),
                  run.scratch<float>(worker));
    });
  }
  void pack_blocks(const Run& run, int64_t begin, int64_t end, float* spare) const {
    const float* const a = run.input<float>(NBitsForm::kA);
    for (int64_t b = begin; b < end && !run.stopped(); ++b)
      for (int64_t r = 0; r < rows_of(b); ++r)
        pack_nbits_row(*w_, a + (begin_of(b) + r) * w_->form.k, r, rows_of(b),
                       run.shared<uint8_t>() + begin_of(b) * row_bytes_, spare);
  }

  // |panels| of one call or several, |apart| from each other, from k block |pass| on; sums are
  // added to |c|.
  void multiply(const Run& run, int64_t row_block, int64_t panel, int64_t panels, int64_t apart,
                int64_t pass, int64_t blocks, float* c) const {
    const int64_t rows = rows_of(row_block), step = apart * w_->panel.bytes();
    NBitsMicrokernel::Blocks p{};
    microkernel_->set_blocks(w_->panel, p);
    p.a = rows_at(run, row_block, pass);
    p.blocks = blocks;
    p.b_panel = step;
    const int64_t together = microkernel_->panels(rows);
    for (int64_t i = 0; i < panels;) {
      const uint8_t* const from = run.packed<uint8_t>() + panel * w_->panel.bytes() + i * step;
      p.b = from + pass * w_->panel.block_bytes();
      p.zeros = from + w_->panel.zeros_at() + pass * w_->panel.zero_bytes();
      p.c = c + i * rows * kColumns;
      if (panels - i >= together) {
        microkernel_->run_several(rows, p);
        i += together;
      } else {
        microkernel_->run_one(rows, p);
        ++i;
      }
    }
  }

  void widen(const Run& run, int64_t panel, int64_t panels, int64_t pass, int64_t blocks,
             float* to) const {
    for (int64_t i = 0; i < panels; ++i) {
      const uint8_t* const from = run.packed<uint8_t>() + (panel + i) * w_->panel.bytes();
      microkernel_->widen(w_->panel, from + pass * w_->panel.block_bytes(),
                          from + w_->panel.zeros_at() + pass * w_->panel.zero_bytes(), blocks,
                          to + i * widened_floats());
    }
  }

  // Multiplies by |panels| panels that |widened| holds; otherwise as multiply.
  void multiply_widened(const Run& run, int64_t row_block, const float* widened, int64_t panels,
                        int64_t pass, int64_t blocks, float* c) const {
    const int64_t rows = rows_of(row_block), together = widened_->panels(rows);
    NBitsMicrokernel::Blocks p{};
    widened_->set_blocks(w_->panel, p);
    p.a = rows_at(run, row_block, pass);
    p.blocks = blocks;
    p.b_panel = widened_floats() * static_cast<int64_t>(sizeof(float));
    for (int64_t i = 0; i < panels;) {
      p.b = reinterpret_cast<const uint8_t*>(widened + i * widened_floats());
      p.c = c + i * rows * kColumns;
      if (panels - i >= together) {
        widened_->run_several(rows, p);
        i += together;
      } else {
        widened_->run_one(rows, p);
        ++i;
      }
    }
  }

  const uint8_t* rows_at(const Run& run, int64_t row_block, int64_t pass) const {
    const uint8_t* const a = packs() ? run.shared<uint8_t>() : run.input<uint8_t>(NBitsForm::kA);
    return a + begin_of(row_block) * row_bytes_ +
           pass * rows_of(row_block) * NBitsMicrokernel::row_bytes(kind_, w_->panel.block);
  }

  void multiply_few(const Run& run, int64_t first, int64_t panels, float* c) const {
    const int64_t together = microkernel_->panels(m_), apart = panels / together;
    for (int64_t i = 0; i < apart && !run.stopped(); ++i) {
      std::fill_n(c, together * m_ * kColumns, 0.0f);
      multiply(run, 0, first + i, together, apart, 0, pass_, c);
      for (int64_t p = 0; p < together; ++p)
        put(run, 0, first + i + p * apart, c + p * m_ * kColumns);
    }
    for (int64_t i = apart * together; i < panels; ++i) {
      std::fill_n(c, m_ * kColumns, 0.0f);
      multiply(run, 0, first + i, 1, 1, 0, pass_, c);
      put(run, 0, first + i, c);
    }
    finish(run, 0, m_, first, panels);
  }

  void multiply_many(const Run& run, int64_t begin, int64_t first, int64_t panels, float* c) const {
    const int64_t end = std::min(begin + task_blocks_, blocks_.count), row = begin_of(begin),
                  rows = begin_of(end) - row;
    for (int64_t i = 0; i < panels && !run.stopped(); i += kTogether) {
      const int64_t together = std::min(kTogether, panels - i);
      std::fill_n(c, together * rows * kColumns, 0.0f);
      for (int64_t pass = 0; pass < w_->panel.blocks; pass += pass_) {
        const int64_t blocks = std::min(pass_, w_->panel.blocks - pass);
        float* const widened = c + sums();
        if (widened_ != nullptr) widen(run, first + i, together, pass, blocks, widened);
        for (int64_t b = begin; b < end; ++b) {
          float* const to = c + (begin_of(b) - row) * together * kColumns;
          if (widened_ != nullptr)
            multiply_widened(run, b, widened, together, pass, blocks, to);
          else
            multiply(run, b, first + i, together, 1, pass, blocks, to);
        }
      }
      for (int64_t b = begin; b < end; ++b) {
        const float* const sums = c + (begin_of(b) - row) * together * kColumns;
        for (int64_t p = 0; p < together; ++p)
          put(run, b, first + i + p, sums + p * rows_of(b) * kColumns);
      }
    }
    finish(run, row, rows, first, panels);
  }

  // The sums of a panel to the output, with the bias.
  void put(const Run& run, int64_t row_block, int64_t panel, const float* sums) const {
    const int64_t col = panel * kColumns, cols = std::min(kColumns, w_->form.n - col);
    float bias[kColumns] = {};
    if (bias_ != PFRT_DTYPE_UNSET)
      load_fn<float>(bias_)(bias, run.input(NBitsForm::kBias), col, 1, cols);
    float* out = run.output<float>(0) + begin_of(row_block) * w_->form.n + col;
    const uint8_t* const weights = run.packed<uint8_t>() + panel * w_->panel.bytes();
    const float* row = run.input<float>(NBitsForm::kA) + begin_of(row_block) * w_->form.k;
    for (int64_t r = 0; r < rows_of(row_block);
         ++r, out += w_->form.n, sums += kColumns, row += w_->form.k) {
      for (int64_t j = 0; j < cols; ++j) out[j] = sums[j] + bias[j];
      mend_nbits_results(*w_, weights, row, bias, cols, out);
    }
  }

  void finish(const Run& run, int64_t row, int64_t rows, int64_t first, int64_t panels) const {
    const int64_t n = w_->form.n, col = first * kColumns,
                  cols = std::min(panels * kColumns, n - col);
    if (cols == n) return run.apply_epilogue(row * n, (row + rows) * n);
    for (int64_t r = row; r < row + rows; ++r) run.apply_epilogue(r * n + col, r * n + col + cols);
  }

  int64_t m_;
  std::shared_ptr<const NBitsWeights> w_;
  pfrt_dtype bias_;  // UNSET: none
  const NBitsMicrokernel* microkernel_;
  const NBitsMicrokernel* widened_ = nullptr;  // null: weights are read as they are packed
  Rows kind_;
  int64_t row_bytes_;
  RowBlocks blocks_;
  bool few_ = false;  // one row block
  int64_t task_panels_ = 1, task_blocks_ = 1, pass_ = 1;
};

}  // namespace

Result<Kernel> make_packed_matmul_nbits(const KernelRequest& node, const PackedInput&) {
  auto weights = nbits_weights(node);
  if (!weights) return make_matmul_nbits(node);  // not any more
  PFRT_ASSIGN(const int64_t m, weights->form.rows(node));
  const int64_t row_bytes =
      weights->panel.blocks * NBitsMicrokernel::row_bytes(Rows::kFloat, weights->panel.block);
  if (m < 0 || m > INT64_MAX / 2 / row_bytes) return kernel_error("A has too many rows");
  const auto w = std::make_shared<const NBitsWeights>(std::move(*weights));
  const pfrt_dtype bias = node.input_dtype(NBitsForm::kBias);
  Kernel kernel;
  kernel.packed_alone = true;
  kernel.flops = 2.0 * static_cast<double>(m) * static_cast<double>(w->form.n) *
                 static_cast<double>(w->form.k);
  const auto runs = [&](std::string_view name, auto matmul) {
    kernel.name = name;
    kernel.scratch_bytes = matmul.scratch_bytes();
    kernel.shared_bytes = matmul.shared_bytes();
    kernel.run = [matmul = std::move(matmul)](const Run& run) { return matmul.run(run); };
  };
  if (NBitsTileMatmul::takes(m, *w))
    runs("matmul_nbits_tiles", NBitsTileMatmul(m, w, bias));
  else
    runs(w->rows() == Rows::kInt8 ? "matmul_nbits_int8" : "matmul_nbits_float",
         NBitsMatmul(m, w, bias));
  return in_float32(node, {NBitsForm::kA}, std::move(kernel));
}

}  // namespace pfrt::cpu
