// SPDX-License-Identifier: Apache-2.0
//
// Collectives of the phase engine, on each line of a grid along an axis: they move the times of its
// PEs on (max-plus: a PE goes on when it is free and what it waits for is there). Messages are
// |wavelets| long and stream. Algorithms and costs are those of ../README.md; the closed forms that
// they come to are those of Luczynski, Gianinazzi et al., Near-Optimal Wafer-Scale Reduce, HPDC'24,
// and the tree is that of He et al., WaferLLM, OSDI'25. Pure functions of their arguments.
#pragma once

#include "providers/wse/fabric/grid.h"
#include "providers/wse/machine/machine.h"

namespace pfrt::wse {

// Wavelets of |elements| of |bytes| each.
int64_t wavelets_of(int64_t elements, int64_t bytes);
// Groups of the tree all-reduce that take the least time on a line of |length|: about its root.
int64_t tree_group(int64_t length);

// Passes a message from PE 0 of each line to the last: each PE receives the whole message, then
// sends it on.
void pass_along(Grid& grid, const Machine& machine, Axis axis, int64_t wavelets);
// Reduces to PE 0 of each line.
void chain_reduce(Grid& grid, const Machine& machine, Axis axis, int64_t wavelets);
void two_phase_reduce(Grid& grid, const Machine& machine, Axis axis, int64_t group,
                      int64_t wavelets);
// Sends from PE |root| of each line to all others.
void multicast(Grid& grid, const Machine& machine, Axis axis, int64_t root, int64_t wavelets);
void tree_all_reduce(Grid& grid, const Machine& machine, Axis axis, int64_t group,
                     int64_t wavelets);
// Chains from both ends meet in |root|, which multicasts the result.
void line_all_reduce(Grid& grid, const Machine& machine, Axis axis, int64_t wavelets);

}  // namespace pfrt::wse
