// SPDX-License-Identifier: Apache-2.0
#include "core/model/source_files.h"

#include <algorithm>
#include <utility>

#include "core/base/digest.h"
#include "core/base/lock.h"
#include "core/base/os/pages.h"

namespace pfrt {
namespace {

using Health = std::vector<std::shared_ptr<os::FileHealth>>;

void collect_file(const Tensor& tensor, Health& viewed, Health& copied) {
  if (!tensor.buffer || tensor.buffer->owned()) return;
  auto file = os::health_of(tensor.origin());
  if (!file) return;
  auto& list = tensor.deferred() ? copied : viewed;
  if (std::find(list.begin(), list.end(), file) == list.end()) list.push_back(std::move(file));
}

// The files that constants of the graph and its bodies are mapped from.
void collect_files(const Graph& graph, Health& viewed, Health& copied) {
  const auto add = [&](const ValuePtr& value) {
    if (!value) return;
    collect_file(value->tensor, viewed, copied);
    collect_file(value->indices, viewed, copied);
  };
  for (ValueId id : graph.initializers()) add(graph.at(id).constant);
  for (NodeId id : graph.node_ids()) {
    for (const Attribute& a : graph.node(id)->attrs) {
      add(a.tensor);
      for (const ValuePtr& value : a.tensors) add(value);
      if (a.graph) collect_files(*a.graph, viewed, copied);
      for (const auto& body : a.graphs) collect_files(*body, viewed, copied);
    }
  }
}

}  // namespace

void SourceFiles::set(std::vector<ModelFile> files, std::string load_key) {
  files_ = std::move(files);
  load_key_ = std::move(load_key);
}

void SourceFiles::set_known(std::vector<ModelFile> files, std::string content) {
  files_ = std::move(files);
  content_ = std::move(content);
  content_tried_ = true;
}

void SourceFiles::set_memory(const void* data, uint64_t bytes, std::string_view load_key) {
  Digest digest;
  digest.add(std::string_view("memory"));
  digest.add(load_key);
  digest.add(data, bytes);
  content_ = digest.hex();
  content_tried_ = true;
}

void SourceFiles::collect(const Graph& graph) { collect_files(graph, viewed_, copied_); }

std::string SourceFiles::content(const RunControl& control) const {
  const auto lock = lock_unless(mutex_, [&] { return control.stop() != Code::kOK; });
  if (!lock.owns_lock()) return {};
  if (content_tried_ || files_.empty()) return content_;
  auto content = read_content(control);
  if (content.ok()) content_ = content.take();
  content_tried_ = control.stop() == Code::kOK;
  return content_;
}

// The digest is made of hashes of pieces, which threads compute.
Result<std::string> SourceFiles::read_content(const RunControl& control) const {
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  struct Piece {
    const os::MappedFile* file;
    uint64_t at, bytes;
    Blake3::Hash hash;
  };
  struct Work {
    const RunControl& control;
    std::vector<Piece> pieces;
  } work{control, {}};
  Digest digest;
  digest.add(load_key_);
  for (const ModelFile& file : files_) {
    const uint64_t bytes = file.mapped->size();
    digest.add(&bytes, sizeof bytes);
    for (uint64_t at = 0; at < bytes; at += kPiece)
      work.pieces.push_back({file.mapped.get(), at, std::min(kPiece, bytes - at), {}});
  }
  const auto body = [](void* arg, uint64_t i, uint32_t) {
    Work& all = *static_cast<Work*>(arg);
    if (all.control.stop() != Code::kOK) return;
    Piece& piece = all.pieces[i];
    const char* const data = static_cast<const char*>(piece.file->data()) + piece.at;
    Blake3 hash;
    hash.add(data, piece.bytes);
    piece.hash = hash.hash();
    if (piece.file->health()) os::drop_pages(data, piece.bytes);
  };
  control.loop(control.width, work.pieces.size(), body, &work);
  PFRT_TRY(control.stopped());
  for (const ModelFile& file : files_)
    if (file.mapped->health() && file.mapped->health()->check())
      return file.mapped->health()->status();
  for (const Piece& piece : work.pieces) digest.add(piece.hash.data(), piece.hash.size());
  return digest.hex();
}

Result<std::shared_ptr<os::MappedFile>> SourceFiles::mapped(size_t number) const {
  const std::lock_guard lock(mutex_);
  if (number >= files_.size()) return error(Code::kINVALID_MODEL, "the model has no file ", number);
  ModelFile& file = files_[number];
  if (!file.mapped) {
    PFRT_ASSIGN(auto opened,
                os::MappedFile::open(file.path, files_.front().mapped->health() != nullptr));
    if (!(opened->stamp() == file.stamp))
      return error(Code::kDATA_LOSS, "file '", file.path, "' is another than it was");
    file.mapped = std::move(opened);
  }
  return file.mapped;
}

Status SourceFiles::intact(bool ask, bool listed) const {
  for (const auto& file : viewed_)
    if (ask ? file->check() : file->lost()) return file->status();
  for (const auto& file : copied_)
    if (file->lost()) return file->status();
  if (!listed) return {};
  const std::lock_guard lock(mutex_);
  for (const ModelFile& file : files_) {
    if (!file.mapped || !file.mapped->health()) continue;
    os::FileHealth& health = *file.mapped->health();
    if (ask ? health.check() : health.lost()) return health.status();
  }
  return {};
}

}  // namespace pfrt
