// SPDX-License-Identifier: Apache-2.0
#include "core/format/compiled.h"

#include <algorithm>
#include <tuple>

#include "compiled_generated.h"
#include "core/format/graph_reader.h"
#include "core/format/graph_writer.h"

namespace pfrt {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

constexpr uint64_t kPage = 4096;
// Constants smaller than a page share pages, at multiples of this.
constexpr uint64_t kLine = 64;

class Writer {
 public:
  // |packed_from| is null for graphs that do not run.
  Writer(const ModelFiles& files, std::vector<CompiledSection>& sections,
         const std::set<const void*>* packed_from)
      : graphs_(
            builder_,
            [this](const Tensor& tensor, std::string_view name) { return put(tensor, name); },
            true),
        files_(files),
        sections_(sections),
        packed_from_(packed_from) {}

  GraphWriter& graphs() { return graphs_; }
  FlatBufferBuilder& builder() { return builder_; }

  flatbuffers::Offset<flatbuffers::Vector<Offset<flatbuffers::String>>> texts(const Texts& list) {
    std::vector<Offset<flatbuffers::String>> out;
    for (const std::string& text : list) out.push_back(graphs_.text(text));
    return builder_.CreateVector(out);
  }

  Offset<flatbuffers::Vector<Offset<pfm::File>>> known_files(const std::vector<KnownFile>& files) {
    std::vector<Offset<pfm::File>> list;
    for (const KnownFile& file : files) {
      auto path = graphs_.text(file.path);
      const os::FileStamp& s = file.stamp;
      list.push_back(
          pfm::CreateFile(builder_, path, s.device, s.inode, s.bytes, s.modified_ns, s.changed_ns));
    }
    return builder_.CreateVector(list);
  }

  uint64_t section(const std::shared_ptr<Buffer>& buffer, uint64_t from, uint64_t bytes) {
    const auto [at, is_new] = placed_.try_emplace({buffer->identity(), from, bytes}, 0);
    if (!is_new) return at->second;
    const uint64_t alignment = bytes < kPage ? kLine : kPage;
    next_ = (next_ + alignment - 1) / alignment * alignment;
    sections_.push_back({next_, bytes, buffer, from});
    at->second = std::exchange(next_, next_ + bytes);
    return at->second;
  }

  template <typename T>
  std::string finish(Offset<T> root) {
    builder_.Finish(root);
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()), builder_.GetSize()};
  }

 private:
  GraphWriter::Place put(const Tensor& t, std::string_view name) {
    const uint64_t bytes = t.bytes();
    if (bytes == 0 || !t.buffer) return {};
    const bool there = !t.buffer->deferred() || t.buffer->lies_at_origin();
    const bool packed = !packed_from_ || packed_from_->contains(t.buffer->identity());
    // Unaligned bytes are copied here, since otherwise each process would copy them.
    const bool copied = t.buffer->lies_at_origin() && !packed && bytes >= kPage;
    if (!t.buffer->owned() && there && !copied) {
      const auto* at = static_cast<const char*>(t.buffer->at_any_address()) + t.offset;
      for (uint32_t i = 0; i < files_.size(); ++i) {
        const auto* begin = static_cast<const char*>(files_[i]->data());
        if (!begin || at < begin || at + bytes > begin + files_[i]->size()) continue;
        return {static_cast<uint64_t>(at - begin), 0, i + 1, t.buffer->deferred()};
      }
    }
    const bool whole = t.offset == 0 && bytes == t.buffer->bytes();
    if (packed_from_ && packed && !there && whole && !name.empty())
      return {0, 0, pfm::kRemade, true};
    return {section(t.buffer, t.offset, bytes), 0, 0, t.buffer->deferred()};
  }

  FlatBufferBuilder builder_;
  GraphWriter graphs_;
  const ModelFiles& files_;
  std::vector<CompiledSection>& sections_;
  const std::set<const void*>* const packed_from_;
  // Offsets by the identity of a buffer, and the range of its bytes.
  std::map<std::tuple<const void*, uint64_t, uint64_t>, uint64_t> placed_;
  uint64_t next_ = 0;
};

class Reader {
 public:
  Reader(std::string_view head, const CompiledBody& body, const OpenFile& open,
         const Remake& remake)
      : graphs_(
            head.size(),
            [this](const pfm::Tensor& from, uint64_t bytes, const std::string& name, Tensor& out) {
              return section(from, bytes, name, out);
            },
            true),
        body_(body),
        open_(open),
        remake_(remake) {}

  GraphReader& graphs() { return graphs_; }

  Texts texts(const flatbuffers::Vector<Offset<flatbuffers::String>>* list) {
    Texts out;
    for (uint32_t i = 0; list && i < list->size(); ++i) out.push_back(graphs_.text(list->Get(i)));
    return out;
  }

  std::vector<KnownFile> known_files(const flatbuffers::Vector<Offset<pfm::File>>* files) {
    std::vector<KnownFile> out;
    for (uint32_t i = 0; files && i < files->size(); ++i) {
      const pfm::File* f = files->Get(i);
      out.push_back({graphs_.text(f->path()),
                     {f->device(), f->inode(), f->bytes(), f->modified_ns(), f->changed_ns()}});
    }
    return out;
  }

  Result<std::shared_ptr<Buffer>> view(uint64_t offset, uint64_t bytes, bool deferred) {
    if (offset > body_.bytes || bytes > body_.bytes - offset)
      return error(Code::kINVALID_MODEL, "a section lies outside of the entry");
    return view_of(body_.data + offset, bytes, deferred, body_.keep);
  }

 private:
  static Result<std::shared_ptr<Buffer>> view_of(const char* data, uint64_t bytes, bool deferred,
                                                 const std::shared_ptr<void>& keep) {
    char* const at = const_cast<char*>(data);
    if (deferred || reinterpret_cast<uintptr_t>(at) % alignof(uint64_t) != 0)
      return Buffer::unaligned(at, bytes, [keep] {});
    return Buffer::wrap(at, bytes, [keep] {});
  }

  Status section(const pfm::Tensor& from, uint64_t bytes, const std::string& name, Tensor& out) {
    if (bytes == 0) {
      PFRT_ASSIGN(out.buffer, Buffer::allocate(0));
      return {};
    }
    if (from.file() == pfm::kRemade) {
      if (!remake_) return error(Code::kINVALID_MODEL, "constant '", name, "' has no bytes");
      PFRT_ASSIGN(out.buffer, Buffer::deferred(bytes, [remake = remake_, name, bytes](void* to) {
                    remake(name, bytes, to);
                  }));
      return {};
    }
    if (from.file() == 0) {
      PFRT_ASSIGN(out.buffer, view(from.offset(), bytes, from.deferred()));
      return {};
    }
    PFRT_ASSIGN(const auto file, open_(from.file() - 1));
    if (from.offset() > file->size() || bytes > file->size() - from.offset())
      return error(Code::kINVALID_MODEL, "constant '", name, "' lies outside of the model's file");
    // Elements in a file may be at any address.
    const char* const at = static_cast<const char*>(file->data()) + from.offset();
    const size_t element = std::clamp<size_t>(dtype_size(out.dtype), 1, 8);
    const bool elsewhere = from.deferred() || reinterpret_cast<uintptr_t>(at) % element != 0;
    const auto release = [file] {};
    PFRT_ASSIGN(out.buffer, elsewhere ? Buffer::unaligned(const_cast<char*>(at), bytes, release)
                                      : Buffer::wrap(const_cast<char*>(at), bytes, release));
    return {};
  }

  GraphReader graphs_;
  const CompiledBody body_;
  const OpenFile open_;
  const Remake remake_;
};

// The root of |head|; null where it has none of type T.
template <typename T>
const T* root_of(std::string_view head) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(head.data());
  flatbuffers::Verifier verifier(bytes, head.size(), pfm::kMaxDepth * 8, 100'000'000);
  return verifier.VerifyBuffer<T>() ? flatbuffers::GetRoot<T>(bytes) : nullptr;
}

Status no_entry() { return error(Code::kINVALID_MODEL, "its head is not of this version"); }

Result<std::shared_ptr<Graph>> read_graph(GraphReader& reader, const pfm::Graph* from,
                                          const flatbuffers::Vector<Offset<pfm::Symbol>>* symbols) {
  if (!from) return no_entry();
  auto graph = std::make_shared<Graph>();
  PFRT_TRY(reader.read_symbols(symbols, *graph->symbols));
  PFRT_TRY(reader.read(*from, *graph));
  PFRT_TRY(graph->bind_captures());
  return graph;
}

}  // namespace

Result<std::string> write_known(const KnownModel& model, const ModelFiles& files,
                                std::vector<CompiledSection>& sections) {
  Writer writer(files, sections, nullptr);
  FlatBufferBuilder& builder = writer.builder();
  auto all = writer.known_files(model.files);
  auto content = writer.graphs().text(model.content);
  auto symbols = writer.graphs().write_symbols(*model.face->symbols);
  PFRT_ASSIGN(auto face, writer.graphs().write(*model.face));
  auto info = writer.graphs().write_entries(model.info);
  auto warnings = writer.texts(model.warnings);
  return writer.finish(pfm::CreateKnownModel(builder, all, content, symbols, face, info, warnings));
}

Result<KnownModel> read_known(std::string_view head, const CompiledBody& body,
                              const OpenFile& open) {
  const auto* from = root_of<pfm::KnownModel>(head);
  if (!from) return no_entry();
  Reader reader(head, body, open, nullptr);
  KnownModel out;
  out.files = reader.known_files(from->files());
  out.content = reader.graphs().text(from->content());
  PFRT_ASSIGN(out.face, read_graph(reader.graphs(), from->face(), from->symbols()));
  out.info = reader.graphs().entries(from->info());
  out.warnings = reader.texts(from->warnings());
  PFRT_TRY(reader.graphs().check_budget());
  return out;
}

Result<std::string> write_compiled(const Compiled& compiled, const ModelFiles& files,
                                   std::vector<CompiledSection>& sections) {
  Writer writer(files, sections, &compiled.packed_from);
  FlatBufferBuilder& builder = writer.builder();
  auto symbols = writer.graphs().write_symbols(*compiled.graph->symbols);
  PFRT_ASSIGN(auto graph, writer.graphs().write(*compiled.graph));
  std::vector<Offset<pfm::Report>> reports;
  for (const CompiledReport& report : compiled.reports) {
    auto name = writer.graphs().text(report.name);
    auto rules = writer.graphs().write_entries(report.rules);
    auto warnings = writer.texts(report.warnings);
    reports.push_back(
        pfm::CreateReport(builder, name, report.nodes_before, report.nodes_after, rules, warnings));
  }
  auto report_list = builder.CreateVector(reports);
  auto notes = writer.texts(compiled.notes);
  std::vector<Offset<pfm::Precision>> precisions;
  if (!compiled.precisions.empty())
    for (const NodeId id : compiled.graph->node_ids()) {
      auto note = writer.graphs().text(compiled.precisions[id].second);
      precisions.push_back(pfm::CreatePrecision(builder, compiled.precisions[id].first, note));
    }
  auto precision_list = builder.CreateVector(precisions);
  std::vector<Offset<pfm::Packed>> packed;
  for (const auto& [key, buffer] : compiled.packed) {
    const uint64_t at = writer.section(buffer, 0, buffer->bytes());
    packed.push_back(pfm::CreatePacked(builder, writer.graphs().text(key), at, buffer->bytes()));
  }
  auto packed_list = builder.CreateVector(packed);
  auto files_of = writer.known_files(compiled.files);
  return writer.finish(pfm::CreateCompiled(builder, symbols, graph, report_list, notes,
                                           precision_list, packed_list, files_of));
}

Result<Compiled> read_compiled(std::string_view head, const CompiledBody& body,
                               const OpenFile& open, const Remake& remake) {
  const auto* from = root_of<pfm::Compiled>(head);
  if (!from) return no_entry();
  Reader reader(head, body, open, remake);
  Compiled out;
  PFRT_ASSIGN(out.graph, read_graph(reader.graphs(), from->graph(), from->symbols()));
  for (uint32_t i = 0; from->reports() && i < from->reports()->size(); ++i) {
    const pfm::Report* r = from->reports()->Get(i);
    out.reports.push_back({reader.graphs().text(r->name()), r->nodes_before(), r->nodes_after(),
                           reader.graphs().entries(r->rules()), reader.texts(r->warnings())});
  }
  out.notes = reader.texts(from->notes());
  for (uint32_t i = 0; from->precisions() && i < from->precisions()->size(); ++i) {
    const pfm::Precision* p = from->precisions()->Get(i);
    out.precisions.emplace_back(p->hint(), reader.graphs().text(p->note()));
  }
  if (!out.precisions.empty() && out.precisions.size() != out.graph->node_capacity())
    return no_entry();
  for (uint32_t i = 0; from->packed() && i < from->packed()->size(); ++i) {
    const pfm::Packed* p = from->packed()->Get(i);
    PFRT_ASSIGN(auto buffer, reader.view(p->offset(), p->bytes(), false));
    out.packed.emplace(reader.graphs().text(p->key()), std::move(buffer));
  }
  out.files = reader.known_files(from->files());
  PFRT_TRY(reader.graphs().check_budget());
  return out;
}

Result<std::vector<KnownFile>> read_compiled_files(std::string_view head) {
  const auto* from = root_of<pfm::Compiled>(head);
  if (!from) return no_entry();
  const CompiledBody body;
  return Reader(head, body, nullptr, nullptr).known_files(from->files());
}

}  // namespace pfrt
