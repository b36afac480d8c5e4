// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/matmul/nbits/tiles.h"

#include <immintrin.h>

#include <algorithm>
#include <utility>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/isa/target.h"
#include "providers/cpu/kernels/matmul/nbits/rows.h"

namespace pfrt::cpu {
namespace {

using Rows = NBitsMicrokernel::Rows;
using Zeros = NBitsPanel::Zeros;
constexpr int64_t kColumns = NBitsPanel::kColumns, kSide = DotTileMicrokernel::kSide;
constexpr int64_t kTogether = 2;                 // panels
constexpr int64_t kCRow = kTogether * kColumns;  // sums of a row
constexpr int64_t kLeastRows = 16, kTaskRows = 256, kTaskPanels = 16;
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kPassBytes = 24 << 10;  // of widened weights, which stay in the first-level cache
constexpr int64_t kRowTaskBytes = 64 << 10;
constexpr int64_t kHead = 8;  // bytes of a block of a packed row: its scale, a correction

int64_t packed_block(const NBitsPanel& panel) {
  return NBitsMicrokernel::row_bytes(Rows::kInt8, panel.block);
}

// The weights of a block, less its zero points, as bytes: four neighbours of k of 16 columns each.
PFRT_AVX512 void widen_block(const NBitsPanel& panel, const uint8_t* block, const uint8_t* zeros,
                             char* to) {
  const auto bits = static_cast<unsigned>(panel.bits);
  const __m512i mask = _mm512_set1_epi8(static_cast<char>((1u << bits) - 1));
  __m512i zero = _mm512_set1_epi8(static_cast<char>(1u << (bits - 1)));
  if (panel.zeros == Zeros::kUint8) {
    const __m128i of_columns = _mm_loadu_si128(reinterpret_cast<const __m128i*>(zeros));
    zero = _mm512_maskz_mullo_epi32(0xffff, _mm512_maskz_cvtepu8_epi32(0xffff, of_columns),
                                    _mm512_set1_epi32(0x01010101));
  }
  for (int64_t i = 0; i < panel.lines(); ++i) {
    const __m512i line = _mm512_loadu_si512(block + i * NBitsPanel::kLine);
    for (unsigned shift = 0; shift < 8; shift += bits, to += NBitsPanel::kLine) {
      const __m512i quad = _mm512_and_si512(
          _mm512_maskz_srl_epi32(0xffff, line, _mm_cvtsi32_si128(static_cast<int>(shift))), mask);
      _mm512_storeu_si512(to, _mm512_maskz_sub_epi8(~__mmask64{0}, quad, zero));
    }
  }
}

// c[r] += sums[r] * the scales of the row and of the columns, as the vector kernels round it.
PFRT_AVX512 void add_scaled(const int32_t* sums, const char* row_scales, int64_t row_bytes,
                            int64_t rows, const float* const* scales, int64_t panels, float* c) {
  for (int64_t p = 0; p < panels; ++p) {
    const __m512 of_columns = _mm512_loadu_ps(scales[p]);
    for (int64_t r = 0; r < rows; ++r) {
      float of_row;
      __builtin_memcpy(&of_row, row_scales + r * row_bytes, sizeof of_row);
      const int64_t at = r * kCRow + p * kColumns;
      const __m512 sum = _mm512_maskz_cvtepi32_ps(0xffff, _mm512_loadu_si512(sums + at));
      const __m512 scale = _mm512_mul_ps(of_columns, _mm512_set1_ps(of_row));
      _mm512_storeu_ps(c + at, _mm512_fmadd_ps(sum, scale, _mm512_loadu_ps(c + at)));
    }
  }
}

}  // namespace

bool NBitsTileMatmul::takes(int64_t m, const NBitsWeights& w) {
  const bool fits = w.form.bits < 8 || w.panel.zeros == Zeros::kMiddle;
  return m >= kLeastRows && w.rows() == Rows::kInt8 && fits && isa() >= Isa::kAvx512 &&
         DotTileMicrokernel::get() != nullptr;
}

NBitsTileMatmul::NBitsTileMatmul(int64_t m, std::shared_ptr<const NBitsWeights> weights,
                                 pfrt_dtype bias)
    : m_(m),
      w_(std::move(weights)),
      bias_(bias),
      microkernel_(DotTileMicrokernel::get()),
      row_bytes_(w_->panel.blocks * packed_block(w_->panel)) {
  const int64_t row_tasks = ceil_div(m_, kTaskRows);
  task_rows_ = ceil_div(ceil_div(m_, row_tasks), 2 * kSide) * 2 * kSide;
  task_panels_ = kTaskPanels;
  while (task_panels_ > kTogether &&
         row_tasks * ceil_div(w_->panels(), task_panels_) < kWantedTasks)
    task_panels_ /= 2;
  pass_ = std::clamp<int64_t>(kPassBytes / (kTogether * w_->panel.block * kColumns), 1,
                              w_->panel.blocks);
}

int64_t NBitsTileMatmul::widened_bytes() const { return pass_ * w_->panel.block * kColumns; }
int64_t NBitsTileMatmul::sums() const { return std::min(m_, task_rows_) * kCRow; }

uint64_t NBitsTileMatmul::shared_bytes() const { return static_cast<uint64_t>(m_ * row_bytes_); }
uint64_t NBitsTileMatmul::scratch_bytes() const {
  const int64_t spare = w_->order.empty() ? 0 : w_->places();
  const int64_t bytes = kTogether * widened_bytes() + sums() * 4;
  return static_cast<uint64_t>(std::max(bytes, spare * 4));
}

void NBitsTileMatmul::pack_rows(const Run& run) const {
  const int64_t together = std::max<int64_t>(1, kRowTaskBytes / row_bytes_);
  run.parallel(ceil_div(m_, together), [&](int64_t i, uint32_t worker) {
    const int64_t end = std::min((i + 1) * together, m_);
    for (int64_t r = i * together; r < end && !run.stopped(); ++r)
      pack_nbits_row(*w_, run.input<float>(NBitsForm::kA) + r * w_->form.k, 0, 1,
                     run.shared<uint8_t>() + r * row_bytes_, run.scratch<float>(worker));
  });
}

pfrt_code NBitsTileMatmul::run(const Run& run) const {
  pack_rows(run);
  const int64_t row_tasks = ceil_div(m_, task_rows_);
  run.parallel(row_tasks * ceil_div(w_->panels(), task_panels_), [&](int64_t i, uint32_t worker) {
    if (run.stopped()) return;
    const int64_t row = i % row_tasks * task_rows_, panel = i / row_tasks * task_panels_;
    multiply(run, row, std::min(task_rows_, m_ - row), panel,
             std::min(task_panels_, w_->panels() - panel), run.scratch<float>(worker));
  });
  return run.stop();
}

void NBitsTileMatmul::multiply(const Run& run, int64_t row, int64_t rows, int64_t panel,
                               int64_t panels, float* scratch) const {
  const NBitsPanel& layout = w_->panel;
  char* const widened = reinterpret_cast<char*>(scratch);
  auto* const c = reinterpret_cast<float*>(widened + kTogether * widened_bytes());
  const int64_t col = panel * kColumns, cols = std::min(panels * kColumns, w_->form.n - col);
  DotTileMicrokernel::Scope scope;
  for (int64_t i = 0; i < panels; i += kTogether) {
    const int64_t together = std::min(kTogether, panels - i);
    std::fill_n(c, rows * kCRow, 0.0f);
    for (int64_t pass = 0; pass < layout.blocks; pass += pass_) {
      if (run.stopped()) return;
      const int64_t blocks = std::min(pass_, layout.blocks - pass);
      for (int64_t p = 0; p < together; ++p) {
        const uint8_t* const from = run.packed<uint8_t>() + (panel + i + p) * layout.bytes();
        for (int64_t b = 0; b < blocks; ++b)
          widen_block(layout, from + (pass + b) * layout.block_bytes(),
                      from + layout.zeros_at() + (pass + b) * layout.zero_bytes(),
                      widened + p * widened_bytes() + b * layout.block * kColumns);
      }
      multiply_pass(run, scope, row, rows, panel + i, together, pass, blocks, widened, c);
    }
    put(run, row, rows, panel + i, together, c);
  }
  const int64_t n = w_->form.n;
  if (cols == n) return run.apply_epilogue(row * n, (row + rows) * n);
  for (int64_t r = row; r < row + rows; ++r) run.apply_epilogue(r * n + col, r * n + col + cols);
}

void NBitsTileMatmul::multiply_pass(const Run& run, DotTileMicrokernel::Scope& scope, int64_t row,
                                    int64_t rows, int64_t panel, int64_t panels, int64_t pass,
                                    int64_t blocks, const char* widened, float* c) const {
  constexpr int64_t kOffset = 0;
  constexpr int32_t kZeros[kCRow] = {};
  alignas(64) int32_t sums[2 * kSide * kCRow];
  const NBitsPanel& layout = w_->panel;
  const int64_t steps = layout.block / 4;
  DotTileMicrokernel::Blocks p{};
  p.offsets = &kOffset;
  p.a_row = row_bytes_, p.a_tile = kSide * row_bytes_;
  p.chunks = 1;
  p.depth = std::min(steps, DotTileMicrokernel::kMostSteps), p.parts = steps / p.depth;
  p.b_panel = widened_bytes();
  p.c = sums;
  p.c_row = kCRow, p.c_tile = kSide * kCRow, p.c_panel = kColumns;
  p.start = kZeros, p.start_panel = kColumns;
  for (int64_t r = 0; r < rows; r += 2 * kSide) {
    const int64_t first = std::min(kSide, rows - r), second = std::min(kSide, rows - r - first);
    for (int64_t b = 0; b < blocks; ++b) {
      const char* const at =
          run.shared<char>() + (row + r) * row_bytes_ + (pass + b) * packed_block(layout);
      p.a = at + kHead;
      p.b = widened + b * layout.block * kColumns;
      p.ahead = p.b;
      microkernel_->run(scope, first, second, panels, true, p);
      const float* scales[kTogether] = {};
      for (int64_t q = 0; q < panels; ++q)
        scales[q] = reinterpret_cast<const float*>(
            run.packed<uint8_t>() + (panel + q) * layout.bytes() +
            (pass + b) * layout.block_bytes() + layout.lines() * NBitsPanel::kLine);
      add_scaled(sums, at, row_bytes_, first + second, scales, panels, c + r * kCRow);
    }
  }
}

void NBitsTileMatmul::put(const Run& run, int64_t row, int64_t rows, int64_t panel, int64_t panels,
                          const float* c) const {
  const int64_t col = panel * kColumns, cols = std::min(panels * kColumns, w_->form.n - col);
  float bias[kCRow] = {};
  if (bias_ != PFRT_DTYPE_UNSET)
    load_fn<float>(bias_)(bias, run.input(NBitsForm::kBias), col, 1, cols);
  float* out = run.output<float>(0) + row * w_->form.n + col;
  const float* a = run.input<float>(NBitsForm::kA) + row * w_->form.k;
  for (int64_t r = 0; r < rows; ++r, out += w_->form.n, c += kCRow, a += w_->form.k) {
    for (int64_t j = 0; j < cols; ++j) out[j] = c[j] + bias[j];
    for (int64_t p = 0; p * kColumns < cols; ++p)
      mend_nbits_results(*w_, run.packed<uint8_t>() + (panel + p) * w_->panel.bytes(), a,
                         bias + p * kColumns, std::min(kColumns, cols - p * kColumns),
                         out + p * kColumns);
  }
}

}  // namespace pfrt::cpu
