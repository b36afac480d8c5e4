// SPDX-License-Identifier: Apache-2.0
//
// Exchanges between neighbours that go on while PEs compute: the steps of products whose operands
// shift, halos, and the shift of a key-value cache (rule 10 of ../README.md). They move the times
// of a grid on. Pure functions of their arguments.
#pragma once

#include "providers/wse/fabric/grid.h"
#include "providers/wse/machine/machine.h"

namespace pfrt::wse {

// The order of a ring of |count| PEs: physical places by place on the ring. Interleaved: 0, 2, 4,
// ..., 5, 3, 1, so that neighbours are two hops apart at most (WaferLLM, OSDI'25). Else 0, 1, 2,
// ...
std::vector<int32_t> ring_order(int64_t count, bool interleaved);

// A step of a shifting product, which every PE of a square grid does.
struct ShiftStep {
  double compute = 0;                      // cycles of its product
  int64_t a_wavelets = 0, b_wavelets = 0;  // of the messages along x and along y
  bool interleaved = true;                 // order of the rings
};

// Brings A into its first place: |rounds| shifts along x, |wavelets| a message.
void align(Grid& grid, const Machine& machine, int64_t rounds, int64_t wavelets, bool interleaved);
// |count| steps, each a product and an exchange along both axes.
void shift_steps(Grid& grid, const Machine& machine, int64_t count, const ShiftStep& step);

// A step of SUMMA: PE |from| of each row multicasts |a_wavelets| along it, PE |from| of each column
// |b_wavelets|, both at once; every PE goes on when it has both.
void multicast_both(Grid& grid, const Machine& machine, int64_t from, int64_t a_wavelets,
                    int64_t b_wavelets);

// Edges of |wavelets| to all four neighbours.
void exchange_halo(Grid& grid, const Machine& machine, int64_t wavelets);
// Each row passes |wavelets| to the one above it.
void shift_up(Grid& grid, const Machine& machine, int64_t wavelets);

}  // namespace pfrt::wse
