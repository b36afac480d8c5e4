// SPDX-License-Identifier: Apache-2.0
//
// Streams of random numbers that are those of NumPy's RandomState(seed), and where a node's stream
// starts. Streams are for one thread; a Source is immutable but for its count of runs, which is
// thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>

#include "providers/kit/node.h"

namespace pfrt::cpu {

class Stream {
 public:
  explicit Stream(uint32_t seed) : engine_(seed) {}
  // Returns a number in [0, 1), of 53 random bits.
  double uniform();
  // Returns a number of mean 0 and deviation 1, by the polar method (Marsaglia and Bray).
  double normal();
  // Returns 1 with probability |p|, else 0: the inversion of the binomial distribution of one
  // trial.
  bool bernoulli(double p);

 private:
  std::mt19937 engine_;
  double spare_ = 0;
  bool has_spare_ = false;
};

class Source {
 public:
  // Reads attribute seed, a float or an integer.
  explicit Source(const SnapshotNode& node);
  // The stream of the next run.
  Stream open() const;

 private:
  bool seeded_;
  uint64_t start_;  // the seed, or a hash of the node
  std::shared_ptr<std::atomic<uint64_t>> runs_;
};

}  // namespace pfrt::cpu
