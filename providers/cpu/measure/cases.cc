// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/measure/cases.h"

#include <algorithm>

namespace pfrt::cpu {
namespace {

enum Level { kL1, kL2, kL3, kMemory };

struct Row {
  std::string_view name, unit;
  PeakLoops::Kind kind;
  Level level;
};

constexpr std::string_view kFlops = "GFLOP/s", kOps = "GOP/s", kBytes = "GB/s";
constexpr Row kRows[] = {
    {"fp32 fma", kFlops, PeakLoops::kFma, kL1},
    {"bf16 dot", kFlops, PeakLoops::kBf16Dot, kL1},
    {"int8 dot", kOps, PeakLoops::kInt8Dot, kL1},
    {"bf16 tiles, operands in L1", kFlops, PeakLoops::kBf16Tiles, kL1},
    {"bf16 tiles, operands in L2", kFlops, PeakLoops::kBf16Tiles, kL2},
    {"int8 tiles, operands in L1", kOps, PeakLoops::kInt8Tiles, kL1},
    {"int8 tiles, operands in L2", kOps, PeakLoops::kInt8Tiles, kL2},
    {"read L1", kBytes, PeakLoops::kRead, kL1},
    {"read L2", kBytes, PeakLoops::kRead, kL2},
    {"read L3", kBytes, PeakLoops::kRead, kL3},
    {"read memory", kBytes, PeakLoops::kRead, kMemory},
    {"tile loads L1", kBytes, PeakLoops::kTileLoad, kL1},
    {"tile loads L2", kBytes, PeakLoops::kTileLoad, kL2},
    {"tile loads L3", kBytes, PeakLoops::kTileLoad, kL3},
    {"tile loads memory", kBytes, PeakLoops::kTileLoad, kMemory},
};

std::string why_no_loop(PeakLoops::Kind kind, const Machine& machine) {
  switch (kind) {
    case PeakLoops::kBf16Tiles:
    case PeakLoops::kInt8Tiles:
    case PeakLoops::kTileLoad:
      return machine.no_tiles;
    default: {
      const Isa need = kind == PeakLoops::kBf16Dot ? Isa::kAvx512Bf16 : Isa::kAvx2;
      return message("needs ", isa_name(need), "; usable is ", isa_name(machine.isa));
    }
  }
}

// Bytes of the data of a case. In L1 and L2 it takes half of the cache, so that all of it stays
// there. For the other levels it is much more than the caches before hold, since these keep some of
// the data that is read repeatedly.
struct Extent {
  int64_t alone = 0, shared = 0;
  std::string absent;
};

Extent extent(Level level, const Machine& machine) {
  const std::vector<Cache>& caches = machine.caches;
  const size_t count = caches.size();
  if (level < kMemory && count <= level)
    return {0, 0, message("the processor names no L", level + 1)};
  if (level < kL3) {
    const int64_t half = caches[level].bytes / 2;
    return {half, half, {}};
  }
  const Cache last = count == 0 ? Cache{int64_t{32} << 20, 1} : caches.back();
  const int64_t threads = machine.threads;
  const int64_t sharing = std::min<int64_t>(threads, last.sharing);
  if (level == kL3) {
    const int64_t most = last.bytes / 2 / sharing, least = 2 * caches[kL2].bytes;
    if (most < least)
      return {0, 0,
              message("the share of a thread, of ", last.bytes >> 10, " KiB for ", sharing,
                      " threads, is not larger than L2")};
    const int64_t bytes = std::min(8 * caches[kL2].bytes, most);
    return {bytes, bytes, {}};
  }
  const int64_t last_caches = (threads + sharing - 1) / sharing;
  // If the data were only twice as large as the cache, much of it would still be found there.
  const int64_t alone = std::max<int64_t>(4 * last.bytes, int64_t{64} << 20);
  const int64_t shared = alone * last_caches / threads;
  const uint64_t needed = static_cast<uint64_t>(alone + shared * (threads - 1));
  if (machine.memory > 0 && needed > machine.memory / 2)
    return {0, 0,
            message("to miss the caches it needs ", needed >> 20, " MiB of memory, and ",
                    machine.memory >> 20, " are available")};
  return {alone, shared, {}};
}

}  // namespace

std::vector<MeasureCase> measure_cases(const Machine& machine, const PeakLoops& loops,
                                       std::string_view only) {
  std::vector<MeasureCase> out;
  for (const Row& row : kRows) {
    if (!row.name.starts_with(only)) continue;
    MeasureCase made;
    made.name = row.name;
    made.unit = row.unit;
    made.loop = loops.find(row.kind);
    const Extent found = extent(row.level, machine);
    made.absent = made.loop == nullptr ? why_no_loop(row.kind, machine) : found.absent;
    if (made.absent.empty()) {
      const int64_t block = made.loop->block_bytes;
      const auto whole = [&](int64_t bytes) { return std::max(bytes / block, int64_t{1}) * block; };
      made.alone_bytes = whole(found.alone);
      made.shared_bytes = whole(found.shared);
    } else {
      made.loop = nullptr;
    }
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace pfrt::cpu
