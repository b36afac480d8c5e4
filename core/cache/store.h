// SPDX-License-Identifier: Apache-2.0
//
// A folder of files that can all be made again, shared by threads and processes: entries by key,
// each one file, written beside and renamed, and mapped by who reads it. What is torn, foreign,
// older, damaged or another user's is not there, and a line in the log says so. Nothing here fails
// a caller: what cannot be kept is not kept. A file, beside a header:
//
//   key, what it is of, head (a small structure of who wrote it), then the body at a page, whose
//   sections start at pages, then a checksum of the body.
//
// Which file was used when, and that its body was found whole in this state of the file, stands in
// another beside it ("<name>.seen"). Thread-safe.
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
  uint64_t max_entries = 100;              // likewise
  int64_t ttl_s = 86400;                   // entries are not used when they are older; 0 = for ever
  // As nanoseconds; what is too much for them is for ever, and none is 0.
  int64_t ttl_ns() const { return ttl_s > INT64_MAX / 1'000'000'000 ? 0 : ttl_s * 1'000'000'000; }
  bool use_mmap = true;  // else entries are read into memory
  bool operator==(const CacheLimits&) const = default;
};

// Whether a file has not been written to for so long that its stamp tells when it is: file systems
// stamp by a clock of some milliseconds.
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

  // Found whole, and kept so while somebody holds it.
  class Entry {
   public:
    std::string_view key, of, head;  // in |front|
    std::string front;  // a copy of what is before the body: readers rely on the check of it
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

  // |folder| is made with the first entry. |suffixes|: of its files, one for each kind of entry,
  // limited together. Another store may have others in the same folder. |former|: of the same
  // files, with which it counts; may be null.
  CacheStore(std::string folder, std::vector<std::string> suffixes, CacheLimits limits,
             Logger* logger, const CacheStore* former = nullptr);
  CacheStore(const CacheStore&) = delete;
  CacheStore& operator=(const CacheStore&) = delete;

  const std::string& folder() const { return folder_; }
  // The folder, where it is missing. An error where it is another user's: neither is anything read
  // there.
  Status make_folder() const;
  const CacheLimits& limits() const { return limits_; }

  // Null when there is none. Counts as a use.
  EntryPtr find(std::string_view key, const std::string& suffix);
  // In place of one of this key. Others go, those unused for longest first, where the limits ask
  // for it.
  Status put(std::string_view key, const std::string& suffix, std::string_view of,
             std::string_view head, const std::vector<Section>& sections);
  // Whether there was one, of any suffix.
  bool remove(std::string_view key);
  // How many went.
  uint64_t clear();
  // By when they were used, latest first. |check|: reads all of them for |valid|.
  std::vector<Info> list(bool check);
  // How many went. Done by put, too.
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
  // |key| empty: of any.
  Result<EntryPtr> open(const std::string& path, std::string_view key, Reading reading) const;
  Status check_body(const std::string& path, const Entry& entry, bool use) const;
  uint64_t evict_locked();  // with the folder's lock

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
