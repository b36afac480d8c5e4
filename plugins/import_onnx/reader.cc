// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/reader.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <climits>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pfrt_onnx.pb.h"
#include "plugins/import_onnx/arena.h"
#include "plugins/import_onnx/attributes.h"
#include "plugins/import_onnx/denotations.h"
#include "plugins/import_onnx/functions.h"
#include "plugins/import_onnx/tensor_reader.h"
#include "plugins/import_onnx/type_info.h"
#include "plugins/import_onnx/wire.h"

namespace pfrt::onnx {
namespace {

// Bodies and function calls inside each other.
// A few functions that call each other twice can stand for more nodes than there is memory.
constexpr uint64_t kMaxInlinedNodes = 1'000'000;
constexpr uint64_t kMaxInlinedBytes = uint64_t{1} << 30;
constexpr uint32_t kStopCheckInterval = 256;
// Before this version every initializer is also listed as an input and cannot be fed.
constexpr int64_t kFirstIrWithDefaults = 4;
constexpr int64_t kFirstIrWithOpsets = 3;

struct KnownOpset {
  std::string_view domain;
  int64_t version;
};
constexpr KnownOpset kKnownOpsets[] = {
    {"", 28}, {"ai.onnx.ml", 5}, {"com.microsoft", 1}, {"ai.onnx.preview.training", 1}};

class ModelReader {
 public:
  ModelReader(const pfrt_import_request& request, const pfrt_sink& sink,
              const wire::ModelProto& model, std::vector<Payload> payloads)
      : request_(request),
        sink_(sink),
        graphs_(*request.api->graph),
        model_(model),
        tensors_(request, sink, std::move(payloads)) {}

  Status read();

 private:
  // The place of a graph's items: the model's own graph (nullptr) or the body of a function.
  using Place = Scope*;

  Status read_info();
  Status read_opsets();
  Status read_graph(const wire::GraphProto& graph, pfrt_graph* to, Place place, bool is_main);
  Status read_inputs(const wire::GraphProto& graph, pfrt_graph* to, Place place, bool is_main);
  Status read_initializers(const wire::GraphProto& graph, pfrt_graph* to, Place place);
  template <typename Nodes, typename Infos>
  Status read_value_infos(const Nodes& nodes, const Infos& infos,
                          const std::unordered_set<std::string_view>& listed, pfrt_graph* to,
                          Place place);
  Status read_value(const wire::ValueInfoProto& info, pfrt_graph* to, Place place,
                    pfrt_status* (*add)(pfrt_graph*, const pfrt_value_info*),
                    std::string_view what);
  Status keep_denotations(const wire::ValueInfoProto& info, pfrt_graph* to);
  Status read_node(const wire::NodeProto& node, pfrt_graph* to, Place place);
  Status add_node(const wire::NodeProto& node, pfrt_graph* to, Place place);
  Status read_attribute(const wire::AttributeProto& attribute, pfrt_graph* to, Place place,
                        AttributeList* out);
  Status read_attribute_value(const std::string& name, const wire::AttributeProto& attribute,
                              pfrt_graph* to, Place place, AttributeList* out);
  Result<GraphRef> read_body(const wire::GraphProto& graph, pfrt_graph* outer, Place place);
  Result<ValueRef> read_tensor(const wire::TensorProto& tensor, const std::string& what);
  Result<ValueRef> read_sparse(const wire::SparseTensorProto& tensor, const std::string& what);
  template <typename Read>
  Result<ValueRef> read_once(const void* message, Read read);
  Status inline_call(const wire::FunctionProto& function, const wire::NodeProto& call,
                     pfrt_graph* to, Place caller);
  Status check_call(const wire::FunctionProto& function, const wire::NodeProto& call, Place caller);
  void bind_attributes(const wire::NodeProto& call, Scope* scope);
  Status spend(uint64_t nodes, uint64_t bytes);
  Status go_on(bool large);

  Status host(pfrt_status* status) const;
  void warn(const std::string& text) { request_.warn(&request_, to_c(text)); }
  static pfrt_string name_at(Place place, const std::string& name) {
    return to_c(place ? place->value(name) : name);
  }

  const pfrt_import_request& request_;
  const pfrt_sink& sink_;
  const pfrt_graph_api& graphs_;
  const wire::ModelProto& model_;
  TensorReader tensors_;
  FunctionTable functions_;
  NameSource names_;
  Opsets opsets_;
  std::unordered_set<const wire::FunctionProto*> checked_;
  std::unordered_map<const void*, ValueRef> shared_;  // by tensor message
  int depth_ = 0;
  uint64_t inlined_nodes_ = 0, inlined_bytes_ = 0;
  uint32_t ticks_ = 0;
};

// The arguments are the model's, so that what is wrong with them is wrong with the model.
Status ModelReader::host(pfrt_status* status) const {
  Status taken = take_status(*request_.api, status);
  return taken.code() == Code::kINVALID_ARGUMENT ? Status(Code::kINVALID_MODEL, taken.message())
                                                 : taken;
}

// An initializer can be gigabytes, a node is little.
Status ModelReader::go_on(bool large) {
  if (++ticks_ % kStopCheckInterval != 0 && !large) return {};
  const auto items =
      static_cast<double>(model_.graph().node_size() + model_.graph().initializer_size() +
                          model_.graph().sparse_initializer_size());
  sink_.progress(&sink_, ticks_ / std::max(items, 1.0));
  const pfrt_code code = sink_.stop(&sink_);
  return code == PFRT_CODE_OK ? Status()
                              : error(static_cast<Code>(code), "loading an ONNX model was stopped");
}

Status ModelReader::read() {
  PFRT_ASSIGN(functions_, FunctionTable::of(model_));
  if (!functions_.empty()) names_.take(model_.graph());
  PFRT_TRY(read_info());
  PFRT_TRY(read_opsets());
  for (const auto& entry : model_.metadata_props())
    PFRT_TRY(host(graphs_.set_metadata(request_.graph, to_c(entry.key()), to_c(entry.value()))));
  if (model_.training_info_size())
    warn("the model has training_info, which is ignored: it is loaded for inference");
  return read_graph(model_.graph(), request_.graph, nullptr, true);
}

Status ModelReader::read_info() {
  const auto set = [this](std::string_view key, const std::string& value) {
    if (!value.empty()) request_.set_info(&request_, to_c(key), to_c(value));
  };
  set("producer_name", model_.producer_name());
  set("producer_version", model_.producer_version());
  set("domain", model_.domain());
  if (model_.has_model_version()) set("model_version", std::to_string(model_.model_version()));
  set("description",
      model_.doc_string().empty() ? model_.graph().doc_string() : model_.doc_string());
  if (model_.has_ir_version()) set("ir_version", std::to_string(model_.ir_version()));
  set("graph_name", model_.graph().name());
  return {};
}

Status ModelReader::read_opsets() {
  for (const auto& import : model_.opset_import()) {
    if (import.version() <= 0)
      return error(Code::kINVALID_MODEL, "domain '", import.domain(), "' is imported at version ",
                   import.version(), "; versions start at 1");
    const auto [at, added] = opsets_.emplace(domain_of(import.domain()), import.version());
    if (!added && at->second != import.version())
      return error(Code::kINVALID_MODEL, "domain '", at->first, "' is imported at versions ",
                   at->second, " and ", import.version());
  }
  if (opsets_.empty()) {
    if (model_.ir_version() >= kFirstIrWithOpsets)
      return error(Code::kINVALID_MODEL, "the model has IR version ", model_.ir_version(),
                   " and no opset_import; export it with one");
    opsets_.emplace("", 1);
  }
  for (const auto& function : model_.functions())
    add_missing_opsets(function, functions_, &opsets_);
  for (const auto& [domain, version] : opsets_) {
    for (const KnownOpset& known : kKnownOpsets)
      if (domain == known.domain && version > known.version)
        warn(message("the model uses opset ", version, " of domain '",
                     domain.empty() ? "ai.onnx" : domain, "'; the newest known here is ",
                     known.version, ", whose meaning is assumed"));
    PFRT_TRY(host(graphs_.set_opset(request_.graph, to_c(domain), version)));
  }
  return {};
}

Status ModelReader::read_graph(const wire::GraphProto& graph, pfrt_graph* to, Place place,
                               bool is_main) {
  PFRT_TRY(read_inputs(graph, to, place, is_main));
  PFRT_TRY(read_initializers(graph, to, place));
  std::unordered_set<std::string_view> listed;
  for (const auto& input : graph.input()) listed.insert(input.name());
  for (const auto& output : graph.output()) listed.insert(output.name());
  PFRT_TRY(read_value_infos(graph.node(), graph.value_info(), listed, to, place));
  for (const auto& node : graph.node()) PFRT_TRY(read_node(node, to, place));
  for (const auto& output : graph.output())
    PFRT_TRY(read_value(output, to, place, graphs_.add_output, "output"));
  return {};
}

Status ModelReader::read_inputs(const wire::GraphProto& graph, pfrt_graph* to, Place place,
                                bool is_main) {
  std::unordered_set<std::string_view> constants;
  if (is_main && model_.ir_version() < kFirstIrWithDefaults) {
    for (const auto& tensor : graph.initializer()) constants.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) constants.insert(tensor.values().name());
  }
  for (const auto& input : graph.input())
    if (!constants.contains(input.name()))
      PFRT_TRY(read_value(input, to, place, graphs_.add_input, "input"));
  return {};
}

Status ModelReader::read_initializers(const wire::GraphProto& graph, pfrt_graph* to, Place place) {
  std::unordered_set<std::string_view> added;
  const auto add = [&](const std::string& name, ValueRef value) -> Status {
    if (!added.insert(name).second)
      return error(Code::kINVALID_MODEL, "initializer '", name, "' is there twice");
    return host(graphs_.add_initializer_value(to, name_at(place, name), value.get()))
        .prepend(message("adding initializer '", name, "'"));
  };
  for (const auto& tensor : graph.initializer()) {
    PFRT_TRY(go_on(true));
    PFRT_ASSIGN(ValueRef value, read_tensor(tensor, message("initializer '", tensor.name(), "'")));
    PFRT_TRY(add(tensor.name(), std::move(value)));
  }
  for (const auto& tensor : graph.sparse_initializer()) {
    PFRT_TRY(go_on(true));
    const std::string& name = tensor.values().name();
    PFRT_ASSIGN(ValueRef value, read_sparse(tensor, message("sparse initializer '", name, "'")));
    PFRT_TRY(add(name, std::move(value)));
  }
  return {};
}

// Types of what |nodes| produce; what is |listed| as an input or output has its type there. Files
// also describe values that are no longer in the graph.
template <typename Nodes, typename Infos>
Status ModelReader::read_value_infos(const Nodes& nodes, const Infos& infos,
                                     const std::unordered_set<std::string_view>& listed,
                                     pfrt_graph* to, Place place) {
  if (infos.empty()) return {};
  std::unordered_set<std::string_view> produced;
  for (const auto& node : nodes) produced.insert(node.output().begin(), node.output().end());
  for (const auto& info : infos)
    if (produced.contains(info.name()) && !listed.contains(info.name()) && !info.name().empty())
      PFRT_TRY(read_value(info, to, place, graphs_.set_value_info, "value"));
  return {};
}

Status ModelReader::read_value(const wire::ValueInfoProto& info, pfrt_graph* to, Place place,
                               pfrt_status* (*add)(pfrt_graph*, const pfrt_value_info*),
                               std::string_view what) {
  const auto attempt = [&]() -> Status {
    // A function's symbols are not those of the model that calls it.
    PFRT_ASSIGN(const TypeInfo type, TypeInfo::read(info.type(), place == nullptr));
    const pfrt_value_info described = type.info(name_at(place, info.name()));
    PFRT_TRY(host(add(to, &described)));
    return place ? Status() : keep_denotations(info, to);
  };
  Status status = attempt();
  return status.ok() ? std::move(status)
                     : std::move(status.prepend(message("reading ", what, " '", info.name(), "'")));
}

Status ModelReader::keep_denotations(const wire::ValueInfoProto& info, pfrt_graph* to) {
  const std::string text = denotations_of(info.type());
  if (text.empty()) return {};
  const std::string key = message(kDenotationKey, info.name());
  return host(graphs_.set_metadata(to, to_c(key), to_c(text)));
}

Status ModelReader::read_node(const wire::NodeProto& node, pfrt_graph* to, Place place) {
  PFRT_TRY(go_on(false));
  if (place) PFRT_TRY(spend(1, node.ByteSizeLong()));
  if (const auto* function = functions_.called_by(node))
    return inline_call(*function, node, to, place);
  Status status = node.overload().empty()
                      ? add_node(node, to, place)
                      : error(Code::kINVALID_MODEL, "it calls overload '", node.overload(),
                              "' of a function that the model does not define");
  return status.ok() ? std::move(status)
                     : std::move(status.prepend("reading node " + describe(node)));
}

Status ModelReader::add_node(const wire::NodeProto& node, pfrt_graph* to, Place place) {
  if (node.op_type().empty()) return error(Code::kINVALID_MODEL, "it has no op_type");
  AttributeList attributes;
  for (const auto& attribute : node.attribute()) {
    Status status = read_attribute(attribute, to, place, &attributes);
    if (!status.ok())
      return std::move(status.prepend(message("attribute '", attribute.name(), "'")));
  }
  std::vector<pfrt_string> inputs, outputs;
  for (const auto& name : node.input()) inputs.push_back(name_at(place, name));
  for (const auto& name : node.output()) outputs.push_back(name_at(place, name));
  const std::string inlined_name =
      place && !node.name().empty() ? place->prefix() + node.name() : std::string();
  auto added = sized<pfrt_node>();
  added.name = to_c(place ? inlined_name : node.name());
  added.op = to_c(node.op_type());
  added.domain = to_c(domain_of(node.domain()));
  added.doc = to_c(node.doc_string());
  added.inputs = inputs.data();
  added.input_count = inputs.size();
  added.outputs = outputs.data();
  added.output_count = outputs.size();
  added.attrs = attributes.data();
  added.attr_count = attributes.size();
  return host(graphs_.add_node(to, &added, nullptr));
}

Status ModelReader::read_attribute(const wire::AttributeProto& attribute, pfrt_graph* to,
                                   Place place, AttributeList* out) {
  if (attribute.ref_attr_name().empty())
    return read_attribute_value(attribute.name(), attribute, to, place, out);
  if (!place)
    return error(Code::kINVALID_MODEL, "it refers to attribute '", attribute.ref_attr_name(),
                 "' of a function, but stands outside of one");
  const Scope::Binding* bound = place->attribute(attribute.ref_attr_name());
  if (!bound) return {};
  PFRT_TRY(spend(0, bound->attribute->ByteSizeLong()));
  return read_attribute_value(attribute.name(), *bound->attribute, to, bound->scope, out);
}

Status ModelReader::read_attribute_value(const std::string& name,
                                         const wire::AttributeProto& attribute, pfrt_graph* to,
                                         Place place, AttributeList* out) {
  const pfrt_attr_type type = attribute_type(attribute);
  const std::string what =
      type == PFRT_ATTR_TENSOR || type == PFRT_ATTR_TENSORS || type == PFRT_ATTR_SPARSE
          ? message("attribute tensor '", name, "'")
          : std::string();
  std::vector<pfrt_value*> values;
  std::vector<pfrt_graph*> graphs;
  switch (type) {
    case PFRT_ATTR_UNSET:
      return error(Code::kINVALID_MODEL, "it has neither a type nor a value");
    case PFRT_ATTR_TENSOR: {
      PFRT_ASSIGN(ValueRef value, read_tensor(attribute.t(), what));
      values.push_back(out->keep(std::move(value)));
      break;
    }
    case PFRT_ATTR_SPARSE: {
      PFRT_ASSIGN(ValueRef value, read_sparse(attribute.sparse_tensor(), what));
      values.push_back(out->keep(std::move(value)));
      break;
    }
    case PFRT_ATTR_TENSORS:
      for (const auto& tensor : attribute.tensors()) {
        PFRT_ASSIGN(ValueRef value, read_tensor(tensor, what));
        values.push_back(out->keep(std::move(value)));
      }
      break;
    case PFRT_ATTR_GRAPH: {
      PFRT_ASSIGN(GraphRef body, read_body(attribute.g(), to, place));
      graphs.push_back(out->keep(std::move(body)));
      break;
    }
    case PFRT_ATTR_GRAPHS:
      for (const auto& graph : attribute.graphs()) {
        PFRT_ASSIGN(GraphRef body, read_body(graph, to, place));
        graphs.push_back(out->keep(std::move(body)));
      }
      break;
    default:
      return out->add_plain(name, type, attribute);
  }
  if (type == PFRT_ATTR_GRAPH || type == PFRT_ATTR_GRAPHS)
    out->add_graphs(name, type, std::move(graphs));
  else
    out->add_values(name, type, std::move(values));
  return {};
}

Result<ValueRef> ModelReader::read_tensor(const wire::TensorProto& tensor,
                                          const std::string& what) {
  return read_once(&tensor, [&] { return tensors_.read(tensor, what); });
}

Result<ValueRef> ModelReader::read_sparse(const wire::SparseTensorProto& tensor,
                                          const std::string& what) {
  return read_once(&tensor, [&] { return tensors_.read_sparse(tensor, what); });
}

// Inlining meets the same tensors again and again: where there are functions, each is one value.
template <typename Read>
Result<ValueRef> ModelReader::read_once(const void* message, Read read) {
  if (functions_.empty()) return read();
  auto found = shared_.find(message);
  if (found == shared_.end()) {
    PFRT_ASSIGN(ValueRef value, read());
    found = shared_.emplace(message, std::move(value)).first;
  }
  const auto& values = *request_.api->value;
  values.retain(found->second.get());
  return ValueRef(found->second.get(), values.release);
}

Result<GraphRef> ModelReader::read_body(const wire::GraphProto& graph, pfrt_graph* outer,
                                        Place place) {
  if (depth_ >= kMaxDepth)
    return error(Code::kINVALID_MODEL, "bodies and function calls are nested more than ", kMaxDepth,
                 " deep");
  pfrt_graph* made = nullptr;
  PFRT_TRY(host(graphs_.create_subgraph(outer, to_c(graph.name()), &made)));
  GraphRef body(made, graphs_.release);
  for (const auto& entry : graph.metadata_props())
    PFRT_TRY(host(graphs_.set_metadata(made, to_c(entry.key()), to_c(entry.value()))));
  ++depth_;
  Status status = read_graph(graph, made, place, false);
  --depth_;
  if (!status.ok()) return std::move(status.prepend(message("body '", graph.name(), "'")));
  return body;
}

Status ModelReader::spend(uint64_t nodes, uint64_t bytes) {
  inlined_nodes_ += nodes;
  inlined_bytes_ += bytes;
  if (inlined_nodes_ <= kMaxInlinedNodes && inlined_bytes_ <= kMaxInlinedBytes) return {};
  return error(Code::kINVALID_MODEL, "function calls expand to more than ", kMaxInlinedNodes,
               " nodes or ", kMaxInlinedBytes, " bytes");
}

Status ModelReader::check_call(const wire::FunctionProto& function, const wire::NodeProto& call,
                               Place caller) {
  for (Place at = caller; at; at = at->caller()) {
    if (&at->function() != &function) continue;
    std::string path = describe(function);
    for (Place step = caller; step != at; step = step->caller())
      path.insert(0, describe(step->function()) + " -> ");
    return error(Code::kINVALID_MODEL, "function ", describe(function),
                 " calls itself: ", describe(function), " -> ", path);
  }
  if (depth_ >= kMaxDepth)
    return error(Code::kINVALID_MODEL, "bodies and function calls are nested more than ", kMaxDepth,
                 " deep");
  if (call.input_size() > function.input_size() || call.output_size() > function.output_size())
    return error(Code::kINVALID_MODEL, "calling function ", describe(function), " with ",
                 call.input_size(), " inputs and ", call.output_size(), " outputs; it has ",
                 function.input_size(), " and ", function.output_size());
  if (checked_.insert(&function).second) return check_opsets(function, functions_, opsets_);
  return {};
}

void ModelReader::bind_attributes(const wire::NodeProto& call, Scope* scope) {
  for (const auto& fallback : scope->function().attribute_proto())
    scope->bind_attribute(fallback.name(), {&fallback, scope});
  for (const auto& given : call.attribute()) {
    Scope::Binding binding{&given, scope->caller()};
    if (!given.ref_attr_name().empty()) {
      const auto* outer =
          scope->caller() ? scope->caller()->attribute(given.ref_attr_name()) : nullptr;
      if (!outer) continue;
      binding = *outer;
    }
    scope->bind_attribute(given.name(), binding);
  }
}

Status ModelReader::inline_call(const wire::FunctionProto& function, const wire::NodeProto& call,
                                pfrt_graph* to, Place caller) {
  PFRT_TRY(check_call(function, call, caller));
  const std::string& stem = call.name().empty() ? function.name() : call.name();
  Scope scope(function, caller,
              names_.fresh((caller ? caller->prefix() : std::string()) + stem) + "/", names_);
  for (int i = 0; i < function.input_size(); ++i)
    scope.bind_value(function.input(i), i < call.input_size()
                                            ? std::string(view(name_at(caller, call.input(i))))
                                            : std::string());
  // An output that is an input, or is given twice, needs a node of its own.
  std::vector<std::pair<std::string, std::string>> copies;
  for (int i = 0; i < call.output_size(); ++i) {
    const std::string target(view(name_at(caller, call.output(i))));
    if (!target.empty() && !scope.bind_value(function.output(i), target))
      copies.emplace_back(scope.value(function.output(i)), target);
  }
  bind_attributes(call, &scope);
  ++depth_;
  const auto body = [&]() -> Status {
    std::unordered_set<std::string_view> listed(function.input().begin(), function.input().end());
    listed.insert(function.output().begin(), function.output().end());
    PFRT_TRY(read_value_infos(function.node(), function.value_info(), listed, to, &scope));
    for (const auto& node : function.node()) PFRT_TRY(read_node(node, to, &scope));
    for (const auto& [from, target] : copies) {
      const pfrt_string input = to_c(from), output = to_c(target);
      auto copy = sized<pfrt_node>();
      copy.op = to_c("Identity");
      copy.inputs = &input;
      copy.input_count = 1;
      copy.outputs = &output;
      copy.output_count = 1;
      PFRT_TRY(host(graphs_.add_node(to, &copy, nullptr)));
    }
    return {};
  };
  Status status = body();
  --depth_;
  // The outermost call is the one the model's own graph shows.
  if (!status.ok() && !caller) status.prepend("inlining function " + describe(function));
  return status;
}

Result<const wire::ModelProto*> parse(const std::string& bytes, google::protobuf::Arena* arena) {
  auto* model = google::protobuf::Arena::CreateMessage<wire::ModelProto>(arena);
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  in.SetTotalBytesLimit(INT_MAX);
  in.SetRecursionLimit(2 * kMaxMessageDepth);
  if (!model->ParseFromCodedStream(&in) || !in.ConsumedEntireMessage())
    return error(Code::kINVALID_MODEL,
                 "reading an ONNX model: malformed numbers in a field near byte ",
                 in.CurrentPosition(), " of its ", bytes.size(), " bytes outside tensor data");
  return model;
}

}  // namespace

Status read_model(const pfrt_import_request& request, const pfrt_sink& sink) {
  if (request.size == 0)
    return error(Code::kINVALID_MODEL, "reading an ONNX model: the file is empty");
  google::protobuf::Arena arena(arena_options());
  const wire::ModelProto* model = nullptr;
  std::vector<Payload> payloads;
  {
    PFRT_ASSIGN(SlimMessage slim, cut_payloads(request.data, request.size));
    PFRT_ASSIGN(model, parse(slim.bytes, &arena));
    payloads = std::move(slim.payloads);
  }
  if (!model->has_graph())
    return error(
        Code::kINVALID_MODEL,
        "reading an ONNX model: the file is well-formed protobuf but has no graph; is it a "
        "model?");
  return ModelReader(request, sink, *model, std::move(payloads)).read();
}

}  // namespace pfrt::onnx
