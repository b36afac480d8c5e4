// SPDX-License-Identifier: Apache-2.0
#include "test/fuzz/mutate.h"

#include <pfrt_onnx.pb.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

namespace pfrt_fuzz {
namespace {

namespace wire = pfrt_onnx_wire;

constexpr int64_t kNumbers[] = {0,
                                1,
                                -1,
                                2,
                                -2,
                                3,
                                7,
                                8,
                                13,
                                64,
                                -100,
                                1000,
                                1024,
                                65536,
                                1 << 20,
                                (1ll << 31) - 1,
                                1ll << 31,
                                1ll << 32,
                                1ll << 40,
                                (1ll << 62) + 1,
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::min()};
constexpr float kFloats[] = {0.0f,
                             -0.0f,
                             1.0f,
                             -1.0f,
                             0.5f,
                             1e-30f,
                             1e30f,
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};
const char* const kWords[] = {"",     "a",      "NONE",    "SAME_UPPER", "VALID", "linear", "cubic",
                              "none", "reduce", "float32", "Relu",       "mean",  "NOTSET"};

class Mutator {
 public:
  Mutator(wire::ModelProto& model, const wire::ModelProto& donor, Random& random,
          std::vector<std::string>* log)
      : model_(model), donor_(donor), random_(random), log_(log) {}

  void once() {
    wire::GraphProto& graph = *pick_graph(model_.mutable_graph());
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return attribute(graph);
      case 4:
      case 5:
        return node(graph);
      case 6:
      case 7:
        return constant(graph);
      case 8:
      case 9:
        return value_type(graph);
      case 10:
        return opset();
      default:
        return graph_lists(graph);
    }
  }

 private:
  uint64_t below(uint64_t n) { return n ? random_() % n : 0; }
  int place(int count) { return static_cast<int>(below(static_cast<uint64_t>(count))); }
  bool chance(uint64_t one_in) { return below(one_in) == 0; }
  int64_t number() {
    return chance(4) ? static_cast<int64_t>(random_()) : kNumbers[below(std::size(kNumbers))];
  }
  int64_t near(int64_t value) {
    switch (below(4)) {
      case 0:
        return static_cast<int64_t>(static_cast<uint64_t>(value) + 1);
      case 1:
        return static_cast<int64_t>(static_cast<uint64_t>(value) - 1);
      case 2:
        return static_cast<int64_t>(0 - static_cast<uint64_t>(value));
      default:
        return number();
    }
  }
  float real() { return kFloats[below(std::size(kFloats))]; }
  std::string word() { return kWords[below(std::size(kWords))]; }
  int dtype() { return static_cast<int>(below(28)); }
  void say(std::string what) { log_->push_back(std::move(what)); }

  template <class List>
  auto* any(List* list) {
    return list->empty() ? nullptr : list->Mutable(place(list->size()));
  }
  template <class List>
  void drop(List* list) {
    if (list->empty()) return;
    list->DeleteSubrange(place(list->size()), 1);
  }
  template <class List>
  void numbers(List* list) {
    switch (below(5)) {
      case 0:
        list->Add(static_cast<typename List::value_type>(number()));
        break;
      case 1:
        if (!list->empty()) list->RemoveLast();
        break;
      case 2:
        list->Clear();
        break;
      default:
        if (!list->empty()) {
          auto& element = *list->Mutable(place(list->size()));
          element = static_cast<typename List::value_type>(near(static_cast<int64_t>(element)));
        }
    }
  }

  // Returns the graph itself or, now and then, the body of one of its nodes.
  wire::GraphProto* pick_graph(wire::GraphProto* graph) {
    for (int tries = 0; tries < 4 && graph->node_size(); ++tries) {
      wire::NodeProto* node = any(graph->mutable_node());
      for (auto& a : *node->mutable_attribute())
        if (a.has_g() && chance(2)) return pick_graph(a.mutable_g());
    }
    return graph;
  }

  void attribute(wire::GraphProto& graph) {
    wire::NodeProto* node = any(graph.mutable_node());
    if (!node) return;
    if (node->attribute().empty() || chance(8)) return borrow_attribute(*node);
    wire::AttributeProto& a = *any(node->mutable_attribute());
    say(node->op_type() + "." + a.name());
    if (chance(10)) return drop(node->mutable_attribute());
    if (chance(12)) {
      a.set_type(static_cast<int>(below(15)));
      return;
    }
    if (a.has_i()) a.set_i(near(a.i()));
    if (a.has_f()) a.set_f(real());
    if (a.has_s()) a.set_s(word());
    if (a.ints_size()) numbers(a.mutable_ints());
    if (a.floats_size()) {
      if (chance(3))
        a.mutable_floats()->RemoveLast();
      else
        *any(a.mutable_floats()) = real();
    }
    if (a.strings_size()) {
      if (chance(3))
        drop(a.mutable_strings());
      else
        *any(a.mutable_strings()) = word();
    }
    if (a.has_t()) tensor(*a.mutable_t());
    if (a.tensors_size()) tensor(*any(a.mutable_tensors()));
  }

  void borrow_attribute(wire::NodeProto& node) {
    for (int tries = 0; tries < 8 && donor_.graph().node_size(); ++tries) {
      const auto& other = donor_.graph().node(place(donor_.graph().node_size()));
      if (!other.attribute_size()) continue;
      const auto& taken = other.attribute(place(other.attribute_size()));
      say(node.op_type() + " takes over " + other.op_type() + "." + taken.name());
      *node.add_attribute() = taken;
      return;
    }
  }

  void node(wire::GraphProto& graph) {
    wire::NodeProto* node = any(graph.mutable_node());
    if (!node) return;
    switch (below(9)) {
      case 0:
        say("drops an input of " + node->op_type());
        return drop(node->mutable_input());
      case 1:
        say("drops an output of " + node->op_type());
        return drop(node->mutable_output());
      case 2:
        if (std::string* in = any(node->mutable_input())) in->clear();
        return say("absent input of " + node->op_type());
      case 3: {
        const auto names = visible(graph);
        std::string* in = any(node->mutable_input());
        if (in && !names.empty()) *in = names[below(names.size())];
        return say("another input of " + node->op_type());
      }
      case 4: {
        const auto names = visible(graph);
        if (!names.empty()) node->add_input(names[below(names.size())]);
        return say("one more input of " + node->op_type());
      }
      case 5:
        node->add_output("extra" + std::to_string(random_() % 100));
        return say("one more output of " + node->op_type());
      case 6: {
        if (!donor_.graph().node_size()) return;
        const auto& other = donor_.graph().node(place(donor_.graph().node_size()));
        say(node->op_type() + " becomes " + other.op_type());
        node->set_op_type(other.op_type());
        node->set_domain(other.domain());
        *node->mutable_attribute() = other.attribute();
        return;
      }
      case 7: {
        const wire::NodeProto copy = *node;
        *graph.add_node() = copy;
        return say("twice " + copy.op_type());
      }
      default: {
        const int i = place(graph.node_size());
        const int j = place(graph.node_size());
        graph.mutable_node()->SwapElements(i, j);
        return say("other order of nodes");
      }
    }
  }

  static std::vector<std::string> visible(const wire::GraphProto& graph) {
    std::vector<std::string> names;
    for (const auto& v : graph.input()) names.push_back(v.name());
    for (const auto& t : graph.initializer()) names.push_back(t.name());
    for (const auto& n : graph.node())
      names.insert(names.end(), n.output().begin(), n.output().end());
    return names;
  }

  void constant(wire::GraphProto& graph) {
    if (wire::TensorProto* t = any(graph.mutable_initializer())) return tensor(*t);
    // Turns an input into a small constant of its type: shapes, axes and the like.
    wire::ValueInfoProto* value = any(graph.mutable_input());
    if (!value || !value->type().has_tensor_type()) return;
    say("input '" + value->name() + "' becomes a constant");
    wire::TensorProto& t = *graph.add_initializer();
    t.set_name(value->name());
    t.set_data_type(value->type().tensor_type().elem_type());
    const size_t n = below(5);
    t.add_dims(static_cast<int64_t>(n));
    for (size_t i = 0; i < n; ++i) {
      t.add_int64_data(number());
      t.add_float_data(real());
    }
    if (t.data_type() == 1)
      t.clear_int64_data();
    else
      t.clear_float_data();
  }

  void tensor(wire::TensorProto& t) {
    say("constant '" + t.name() + "'");
    switch (below(7)) {
      case 0:
        return numbers(t.mutable_dims());
      case 1:
        return t.set_data_type(dtype());
      case 2:
        if (t.has_raw_data()) t.mutable_raw_data()->resize(below(t.raw_data().size() + 9));
        return;
      case 3:
        if (!t.raw_data().empty()) {
          std::string& raw = *t.mutable_raw_data();
          for (uint64_t i = 0, n = 1 + below(8); i < n; ++i)
            raw[below(raw.size())] = static_cast<char>(random_());
        }
        return;
      case 4:
        if (t.int64_data_size()) numbers(t.mutable_int64_data());
        return;
      case 5:
        if (t.int32_data_size()) numbers(t.mutable_int32_data());
        return;
      default:
        // Whole numbers of 8 bytes are mostly shapes, axes and counts.
        if (t.data_type() == 7 && t.raw_data().size() >= 8) {
          const int64_t value = number();
          const size_t at = below(t.raw_data().size() / 8) * 8;
          t.mutable_raw_data()->replace(at, 8, reinterpret_cast<const char*>(&value), 8);
        }
    }
  }

  void value_type(wire::GraphProto& graph) {
    auto* list = chance(3) ? graph.mutable_output() : graph.mutable_input();
    if (chance(6)) list = graph.mutable_value_info();
    wire::ValueInfoProto* value = any(list);
    if (!value) return;
    say("type of '" + value->name() + "'");
    wire::TypeProto& type = *value->mutable_type();
    if (chance(12)) {
      const wire::TypeProto element = type;
      *type.mutable_sequence_type()->mutable_elem_type() = element;
      return;
    }
    if (!type.has_tensor_type()) return;
    auto& tensor = *type.mutable_tensor_type();
    if (chance(3)) return tensor.set_elem_type(dtype());
    if (chance(8)) return tensor.clear_shape();
    auto& dims = *tensor.mutable_shape()->mutable_dim();
    switch (below(5)) {
      case 0:
        dims.Add()->set_dim_value(static_cast<int64_t>(below(4)));
        return;
      case 1:
        if (!dims.empty()) dims.RemoveLast();
        return;
      case 2:
        if (auto* d = any(&dims)) d->set_dim_param("n");
        return;
      case 3:
        if (auto* d = any(&dims)) d->set_dim_value(static_cast<int64_t>(below(6)));
        return;
      default:
        if (auto* d = any(&dims)) d->set_dim_value(near(d->dim_value()));
        return;
    }
  }

  void opset() {
    auto* entry = any(model_.mutable_opset_import());
    if (!entry) return;
    entry->set_version(chance(6) ? number() : static_cast<int64_t>(1 + below(28)));
    say("opset " + std::to_string(entry->version()));
  }

  void graph_lists(wire::GraphProto& graph) {
    switch (below(6)) {
      case 0:
        say("drops a node");
        return drop(graph.mutable_node());
      case 1:
        say("drops an input of the graph");
        return drop(graph.mutable_input());
      case 2:
        say("drops an output of the graph");
        return drop(graph.mutable_output());
      case 3:
        say("drops a constant");
        return drop(graph.mutable_initializer());
      case 4:
        if (const auto names = visible(graph); !names.empty()) {
          graph.add_output()->set_name(names[below(names.size())]);
          say("one more output of the graph");
        }
        return;
      default:
        if (donor_.graph().node_size()) {
          const auto& d = donor_.graph().node(place(donor_.graph().node_size()));
          wire::NodeProto& added = *graph.add_node();
          added = d;
          const auto names = visible(graph);
          for (auto& in : *added.mutable_input())
            if (!names.empty()) in = names[below(names.size())];
          for (auto& out : *added.mutable_output()) {
            out += "_added";
            graph.add_output()->set_name(out);
          }
          say("one more node, " + added.op_type());
        }
    }
  }

  wire::ModelProto& model_;
  const wire::ModelProto& donor_;
  Random& random_;
  std::vector<std::string>* log_;
};

void mutate_bytes(std::string& bytes, Random& random, std::vector<std::string>* log) {
  if (bytes.empty()) return;
  log->push_back("bytes");
  switch (random() % 4) {
    case 0:
      bytes.resize(random() % bytes.size());
      return;
    case 1:
      bytes.insert(random() % bytes.size(), 1 + random() % 16, static_cast<char>(random()));
      return;
    default:
      for (uint64_t i = 0, n = 1 + random() % 8; i < n; ++i)
        bytes[random() % bytes.size()] = static_cast<char>(random());
  }
}

}  // namespace

std::string mutate(const std::string& model, const std::string& donor, Random& random,
                   std::vector<std::string>* log) {
  wire::ModelProto changed, other;
  std::string bytes = model;
  if (changed.ParseFromString(model) && random() % 16 != 0) {
    other.ParseFromString(donor);
    Mutator mutator(changed, other, random, log);
    for (uint64_t i = 0, n = 1 + random() % 3; i < n; ++i) mutator.once();
    bytes = changed.SerializeAsString();
    if (random() % 32 != 0) return bytes;
  }
  mutate_bytes(bytes, random, log);
  return bytes;
}

}  // namespace pfrt_fuzz
