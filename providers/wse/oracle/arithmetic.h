// SPDX-License-Identifier: Apache-2.0
//
// Additions and fused multiply-adds as a PE does them: one rounding to nearest even, to fp32 or to
// fp16. Values are floats; those of fp16 are always ones that fp16 has. Pure; thread-safe.
#pragma once

namespace pfrt::wse::oracle {

// Rounds |value| to fp16: subnormals are kept, and numbers that are too large become infinity.
float round_to_fp16(double value);

struct Arithmetic {
  bool fp16 = false;

  float load(float value) const;
  float add(float x, float y) const;
  float multiply_add(float x, float y, float sum) const;  // x * y + sum
};

}  // namespace pfrt::wse::oracle
