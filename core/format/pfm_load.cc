// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>

#include "core/base/digest.h"
#include "core/format/graph_reader.h"
#include "core/format/pfm.h"
#include "core/format/pfm_checksum.h"
#include "core/format/pfm_layout.h"

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
    sections_.emplace(0, header_bytes + buffer_bytes);
    // The buffer is copied because others may write to a mapped file between its check and its
    // reading, which relies on the check. FlatBuffers also needs it aligned, which memory of a
    // caller may not be.
    const auto copy = std::make_unique_for_overwrite<uint64_t[]>((buffer_bytes + 7) / 8);
    std::memcpy(copy.get(), data_ + header_bytes, buffer_bytes);
    if (header_bytes == sizeof header_ &&
        pfm::checksum_of(header_, copy.get(), buffer_bytes) != header_.checksum)
      return damaged("the graph");
    const auto* const bytes = reinterpret_cast<const uint8_t*>(copy.get());
    const uint64_t most_tables =
        std::min<uint64_t>(buffer_bytes * GraphReader::kSharing / 8, 100'000'000);
    flatbuffers::Verifier verifier(bytes, buffer_bytes, pfm::kMaxDepth * 8,
                                   static_cast<flatbuffers::uoffset_t>(most_tables));
    if (!pfm::VerifySizePrefixedModelBuffer(verifier))
      return error(Code::kINVALID_MODEL, "the graph's bytes are corrupt");
    const pfm::Model* model = pfm::GetSizePrefixedModel(bytes);
    PfmModel out;
    out.graph = std::make_shared<Graph>();
    GraphReader graph(buffer_bytes,
                      [this](const pfm::Tensor& from, uint64_t size, const std::string& name,
                             Tensor& tensor) { return read_section(from, size, name, tensor); });
    PFRT_TRY(graph.read(*model->graph(), *out.graph));
    out.info = graph.entries(model->info());
    PFRT_TRY(graph.check_budget());
    if (header_bytes == sizeof header_) PFRT_TRY(check_padding());
    out.version = header_.version;
    return out;
  }

 private:
  static Status damaged(std::string_view what) {
    return error(
        Code::kDATA_LOSS, what,
        " does not match its checksum; the file is damaged, restore it from where it came");
  }

  // Returns the number of bytes before the buffer, by the version.
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

  // Returns the bytes of the buffer at |at|, with its size field.
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

  // Checks that bytes outside of sections are zero.
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

  // Checks that bytes [begin, end) belong to one constant alone.
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

  Result<uint64_t> checksum(const char* data, uint64_t size) {
    constexpr uint64_t kPiece = uint64_t{4} << 20;
    Checksum sum;
    for (uint64_t at = 0; at < size; at += kPiece) {
      const uint64_t piece = std::min(kPiece, size - at);
      sum.add(data + at, piece);
      checked_ += piece;
      PFRT_TRY(progress_.at(static_cast<double>(checked_) / static_cast<double>(size_)));
    }
    return sum.value();
  }

  Status read_section(const pfm::Tensor& from, uint64_t bytes, const std::string& name,
                      Tensor& out) {
    if (from.offset() > size_ || from.bytes() > size_ - from.offset())
      return error(Code::kINVALID_MODEL, "constant '", name, "' lies at byte ", from.offset(),
                   " with ", from.bytes(), " bytes, the file has ", size_, "; it is truncated");
    PFRT_TRY(take_section(from.offset(), from.offset() + bytes, name));
    char* data = const_cast<char*>(data_ + from.offset());
    PFRT_ASSIGN(const uint64_t sum, checksum(data, bytes));
    if (sum != from.checksum()) return damaged("constant '" + name + "'");
    const size_t element = std::max<size_t>(1, dtype_size(out.dtype));
    if (reinterpret_cast<uintptr_t>(data) % std::min<size_t>(element, 8) != 0) {
      PFRT_ASSIGN(out, Tensor::copy_of(out.dtype, out.dims, data));
      return {};
    }
    PFRT_ASSIGN(out.buffer, Buffer::wrap(data, bytes, [keep = keep_] {}));
    return {};
  }

  const char* data_;
  uint64_t size_;
  std::shared_ptr<void> keep_;
  Progress& progress_;
  pfm::Header header_{};
  std::map<uint64_t, uint64_t> sections_;  // begin and end of checked parts
  uint64_t checked_ = 0;                   // bytes of constants
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
