// SPDX-License-Identifier: Apache-2.0
//
// Guards mapped files whose pages are in use against being cut short or written to, and against a
// failing disk. A file that is replaced by another (rename) stays as it was for those who have it
// mapped. Touching a page that is gone raises SIGBUS. A handler puts zeros in the mapping's place,
// marks its file as lost and lets the thread go on; the users of the bytes ask the mark before
// results leave. Other SIGBUS go where they went before: the handler keeps and calls the one that
// the host had installed, is installed with the first guarded mapping, and goes with the last when
// it is still on top. A host that installs its own handler later should pass on other faults, as
// the handler here does. All functions are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace pfrt::os {

// Tells whether a file still has the bytes that were mapped. Lives as long as anyone asks.
class FileHealth {
 public:
  FileHealth(uint64_t size, std::string path);
  ~FileHealth();
  FileHealth(const FileHealth&) = delete;
  FileHealth& operator=(const FileHealth&) = delete;

  // Takes the descriptor that check uses, and closes it at the end. The file's present state counts
  // as intact.
  void watch(int fd);
  // A lost file stays lost.
  bool lost() const { return lost_.load(); }
  // Also asks for the file's size and time of writing; a system call.
  bool check();
  // Whether both describe one file in one state, and neither is lost.
  bool same_file(const FileHealth& other) const {
    return !lost() && !other.lost() && stamp_ == other.stamp_;
  }
  // Is async-signal-safe.
  void lose() { lost_.store(true); }
  // A DATA_LOSS error that names the file.
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

// Makes a mapping of |size| bytes at |data| known to health_of and to the signal handler.
void add_mapping(const void* data, uint64_t size, std::shared_ptr<FileHealth> health);
// Is called before the mapping goes.
void remove_mapping(const void* data);

// The file and offset of the byte at |data|; |file| is nullptr when no mapping has it.
struct MappedPlace {
  std::shared_ptr<FileHealth> file;
  uint64_t offset = 0;
};
MappedPlace mapped_place(const void* data);
std::shared_ptr<FileHealth> health_of(const void* data);  // its file

}  // namespace pfrt::os
