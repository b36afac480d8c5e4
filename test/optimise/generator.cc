// SPDX-License-Identifier: Apache-2.0
#include "test/optimise/generator.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "test/optimise/families.h"

namespace pfrt_optimise {
namespace {

constexpr int64_t kFirstOpset = 7, kLastOpset = 21;
constexpr int64_t kFirstOfSizes = 13;  // first opset of the families that read and compute sizes

struct Kind {
  std::string_view name;
  std::span<const Family> families;
};

std::vector<Kind> all_kinds() {
  return {{"plain", plain_families()},         {"movement", movement_families()},
          {"layer", layer_families()},         {"activation", activation_families()},
          {"attention", attention_families()}, {"quantised", quantised_families()},
          {"control", control_families()},     {"dependent", dependent_families()},
          {"sizes", size_families()}};
}

// Chooses a few kinds of families for a model, so that their nodes meet; mostly |kind|, where it is
// given.
std::vector<Family> some_families(Random& random, std::string_view kind) {
  std::vector<Family> out;
  bool found = kind.empty();
  for (const Kind& one : all_kinds()) {
    found |= one.name == kind;
    if (!kind.empty() && one.name != kind && !random.chance(15)) continue;
    if (kind.empty() && !out.empty() && !random.chance(45)) continue;
    for (Family family : one.families) {
      if (one.name == kind) family.weight *= 10;
      out.push_back(family);
    }
  }
  if (!found) throw pyflame_rt::InputError("no kind of families '" + std::string(kind) + "'");
  return out;
}

const Family& draw(Random& random, const std::vector<Family>& families) {
  int64_t total = 0;
  for (const Family& family : families) total += family.weight;
  int64_t at = random.range(0, total - 1);
  for (const Family& family : families) {
    at -= family.weight;
    if (at < 0) return family;
  }
  return families.back();
}

void add_outputs(Builder& b) {
  GraphSpec& graph = b.graph();
  std::set<std::string> used;
  for (const NodeSpec& node : graph.nodes)
    for (const std::string& name : uses(node)) used.insert(name);
  std::vector<std::string> inner, last;
  for (const NodeSpec& node : graph.nodes)
    for (const std::string& name : node.outputs) (used.count(name) ? inner : last).push_back(name);
  for (const std::string& name : last)
    if (b.random.chance(85)) graph.outputs.push_back(name);  // the others are dead branches
  if (graph.outputs.empty() && !last.empty()) graph.outputs.push_back(last.back());
  for (int64_t i = b.random.range(0, 2); i > 0 && !inner.empty(); --i) {
    const std::string& name = b.random.of(inner);
    if (std::count(graph.outputs.begin(), graph.outputs.end(), name) == 0)
      graph.outputs.push_back(name);
  }
  if (b.random.chance(8))
    graph.outputs.push_back(b.unary("Identity", b.constant(DType::Float32, {2, 3}, -1, 1)).name);
  if (b.random.chance(8) && !graph.inputs.empty()) {
    const Value x = b.inputs().at(b.random.of(graph.inputs));
    graph.outputs.push_back(b.unary("Identity", x).name);
  }
}

std::vector<double> special_values() {
  using Limits = std::numeric_limits<float>;
  return {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), -0.0, 1e-40, 3e4};
}

// Replaces one to three elements by NaN, infinities and the like.
Tensor with_specials(Random& random, const Tensor& tensor) {
  const int64_t count = tensor.num_elements();
  if (!is_float(tensor.dtype()) || count == 0) return tensor;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(element(tensor, i));
  for (int64_t n = random.range(1, 3); n > 0; --n)
    values[static_cast<size_t>(random.range(0, count - 1))] = random.of(special_values());
  return make_tensor(tensor.dtype(), tensor.shape(), values);
}

// Gives the size of a varying dimension in a feed.
using SizeOf = std::function<int64_t(const Dim&)>;
int64_t first_size(const Dim& dim) { return dim.n; }

Feed make_feed(Builder& b, const SizeOf& size_of, bool special) {
  Feed feed;
  std::map<int, int64_t> chosen;
  for (const auto& [name, value] : b.inputs()) {
    std::vector<int64_t> dims;
    for (const Dim& dim : value.dims) {
      if (dim.symbol == 0) {
        dims.push_back(dim.n);
      } else {
        const auto [at, fresh] = chosen.try_emplace(dim.symbol);
        if (fresh) at->second = size_of(dim);
        dims.push_back(at->second);
      }
    }
    const Tensor tensor = b.random_tensor(value.type, dims, value.low, value.high);
    feed[name] = special ? with_specials(b.random, tensor) : tensor;
  }
  return feed;
}

// True when an operator needs |name| to be a finite number, such as a size or a scale.
bool measures(const GraphSpec& graph, const std::string& name) {
  static const std::set<std::string> kMeasuring = {"Resize",           "Upsample", "QuantizeLinear",
                                                   "DequantizeLinear", "Range",    "Dropout"};
  for (const NodeSpec& node : graph.nodes) {
    for (const BodySpec& body : node.bodies)
      if (measures(body.graph, name)) return true;
    const auto at = std::find(node.inputs.begin(), node.inputs.end(), name);
    if (at != node.inputs.end() && kMeasuring.count(node.op) != 0) return true;
  }
  return false;
}

void spoil_constants(Builder& b) {
  for (auto& [name, tensor] : b.graph().initializers)
    if (b.random.chance(20) && !measures(b.graph(), name)) tensor = with_specials(b.random, tensor);
}

// Makes an initializer an input too, so that a caller may replace it.
std::string open_initializer(Builder& b) {
  GraphSpec& graph = b.graph();
  for (const NodeSpec& node : graph.nodes) {
    static const std::set<std::string> kFree = {"Add", "Mul", "Sub", "MatMul", "Conv"};
    if (kFree.count(node.op) == 0) continue;
    for (const std::string& name : node.inputs) {
      const auto found = graph.initializers.find(name);
      if (found == graph.initializers.end() || !is_float(found->second.dtype())) continue;
      graph.inputs.push_back(name);
      return name;
    }
  }
  return {};
}

// Adds feeds in which one or all varying sizes grow by one, as a decoder's do, and then feeds with
// smaller and larger sizes.
void add_series(Builder& b) {
  const int64_t one = b.random.chance(50) ? b.varying_size().symbol : 0;
  for (const int64_t more : {0, 1, 2, 3, -1, 5, 4, 14, 1}) {
    const SizeOf grown = [&](const Dim& dim) {
      return one == 0 || dim.symbol == one ? std::max<int64_t>(1, dim.n + more) : dim.n;
    };
    b.model().feeds.push_back(make_feed(b, grown, false));
  }
}

void add_feeds(Builder& b) {
  ModelSpec& model = b.model();
  const SizeOf other = [&](const Dim&) { return b.random.range(1, 5); };
  const SizeOf with_zeros = [&](const Dim&) {
    return b.random.chance(50) ? int64_t{0} : b.random.range(1, 5);
  };
  model.feeds.push_back(make_feed(b, first_size, false));
  const std::string open = b.random.chance(10) ? open_initializer(b) : "";
  const bool varies = std::any_of(b.inputs().begin(), b.inputs().end(),
                                  [](const auto& entry) { return !entry.second.fixed(); });
  if (varies || !open.empty()) {
    model.feeds.push_back(make_feed(b, other, false));
    if (!open.empty())
      model.feeds.back()[open] =
          b.random_tensor(model.types.at(open).type, sizes(model.types.at(open).dims), -1, 1);
  }
  if (b.random.chance(40)) model.feeds.push_back(make_feed(b, first_size, true));
  if (varies && b.random.chance(20)) model.feeds.push_back(make_feed(b, with_zeros, false));
  if (varies && b.random.chance(40)) add_series(b);
}

// Plants a fault: a wrong input, a missing attribute or an axis that does not exist.
void spoil(Builder& b) {
  ModelSpec& model = b.model();
  model.faulty = true;
  for (int tries = 0; tries < 20; ++tries) {
    const int64_t last = static_cast<int64_t>(model.graph.nodes.size()) - 1;
    const int64_t at = b.random.range(0, last);
    NodeSpec& node = model.graph.nodes[static_cast<size_t>(at)];
    if (b.random.chance(50) && !node.attributes.empty()) {
      auto& [key, value] = *node.attributes.begin();
      if (key == "axis" && b.random.chance(50)) {
        value = int64_t{7};
      } else {
        node.attributes.erase(key);
      }
      return;
    }
    if (node.inputs.empty() || at == 0) continue;
    const NodeSpec& before = model.graph.nodes[static_cast<size_t>(b.random.range(0, at - 1))];
    const std::vector<std::string> others = {
        before.outputs[0], before.inputs.empty() ? before.outputs[0] : before.inputs[0]};
    node.inputs[static_cast<size_t>(
        b.random.range(0, static_cast<int64_t>(node.inputs.size()) - 1))] = b.random.of(others);
    return;
  }
}

}  // namespace

ModelSpec generate(uint64_t seed, uint64_t index, std::string_view kind) {
  Random random(seed * 1'000'003 + index);
  ModelSpec model;
  const bool sizes = kind == "dependent" || kind == "sizes";
  model.opset = random.range(sizes ? kFirstOfSizes : kFirstOpset, kLastOpset + 1);
  if (model.opset > kLastOpset) model.opset = kNewestOpset;
  Builder b(random, model, model.graph, nullptr);
  const std::vector<Family> families = some_families(random, kind);
  if (random.chance(8)) b.input(DType::Float32, {{0, 0}, {random.range(1, 4), 0}}, -1, 1);
  const auto wanted = static_cast<size_t>(kind == "sizes"     ? random.range(8, 60)
                                          : random.chance(60) ? random.range(3, 14)
                                                              : random.range(8, 32));
  for (int tries = 0; tries < 100 && b.node_count() < wanted; ++tries) {
    const Family& family = draw(random, families);
    b.takes_empty = family.takes_empty;
    family.add(b);
  }
  add_outputs(b);
  if (random.chance(15)) spoil_constants(b);
  add_feeds(b);
  model.outputs_have_dims = random.chance(50);
  if (random.chance(5)) {
    spoil(b);
    remove_dead(&model);  // otherwise only level none refuses a fault that no output needs
  }
  return model;
}

}  // namespace pfrt_optimise
