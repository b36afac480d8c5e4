// SPDX-License-Identifier: Apache-2.0
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "core/format/pfm.h"
#include "core/format/pfm_layout.h"
#include "pfm_generated.h"

namespace pfrt {
namespace {

class Reader {
 public:
  Reader(const void* data, uint64_t size, std::shared_ptr<void> keep, Progress& progress)
      : data_(static_cast<const char*>(data)),
        size_(size),
        keep_(std::move(keep)),
        progress_(progress) {}

  Result<PfmModel> read() {
    uint32_t version = 0, length = 0;
    const uint64_t prefix = pfm::kHeaderBytes + sizeof length;
    if (size_ < prefix) return error(Code::kINVALID_MODEL, "the file ends inside its header");
    std::memcpy(&version, data_ + 4, sizeof version);
    std::memcpy(&length, data_ + pfm::kHeaderBytes, sizeof length);
    if (version != pfm::kVersion)
      return error(Code::kUNSUPPORTED_FORMAT, "the file has .pfm version ", version,
                   ", this library reads version ", pfm::kVersion);
    if (length > size_ - prefix)
      return error(Code::kINVALID_MODEL, "the graph should have ", length,
                   " bytes, the file has only ", size_ - prefix, " left; it is truncated");
    // FlatBuffers wants its buffer aligned; a mapping is, memory from a caller may not be.
    const auto* bytes = reinterpret_cast<const uint8_t*>(data_ + pfm::kHeaderBytes);
    std::vector<uint64_t> aligned;
    if (reinterpret_cast<uintptr_t>(bytes) % alignof(uint64_t) != 0) {
      aligned.resize((length + sizeof length + 7) / 8);
      std::memcpy(aligned.data(), bytes, length + sizeof length);
      bytes = reinterpret_cast<const uint8_t*>(aligned.data());
    }
    flatbuffers::Verifier verifier(bytes, length + sizeof length, pfm::kMaxDepth * 8, 100'000'000);
    if (!pfm::VerifySizePrefixedModelBuffer(verifier))
      return error(Code::kINVALID_MODEL, "the graph's bytes are corrupt");
    const pfm::Model* model = pfm::GetSizePrefixedModel(bytes);
    PfmModel out;
    out.graph = std::make_shared<Graph>();
    PFRT_TRY(read_graph(*model->graph(), *out.graph, 0));
    for_each(model->info(),
             [&](const pfm::Entry* e) { out.info.emplace_back(text(e->key()), text(e->value())); });
    return out;
  }

 private:
  static std::string text(const flatbuffers::String* s) { return s ? s->str() : std::string(); }
  static std::string text(const flatbuffers::Vector<uint8_t>* s) {
    return s ? std::string(reinterpret_cast<const char*>(s->data()), s->size()) : std::string();
  }
  // Elements by copy: a damaged file can have them off their alignment, which the verifier lets
  // pass.
  template <typename T>
  static std::vector<T> numbers(const flatbuffers::Vector<T>* v) {
    std::vector<T> out(v ? v->size() : 0);
    if (!out.empty()) std::memcpy(out.data(), v->Data(), out.size() * sizeof(T));
    return out;
  }
  template <typename T, typename Fn>
  static void for_each(const flatbuffers::Vector<T>* list, Fn fn) {
    for (uint32_t i = 0; list && i < list->size(); ++i) fn(list->Get(i));
  }
  template <typename T, typename Fn>
  static Status try_each(const flatbuffers::Vector<T>* list, Fn fn) {
    for (uint32_t i = 0; list && i < list->size(); ++i) PFRT_TRY(fn(list->Get(i)));
    return {};
  }

  Result<uint64_t> checksum(const char* data, uint64_t size) {
    constexpr uint64_t kPiece = uint64_t{4} << 20;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (uint64_t at = 0; at < size; at += kPiece) {
      const uint64_t piece = std::min(kPiece, size - at);
      XXH3_64bits_update(&state, data + at, static_cast<size_t>(piece));
      checked_ += piece;
      PFRT_TRY(progress_.at(static_cast<double>(checked_) / static_cast<double>(size_)));
    }
    return XXH3_64bits_digest(&state);
  }

  Result<Tensor> read_tensor(const pfm::Tensor* from, const std::string& name) {
    if (!from) return error(Code::kINVALID_MODEL, "constant '", name, "' has no tensor");
    Tensor t;
    t.dtype = from->dtype();
    t.dims = numbers(from->dims());
    const int64_t count = t.count();
    const uint64_t expected = t.bytes();
    if (!dtype_known(t.dtype) || count < 0 || expected == UINT64_MAX)
      return error(Code::kINVALID_MODEL, "constant '", name,
                   "' has an unknown type or impossible dimensions");
    if (t.dtype == PFRT_DTYPE_STRING) {
      const uint32_t have = from->strings() ? from->strings()->size() : 0;
      if (static_cast<uint64_t>(count) != have)
        return error(Code::kINVALID_MODEL, "constant '", name, "' should have ", count,
                     " strings, has ", have);
      PFRT_ASSIGN(t.buffer, Buffer::strings(have));
      for (uint32_t i = 0; i < have; ++i)
        PFRT_TRY(t.buffer->set_string(i, text(from->strings()->Get(i)->data())));
      return t;
    }
    if (from->bytes() != expected)
      return error(Code::kINVALID_MODEL, "constant '", name, "' should have ", expected,
                   " bytes, its section has ", from->bytes());
    if (from->offset() > size_ || from->bytes() > size_ - from->offset())
      return error(Code::kINVALID_MODEL, "constant '", name, "' lies at byte ", from->offset(),
                   " with ", from->bytes(), " bytes, the file has ", size_, "; it is truncated");
    char* data = const_cast<char*>(data_ + from->offset());
    PFRT_ASSIGN(const uint64_t sum, checksum(data, expected));
    if (sum != from->checksum())
      return error(
          Code::kDATA_LOSS, "constant '", name,
          "' does not match its checksum; the file is damaged, restore it from where it came");
    const size_t element = std::max<size_t>(1, dtype_size(t.dtype));
    if (reinterpret_cast<uintptr_t>(data) % std::min<size_t>(element, 8) != 0)
      return Tensor::copy_of(t.dtype, t.dims, data);
    PFRT_ASSIGN(t.buffer, Buffer::wrap(data, expected, [keep = keep_] {}));
    return t;
  }

  Result<ValuePtr> read_constant(const pfm::Constant& from, const std::string& name) {
    PFRT_ASSIGN(Tensor tensor, read_tensor(from.tensor(), name));
    if (from.kind() == PFRT_VALUE_TENSOR) return Value::of(std::move(tensor));
    if (from.kind() != PFRT_VALUE_SPARSE)
      return error(Code::kINVALID_MODEL, "constant '", name,
                   "' is neither a tensor nor a sparse tensor");
    auto value = std::make_shared<Value>();
    value->kind = PFRT_VALUE_SPARSE;
    value->tensor = std::move(tensor);
    PFRT_ASSIGN(value->indices, read_tensor(from.indices(), name));
    value->dense_dims = numbers(from.dense_dims());
    return ValuePtr(std::move(value));
  }

  Result<Attribute> read_attr(const pfm::Attribute& from, Graph& graph, int depth) {
    Attribute a;
    a.name = text(from.name());
    a.type = from.type();
    a.i = from.i();
    a.f = from.f();
    a.s = text(from.s());
    a.ints = numbers(from.ints());
    a.floats = numbers(from.floats());
    for_each(from.strings(),
             [&](const pfm::StringBytes* s) { a.strings.push_back(text(s->data())); });
    PFRT_TRY(try_each(from.tensors(), [&](const pfm::Constant* c) -> Status {
      PFRT_ASSIGN(ValuePtr v, read_constant(*c, a.name));
      a.tensors.push_back(std::move(v));
      return {};
    }));
    PFRT_TRY(try_each(from.graphs(), [&](const pfm::Graph* g) -> Status {
      a.graphs.push_back(Graph::subgraph_of(graph, text(g->name())));
      return read_graph(*g, *a.graphs.back(), depth + 1);
    }));
    const bool one_tensor = a.type == PFRT_ATTR_TENSOR || a.type == PFRT_ATTR_SPARSE;
    if ((one_tensor && a.tensors.size() != 1) ||
        (a.type == PFRT_ATTR_GRAPH && a.graphs.size() != 1))
      return error(Code::kINVALID_MODEL, "attribute '", a.name,
                   "' does not have the one value its type needs");
    if (one_tensor) {
      a.tensor = a.tensors[0];
      a.tensors.clear();
    }
    if (a.type == PFRT_ATTR_GRAPH) {
      a.graph = a.graphs[0];
      a.graphs.clear();
    }
    return a;
  }

  Status read_graph(const pfm::Graph& from, Graph& graph, int depth) {
    if (depth > pfm::kMaxDepth)
      return error(Code::kINVALID_MODEL, "bodies are nested more than ", pfm::kMaxDepth, " deep");
    graph.name = text(from.name());
    graph.doc = text(from.doc());
    if (depth == 0)
      for_each(from.opsets(),
               [&](const pfm::Opset* o) { graph.opsets[text(o->domain())] = o->version(); });
    for_each(from.metadata(), [&](const pfm::Entry* e) {
      graph.metadata.emplace_back(text(e->key()), text(e->value()));
    });
    for_each(from.values(), [&](const pfm::ValueInfo* v) {
      const ValueId id = graph.value(text(v->name()));
      if (id == kNoId) return;
      Type& type = graph.at(id).type;
      type.kind = v->kind();
      type.dtype = v->dtype();
      type.key_dtype = v->key_dtype();
      type.has_shape = v->has_shape();
      for_each(v->shape(), [&](const pfm::Dim* d) {
        type.shape.push_back(d->value() >= 0 ? Dim(d->value())
                                             : graph.symbols->symbol(text(d->name())));
      });
    });
    PFRT_TRY(try_each(from.constants(), [&](const pfm::Constant* c) -> Status {
      const std::string name = text(c->name());
      const ValueId id = graph.value(name);
      if (id == kNoId) return error(Code::kINVALID_MODEL, "a constant has no name");
      PFRT_ASSIGN(ValuePtr value, read_constant(*c, name));
      graph.set_constant(id, std::move(value));
      return {};
    }));
    const auto list_values = [&](const auto* list, std::vector<ValueId>& ids) {
      for_each(list, [&](const flatbuffers::String* s) { ids.push_back(graph.value(text(s))); });
    };
    list_values(from.inputs(), graph.inputs);
    list_values(from.outputs(), graph.outputs);
    for (const auto* ids : {&graph.inputs, &graph.outputs})
      for (ValueId id : *ids)
        if (id == kNoId) return error(Code::kINVALID_MODEL, "a graph input or output has no name");
    return try_each(from.nodes(), [&](const pfm::Node* n) -> Status {
      Node node;
      node.name = text(n->name());
      node.op = text(n->op());
      node.domain = text(n->domain());
      node.doc = text(n->doc());
      list_values(n->inputs(), node.inputs);
      list_values(n->outputs(), node.outputs);
      PFRT_TRY(try_each(n->attrs(), [&](const pfm::Attribute* a) -> Status {
        PFRT_ASSIGN(Attribute attr, read_attr(*a, graph, depth));
        node.attrs.push_back(std::move(attr));
        return {};
      }));
      PFRT_ASSIGN([[maybe_unused]] const NodeId id, graph.add_node(std::move(node)));
      return {};
    });
  }

  const char* data_;
  uint64_t size_;
  std::shared_ptr<void> keep_;
  Progress& progress_;
  uint64_t checked_ = 0;  // bytes of constants
};

}  // namespace

bool is_pfm(const void* data, uint64_t size) {
  return size >= sizeof pfm::kMagic && std::memcmp(data, pfm::kMagic, sizeof pfm::kMagic) == 0;
}

Result<PfmModel> load_pfm(const void* data, uint64_t size, std::shared_ptr<void> keep,
                          Progress& progress) {
  return Reader(data, size, std::move(keep), progress).read();
}

}  // namespace pfrt
