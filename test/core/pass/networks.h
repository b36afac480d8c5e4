// SPDX-License-Identifier: Apache-2.0
//
// Small networks in the forms that exporters write, for tests of passes.
#pragma once

#include "test/core/pass/writer.h"

namespace pfrt::test {

// Convolutions, each normalised, with residual sums x1, x2, ... from sum0, sum1, ..., to classes.
Writer convolutions(const std::string& batch, int blocks);
// Three normalised layers r0, r1 and r2 of a transformer without attention.
Writer layers();
// A loop over |trips| whose body adds to what it carries, with branches inside.
Writer loop();

}  // namespace pfrt::test
