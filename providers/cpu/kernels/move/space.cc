// SPDX-License-Identifier: Apache-2.0
//
// DepthToSpace and SpaceToDepth.
#include <algorithm>

#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/move/make.h"
#include "providers/cpu/kernels/move/permute.h"
#include "providers/cpu/kernels/window/reorder_bytes.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kMostBytes = 7;  // of a line that bytes_to_lines writes whole
constexpr int64_t kTaskBytes = 1 << 15;

// N, C, H, W and the block size of the two space operators.
struct Blocks {
  int64_t n, c, h, w, block;
};

Result<Blocks> read_blocks(const SnapshotNode& node) {
  PFRT_TRY(need(node, 1, 1));
  const auto dims = node.input_dims(0);
  const int64_t block = node.attr_int("blocksize", 0);
  if (dims.size() != 4 || block < 1 || block > (1 << 20))
    return kernel_error("needs rank 4 and a positive blocksize, found rank ", dims.size(),
                        " and blocksize ", block);
  return Blocks{dims[0], dims[1], dims[2], dims[3], block};
}

// Whether a channel has its blocks together, rather than a block its channels.
Result<bool> reads_crd(const SnapshotNode& node) {
  const std::string_view mode = node.attr_string("mode", "DCR");
  if (mode == "CRD" || mode == "DCR") return mode == "CRD";
  return kernel_error("mode is '", mode, "', expected DCR or CRD");
}

// DepthToSpace of bytes: a row of the output is so many planes' rows, pixel by pixel.
Result<Kernel> interleaved_bytes(const SnapshotNode& node, const Blocks& b, int64_t depth,
                                 bool phases_together) {
  if (node.input_elements(0) != node.output_elements(0))
    return kernel_error("output 0 was planned with ", node.output_elements(0), " elements but has ",
                        node.input_elements(0));
  Kernel kernel;
  kernel.run = [=](const Run& run) -> pfrt_code {
    const int64_t plane = b.h * b.w, row = b.w * b.block;
    if (plane == 0) return run.stop();
    const int64_t phase = phases_together ? 1 : depth;  // channels from one to the next
    run.blocks(b.n * depth * b.h * b.block, std::max<int64_t>(1, kTaskBytes / row),
               [&](int64_t begin, int64_t end) {
                 if (run.stopped()) return;
                 for (int64_t r = begin; r < end; ++r) {
                   const int64_t y = r / b.block % b.h, image = r / (b.block * b.h * depth);
                   const int64_t c = r / (b.block * b.h) % depth;
                   const int64_t first = phases_together ? c * b.block * b.block : c;
                   const int64_t channel = image * b.c + first + r % b.block * b.block * phase;
                   bytes_to_lines(run.output<uint8_t>(0) + r * row, b.block, b.block,
                                  run.input<uint8_t>(0) + channel * plane + y * b.w, phase * plane,
                                  b.block, b.w);
                 }
                 run.apply_epilogue(begin * row, end * row);
               });
    return run.stop();
  };
  return kernel;
}

}  // namespace

Result<Kernel> make_depth_to_space(const KernelRequest& node) {
  PFRT_ASSIGN(const Blocks b, read_blocks(node));
  if (b.c % (b.block * b.block) != 0)
    return kernel_error(b.c, " channels are not a multiple of blocksize squared");
  const int64_t depth = b.c / (b.block * b.block);
  PFRT_ASSIGN(const bool crd, reads_crd(node));
  if (stored_size(node.input_dtype(0)) == 1 && b.block > 1 && b.block <= kMostBytes)
    return interleaved_bytes(node, b, depth, crd);
  if (crd) {
    const int64_t dims[] = {b.n, depth, b.block, b.block, b.h, b.w}, perm[] = {0, 1, 4, 2, 5, 3};
    return permute(node, dims, perm);
  }
  const int64_t dims[] = {b.n, b.block, b.block, depth, b.h, b.w}, perm[] = {0, 3, 4, 1, 5, 2};
  return permute(node, dims, perm);
}

Result<Kernel> make_space_to_depth(const KernelRequest& node) {
  PFRT_ASSIGN(const Blocks b, read_blocks(node));
  if (b.h % b.block != 0 || b.w % b.block != 0)
    return kernel_error("image ", b.h, " x ", b.w, " is not a multiple of blocksize ", b.block);
  PFRT_ASSIGN(const bool crd, reads_crd(node));
  const int64_t dims[] = {b.n, b.c, b.h / b.block, b.block, b.w / b.block, b.block};
  const int64_t dcr_perm[] = {0, 3, 5, 1, 2, 4}, crd_perm[] = {0, 1, 3, 5, 2, 4};
  return permute(node, dims, crd ? crd_perm : dcr_perm);
}

}  // namespace pfrt::cpu
