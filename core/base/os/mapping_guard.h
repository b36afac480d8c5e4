// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a mapped file that somebody cuts short or writes to, or whose disk fails, while
// its pages are in use. A file that is replaced by another (rename) stays as it was for who has it
// mapped. Touching a page that is gone raises SIGBUS. A handler puts zeros in the mapping's place,
// marks its file as lost and lets the thread go on; whoever used the bytes asks the mark before
// results leave. Other SIGBUS go where they went before: the handler keeps and calls what the host
// had installed, is installed with the first guarded mapping, and goes with the last when it is
// still on top. A host that installs its own handler later should pass on what is not its own, as
// the handler here does. All functions are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace pfrt::os {

// Whether a file still has the bytes that were mapped. Lives as long as anyone asks.
class FileHealth {
 public:
  FileHealth(uint64_t size, std::string path);
  ~FileHealth();
  FileHealth(const FileHealth&) = delete;
  FileHealth& operator=(const FileHealth&) = delete;

  // Takes the descriptor that check asks, and closes it at the end. The file counts as it is now.
  void watch(int fd);
  // Once lost, always lost.
  bool lost() const { return lost_.load(); }
  // Also asks the file's size and when it was written; a system call.
  bool check();
  // Whether both are of one file in one state, neither of them lost.
  bool same_file(const FileHealth& other) const {
    return !lost() && !other.lost() && stamp_ == other.stamp_;
  }
  // Async-signal-safe.
  void lose() { lost_.store(true); }
  // DATA_LOSS, naming the file.
  Status status() const;

 private:
  struct Stamp {
    uint64_t device = 0, inode = 0, size = 0;
    int64_t seconds = 0, nanoseconds = 0;  // of the last write
    bool operator==(const Stamp&) const = default;
  };
  // False where the system does not say.
  bool read_stamp(Stamp& out) const;

  const uint64_t size_;
  const std::string path_;
  int fd_ = -1;
  Stamp stamp_;
  std::atomic<bool> lost_{false}, written_{false};
};

// Makes a mapping of |size| bytes at |data| known, to health_of and to the signal handler.
void add_mapping(const void* data, uint64_t size, std::shared_ptr<FileHealth> health);
// Before the mapping goes.
void remove_mapping(const void* data);

// Where in which file the byte at |data| is; |file| is nullptr when no mapping has it.
struct MappedPlace {
  std::shared_ptr<FileHealth> file;
  uint64_t offset = 0;
};
MappedPlace mapped_place(const void* data);
std::shared_ptr<FileHealth> health_of(const void* data);  // its file

}  // namespace pfrt::os
