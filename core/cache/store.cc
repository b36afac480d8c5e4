// SPDX-License-Identifier: Apache-2.0
#include "core/cache/store.h"

#include <algorithm>
#include <cstring>

#include "core/base/digest.h"
#include "core/base/os/atomic_file.h"
#include "core/base/os/descriptor.h"
#include "core/base/os/library.h"
#include "core/base/os/pages.h"

namespace pfrt {
namespace {

constexpr char kMagic[8] = {'P', 'F', 'R', 'T', 'C', 'A', 'C', 'H'};
constexpr uint32_t kVersion = 1;
constexpr uint64_t kSmallAlignment = 16;
constexpr uint64_t kPiece = uint64_t{4} << 20;
constexpr uint32_t kLockWaitMs = 2000;
constexpr int64_t kSettledNs = 2'000'000'000;
constexpr int64_t kUsedStepNs = 1'000'000'000;  // precision of the last use
constexpr std::string_view kSeen = ".seen";

constexpr uint64_t aligned(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

// The state of a file whose body was found intact.
struct Seen {
  os::FileStamp stamp;
  uint64_t boot = 0, checksum = 0;
};

uint64_t checksum_of(const Seen& seen) { return checksum(&seen, offsetof(Seen, checksum)); }

Seen seen_now(const os::FileStamp& stamp) {
  Seen seen{stamp, os::boot_number(), 0};
  seen.checksum = checksum_of(seen);
  return seen;
}

// Sums bytes that are added, and written.
class Sum {
 public:
  // Mixes checksums of pieces at fixed places, so that the sum does not depend on how the bytes are
  // divided among calls.
  void add(const char* data, uint64_t bytes) {
    while (bytes > 0) {
      const uint64_t part = std::min(bytes, kPiece - at_ % kPiece);
      if (part == kPiece) {
        mix(checksum(data, part));
      } else {
        rest_.append(data, part);
        if ((at_ + part) % kPiece == 0) flush();
      }
      at_ += part;
      data += part;
      bytes -= part;
    }
  }
  uint64_t value() {
    flush();
    return sum_;
  }

 private:
  void flush() {
    if (rest_.empty()) return;
    mix(checksum(rest_.data(), rest_.size()));
    rest_.clear();
  }
  void mix(uint64_t piece) { sum_ = (sum_ ^ piece) * 0x9E3779B97F4A7C15u + 1; }

  uint64_t at_ = 0, sum_ = 0;
  std::string rest_;
};

// Names of files are digests. Shorter ones are of former versions, whose files are evicted.
bool is_name(std::string_view key) {
  return (key.size() == 64 || key.size() == 32) &&
         key.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

bool settled(const os::FileStamp& stamp) {
  const int64_t age = os::system_ns() - std::max(stamp.modified_ns, stamp.changed_ns);
  return age > kSettledNs;
}

struct CacheStore::Header {
  char magic[sizeof kMagic];
  uint32_t version, byte_order;
  uint64_t file_bytes, key_bytes, of_bytes, head_bytes, head_at, body_at, body_bytes;
  int64_t created_ns;
  uint64_t checksum;  // of everything before it, and of all up to |body_at|
};

CacheStore::CacheStore(std::string folder, std::vector<std::string> suffixes, CacheLimits limits,
                       Logger* logger, const CacheStore* former)
    : folder_(std::move(folder)),
      suffixes_(std::move(suffixes)),
      limits_(limits),
      logger_(logger),
      counts_(former ? former->counts_ : std::make_shared<Counts>()) {}

Status CacheStore::make_folder() const {
  PFRT_TRY(os::make_folders(folder_));
  return os::check_own_folder(folder_);
}

std::string CacheStore::path_of(std::string_view key, const std::string& suffix) const {
  std::string name(key);
  if (!is_name(key)) {
    Digest digest;
    digest.add(key);
    name = digest.hex();
  }
  return folder_ + "/" + name + suffix;
}

Result<CacheStore::EntryPtr> CacheStore::open(const std::string& path, std::string_view key,
                                              Reading reading) const {
  PFRT_TRY(os::check_own_folder(folder_));
  PFRT_ASSIGN(auto file, os::MappedFile::open_private(path, limits_.use_mmap));
  Header header{};
  const auto* const data = static_cast<const char*>(file->data());
  const uint64_t size = file->size();
  if (size < sizeof header) return error(Code::kDATA_LOSS, "it ends inside its header");
  std::memcpy(&header, data, sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    return error(Code::kDATA_LOSS, "it is no entry of a cache");
  if (header.version != kVersion || header.byte_order != 1)
    return error(Code::kUNSUPPORTED,
                 "another version of this library, or another kind of machine, "
                 "wrote it");
  const bool in_order = header.key_bytes <= size && header.of_bytes <= size &&
                        header.head_bytes <= size && header.head_at <= size &&
                        header.body_at <= size && header.body_bytes <= size &&
                        sizeof header + header.key_bytes + header.of_bytes <= header.head_at &&
                        header.head_at + header.head_bytes <= header.body_at &&
                        header.body_at + header.body_bytes + sizeof(uint64_t) == size;
  if (header.file_bytes != size || !in_order)
    return error(Code::kDATA_LOSS, "it should have ", header.file_bytes, " bytes and has ", size);
  auto entry = std::make_shared<Entry>();
  entry->front.assign(data, header.body_at);
  Checksum front_sum;
  front_sum.add(&header, offsetof(Header, checksum));
  front_sum.add(entry->front.data() + sizeof header, header.body_at - sizeof header);
  if (front_sum.value() != header.checksum)
    return error(Code::kDATA_LOSS, "its head does not match its checksum");
  const std::string_view front = entry->front;
  entry->key = front.substr(sizeof header, header.key_bytes);
  entry->of = front.substr(sizeof header + header.key_bytes, header.of_bytes);
  entry->head = front.substr(header.head_at, header.head_bytes);
  entry->body = data + header.body_at;
  entry->body_bytes = header.body_bytes;
  entry->file = std::move(file);
  if (!key.empty() && entry->key != key) return error(Code::kDATA_LOSS, "it is of another key");
  if (limits_.ttl_ns() > 0 && os::system_ns() - header.created_ns > limits_.ttl_ns())
    return error(Code::kDEADLINE, "it is older than ", limits_.ttl_s, " s");
  if (reading != Reading::kHead) PFRT_TRY(check_body(path, *entry, reading == Reading::kUse));
  return EntryPtr(std::move(entry));
}

Status CacheStore::check_body(const std::string& path, const Entry& entry, bool use) const {
  const std::string seen_path = path + std::string(kSeen);
  const os::FileStamp& stamp = entry.file->stamp();
  bool known = false;
  if (use) {
    Seen seen;
    auto file = os::MappedFile::open_private(seen_path, false);
    if (file.ok() && file.value()->size() == sizeof seen) {
      std::memcpy(&seen, file.value()->data(), sizeof seen);
      known = seen.checksum == checksum_of(seen) && seen.stamp == stamp && seen.boot != 0 &&
              seen.boot == os::boot_number();
      if (known && os::system_ns() - file.value()->stamp().modified_ns > kUsedStepNs)
        os::touch(seen_path);
    }
  }
  if (known) return {};
  Sum sum;
  for (uint64_t at = 0; at < entry.body_bytes; at += kPiece) {
    const uint64_t bytes = std::min(kPiece, entry.body_bytes - at);
    sum.add(entry.body + at, bytes);
    if (entry.file->health()) os::drop_pages(entry.body + at, bytes);
  }
  uint64_t expected = 0;
  std::memcpy(&expected, entry.body + entry.body_bytes, sizeof expected);
  if (entry.file->health() && entry.file->health()->check()) return entry.file->health()->status();
  if (sum.value() != expected)
    return error(Code::kDATA_LOSS, "its body does not match its checksum");
  if (!use) return {};
  const Seen seen = settled(stamp) ? seen_now(stamp) : Seen();
  auto file = os::AtomicFile::create(seen_path, false);
  if (file.ok() && file.value()->write(&seen, sizeof seen).ok())
    (void)file.value()->commit(false).ok();
  return {};
}

CacheStore::EntryPtr CacheStore::find(std::string_view key, const std::string& suffix) {
  const std::string path = path_of(key, suffix);
  {
    const std::lock_guard lock(mutex_);
    const auto at = open_.find(path);
    if (at != open_.end())
      if (auto entry = at->second.lock()) {
        const auto now = os::stamp_of(path);
        if (now.ok() && now.value() == entry->file->stamp() &&
            !(entry->file->health() && entry->file->health()->lost())) {
          ++counts_->hits;
          return entry;
        }
      }
  }
  if (!os::stamp_of(path).ok()) {
    ++counts_->misses;
    return nullptr;
  }
  auto opened = open(path, key, Reading::kUse);
  if (!opened.ok()) {
    ++counts_->misses;
    // The file stays: it is replaced when the entry is made again, and another process may have
    // done so already.
    if (opened.status().code() != Code::kDEADLINE && opened.status().code() != Code::kNOT_FOUND) {
      ++counts_->invalid;
      if (logger_)
        logger_->log(PFRT_LOG_WARNING, "cache entry '", path,
                     "' is not used and made again: ", opened.status().message());
    }
    return nullptr;
  }
  ++counts_->hits;
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, [](const auto& e) { return e.second.expired(); });
  open_[path] = opened.value();
  return opened.take();
}

Status CacheStore::put(std::string_view key, const std::string& suffix, std::string_view of,
                       std::string_view head, const std::vector<Section>& sections) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.byte_order = 1;
  header.key_bytes = key.size();
  header.of_bytes = of.size();
  header.head_bytes = head.size();
  header.head_at = aligned(sizeof header + key.size() + of.size(), kSmallAlignment);
  header.body_at = aligned(header.head_at + head.size(), kSectionAlignment);
  for (const Section& s : sections)
    header.body_bytes = std::max(header.body_bytes, s.offset + s.bytes);
  header.file_bytes = header.body_at + header.body_bytes + sizeof(uint64_t);
  header.created_ns = os::system_ns();
  if (limits_.max_bytes > 0 && header.file_bytes > limits_.max_bytes)
    return error(Code::kUNSUPPORTED, "an entry of ", header.file_bytes,
                 " bytes is larger than the cache may be, ", limits_.max_bytes, " bytes");
  std::string front(reinterpret_cast<const char*>(&header), sizeof header);
  front.append(key).append(of);
  front.resize(header.head_at);
  front.append(head);
  front.resize(header.body_at);
  Checksum front_sum;
  front_sum.add(&header, offsetof(Header, checksum));
  front_sum.add(front.data() + sizeof header, front.size() - sizeof header);
  header.checksum = front_sum.value();
  std::memcpy(front.data(), &header, sizeof header);

  PFRT_TRY(make_folder());
  const std::string path = path_of(key, suffix);
  PFRT_ASSIGN(auto file, os::AtomicFile::create(path, false));
  PFRT_TRY(file->write(front.data(), front.size()));
  Sum sum;
  uint64_t at = 0;
  const auto write = [&](const void* data, uint64_t bytes) -> Status {
    sum.add(static_cast<const char*>(data), bytes);
    at += bytes;
    return file->write(data, bytes);
  };
  const std::string zeros(kSectionAlignment, '\0');
  for (const Section& s : sections) {
    while (at < s.offset) PFRT_TRY(write(zeros.data(), std::min(kSectionAlignment, s.offset - at)));
    PFRT_TRY(s.fill(write));
    if (at != s.offset + s.bytes)
      return error(Code::kINTERNAL, "a section of a cache entry has other bytes than it said");
  }
  const uint64_t trailer = sum.value();
  PFRT_TRY(file->write(&trailer, sizeof trailer));
  const auto lock = os::lock_file(folder_ + "/lock", kLockWaitMs);
  if (!lock.ok() && lock.status().code() == Code::kBUSY) return lock.status();
  PFRT_TRY(file->commit(false));
  ++counts_->stores;
  evict_locked();
  return {};
}

std::vector<CacheStore::File> CacheStore::files() const {
  std::vector<File> out;
  for (const std::string& name : os::list_folder(folder_)) {
    const auto suffix = std::ranges::find_if(
        suffixes_, [&](const std::string& each) { return name.ends_with(each); });
    if (suffix == suffixes_.end() || !is_name(name.substr(0, name.size() - suffix->size())))
      continue;
    const auto stamp = os::stamp_of(folder_ + "/" + name);
    if (!stamp.ok()) continue;
    const auto seen = os::stamp_of(folder_ + "/" + name + std::string(kSeen));
    out.push_back({name, *suffix, stamp.value(),
                   std::max(stamp->modified_ns, seen.ok() ? seen->modified_ns : 0)});
  }
  std::ranges::sort(out, std::ranges::greater(), &File::used_ns);
  return out;
}

uint64_t CacheStore::evict_locked() {
  os::remove_left_over(folder_);
  uint64_t bytes = 0, entries = 0, gone = 0;
  const int64_t now = os::system_ns();
  for (const File& file : files()) {
    bytes += file.stamp.bytes;
    ++entries;
    const bool old = limits_.ttl_ns() > 0 && now - file.stamp.modified_ns > limits_.ttl_ns();
    const bool many = limits_.max_entries > 0 && entries > limits_.max_entries;
    const bool large = limits_.max_bytes > 0 && bytes > limits_.max_bytes;
    if (!old && !many && !large) continue;
    if (!os::remove_file(folder_ + "/" + file.name)) continue;
    os::remove_file(folder_ + "/" + file.name + std::string(kSeen));
    bytes -= file.stamp.bytes;
    --entries;
    ++gone;
  }
  counts_->evictions += gone;
  return gone;
}

uint64_t CacheStore::evict() {
  const auto lock = os::lock_file(folder_ + "/lock", kLockWaitMs);
  return lock.ok() || lock.status().code() == Code::kUNSUPPORTED ? evict_locked() : 0;
}

bool CacheStore::remove(std::string_view key) {
  bool removed = false;
  for (const std::string& suffix : suffixes_) {
    const std::string path = path_of(key, suffix);
    os::remove_file(path + std::string(kSeen));
    removed |= os::remove_file(path);
  }
  return removed;
}

uint64_t CacheStore::clear() {
  uint64_t gone = 0;
  os::remove_left_over(folder_);
  for (const File& file : files()) {
    os::remove_file(folder_ + "/" + file.name + std::string(kSeen));
    gone += os::remove_file(folder_ + "/" + file.name);
  }
  return gone;
}

std::vector<CacheStore::Info> CacheStore::list(bool check) {
  std::vector<Info> out;
  for (const File& file : files()) {
    Info info;
    info.path = folder_ + "/" + file.name;
    info.suffix = file.suffix;
    info.key = file.name.substr(0, file.name.size() - file.suffix.size());
    info.bytes = file.stamp.bytes;
    info.created_ns = file.stamp.modified_ns;
    info.used_ns = file.used_ns;
    if (const auto entry = open(info.path, {}, check ? Reading::kCheck : Reading::kHead);
        entry.ok()) {
      info.key = entry.value()->key;
      info.of = entry.value()->of;
      info.valid = true;
    }
    out.push_back(std::move(info));
  }
  return out;
}

CacheStore::Statistics CacheStore::statistics() const {
  return {counts_->hits, counts_->misses, counts_->stores, counts_->evictions, counts_->invalid};
}

}  // namespace pfrt
