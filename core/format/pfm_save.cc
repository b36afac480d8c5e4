// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/format/pfm.h"
#include "core/format/pfm_checksum.h"
#include "core/format/pfm_layout.h"
#include "pfm_generated.h"

namespace pfrt {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
template <typename T>
using Vec = flatbuffers::Offset<flatbuffers::Vector<T>>;

// Builds the buffer and the list of sections. Offsets of sections depend on the buffer's size,
// which depends on nothing but the graph (every field is written with a fixed width), so a first
// build with offsets from 0 gives the size for the second.
class Writer {
 public:
  explicit Writer(uint64_t payload_start) : next_(payload_start) { builder_.ForceDefaults(true); }

  Status build(const Graph& graph, const InfoList& info) {
    auto root = write_graph(graph, 0);
    if (!root.ok()) return root.take_status();
    auto entries = write_entries(info);
    builder_.FinishSizePrefixed(pfm::CreateModel(builder_, root.value(), entries));
    if (builder_.GetSize() > FLATBUFFERS_MAX_BUFFER_SIZE)
      return error(Code::kUNSUPPORTED,
                   "saving as .pfm: the graph without its constants exceeds 2 GiB");
    return {};
  }

  const FlatBufferBuilder& buffer() const { return builder_; }
  struct Section {
    uint64_t offset, bytes;
    const void* data;
  };
  const std::vector<Section>& sections() const { return sections_; }

 private:
  Offset<flatbuffers::String> text(std::string_view s) {
    return builder_.CreateString(s.data(), s.size());
  }

  Vec<uint8_t> bytes(std::string_view s) {
    return builder_.CreateVector(reinterpret_cast<const uint8_t*>(s.data()), s.size());
  }

  Vec<Offset<flatbuffers::String>> names(const Graph& graph, const std::vector<ValueId>& ids) {
    std::vector<Offset<flatbuffers::String>> out;
    out.reserve(ids.size());
    for (ValueId id : ids)
      out.push_back(text(id == kNoId ? std::string_view() : graph.at(id).name));
    return builder_.CreateVector(out);
  }

  template <typename List>
  Vec<Offset<pfm::Entry>> write_entries(const List& list) {
    std::vector<Offset<pfm::Entry>> out;
    for (const auto& [key, value] : list) {
      auto k = text(key), v = text(value);
      out.push_back(pfm::CreateEntry(builder_, k, v));
    }
    return builder_.CreateVector(out);
  }

  template <typename Texts, typename View>
  Vec<Offset<pfm::StringBytes>> write_strings(const Texts& texts, View as_view) {
    std::vector<Offset<pfm::StringBytes>> out;
    out.reserve(texts.size());
    for (const auto& t : texts) out.push_back(pfm::CreateStringBytes(builder_, bytes(as_view(t))));
    return builder_.CreateVector(out);
  }

  Offset<pfm::Tensor> write_tensor(const Tensor& t) {
    auto dims = builder_.CreateVector(t.dims);
    if (t.dtype == PFRT_DTYPE_STRING) {
      auto strings = write_strings(t.strings(), [](const pfrt_string& s) { return view(s); });
      return pfm::CreateTensor(builder_, t.dtype, dims, 0, 0, 0, strings);
    }
    const uint64_t size = t.bytes();
    next_ = (next_ + pfm::kAlignment - 1) / pfm::kAlignment * pfm::kAlignment;
    sections_.push_back({next_, size, t.data()});
    const uint64_t sum = pfm::checksum_of(size ? t.data() : "", size);
    auto out = pfm::CreateTensor(builder_, t.dtype, dims, next_, size, sum);
    next_ += size;
    return out;
  }

  Offset<pfm::Constant> write_constant(std::string_view name, const Value& value) {
    auto label = text(name);
    auto tensor = write_tensor(value.tensor);
    if (value.kind != PFRT_VALUE_SPARSE)
      return pfm::CreateConstant(builder_, label, value.kind, tensor);
    auto indices = write_tensor(value.indices);
    auto dims = builder_.CreateVector(value.dense_dims);
    return pfm::CreateConstant(builder_, label, value.kind, tensor, indices, dims);
  }

  Result<Offset<pfm::Attribute>> write_attr(const Attribute& a, int depth) {
    std::vector<Offset<pfm::Constant>> tensors;
    if (a.tensor) tensors.push_back(write_constant("", *a.tensor));
    for (const ValuePtr& v : a.tensors) tensors.push_back(write_constant("", *v));
    std::vector<Offset<pfm::Graph>> graphs;
    if (a.graph) {
      PFRT_ASSIGN(auto g, write_graph(*a.graph, depth + 1));
      graphs.push_back(g);
    }
    for (const auto& body : a.graphs) {
      PFRT_ASSIGN(auto g, write_graph(*body, depth + 1));
      graphs.push_back(g);
    }
    auto name = text(a.name);
    auto s = bytes(a.s);
    auto ints = builder_.CreateVector(a.ints);
    auto floats = builder_.CreateVector(a.floats);
    auto strings =
        write_strings(a.strings, [](const std::string& t) { return std::string_view(t); });
    auto tensor_list = builder_.CreateVector(tensors);
    auto graph_list = builder_.CreateVector(graphs);
    return pfm::CreateAttribute(builder_, name, a.type, a.i, a.f, s, ints, floats, strings,
                                tensor_list, graph_list);
  }

  Result<Offset<pfm::Node>> write_node(const Graph& graph, const Node& node, int depth) {
    std::vector<Offset<pfm::Attribute>> attrs;
    for (const Attribute& a : node.attrs) {
      PFRT_ASSIGN(auto one, write_attr(a, depth));
      attrs.push_back(one);
    }
    auto name = text(node.name), op = text(node.op), domain = text(node.domain),
         doc = text(node.doc);
    auto inputs = names(graph, node.inputs), outputs = names(graph, node.outputs);
    auto attr_list = builder_.CreateVector(attrs);
    return pfm::CreateNode(builder_, name, op, domain, doc, inputs, outputs, attr_list);
  }

  Offset<pfm::ValueInfo> write_value(const Graph& graph, const GraphValue& v) {
    std::vector<Offset<pfm::Dim>> dims;
    for (const Dim& d : v.type.shape) {
      auto name = text(graph.symbols->given_name(d));
      dims.push_back(pfm::CreateDim(builder_, d.known() ? d.value() : -1, name));
    }
    auto name = text(v.name);
    auto shape = builder_.CreateVector(dims);
    return pfm::CreateValueInfo(builder_, name, v.type.kind, v.type.dtype, v.type.key_dtype,
                                v.type.has_shape, shape);
  }

  Result<Offset<pfm::Graph>> write_graph(const Graph& graph, int depth) {
    if (depth > pfm::kMaxDepth)
      return error(Code::kUNSUPPORTED, "saving as .pfm: bodies are nested more than ",
                   pfm::kMaxDepth, " deep");
    std::vector<Offset<pfm::ValueInfo>> values;
    std::vector<Offset<pfm::Constant>> constants;
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      const GraphValue& v = graph.at(id);
      if (v.type.kind != PFRT_VALUE_UNSET) values.push_back(write_value(graph, v));
      if (v.constant) constants.push_back(write_constant(v.name, *v.constant));
    }
    std::vector<Offset<pfm::Node>> nodes;
    for (NodeId id : graph.node_ids()) {
      PFRT_ASSIGN(auto node, write_node(graph, *graph.node(id), depth));
      nodes.push_back(node);
    }
    std::vector<Offset<pfm::Opset>> opsets;
    opsets.reserve(graph.opsets.size());
    for (const auto& [domain, version] : graph.opsets)
      opsets.push_back(pfm::CreateOpset(builder_, text(domain), version));
    auto name = text(graph.name), doc = text(graph.doc);
    auto inputs = names(graph, graph.inputs), outputs = names(graph, graph.outputs);
    auto value_list = builder_.CreateVector(values);
    auto constant_list = builder_.CreateVector(constants);
    auto node_list = builder_.CreateVector(nodes);
    auto opset_list = builder_.CreateVector(opsets);
    auto metadata = write_entries(graph.metadata);
    return pfm::CreateGraph(builder_, name, doc, inputs, outputs, value_list, constant_list,
                            node_list, opset_list, metadata);
  }

  FlatBufferBuilder builder_;
  uint64_t next_;
  std::vector<Section> sections_;
};

pfm::Header header_of(const FlatBufferBuilder& buffer, uint64_t file_bytes) {
  pfm::Header header{};
  std::memcpy(header.magic, pfm::kMagic, sizeof header.magic);
  header.version = pfm::kVersion;
  header.file_bytes = file_bytes;
  header.checksum = pfm::checksum_of(header, buffer.GetBufferPointer(), buffer.GetSize());
  return header;
}

}  // namespace

Status save_pfm(const Graph& graph, const InfoList& info,
                const std::function<Status(const void*, uint64_t)>& write, Progress& progress) {
  Writer sizing(0);
  PFRT_TRY(sizing.build(graph, info));
  PFRT_TRY(progress.at(0.1));
  Writer writer(sizeof(pfm::Header) + sizing.buffer().GetSize());
  PFRT_TRY(writer.build(graph, info));

  uint64_t at = sizeof(pfm::Header) + writer.buffer().GetSize();
  const auto& sections = writer.sections();
  const uint64_t end = sections.empty() ? at : sections.back().offset + sections.back().bytes;
  const pfm::Header header = header_of(writer.buffer(), end);
  PFRT_TRY(write(&header, sizeof header));
  PFRT_TRY(write(writer.buffer().GetBufferPointer(), writer.buffer().GetSize()));
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  static constexpr char kZeros[pfm::kAlignment] = {};
  for (const Writer::Section& s : sections) {
    PFRT_TRY(write(kZeros, s.offset - at));
    for (at = s.offset; at < s.offset + s.bytes;) {
      const uint64_t piece = std::min(kPiece, s.offset + s.bytes - at);
      PFRT_TRY(write(static_cast<const char*>(s.data) + (at - s.offset), piece));
      at += piece;
      PFRT_TRY(progress.at(0.1 + 0.9 * static_cast<double>(at) / static_cast<double>(end)));
    }
  }
  return {};
}

}  // namespace pfrt
