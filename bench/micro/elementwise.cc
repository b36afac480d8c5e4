// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/micro.h"

namespace micro {

// Sizes that fit in the first-level cache, in the second, and in neither.
void add_elementwise() {
  for (const int64_t n : {int64_t{2} << 10, int64_t{64} << 10, int64_t{4} << 20}) {
    const std::string shape = std::to_string(n);
    for (const char* op : {"Relu", "Sigmoid", "Tanh", "Gelu", "Swish", "HardSwish", "Mish", "Erf",
                           "Exp", "Log", "Sqrt", "Neg"})
      add({"", op, {{n}}, {}, {n}, {}, shape});
    for (const char* op : {"Add", "Mul", "Div"}) add({"", op, {{n}, {n}}, {}, {n}, {}, shape});
  }
  add({"",
       "Transpose",
       {{128, 12, 64}},
       {},
       {12, 128, 64},
       {{"perm", {1, 0, 2}}},
       "128x12x64/102"});
  add({"",
       "Transpose",
       {{12, 128, 64}},
       {},
       {12, 64, 128},
       {{"perm", {0, 2, 1}}},
       "12x128x64/021"});
}

}  // namespace micro
