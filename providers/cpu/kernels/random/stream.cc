// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/random/stream.h"

#include <cmath>
#include <string_view>

namespace pfrt::cpu {
namespace {

// Spreads the bits of |x| (the finaliser of SplitMix64).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t hash_of(const SnapshotNode& node) {
  uint64_t hash = 0x9e3779b97f4a7c15u + node.index();
  const auto add = [&hash](std::string_view text) {
    for (char c : text) hash = mix(hash ^ static_cast<uint8_t>(c));
    hash = mix(hash + text.size());
  };
  add(node.op());
  add(node.name());
  for (int64_t d : node.output_dims(0)) hash = mix(hash ^ static_cast<uint64_t>(d));
  return hash;
}

// The whole part of |seed| modulo 2^32.
uint64_t whole(float seed) {
  double rest = std::fmod(std::trunc(static_cast<double>(seed)), 0x1p32);
  if (!(rest == rest)) return 0;
  if (rest < 0) rest += 0x1p32;
  return static_cast<uint64_t>(rest);
}

}  // namespace

double Stream::uniform() {
  const uint32_t high = static_cast<uint32_t>(engine_()) >> 5,
                 low = static_cast<uint32_t>(engine_()) >> 6;
  return (static_cast<double>(high) * 0x1p26 + static_cast<double>(low)) / 0x1p53;
}

double Stream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  double x, y, square;
  do {
    x = 2 * uniform() - 1;
    y = 2 * uniform() - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double scale = std::sqrt(-2 * std::log(square) / square);
  spare_ = scale * x;
  has_spare_ = true;
  return scale * y;
}

bool Stream::bernoulli(double p) {
  if (p == 0) return false;
  const bool likely = p > 0.5;
  const double rare = likely ? 1 - p : p;
  if (rare == 0) return likely;
  return (uniform() > std::exp(std::log(1 - rare))) != likely;
}

Source::Source(const SnapshotNode& node)
    : seeded_(false), start_(hash_of(node)), runs_(std::make_shared<std::atomic<uint64_t>>(0)) {
  const pfrt_snapshot_attr* seed = node.attr("seed");
  if (seed == nullptr) return;
  seeded_ = true;
  start_ = seed->type == PFRT_ATTR_INT ? static_cast<uint64_t>(node.attr_int("seed", 0))
                                       : whole(node.attr_float("seed", 0));
}

Stream Source::open() const {
  if (seeded_) return Stream(static_cast<uint32_t>(start_));
  return Stream(static_cast<uint32_t>(mix(start_ + runs_->fetch_add(1))));
}

}  // namespace pfrt::cpu
