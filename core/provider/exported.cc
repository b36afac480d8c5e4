// SPDX-License-Identifier: Apache-2.0
//
// Executables as bytes: a header of the host's own, the provider's identity, then the provider's
// bytes. The header is written in its memory layout, so only a machine of the same byte order reads
// it.
#include <cstring>

#include "core/provider/provider.h"

namespace pfrt {
namespace {

constexpr uint64_t kMagic = 0x3158454652465021;  // "!PFRFEX1"

struct Header {
  uint64_t magic, checksum;  // of all that follows the checksum
  uint64_t region_count, identity_bytes, payload_bytes;
};
constexpr size_t kUnchecked = offsetof(Header, region_count);

// The hash is FNV-1a, which finds accidents and not intent; a provider must read its bytes as a
// stranger's.
uint64_t checksum_of(std::string_view bytes) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

std::string sealed(std::string_view identity, size_t region_count, std::string_view payload) {
  Header header{kMagic, 0, region_count, identity.size(), payload.size()};
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  out += identity;
  out += payload;
  header.checksum = checksum_of(std::string_view(out).substr(kUnchecked));
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

// Returns the provider's part of |bytes|.
Result<std::string_view> opened(std::string_view bytes, std::string_view identity,
                                size_t region_count) {
  Header header{};
  if (bytes.size() < sizeof header)
    return error(Code::kDATA_LOSS, "they are ", bytes.size(), " bytes, their header alone has ",
                 sizeof header);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return error(Code::kDATA_LOSS, "they are no exported executables");
  if (header.checksum != checksum_of(bytes.substr(kUnchecked)))
    return error(Code::kDATA_LOSS, "they are not what was written: the checksum differs");
  const uint64_t body = bytes.size() - sizeof header;
  if (header.identity_bytes > body || header.payload_bytes != body - header.identity_bytes)
    return error(Code::kDATA_LOSS, "their header counts other bytes than there are");
  const std::string_view made_by = bytes.substr(sizeof header, header.identity_bytes);
  if (made_by != identity)
    return error(Code::kUNSUPPORTED, "they were made by '", made_by, "', this is '", identity, "'");
  if (header.region_count != region_count)
    return error(Code::kDATA_LOSS, "they are of ", header.region_count, " regions");
  return bytes.substr(sizeof header + header.identity_bytes);
}

// Receives the provider's bytes.
pfrt_code append(const pfrt_writer* writer, const void* data, uint64_t size) {
  if (size == 0) return PFRT_CODE_OK;
  if (!data) return PFRT_CODE_INVALID_ARGUMENT;
  try {
    static_cast<std::string*>(writer->host)->append(static_cast<const char*>(data), size);
  } catch (const std::exception&) {  // no memory, or more than a string can have
    return PFRT_CODE_OUT_OF_MEMORY;
  }
  return PFRT_CODE_OK;
}

// Copies bytes to an address that suits any type.
Result<Tensor> aligned_copy(std::string_view bytes) {
  return Tensor::copy_of(PFRT_DTYPE_UINT8, {static_cast<int64_t>(bytes.size())}, bytes.data());
}

}  // namespace

Result<std::string> Provider::export_executables(
    const std::vector<std::shared_ptr<Executable>>& executables, const Stop& stop) {
  const std::string doing = message(name(), " exporting ", executables.size(), " executables");
  if (!exports())
    return error(Code::kUNSUPPORTED, doing, ": this provider does not export what it compiles");
  std::vector<pfrt_executable*> handles;
  for (const auto& executable : executables) {
    const bool in_place =
        executable->provider_.get() == this && executable->call_ == executables[0]->call_ &&
        executable->place_ == handles.size() && executable->of_ == executables.size();
    if (!in_place)
      return error(Code::kINVALID_ARGUMENT, doing,
                   ": they are not all that one call gave, in order");
    handles.push_back(executable->handle_);
  }
  std::string payload;
  const pfrt_writer writer{sizeof(pfrt_writer), PFRT_ABI_VERSION, &payload, append};
  Sink sink(logger_, stop);
  PFRT_ASSIGN(const auto lock, turn(stop));
  const pfrt_code code = sink.call([&] {
    return table().export_executables(handle_, handles.data(), handles.size(), &writer, sink.get());
  });
  PFRT_TRY(sink.status(code, doing));
  return sealed(identity(), executables.size(), payload);
}

Result<std::vector<std::shared_ptr<Executable>>> Provider::import_executables(
    const std::vector<pfrt_region>& regions, std::string_view bytes, const Stop& stop) {
  const std::string doing =
      message(name(), " taking the executables of ", regions.size(), " regions from bytes");
  if (!exports())
    return error(Code::kUNSUPPORTED, doing, ": this provider does not export what it compiles");
  auto payload = opened(bytes, identity(), regions.size());
  if (!payload.ok()) return payload.take_status().prepend(doing);
  PFRT_ASSIGN(const Tensor data, aligned_copy(*payload));
  std::vector<pfrt_executable*> handles(regions.size());
  auto executables = owners(regions.size());
  Sink sink(logger_, stop);
  PFRT_ASSIGN(const auto lock, turn(stop));
  const pfrt_code code = sink.call([&] {
    return table().import_executables(handle_, regions.data(), sizeof(pfrt_region), regions.size(),
                                      data.data(), payload->size(), sink.get(), handles.data());
  });
  PFRT_TRY(sink.status(code, doing));
  PFRT_TRY(own(handles, "taking from bytes the executables of", executables));
  return executables;
}

}  // namespace pfrt
