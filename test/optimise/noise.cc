// SPDX-License-Identifier: Apache-2.0
#include "test/optimise/noise.h"

#include "test/optimise/random.h"

namespace pfrt_optimise {
namespace {

constexpr double kNoise32 = 0x1p-20, kNoise16 = 0x1p-9;

void add_noise(const ModelSpec& model, Random& random, GraphSpec* graph) {
  std::vector<NodeSpec> nodes;
  for (NodeSpec node : graph->nodes) {
    for (BodySpec& body : node.bodies) add_noise(model, random, &body.graph);
    std::vector<NodeSpec> after;
    for (std::string& name : node.outputs) {
      if (name.empty() || node.op == "Constant") continue;
      const DType type = model.types.at(name).type;
      if (!is_float(type)) continue;
      const double noise = type == DType::Float32 ? kNoise32 : kNoise16;
      const std::string plain = name + "_plain", factor = name + "_noise";
      graph->initializers[factor] =
          make_tensor(type, {}, {1 + (random.chance(50) ? noise : -noise)});
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
  add_noise(model, random, &out.graph);
  return out;
}

}  // namespace pfrt_optimise
