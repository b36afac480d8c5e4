// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/base/digest.h"
#include "core/format/graph_writer.h"
#include "core/format/pfm.h"
#include "core/format/pfm_checksum.h"
#include "core/format/pfm_layout.h"

namespace pfrt {
namespace {

using flatbuffers::FlatBufferBuilder;

// Builds the buffer and the list of sections. Offsets of sections depend on the buffer's size,
// which depends only on the graph (every field is written with a fixed width), so a first build
// with offsets from 0 gives the size for the second.
class Writer {
 public:
  explicit Writer(uint64_t payload_start) : next_(payload_start) { builder_.ForceDefaults(true); }

  Status build(const Graph& graph, const InfoList& info) {
    GraphWriter writer(builder_,
                       [this](const Tensor& tensor, std::string_view) { return put(tensor); });
    PFRT_ASSIGN(auto root, writer.write(graph));
    auto entries = writer.write_entries(info);
    builder_.FinishSizePrefixed(pfm::CreateModel(builder_, root, entries));
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
  GraphWriter::Place put(const Tensor& t) {
    const uint64_t size = t.bytes();
    next_ = (next_ + pfm::kAlignment - 1) / pfm::kAlignment * pfm::kAlignment;
    sections_.push_back({next_, size, t.data()});
    const uint64_t at = next_;
    next_ += size;
    return {at, checksum(size ? t.data() : "", size)};
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
