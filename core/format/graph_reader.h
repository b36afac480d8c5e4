// SPDX-License-Identifier: Apache-2.0
//
// Reads a graph from the FlatBuffers of pfm.fbs; the caller knows where tensors' bytes are. The
// buffer may be anything that its verifier accepts: a reader reads no more of it than its size
// allows. A GraphReader belongs to one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/format/pfm_layout.h"
#include "core/ir/graph.h"
#include "pfm_generated.h"

namespace pfrt {

class GraphReader {
 public:
  // Sets |out|'s buffer to one of |bytes| bytes; its type and dimensions are set already. It may
  // replace |out| by an equal tensor. |name| is the constant's, for messages.
  using Section = std::function<Status(const pfm::Tensor& from, uint64_t bytes,
                                       const std::string& name, Tensor& out)>;
  // Reads a buffer of |bytes| bytes. |compiled|: it may have what only graphs in canonical form
  // have.
  GraphReader(uint64_t bytes, Section section, bool compiled = false)
      : section_(std::move(section)), compiled_(compiled), budget_(bytes * kSharing + kFree) {}

  // Limit of the size of everything read, in buffer sizes: a buffer may name one of its parts more
  // than once.
  static constexpr uint64_t kSharing = 16;

  Status read(const pfm::Graph& from, Graph& graph) { return read_graph(from, graph, 0); }
  // Reads the symbols of compiled graphs; called before one of these is read.
  Status read_symbols(const flatbuffers::Vector<flatbuffers::Offset<pfm::Symbol>>* from,
                      SymbolTable& symbols);
  Result<ValuePtr> read_constant(const pfm::Constant& from, const std::string& name);
  std::string text(const flatbuffers::String* s);
  std::string text(const flatbuffers::Vector<uint8_t>* s);
  std::vector<std::pair<std::string, std::string>> entries(
      const flatbuffers::Vector<flatbuffers::Offset<pfm::Entry>>* list);
  Status check_budget() const;

 private:
  static constexpr uint64_t kFree = uint64_t{1} << 20;

  void charge(uint64_t bytes) { budget_ -= std::min(budget_, bytes); }
  // Copies elements: in a damaged file they may be unaligned, which the verifier lets pass.
  template <typename T>
  std::vector<T> numbers(const flatbuffers::Vector<T>* v) {
    charge(v ? v->size() * sizeof(T) : 0);
    std::vector<T> out(v && budget_ > 0 ? v->size() : 0);
    if (!out.empty()) std::memcpy(out.data(), v->Data(), out.size() * sizeof(T));
    return out;
  }
  template <typename T, typename Fn>
  void for_each(const flatbuffers::Vector<T>* list, Fn fn) {
    for (uint32_t i = 0; list && i < list->size() && budget_ > 0; ++i) {
      charge(sizeof(flatbuffers::uoffset_t));
      fn(list->Get(i));
    }
  }
  template <typename T, typename Fn>
  Status try_each(const flatbuffers::Vector<T>* list, Fn fn) {
    for (uint32_t i = 0; list && i < list->size(); ++i) {
      charge(sizeof(flatbuffers::uoffset_t));
      PFRT_TRY(check_budget());
      PFRT_TRY(fn(list->Get(i)));
    }
    return {};
  }

  Dim read_dim(const pfm::Dim& from, SymbolTable& symbols);
  Result<Tensor> read_tensor(const pfm::Tensor* from, const std::string& name);
  Result<Attribute> read_attr(const pfm::Attribute& from, Graph& graph, int depth);
  Status read_graph(const pfm::Graph& from, Graph& graph, int depth);

  const Section section_;
  const bool compiled_;
  uint64_t budget_;  // bytes that may still be read
};

}  // namespace pfrt
