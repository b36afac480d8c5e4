// SPDX-License-Identifier: Apache-2.0
//
// The images and regions of RoiAlign and MaxRoiPool. Pure functions; thread-safe.
#pragma once

#include <cstdint>

#include "core/base/status.h"
#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/run.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

// Images [batch, channels, height, width], regions [regions, ...], output [regions, channels,
// rows, columns].
struct Regions {
  static Result<Regions> read(const SnapshotNode& node, int64_t coordinates);

  // The image of the region, or -1 when there is no such image.
  int64_t image_of(double index) const {
    return index >= 0 && index < static_cast<double>(batch) ? static_cast<int64_t>(index) : -1;
  }
  // The |n| coordinates of a region.
  void load(const Run& run, int64_t region, int64_t n, double* out) const {
    load_block(region_type, element(region_type, run.input(1), region * n), n, out);
  }

  pfrt_dtype dtype, region_type;
  int64_t batch, channels, height, width, regions, rows, columns;
};

}  // namespace pfrt::cpu
