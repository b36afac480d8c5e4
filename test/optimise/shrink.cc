// SPDX-License-Identifier: Apache-2.0
#include "test/optimise/shrink.h"

#include <algorithm>
#include <set>

namespace pfrt_optimise {
namespace {

using Edit = std::function<void(ModelSpec*)>;

class Shrinker {
 public:
  Shrinker(ModelSpec model, const Fails& fails) : model_(std::move(model)), fails_(fails) {}

  ModelSpec run() {
    keep_one_feed();
    keep_one_output();
    attempt([](ModelSpec* model) { remove_dead(model); });
    attempt([](ModelSpec* model) { model->outputs_have_dims = false; });
    for (bool smaller = true; smaller;) {
      smaller = cut_producers();
      smaller |= bypass_nodes();
      smaller |= cut_outputs();
    }
    simplify_nodes();
    while (shrink_sizes()) {
    }
    return std::move(model_);
  }

 private:
  bool attempt(const Edit& edit) {
    ModelSpec tried = model_;
    edit(&tried);
    if (!fails_(tried)) return false;
    model_ = std::move(tried);
    return true;
  }

  void keep_one_feed() {
    for (size_t i = 0; i < model_.feeds.size() && model_.feeds.size() > 1; ++i)
      attempt([&](ModelSpec* model) { model->feeds = {model->feeds[i]}; });
  }

  // Tries early values first, since the nodes before one may suffice.
  void keep_one_output() {
    for (const NodeSpec& node : model_.graph.nodes) {
      for (const std::string& name : node.outputs) {
        if (name.empty()) continue;
        const bool done = attempt([&](ModelSpec* model) {
          model->graph.outputs = {name};
          remove_dead(model);
        });
        if (done) return;
      }
    }
    cut_outputs();
  }
  bool cut_outputs() {
    bool any = false;
    for (size_t i = 0; i < model_.graph.outputs.size() && model_.graph.outputs.size() > 1;) {
      const bool done = attempt([&](ModelSpec* model) {
        model->graph.outputs.erase(model->graph.outputs.begin() + static_cast<int64_t>(i));
        remove_dead(model);
      });
      any |= done;
      if (!done) ++i;
    }
    return any;
  }

  // Returns the contents of every value in the first feed; empty where these cannot be computed.
  Feed values() const {
    std::vector<std::string> names;
    for (const NodeSpec& node : model_.graph.nodes)
      for (const std::string& name : node.outputs)
        if (!name.empty()) names.push_back(name);
    Feed held;
    try {
      pyflame_rt::SessionOptions options;
      options.optimization_level = pyflame_rt::OptLevel::None;
      ModelSpec all = model_;
      all.outputs_have_dims = false;
      all.graph.outputs = names;
      const pyflame_rt::InferenceSession session(build(all), options);
      const std::vector<Tensor> results = session.run({}, model_.feeds[0]);
      for (size_t i = 0; i < names.size(); ++i) held[names[i]] = results[i];
    } catch (const std::exception&) {  // nodes are then only bypassed
    }
    return held;
  }

  bool cut_producers() {
    bool any = false;
    const Feed held = values();
    if (held.empty() || model_.feeds.size() != 1) return false;
    for (size_t i = 0; i < model_.graph.nodes.size();) {
      const size_t before = model_.graph.nodes.size();
      const bool done = attempt([&](ModelSpec* model) {
        GraphSpec& graph = model->graph;
        const std::vector<std::string> made = graph.nodes[i].outputs;
        graph.nodes.erase(graph.nodes.begin() + static_cast<int64_t>(i));
        for (const std::string& name : made) {
          if (name.empty()) continue;
          ValueType& type = model->types.at(name);
          for (size_t d = 0; d < type.dims.size(); ++d)
            type.dims[d] = {held.at(name).shape()[d], 0};
          std::erase(graph.outputs, name);
          graph.inputs.push_back(name);
          model->feeds[0][name] = held.at(name);
        }
        remove_dead(model);
        if (graph.outputs.empty()) model->graph.nodes.clear();  // nothing is left to fail
      });
      any |= done;
      if (!done || model_.graph.nodes.size() == before) ++i;
      if (done) i = 0;
    }
    return any;
  }

  static void replace(GraphSpec* graph, const std::string& from, const std::string& to) {
    for (NodeSpec& node : graph->nodes) {
      std::replace(node.inputs.begin(), node.inputs.end(), from, to);
      for (BodySpec& body : node.bodies) replace(&body.graph, from, to);
    }
    std::replace(graph->outputs.begin(), graph->outputs.end(), from, to);
  }
  // Removes a node whose result has the type and size of one of its inputs.
  static bool bypass(ModelSpec* model, GraphSpec* graph, size_t at, size_t input) {
    const NodeSpec node = graph->nodes[at];
    const std::string& from = node.outputs[0];
    const std::string& to = node.inputs[input];
    const auto types = {model->types.find(from), model->types.find(to)};
    if (std::any_of(types.begin(), types.end(), [&](auto t) { return t == model->types.end(); }))
      return false;
    const ValueType &a = (*types.begin())->second, &b = (types.begin()[1])->second;
    if (a.type != b.type || !(a.dims == b.dims)) return false;
    const auto is_output = [&](const std::string& name) {
      return std::count(graph->outputs.begin(), graph->outputs.end(), name) != 0;
    };
    if (is_output(from)) return false;
    graph->nodes.erase(graph->nodes.begin() + static_cast<int64_t>(at));
    replace(graph, from, to);
    return true;
  }
  // A body is named by the way to it: node, body, node, body, ...
  using Path = std::vector<size_t>;
  static GraphSpec* at(ModelSpec* model, const Path& path) {
    GraphSpec* graph = &model->graph;
    for (size_t i = 0; i < path.size(); i += 2)
      graph = &graph->nodes[path[i]].bodies[path[i + 1]].graph;
    return graph;
  }
  bool bypass_nodes(const Path& path = {}) {
    bool any = false;
    for (size_t i = 0; i < at(&model_, path)->nodes.size();) {
      const NodeSpec node = at(&model_, path)->nodes[i];
      bool done = false;
      for (size_t input = 0; input < node.inputs.size() && !done; ++input) {
        done = attempt([&](ModelSpec* model) {
          if (!bypass(model, at(model, path), i, input)) model->graph.nodes.clear();
          remove_dead(model);
        });
      }
      any |= done;
      if (done) continue;
      for (size_t body = 0; body < node.bodies.size(); ++body) {
        Path inner = path;
        inner.insert(inner.end(), {i, body});
        any |= bypass_nodes(inner);
      }
      ++i;
    }
    return any;
  }

  void simplify_nodes() {
    for (size_t i = 0; i < model_.graph.nodes.size(); ++i) {
      const Attributes attributes = model_.graph.nodes[i].attributes;
      for (const auto& [name, value] : attributes)
        attempt([&, &key = name](ModelSpec* m) { m->graph.nodes[i].attributes.erase(key); });
      while (model_.graph.nodes[i].inputs.size() > 1 &&
             attempt([&](ModelSpec* m) { m->graph.nodes[i].inputs.pop_back(); })) {
      }
    }
    attempt([](ModelSpec* model) { remove_dead(model); });
  }

  static Tensor cropped(const Tensor& tensor, int64_t from, int64_t to) {
    std::vector<int64_t> dims = tensor.shape();
    std::replace(dims.begin(), dims.end(), from, to);
    std::vector<double> values;
    const bool lists_sizes = tensor.dtype() == DType::Int64 && dims.size() == 1;
    std::vector<int64_t> index(dims.size(), 0);
    for (int64_t n = pyflame_rt::detail::count_of(dims); n > 0; --n) {
      int64_t offset = 0;
      for (size_t d = 0; d < dims.size(); ++d) offset = offset * tensor.shape()[d] + index[d];
      const double value = element(tensor, offset);
      values.push_back(lists_sizes && value == static_cast<double>(from) ? static_cast<double>(to)
                                                                         : value);
      for (size_t d = dims.size(); d > 0 && ++index[d - 1] == dims[d - 1]; --d) index[d - 1] = 0;
    }
    return make_tensor(tensor.dtype(), dims, values);
  }
  // Changes every size |from| to |to|, wherever it stands.
  static void resize(ModelSpec* model, int64_t from, int64_t to) {
    model->outputs_have_dims = false;
    for (auto& [name, type] : model->types)
      for (Dim& dim : type.dims)
        if (dim.n == from) dim.n = to;
    for (auto& [name, tensor] : model->graph.initializers) tensor = cropped(tensor, from, to);
    for (Feed& feed : model->feeds)
      for (auto& [name, tensor] : feed) tensor = cropped(tensor, from, to);
  }
  bool shrink_sizes() {
    std::set<int64_t> present;
    for (const Feed& feed : model_.feeds)
      for (const auto& [name, tensor] : feed)
        present.insert(tensor.shape().begin(), tensor.shape().end());
    for (const auto& [name, tensor] : model_.graph.initializers)
      present.insert(tensor.shape().begin(), tensor.shape().end());
    for (auto n = present.rbegin(); n != present.rend(); ++n)
      for (int64_t to : {int64_t{1}, *n / 2, *n - 1})
        if (to > 0 && to < *n && attempt([&](ModelSpec* model) { resize(model, *n, to); }))
          return true;
    return false;
  }

  ModelSpec model_;
  const Fails& fails_;
};

}  // namespace

ModelSpec shrink(ModelSpec model, const Fails& fails) {
  return Shrinker(std::move(model), fails).run();
}

}  // namespace pfrt_optimise
