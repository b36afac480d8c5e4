// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/put_lines.h"

#include <algorithm>

#include "providers/cpu/kernels/window/reorder.h"
#include "providers/cpu/kernels/window/reorder_bytes.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLine = RequantizedConv::kLine;

}  // namespace

PutLines put_sums(int64_t positions, bool nchw16c) {
  return [positions, nchw16c](const Run& run, const SumLines& s) {
    auto* const out = run.output<int32_t>(0) + s.channel * positions;
    int32_t* const lines = out + s.from * kLine;
    if (!nchw16c)
      reorder_to_planes(reinterpret_cast<float*>(out + s.from), positions,
                        reinterpret_cast<const float*>(s.sums), s.channels, s.n);
    else if (lines != s.sums)
      std::copy_n(s.sums, s.n * kLine, lines);
  };
}

PutLines put_bytes(const RequantizedConv::Scales& scales, int64_t channels, int64_t positions,
                   bool nchw16c) {
  return [&scales, channels, positions, nchw16c](const Run& run, const SumLines& s) {
    auto* const out = run.output<uint8_t>(0) + s.channel * positions;
    uint8_t* const lines = nchw16c ? out + s.from * kLine : s.scratch;
    if (s.sums != nullptr) scales.lines(s.sums, s.channel % channels, s.channels, s.n, lines);
    if (!nchw16c) bytes_to_planes(out + s.from, positions, lines, s.channels, s.n);
  };
}

}  // namespace pfrt::cpu
