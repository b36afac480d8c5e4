// SPDX-License-Identifier: Apache-2.0
//
// A recurrent layer over its sequence. A lane is a direction and a few dozen sequences; lanes are
// independent. A lane goes through time in chunks: first the inputs of the chunk times W, all steps
// at once, then, step by step, the state times R is added in place. If there are few lanes, the
// hidden units of a step are shared between workers too, which changes no result: an element
// depends on its row, its column and the depth of its products alone.
//
// R is packed, once if it is a constant, else at the beginning of a run; W where both are constants
// and rows of X can be multiplied where they lie. A step calls innermost loops of the matmul
// directly: of float32 they read the state where it lies, of float64 it is kept packed. Immutable
// once made; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernels/matmul/gemm.h"
#include "providers/cpu/kernels/recurrent/cell.h"
#include "providers/cpu/kernels/recurrent/gemv.h"

namespace pfrt::cpu {

template <typename T>
class Sweep {
 public:
  // The host has packed constants as pack_recurrent_weights says.
  enum class Packed : uint8_t { kNone, kRecurrent, kBoth };
  Sweep(Layer layer, Packed packed);
  uint64_t scratch_bytes() const { return gemm_.scratch_bytes(); }
  pfrt_code run(const Run& run) const;

 private:
  struct Lane {
    int64_t index, direction, row, rows;
    int64_t together;  // rows of a panel of the state, as equal as possible
  };
  struct Memory {
    std::vector<int64_t> lengths;
    std::vector<T> bias;       // [directions, columns]
    std::vector<T> peepholes;  // [directions, 3 * hidden], or empty
    // R in panels: [directions, gates, panels, hidden, width], packed by the host or here.
    const T* recurrent = nullptr;
    std::unique_ptr<T[]> packed;
    const T* projection = nullptr;  // W in panels of 16 columns, packed by the host, or null
    // [directions, batch, hidden]; hidden states packed by lane and panel of rows.
    std::unique_ptr<T[]> states[2], cells, reset;
    std::unique_ptr<T[]> gates;  // [lanes, steps of a chunk, rows of a lane, columns]
  };
  // Step |s| of a lane, which begins at |first| in its chunk.
  struct Step {
    Lane lane;
    int64_t s, first;
  };

  Lane lane(int64_t index) const;
  pfrt_code read_lengths(const Run& run, Memory& memory) const;
  Memory allocate(const Run& run) const;
  void pack_recurrent(const Run& run, Memory& memory) const;
  void load_states(const Run& run, Memory& memory) const;
  void store_states(const Run& run, const Memory& memory) const;
  T* gates(const Memory& memory, const Lane& lane) const {
    return memory.gates.get() + lane.index * chunk_ * lane_rows_ * columns_;
  }
  void project(const Run& run, const Memory& memory, const Lane& lane, int64_t first, int64_t tile,
               T* scratch) const;
  // Does as much as gemm_, to the same bits, where rows of X lie at equal distances; returns false
  // where they do not.
  bool multiply_in_place(const Run& run, const Memory& memory, const Lane& lane, int64_t first,
                         const GemmTile& tile, T* to) const;
  // Adds |state| times the units of block |block| of gates [begin, end).
  void multiply(const Run& run, const Memory& memory, const Step& step, int64_t block,
                int64_t begin, int64_t end, const T* state) const;
  void advance(const Run& run, const Memory& memory, const Step& step, int64_t phase,
               int64_t block) const;
  void finish(const Run& run, const Memory& memory, const Step& step, int64_t phase,
              int64_t block) const;

  Layer layer_;
  Packed packed_;
  const MicroKernels<T>& micro_;
  // Of float32; null: there is none, and the state is kept in panels of rows for |micro_|.
  const PanelMicrokernel* panel_microkernel_;
  int64_t width_;                      // of a panel of units
  GemvFn gemv_;                        // of float32; null: there is none
  int64_t panels_;                     // of a gate
  int64_t stride_, columns_;           // from gate to gate of a row; of a row
  int64_t lane_rows_, lanes_, chunk_;  // sequences of a lane; lanes; steps of a chunk
  int64_t block_, blocks_;             // panels of a block of units; blocks
  int64_t phases_;
  Gemm<T> gemm_;
};

// Packs R for Sweep<float>; with |features| above 0, W too.
PackedInput pack_recurrent_weights(int64_t directions, int64_t gates, int64_t hidden,
                                   int64_t features);
// Whether Sweep<float> gains by a W that is packed.
bool takes_packed_projection();

extern template class Sweep<float>;
extern template class Sweep<double>;

}  // namespace pfrt::cpu
