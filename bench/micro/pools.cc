// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/micro.h"

namespace micro {

void add_pools() {
  add({"",
       "MaxPool",
       {{1, 64, 112, 112}},
       {},
       {1, 64, 56, 56},
       {{"kernel_shape", {3, 3}}, {"strides", {2, 2}}, {"pads", {1, 1, 1, 1}}},
       "64x112/3x3/2"});
  add({"",
       "AveragePool",
       {{1, 192, 28, 28}},
       {},
       {1, 192, 28, 28},
       {{"kernel_shape", {3, 3}}, {"strides", {1, 1}}, {"pads", {1, 1, 1, 1}}},
       "192x28/3x3/1"});
  add({"", "GlobalAveragePool", {{1, 2048, 7, 7}}, {}, {1, 2048, 1, 1}, {}, "2048x7"});
}

}  // namespace micro
