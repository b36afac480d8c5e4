// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/window/reorder_bytes.h"

#include <gtest/gtest.h>

#include <vector>

namespace pfrt::cpu {
namespace {

constexpr uint8_t kUntouched = 0xa5;
constexpr int64_t kMostPixels = 70, kGap = 3;

uint8_t pixel_of(int64_t c, int64_t i) { return static_cast<uint8_t>(c * 37 + i * 11 + 1); }

std::vector<uint8_t> planes_of(int64_t count, int64_t n) {
  std::vector<uint8_t> planes;
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t i = 0; i < n; ++i) planes.push_back(pixel_of(c, i));
    if (c + 1 < count) planes.insert(planes.end(), kGap, kUntouched);
  }
  return planes;
}

TEST(ReorderBytes, pixels_of_planes_become_lines_and_nothing_around_them_changes) {
  for (int64_t count = 1; count <= 16; ++count)
    for (int64_t n = 1; n <= kMostPixels; ++n) {
      const std::vector<uint8_t> planes = planes_of(count, n);
      for (const int64_t line : {int64_t{16}, int64_t{8}, count}) {
        if (line < count || (line == count && count > 8)) continue;
        for (const int64_t pitch : {line, line + 16}) {
          std::vector<uint8_t> out(static_cast<size_t>((n - 1) * pitch + line), kUntouched);
          bytes_to_lines(out.data(), line, pitch, planes.data(), n + kGap, count, n);
          for (size_t at = 0; at < out.size(); ++at) {
            const auto i = static_cast<int64_t>(at) / pitch, c = static_cast<int64_t>(at) % pitch;
            const uint8_t want = c >= line ? kUntouched : c < count ? pixel_of(c, i) : uint8_t{0};
            ASSERT_EQ(out[at], want) << count << " planes of " << n << " to lines of " << line
                                     << ", " << pitch << " apart";
          }
        }
      }
    }
}

TEST(ReorderBytes, lines_become_planes_and_nothing_between_them_changes) {
  for (int64_t count = 1; count <= 16; ++count)
    for (int64_t n = 1; n <= kMostPixels; ++n) {
      std::vector<uint8_t> lines;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t c = 0; c < 16; ++c) lines.push_back(pixel_of(c, i));
      const std::vector<uint8_t> want = planes_of(count, n);
      std::vector<uint8_t> out(want.size(), kUntouched);
      bytes_to_planes(out.data(), n + kGap, lines.data(), count, n);
      ASSERT_EQ(out, want) << count << " planes of " << n;
    }
}

}  // namespace
}  // namespace pfrt::cpu
