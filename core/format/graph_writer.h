// SPDX-License-Identifier: Apache-2.0
//
// Writes a graph as FlatBuffers of pfm.fbs; the caller places the bytes of tensors. A GraphWriter
// belongs to one thread.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "pfm_generated.h"

namespace pfrt {

class GraphWriter {
 public:
  template <typename T>
  using Offset = flatbuffers::Offset<T>;
  template <typename T>
  using Vec = Offset<flatbuffers::Vector<T>>;
  // Place of a tensor's bytes.
  struct Place {
    uint64_t offset = 0, checksum = 0;
    uint32_t file = 0;
    bool deferred = false;
  };
  // |name| is that of the outermost graph's initializer; empty for other tensors.
  using PutTensor = std::function<Place(const Tensor& tensor, std::string_view name)>;

  // |compiled|: also writes what only graphs in canonical form have.
  GraphWriter(flatbuffers::FlatBufferBuilder& builder, PutTensor put, bool compiled = false)
      : builder_(builder), put_(std::move(put)), compiled_(compiled) {}

  Result<Offset<pfm::Graph>> write(const Graph& graph) { return write_graph(graph, 0); }
  Vec<Offset<pfm::Symbol>> write_symbols(const SymbolTable& symbols);
  Offset<flatbuffers::String> text(std::string_view s) {
    return builder_.CreateString(s.data(), s.size());
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

 private:
  Vec<uint8_t> bytes(std::string_view s);
  Vec<Offset<flatbuffers::String>> names(const Graph& graph, const std::vector<ValueId>& ids);
  template <typename Texts, typename View>
  Vec<Offset<pfm::StringBytes>> write_strings(const Texts& texts, View as_view);
  Offset<pfm::Dim> write_dim(const Dim& dim, const SymbolTable& symbols);
  Offset<pfm::Tensor> write_tensor(const Tensor& t, std::string_view name);
  Offset<pfm::Constant> write_constant(std::string_view name, const Value& value, int depth);
  Result<Offset<pfm::Attribute>> write_attr(const Attribute& a, int depth);
  Result<Offset<pfm::Node>> write_node(const Graph& graph, const Node& node, int depth,
                                       uint32_t epilogue_of);
  Offset<pfm::ValueInfo> write_value(const Graph& graph, const GraphValue& v, const Type& type);
  Result<Offset<pfm::Graph>> write_graph(const Graph& graph, int depth);

  flatbuffers::FlatBufferBuilder& builder_;
  const PutTensor put_;
  const bool compiled_;
};

}  // namespace pfrt
