// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/drawing.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "cxxapi/cli/page/categories.h"
#include "cxxapi/cli/page/describe.h"
#include "cxxapi/cli/page/markup.h"

namespace cli {
namespace {

using pyflame_rt::api;
using pyflame_rt::Graph;
using pyflame_rt::GraphHandle;

constexpr size_t kNobody = SIZE_MAX;
constexpr size_t kNameLimit = 160, kLabelLimit = 26;

size_t mix(size_t seed, std::string_view text) {
  return seed * 1000003 ^ std::hash<std::string_view>()(text);
}

// Reads graph after graph; bodies that it meets are read later.
class GraphReader {
 public:
  explicit GraphReader(const Graph& graph) { open(graph.shared(), {}, kNobody, kNobody); }

  std::vector<Drawing> run() {
    for (size_t i = 0; i < open_.size(); ++i) read(i);
    // Bodies come after the graphs around them: links need the producers of captured values.
    for (size_t i = open_.size(); i-- > 0;) link(i);
    return std::move(drawings_);
  }

 private:
  struct Open {
    Graph graph;
    size_t owner, box;  // drawing and box of the node that has this body
    std::unordered_map<std::string, size_t> values;
    std::vector<size_t> producer;       // box that makes each value, or kNobody
    std::vector<std::string> constant;  // short text of each constant; empty for other values
    std::vector<std::string> names;
  };

  size_t open(GraphHandle graph, std::string title, size_t owner, size_t box) {
    open_.push_back({Graph(std::move(graph)), owner, box, {}, {}, {}, {}});
    drawings_.emplace_back();
    drawings_.back().title = std::move(title);
    return drawings_.size() - 1;
  }

  size_t value(size_t d, std::string_view name) {
    Open& o = open_[d];
    const auto [at, is_new] = o.values.emplace(name, o.producer.size());
    if (is_new) {
      o.producer.push_back(kNobody);
      o.constant.emplace_back();
      o.names.emplace_back(name);
      drawings_[d].values.push_back({clean(name, kNameLimit), type_text(o.graph, name), {}});
    }
    return at->second;
  }

  size_t add_port(size_t d, const char* what, size_t value_index) {
    Box box;
    box.category = kPortCategory;
    box.op = what;
    box.name = drawings_[d].values[value_index].name;
    box.label = clean_tail(open_[d].names[value_index], kLabelLimit);
    drawings_[d].boxes.push_back(std::move(box));
    return drawings_[d].boxes.size() - 1;
  }

  void read(size_t d) {
    for (const auto& info : open_[d].graph.inputs()) {
      if (!info.has_initializer) make_source(d, "Input", value(d, info.name));
    }
    pfrt_graph* const graph = open_[d].graph.handle();
    for (size_t i = 0; i < api().graph->initializer_count(graph); ++i) {
      pfrt_string name{};
      pfrt_value* constant = nullptr;
      pyflame_rt::detail::check(api().graph->initializer_at(graph, i, &name, &constant));
      const ConstantText text = constant_text(constant);
      const size_t v = value(d, view(name));
      drawings_[d].values[v].constant = text.full;
      open_[d].constant[v] = text.brief;
    }
    for (size_t i = 0; i < api().graph->node_count(graph); ++i) {
      pfrt_node node{};
      node.struct_size = sizeof(node);
      pyflame_rt::detail::check(api().graph->node_at(graph, i, &node));
      read_node(d, node);
    }
    for (const auto& info : open_[d].graph.outputs()) {
      const size_t v = value(d, info.name);
      const size_t box = add_port(d, "Output", v);
      drawings_[d].boxes[box].inputs.push_back(v);
    }
  }

  void make_source(size_t d, const char* what, size_t v) {
    const size_t box = add_port(d, what, v);
    drawings_[d].boxes[box].outputs.push_back(v);
    open_[d].producer[v] = box;
  }

  void read_node(size_t d, const pfrt_node& node) {
    Box box;
    box.is_node = true;
    box.category = category_of(view(node.domain), view(node.op));
    box.op = clean(view(node.op), kNameLimit);
    box.name = clean(view(node.name), kNameLimit);
    box.domain = clean(view(node.domain), kNameLimit);
    box.label = clean_tail(view(node.name), kLabelLimit);
    box.key = mix(0, view(node.op));
    for (size_t i = 0; i < node.input_count; ++i) {
      const bool absent = node.inputs[i].size == 0;
      box.inputs.push_back(absent ? std::nullopt : std::optional(value(d, view(node.inputs[i]))));
    }
    const size_t index = drawings_[d].boxes.size();
    for (size_t i = 0; i < node.output_count; ++i) {
      if (node.outputs[i].size == 0) continue;
      box.outputs.push_back(value(d, view(node.outputs[i])));
      open_[d].producer[box.outputs.back()] = index;
      if (box.outputs.size() == 1) box.key = mix(box.key, view(node.outputs[i]));
    }
    for (size_t i = 0; i < node.attr_count; ++i) {
      const auto& attr =
          *static_cast<const pfrt_attr*>(pfrt_at(node.attrs, node.attrs->struct_size, i));
      const std::string name = clean(view(attr.name), kNameLimit);
      box.attributes.emplace_back(name, attribute_text(attr));
      const size_t graphs = attr.type == PFRT_ATTR_GRAPH    ? 1
                            : attr.type == PFRT_ATTR_GRAPHS ? attr.count
                                                            : 0;
      for (size_t g = 0; g < graphs; ++g) {
        pfrt_graph* const body = attr.type == PFRT_ATTR_GRAPH ? attr.graph : attr.graphs[g];
        const std::string title = name + " of " + box.op + " " + box.label;
        box.bodies.emplace_back(name, open(GraphHandle::share(body), title, d, index));
      }
    }
    drawings_[d].boxes.push_back(std::move(box));
  }

  // Links each box to the boxes that make its inputs. Values that no box makes come from outside.
  void link(size_t d) {
    for (size_t box = 0; box < drawings_[d].boxes.size(); ++box) {
      const std::vector<std::optional<size_t>> inputs = drawings_[d].boxes[box].inputs;
      for (const auto& v : inputs) {
        if (v) link_value(d, *v, box);
      }
    }
    const Open& o = open_[d];
    if (o.owner == kNobody) return;
    for (const Box& box : drawings_[d].boxes) {
      if (box.op != kCaptured || box.is_node) continue;
      const size_t v = value(o.owner, o.names[box.outputs[0]]);
      const auto& inputs = drawings_[o.owner].boxes[o.box].inputs;
      const bool taken = std::find(inputs.begin(), inputs.end(), v) != inputs.end();
      if (!taken && captured_.insert({o.owner, o.box, v}).second) link_value(o.owner, v, o.box);
    }
  }

  void link_value(size_t d, size_t v, size_t box) {
    const std::string& constant = open_[d].constant[v];
    if (!constant.empty() && open_[d].producer[v] == kNobody) {
      std::string& shown = drawings_[d].boxes[box].constants;
      if (columns(shown) < 2 * kLabelLimit) shown += (shown.empty() ? "" : " ") + constant;
      return;
    }
    if (open_[d].producer[v] == kNobody) make_source(d, kCaptured, v);
    drawings_[d].links.push_back({open_[d].producer[v], box, v});
  }

  static constexpr const char* kCaptured = "Captured";
  std::deque<Open> open_;
  std::vector<Drawing> drawings_;
  std::set<std::array<size_t, 3>> captured_;  // links made already: drawing, box, value
};

void mark(std::vector<Drawing>* drawings, const std::unordered_set<size_t>& others) {
  for (Drawing& drawing : *drawings) {
    for (Box& box : drawing.boxes) box.only_here = box.is_node && others.count(box.key) == 0;
  }
}

std::unordered_set<size_t> keys(const std::vector<Drawing>& drawings) {
  std::unordered_set<size_t> out;
  for (const Drawing& drawing : drawings) {
    for (const Box& box : drawing.boxes) {
      if (box.is_node) out.insert(box.key);
    }
  }
  return out;
}

}  // namespace

std::vector<Drawing> draw(const Graph& graph) { return GraphReader(graph).run(); }

void compare(std::vector<Drawing>* before, std::vector<Drawing>* after) {
  mark(before, keys(*after));
  mark(after, keys(*before));
}

size_t shorten(std::vector<Drawing>* drawings, size_t most) {
  size_t left_out = 0;
  for (Drawing& drawing : *drawings) {
    const size_t kept = std::min(drawing.boxes.size(), most);
    most -= kept;
    if (kept == drawing.boxes.size()) continue;
    left_out += drawing.boxes.size() - kept;
    drawing.boxes.resize(kept);
    const auto is_cut = [kept](const Link& link) { return link.from >= kept || link.to >= kept; };
    drawing.links.erase(std::remove_if(drawing.links.begin(), drawing.links.end(), is_cut),
                        drawing.links.end());
    size_t values = 0;
    for (const Box& box : drawing.boxes) {
      for (const auto& v : box.inputs) values = std::max(values, v ? *v + 1 : 0);
      for (const size_t v : box.outputs) values = std::max(values, v + 1);
    }
    for (const Link& link : drawing.links) values = std::max(values, link.value + 1);
    drawing.values.resize(values);
  }
  return left_out;
}

}  // namespace cli
