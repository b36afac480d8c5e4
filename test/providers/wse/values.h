// SPDX-License-Identifier: Apache-2.0
//
// Values for the tests of this folder: machines of the library, numbers from a seed, and work done
// on the calling thread. Pure functions.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "providers/wse/machine/machine.h"
#include "providers/wse/number/arithmetic.h"

namespace pfrt::wse::test {

// Returns a machine of the library; the test fails where there is none.
inline Machine machine_of(std::string_view name, bool silicon = false,
                          const std::vector<Change>& changes = {}) {
  Result<Machine> out = find_machine(name, silicon, changes);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? out.take() : Machine();
}

// Returns |count| values of |type| between -1 and 1.
inline std::vector<float> random_values(int64_t count, Arithmetic type, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> numbers(-1.0F, 1.0F);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) value = round_to(type, numbers(random));
  return out;
}

inline bool on_this_thread(int64_t count, const std::function<void(int64_t)>& fn) {
  for (int64_t i = 0; i < count; ++i) fn(i);
  return true;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace pfrt::wse::test
