// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/micro.h"

namespace micro {

void add_normalisations() {
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{128, 768}, {128, 4096}, {1, 768}}) {
    const std::string shape = std::to_string(rows) + "x" + std::to_string(width);
    const Dims x = {rows, width};
    add({"",
         "LayerNormalization",
         {x, {width}, {width}},
         {false, true, true},
         x,
         {{"axis", {-1}}},
         shape});
    add({"", "RMSNormalization", {x, {width}}, {false, true}, x, {{"axis", {-1}}}, shape});
  }
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{1536, 128}, {6144, 512}, {1, 1000}})
    add({"",
         "Softmax",
         {{rows, width}},
         {},
         {rows, width},
         {{"axis", {-1}}},
         std::to_string(rows) + "x" + std::to_string(width)});
}

}  // namespace micro
