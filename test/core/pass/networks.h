// SPDX-License-Identifier: Apache-2.0
//
// Small networks in the forms that exporters write, for tests of passes.
#pragma once

#include "test/core/pass/writer.h"

namespace pfrt::test {

// A network of |blocks| normalised convolutions, each with a residual sum: x1, x2, ... are the Relu
// of sum0, sum1, ... It ends in classes.
Writer convolutions(const std::string& batch, int blocks);
// Three normalised layers r0, r1 and r2 of a transformer without attention.
Writer layers();
// A loop over |trips| whose body adds to the value that it carries, with branches inside.
Writer loop();

}  // namespace pfrt::test
