// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/micro.h"

namespace micro {

// m x n x k, with constant columns and without: transformers' layers, squares, few rows, ragged
// edges.
void add_products() {
  constexpr int64_t kShapes[][3] = {
      {128, 768, 768},    {128, 3072, 768},   {128, 768, 3072}, {1024, 3072, 768}, {512, 512, 512},
      {1024, 1024, 1024}, {2048, 2048, 2048}, {1, 3072, 768},   {2, 3072, 768},    {4, 3072, 768},
      {6, 3072, 768},     {12, 3072, 768},    {16, 3072, 768},  {100, 1000, 500},  {127, 129, 131},
  };
  for (const auto& [m, n, k] : kShapes)
    for (const bool constant : {true, false})
      add({"",
           "MatMul",
           {{m, k}, {k, n}},
           {false, constant},
           {m, n},
           {},
           std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
               (constant ? "/weights" : "")});
  for (const auto& [b, m, n, k] : {std::array<int64_t, 4>{12, 128, 128, 64}, {12, 128, 64, 128}})
    add({"",
         "MatMul",
         {{b, m, k}, {b, k, n}},
         {},
         {b, m, n},
         {},
         std::to_string(b) + "x" + std::to_string(m) + "x" + std::to_string(n) + "x" +
             std::to_string(k)});
}

}  // namespace micro
