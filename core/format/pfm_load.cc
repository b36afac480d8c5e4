// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>

#include "core/base/rank.h"
#include "core/format/pfm.h"
#include "core/format/pfm_checksum.h"
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
    PFRT_ASSIGN(const uint64_t header_bytes, read_header());
    PFRT_ASSIGN(const uint64_t buffer_bytes, read_size(header_bytes));
    const char* buffer = data_ + header_bytes;
    sections_.emplace(0, header_bytes + buffer_bytes);
    if (header_bytes == sizeof header_ &&
        pfm::checksum_of(header_, buffer, buffer_bytes) != header_.checksum)
      return damaged("the graph");
    // FlatBuffers wants its buffer aligned; a mapping is, memory from a caller may not be.
    const auto* bytes = reinterpret_cast<const uint8_t*>(buffer);
    std::vector<uint64_t> aligned;
    if (reinterpret_cast<uintptr_t>(bytes) % alignof(uint64_t) != 0) {
      aligned.resize((buffer_bytes + 7) / 8);
      std::memcpy(aligned.data(), bytes, buffer_bytes);
      bytes = reinterpret_cast<const uint8_t*>(aligned.data());
    }
    budget_ = buffer_bytes * kSharing + (uint64_t{1} << 20);
    const uint64_t most_tables = std::min<uint64_t>(buffer_bytes * kSharing / 8, 100'000'000);
    flatbuffers::Verifier verifier(bytes, buffer_bytes, pfm::kMaxDepth * 8,
                                   static_cast<flatbuffers::uoffset_t>(most_tables));
    if (!pfm::VerifySizePrefixedModelBuffer(verifier))
      return error(Code::kINVALID_MODEL, "the graph's bytes are corrupt");
    const pfm::Model* model = pfm::GetSizePrefixedModel(bytes);
    PfmModel out;
    out.graph = std::make_shared<Graph>();
    PFRT_TRY(read_graph(*model->graph(), *out.graph, 0));
    for_each(model->info(),
             [&](const pfm::Entry* e) { out.info.emplace_back(text(e->key()), text(e->value())); });
    PFRT_TRY(check_budget());
    if (header_bytes == sizeof header_) PFRT_TRY(check_padding());
    out.version = header_.version;
    return out;
  }

 private:
  // A buffer may name one of its parts more than once; what it says in all is at most so many times
  // its own size.
  static constexpr uint64_t kSharing = 16;

  void charge(uint64_t bytes) { budget_ -= std::min(budget_, bytes); }
  Status check_budget() const {
    if (budget_ > 0) return {};
    return error(Code::kINVALID_MODEL,
                 "the graph's bytes name the same parts over and over: read "
                 "out they would have more than ",
                 kSharing, " times their size");
  }

  static Status damaged(std::string_view what) {
    return error(
        Code::kDATA_LOSS, what,
        " does not match its checksum; the file is damaged, restore it from where it came");
  }

  static Status check_rank(size_t rank, const std::string& name) {
    if (rank <= kMaxRank) return {};
    return error(Code::kINVALID_MODEL, "value '", name, "' has rank ", rank, "; at most ", kMaxRank,
                 " is possible");
  }

  // The bytes before the buffer, by the version.
  Result<uint64_t> read_header() {
    if (size_ < pfm::kVersion1Bytes)
      return error(Code::kINVALID_MODEL, "the file ends inside its header");
    std::memcpy(&header_, data_, pfm::kVersion1Bytes);
    if (header_.version == 1) return pfm::kVersion1Bytes;
    if (header_.version != pfm::kVersion)
      return error(Code::kUNSUPPORTED_FORMAT, "the file has .pfm version ", header_.version,
                   ", this library reads versions 1 to ", pfm::kVersion);
    if (size_ < sizeof header_)
      return error(Code::kINVALID_MODEL, "the file ends inside its header");
    std::memcpy(&header_, data_, sizeof header_);
    if (header_.file_bytes != size_)
      return error(Code::kINVALID_MODEL, "the file should have ", header_.file_bytes,
                   " bytes, it has ", size_,
                   header_.file_bytes > size_ ? "; it is truncated" : "; it is damaged");
    return uint64_t{sizeof header_};
  }

  // Of the buffer at |at|, with its size.
  Result<uint64_t> read_size(uint64_t at) const {
    uint32_t length = 0;
    if (size_ - at < sizeof length)
      return error(Code::kINVALID_MODEL, "the file ends inside its header");
    std::memcpy(&length, data_ + at, sizeof length);
    if (length > size_ - at - sizeof length)
      return error(Code::kINVALID_MODEL, "the graph should have ", length,
                   " bytes, the file has only ", size_ - at - sizeof length,
                   " left; it is truncated");
    return length + uint64_t{sizeof length};
  }

  // What no section has is zero.
  Status check_padding() {
    sections_.emplace(size_, size_);
    uint64_t at = 0;
    for (const auto& [begin, end] : sections_) {
      if (begin > at && begin - at >= pfm::kAlignment)
        return error(Code::kINVALID_MODEL, "no constant has the ", begin - at, " bytes from byte ",
                     at, "; the file is damaged");
      for (; at < begin; ++at)
        if (data_[at] != 0)
          return error(Code::kDATA_LOSS, "byte ", at,
                       " between the constants is not zero; the file is damaged, restore it from "
                       "where it came");
      at = std::max(at, end);
    }
    return {};
  }

  // Bytes [begin, end) belong to a constant alone.
  Status take_section(uint64_t begin, uint64_t end, const std::string& name) {
    if (begin == end) return {};
    const auto next = sections_.lower_bound(begin);
    if ((next != sections_.end() && next->first < end) ||
        (next != sections_.begin() && std::prev(next)->second > begin))
      return error(Code::kINVALID_MODEL, "constant '", name, "' has bytes ", begin, " to ", end,
                   ", of which something else in the file has some; the file is damaged");
    sections_.emplace(begin, end);
    return {};
  }

  std::string text(const flatbuffers::String* s) {
    charge(s && budget_ > 0 ? s->size() : 0);
    return s && budget_ > 0 ? s->str() : std::string();
  }
  std::string text(const flatbuffers::Vector<uint8_t>* s) {
    charge(s ? s->size() : 0);
    if (!s || budget_ == 0) return {};
    return std::string(reinterpret_cast<const char*>(s->data()), s->size());
  }
  // Elements by copy: a damaged file can have them off their alignment, which the verifier lets
  // pass.
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

  Result<uint64_t> checksum(const char* data, uint64_t size) {
    constexpr uint64_t kPiece = uint64_t{4} << 20;
    pfm::Checksum sum;
    for (uint64_t at = 0; at < size; at += kPiece) {
      const uint64_t piece = std::min(kPiece, size - at);
      sum.add(data + at, piece);
      checked_ += piece;
      PFRT_TRY(progress_.at(static_cast<double>(checked_) / static_cast<double>(size_)));
    }
    return sum.value();
  }

  Result<Tensor> read_tensor(const pfm::Tensor* from, const std::string& name) {
    if (!from) return error(Code::kINVALID_MODEL, "constant '", name, "' has no tensor");
    Tensor t;
    t.dtype = from->dtype();
    t.dims = numbers(from->dims());
    PFRT_TRY(check_rank(t.dims.size(), name));
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
    PFRT_TRY(take_section(from->offset(), from->offset() + expected, name));
    char* data = const_cast<char*>(data_ + from->offset());
    PFRT_ASSIGN(const uint64_t sum, checksum(data, expected));
    if (sum != from->checksum()) return damaged("constant '" + name + "'");
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
    PFRT_TRY(check_rank(value->dense_dims.size(), name));
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
    const auto read_value = [&](const pfm::ValueInfo* v) -> Status {
      const ValueId id = graph.value(text(v->name()));
      if (id == kNoId) return {};
      if (v->shape()) PFRT_TRY(check_rank(v->shape()->size(), graph.at(id).name));
      Type& type = graph.at(id).type;
      type.kind = v->kind();
      type.dtype = v->dtype();
      type.key_dtype = v->key_dtype();
      type.has_shape = v->has_shape();
      for_each(v->shape(), [&](const pfm::Dim* d) {
        type.shape.push_back(d->value() >= 0 ? Dim(d->value())
                                             : graph.symbols->symbol(text(d->name())));
      });
      return {};
    };
    PFRT_TRY(try_each(from.values(), read_value));
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
  pfm::Header header_{};
  std::map<uint64_t, uint64_t> sections_;  // begin and end of what is checked
  uint64_t checked_ = 0;                   // bytes of constants
  uint64_t budget_ = 0;                    // bytes that the graph may still say
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
