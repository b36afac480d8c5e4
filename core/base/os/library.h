// SPDX-License-Identifier: Apache-2.0
//
// Shared objects. A Library is closed when its last reference goes, unless it was opened to stay.
// Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace pfrt::os {

class Library {
 public:
  // Opens with RTLD_NOW|RTLD_LOCAL; |deep_bind| keeps the host process's symbols from capturing the
  // library's own.
  static Result<std::shared_ptr<Library>> open(const std::string& path, bool deep_bind);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  void* symbol(const char* name) const;  // nullptr when absent
  // Keeps the library loaded when the object goes.
  void keep_loaded() { keep_ = true; }

 private:
  Library() = default;
  void* handle_ = nullptr;
  bool keep_ = false;
};

// The path of the shared object (or program) that holds |address|; empty when unknown.
std::string path_of_code(const void* address);
// Takes a further reference to the shared object that holds |address|, to be given to
// kCloseLibrary; nullptr where there is none.
void* open_own_library(const void* address) noexcept;
// This is dlclose itself: code that it may unload must end with a jump to it.
extern int (*const kCloseLibrary)(void*);
// Keeps the shared object that holds |address| loaded for ever.
void keep_code_loaded(const void* address);
// File names in |folder|, sorted; empty when it cannot be read.
std::vector<std::string> list_folder(const std::string& folder);
// Why |folder| cannot be listed, in the system's words; empty when it can.
std::string folder_fault(const std::string& folder);

}  // namespace pfrt::os
