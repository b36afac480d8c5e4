// SPDX-License-Identifier: Apache-2.0
#include "test/optimise/noise.h"

#include "test/optimise/random.h"

namespace pfrt_optimise {
namespace {

constexpr double kNoise32 = 0x1p-20, kNoise16 = 0x1p-9;

// Changes values like another rounding would: all by one factor, or each by its own, which turns
// infinities into NaN.
void add_noise(const ModelSpec& model, bool each, Random& random, GraphSpec* graph) {
  std::vector<NodeSpec> nodes;
  for (NodeSpec node : graph->nodes) {
    for (BodySpec& body : node.bodies) add_noise(model, each, random, &body.graph);
    std::vector<NodeSpec> after;
    for (std::string& name : node.outputs) {
      if (name.empty() || node.op == "Constant") continue;
      const DType type = model.types.at(name).type;
      if (!is_float(type)) continue;
      const double noise =
          (type == DType::Float32 ? kNoise32 : kNoise16) * (random.chance(50) ? 1 : -1);
      const auto scalar = [&](const char* what, double value) {
        graph->initializers[name + what] = make_tensor(type, {}, {value});
        return name + what;
      };
      const std::string plain = name + "_plain", factor = name + "_factor";
      if (each) {
        const std::string wide =
                              scalar("_wide", 1000.0 + static_cast<double>(random.range(0, 1000))),
                          size = scalar("_size", noise), one = scalar("_one", 1);
        after.push_back({"Mul", {plain, wide}, {name + "_angle"}, {}, {}});
        after.push_back({"Sin", {name + "_angle"}, {name + "_sign"}, {}, {}});
        after.push_back({"Mul", {name + "_sign", size}, {name + "_off"}, {}, {}});
        after.push_back({"Add", {name + "_off", one}, {factor}, {}, {}});
      } else {
        scalar("_factor", 1 + noise);
      }
      after.push_back({"Mul", {plain, factor}, {name}, {}, {}});
      name = plain;
    }
    nodes.push_back(std::move(node));
    nodes.insert(nodes.end(), after.begin(), after.end());
  }
  graph->nodes = std::move(nodes);
}

}  // namespace

ModelSpec with_noise(const ModelSpec& model, uint64_t seed) {
  ModelSpec out = model;
  Random random(seed);
  add_noise(model, seed % 2 == 1, random, &out.graph);
  return out;
}

}  // namespace pfrt_optimise
