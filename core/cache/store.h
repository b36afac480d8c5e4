// SPDX-License-Identifier: Apache-2.0
//
// A folder of files that can all be made again, shared by threads and processes: entries by key,
// each one file, written beside and renamed, and mapped by its readers. A file that is torn,
// foreign, older, damaged or another user's counts as missing, and a line in the log says so.
// Nothing here fails a caller: an entry that cannot be stored is dropped. A file, after a header:
//
//   key, source of the entry, head (a small structure of the writer's), then the body at a page,
//   whose sections start at pages, then a checksum of the body.
//
// A file beside each ("<name>.seen") tells when it was used, and in which state of the file its
// body was found intact. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/os/file.h"
#include "core/base/os/folder.h"
#include "core/base/os/log.h"
#include "core/base/status.h"

namespace pfrt {

struct CacheLimits {
  uint64_t max_bytes = uint64_t{1} << 30;  // of all files; 0 = no limit
  uint64_t max_entries = 100;              // of all kinds; 0 = no limit
  int64_t ttl_s = 86400;                   // older entries are not used; 0 = they never expire
  // The ttl in nanoseconds; 0 = entries never expire, also where the ttl is too long for
  // nanoseconds.
  int64_t ttl_ns() const { return ttl_s > INT64_MAX / 1'000'000'000 ? 0 : ttl_s * 1'000'000'000; }
  bool use_mmap = true;  // else entries are read into memory
  bool operator==(const CacheLimits&) const = default;
};

// Whether a file has not been written to for so long that its stamp identifies its state: the clock
// of stamps in file systems has a step of some milliseconds.
bool settled(const os::FileStamp& stamp);

class CacheStore {
 public:
  // Bytes of the body at |offset|, which is a multiple of kSectionAlignment; none overlaps another.
  struct Section {
    uint64_t offset = 0, bytes = 0;
    // Hands |write| all bytes, in pieces.
    std::function<Status(const std::function<Status(const void*, uint64_t)>& write)> fill;
  };
  static constexpr uint64_t kSectionAlignment = 4096;

  // An entry that was found intact, and is kept so while somebody holds it.
  class Entry {
   public:
    std::string_view key, of, head;  // in |front|
    std::string front;               // copy of all before the body: readers rely on its check
    const char* body = nullptr;
    uint64_t body_bytes = 0;
    std::shared_ptr<os::MappedFile> file;
  };
  using EntryPtr = std::shared_ptr<const Entry>;

  struct Info {
    std::string key, of, path, suffix;
    uint64_t bytes = 0;
    int64_t created_ns = 0, used_ns = 0;
    bool valid = false;  // whole, and not too old
  };
  struct Statistics {
    uint64_t hits = 0, misses = 0, stores = 0, evictions = 0, invalid = 0;
  };

  // |folder| is made with the first entry. |suffixes| has one for each kind of entry, and the kinds
  // are limited together. Another store may have others in the same folder. |former| is a store of
  // the same files, whose counts go on here; may be null.
  CacheStore(std::string folder, std::vector<std::string> suffixes, CacheLimits limits,
             Logger* logger, const CacheStore* former = nullptr);
  CacheStore(const CacheStore&) = delete;
  CacheStore& operator=(const CacheStore&) = delete;

  const std::string& folder() const { return folder_; }
  // Makes the folder where it is missing. An error where it is another user's, in which case
  // nothing is read there either.
  Status make_folder() const;
  const CacheLimits& limits() const { return limits_; }

  // Null when there is none. Counts as a use.
  EntryPtr find(std::string_view key, const std::string& suffix);
  // Replaces an entry with this key. Others are removed, the least recently used first, where the
  // limits ask for it.
  Status put(std::string_view key, const std::string& suffix, std::string_view of,
             std::string_view head, const std::vector<Section>& sections);
  // Whether there was an entry, of any suffix.
  bool remove(std::string_view key);
  // Returns the number of entries removed.
  uint64_t clear();
  // Lists the entries, the latest used first. |check|: reads all of them for |valid|.
  std::vector<Info> list(bool check);
  // Returns the number of entries removed. put does this too.
  uint64_t evict();
  Statistics statistics() const;

 private:
  struct Header;
  struct File {
    std::string name, suffix;
    os::FileStamp stamp;
    int64_t used_ns = 0;
  };
  std::string path_of(std::string_view key, const std::string& suffix) const;
  std::vector<File> files() const;
  enum class Reading { kHead, kCheck, kUse };
  // An empty |key| opens an entry of any key.
  Result<EntryPtr> open(const std::string& path, std::string_view key, Reading reading) const;
  Status check_body(const std::string& path, const Entry& entry, bool use) const;
  uint64_t evict_locked();  // called with the folder's lock

  const std::string folder_;
  const std::vector<std::string> suffixes_;
  const CacheLimits limits_;
  Logger* const logger_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const Entry>> open_;  // by path
  struct Counts {
    std::atomic<uint64_t> hits{0}, misses{0}, stores{0}, evictions{0}, invalid{0};
  };
  const std::shared_ptr<Counts> counts_;
};

}  // namespace pfrt
