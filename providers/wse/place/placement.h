// SPDX-License-Identifier: Apache-2.0
//
// Places of the layers of a session: each has a square of PEs, on one wafer or several, side by
// side in the order in which they run (layer-pipelined). If they do not all fit, they run one after
// another on the same PEs with weights streamed in from the host. Immutable once made.
#pragma once

#include <functional>

#include "providers/wse/place/layer.h"
#include "providers/wse/place/routes.h"

namespace pfrt::wse {

enum class Execution : uint8_t { kAuto, kPipelined, kStreaming };

// Chips in a grid, and what joins them.
struct Chips {
  int64_t columns = 1, rows = 1;
  double bytes_per_second = 150e9;
  double latency_seconds = 0;  // of a link
  bool latency_given = false;
  int64_t memory_bytes = 0;  // of a chip; 0: all its PEs'

  int64_t count() const { return columns * rows; }
  // Links between two chips.
  int64_t distance(int64_t a, int64_t b) const;
  // Seconds for |bytes| from one to another.
  double transfer(int64_t a, int64_t b, double bytes) const;
};

struct Target {
  Machine machine;
  Arithmetic arithmetic = Arithmetic::kFp16;
  Rect fabric;  // the part that may be used
  Chips chips;
  Execution execution = Execution::kAuto;
};

// Layers that lie on the same PEs: a product and what follows it.
struct Stage {
  std::vector<uint32_t> layers;  // indices into the placement's
  Rect rect;
  int64_t chip = 0;
  double cycles = 0;           // of all its layers
  double transfer_cycles = 0;  // to the stages that read its results
  double host_cycles = 0;      // weights that are streamed in
};

struct Placement {
  std::vector<Layer> layers;
  std::vector<Mapping> mappings;   // by layer
  std::vector<uint32_t> stage_of;  // by layer
  std::vector<Stage> stages;
  bool streaming = false;
  std::string remedy;  // why not all of it lies on the wafer at once, and what would; may be empty
  // Nodes of the same graphs that others run: "If 'branch'".
  std::vector<std::string> elsewhere;
  std::vector<std::string> refused;  // by layer: why it does not run here after all; mostly empty
  int64_t most_colors = 0;           // of a PE
  double elements_between_chips = 0;

  double cycles() const;   // of one run, from the first stage to the last
  double slowest() const;  // of the stages: the pace of a stream of runs
  int64_t chips_used() const;
  // All that others run: |elsewhere|, and the layers that were refused.
  std::vector<std::string> run_by_others() const;
};

// Fails with the layer, the bytes that a PE needs and what would fit where a layer has no place at
// all; |layer| is then its index.
// |stop| is asked again and again; once it is true the result is CANCELLED.
using Stop = std::function<bool()>;
Result<Placement> place(const Target& target, std::vector<Layer> layers, uint32_t* layer,
                        const Stop& stop = {});

// "'name' does not fit: needs 58,240 B per PE on rectangle 420x420 (...)".
std::string does_not_fit(const Target& target, const Layer& layer, const Mapping& mapping,
                         int64_t fits_from);
// Cycles in which the host moves |words| of |bytes| in all to the wafer, on all its channels.
double load_cycles(const Machine& machine, double words, double bytes);
// Drops the fraction of |value|; gives 0 for NaN, and +-9e18 at most.
int64_t whole(double value);
// Writes 58240 as "58,240".
std::string with_commas(int64_t number);

}  // namespace pfrt::wse
