// SPDX-License-Identifier: Apache-2.0
//
// A case that the oracle runs, and its outcome. Values.
#pragma once

#include <cstdint>
#include <vector>

namespace pfrt::wse::oracle {

struct Case {
  enum class Algorithm {
    kChainReduce,
    kTwoPhaseReduce,
    kMulticast,
    kTreeAllReduce,
    kMeshGemm,
    kCannon,
    kSumma,
    kMeshGemv,
    kHalo,
    kKvShift
  };
  Algorithm algorithm = Algorithm::kChainReduce;
  // PEs, 96 x 96 at most. The first four take a line: rows is 1. Products of matrices take a
  // square.
  int columns = 1, rows = 1;
  int group = 1;                // S of the two-phase reduce, g of the tree (MeshGEMV has one too)
  int64_t m = 1, k = 1, n = 1;  // a PE's tiles; n alone is the elements of a message otherwise
  bool fp16 = false;            // else fp32
  // Row-major; rounded to fp16 as they are loaded where that is asked for.
  //   reduces     a: n for each PE
  //   multicast   a: n of PE 0 (what follows is not read)
  //   products    a: A, m*P x k*P;  b: B, k*P x n*P
  //   MeshGEMV    a: x, k*rows;  b: k*rows x n*columns
  //   halo        a: for each PE its N, E, S and W edges of n
  //   KV shift    a: n for each PE
  std::vector<float> a, b;
};

struct Outcome {
  // reduces: the root's n (all-reduce: the n that every PE has); multicast: n for each PE;
  // products: C; MeshGEMV: y; halo: for each PE what came from N, E, S and W, 0 at the rim; KV
  // shift: n for each PE.
  std::vector<float> values;
  double cycles = 0;            // when the last PE is free
  std::vector<double> free_at;  // for each PE, row-major
};

}  // namespace pfrt::wse::oracle
