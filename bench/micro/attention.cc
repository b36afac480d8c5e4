// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/micro.h"

namespace micro {

// 12 heads of 64 elements: an encoder, a decoder's first token and a later one, and a long encoder.
void add_attention() {
  for (const auto& [queries, keys] :
       {std::pair<int64_t, int64_t>{128, 128}, {512, 512}, {1, 128}, {1, 2048}, {2048, 2048}})
    add({"",
         "Attention",
         {{1, 12, queries, 64}, {1, 12, keys, 64}, {1, 12, keys, 64}},
         {},
         {1, 12, queries, 64},
         {},
         "12x" + std::to_string(queries) + "x" + std::to_string(keys) + "x64"});
}

}  // namespace micro
