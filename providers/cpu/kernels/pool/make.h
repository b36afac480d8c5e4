// SPDX-License-Identifier: Apache-2.0
//
// The make functions of the pooling family's table, and the planes they work on. Pure functions;
// thread-safe.
#pragma once

#include <optional>
#include <string>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/row.h"
#include "providers/cpu/kernel/stop_poll.h"
#include "providers/cpu/kernels/window/window.h"

namespace pfrt::cpu {

// A batch of images as planes, one a channel, under a window.
struct PoolGeometry {
  Window window;
  int64_t planes = 0;
};
Result<PoolGeometry> pool_geometry(const SnapshotNode& node);

// A plane as T: in place where that is its type, else converted into |buffer|.
template <typename T>
const T* load_plane(pfrt_dtype dtype, pfrt_dtype own, const void* data, int64_t plane, int64_t size,
                    T* buffer) {
  if (dtype == own) return static_cast<const T*>(data) + plane * size;
  load_fn<T>(dtype)(buffer, data, plane * size, 1, size);
  return buffer;
}

// Row |row| of the maxima under a window. |plane| begins at pixel |skipped| of the image; the row
// sees no pixel before that.
void max_pool_row(Pace& pace, const WindowRows& rows, int64_t row, const float* plane,
                  int64_t skipped, float* line);

// Taps of every position of one dimension that lie on the image, or on the image and its pads.
std::vector<int64_t> pool_tap_counts(const Window& w, size_t d, bool with_pads);

// nchw16c.cc
std::string refuse_pool_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_max_pool_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_average_pool_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_global_average_pool_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
// max_bytes.cc: of int8 and uint8
Result<Kernel> make_max_pool_bytes_nchw16c(const SnapshotNode& node);
// Nothing where the window reaches far beyond the image.
Result<std::optional<Kernel>> make_max_pool_bytes(const SnapshotNode& node);
// average_bytes.cc: of int8 and uint8, rounded once
std::string refuse_average_bytes(const KernelRequest& node);
Result<Kernel> make_average_bytes(const KernelRequest& node);
Result<Kernel> make_average_bytes_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
Result<Kernel> make_global_average_bytes(const KernelRequest& node);
Result<Kernel> make_global_average_bytes_nchw16c(const SnapshotNode& node, Nchw16cSides sides);
// Averages of small planes of float32, which SmallPlanes::takes() takes.
Kernel average_pool_small_planes(const SnapshotNode& node, PoolGeometry geometry);
// average.cc: of float32, for AVX2 and two dimensions
Kernel average_pool_vectors(const SnapshotNode& node, PoolGeometry geometry);
// window.cc
Result<Kernel> make_max_pool(const KernelRequest& node);
Result<Kernel> make_average_pool(const KernelRequest& node);
Result<Kernel> make_lp_pool(const KernelRequest& node);
// global.cc
Result<Kernel> make_global_average_pool(const KernelRequest& node);
Result<Kernel> make_global_max_pool(const KernelRequest& node);
Result<Kernel> make_global_lp_pool(const KernelRequest& node);
// unpool.cc
Result<Kernel> make_max_unpool(const KernelRequest& node);
std::string refuse_pool(const KernelRequest& node);

}  // namespace pfrt::cpu
