// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/library.h"

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "core/base/os/elf.h"

namespace pfrt::os {
namespace {

// Names the Debian package of a library that the loader's text reports missing. Debian's rule for
// names puts libre2.so.9 in libre2-9 and libwebp.so.7 in libwebp7.
std::string package_hint(std::string_view text) {
  const size_t end = text.find(": cannot open shared object file"), dot = text.find(".so.");
  if (end == text.npos || dot >= end) return "";
  std::string name(text.substr(0, dot));
  const std::string_view version = text.substr(dot + 4, end - dot - 4);
  if (name.find('/') != name.npos || name.empty() || version.empty()) return "";
  if (std::isdigit(static_cast<unsigned char>(name.back()))) name += '-';
  name += version;
  if (name == "libjpeg62") name += "-turbo";  // the other one has other symbols
  return "; on Debian, install " + name;
}

// Whether the process, ours or a host's, runs with a sanitizer, whose runtime ends it at
// RTLD_DEEPBIND.
bool has_sanitizer() {
  static const bool has = [] {
    for (const char* name : {"__asan_init", "__hwasan_init", "__msan_init", "__tsan_init"})
      if (::dlsym(RTLD_DEFAULT, name) != nullptr) return true;
    return false;
  }();
  return has;
}

}  // namespace

Result<std::shared_ptr<Library>> Library::open(const std::string& path, bool deep_bind) {
  PFRT_TRY(check_shared_object(path));
  int flags = RTLD_NOW | RTLD_LOCAL;
  if (deep_bind && !has_sanitizer()) flags |= RTLD_DEEPBIND;
  auto library = std::shared_ptr<Library>(new Library);
  library->handle_ = ::dlopen(path.c_str(), flags);
  if (!library->handle_) {
    const char* said = ::dlerror();
    const std::string_view text = said ? said : "unknown error of the loader";
    return error(Code::kPLUGIN, "opening '", path, "': ", text, package_hint(text));
  }
  return library;
}

Library::~Library() {
  if (handle_ && !keep_) ::dlclose(handle_);
}

void* Library::symbol(const char* name) const { return ::dlsym(handle_, name); }

std::string path_of_code(const void* address) {
  Dl_info info{};
  return ::dladdr(address, &info) != 0 && info.dli_fname ? info.dli_fname : "";
}

void* open_own_library(const void* address) noexcept {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || !info.dli_fname) return nullptr;
  return ::dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
}

int (*const kCloseLibrary)(void*) = &::dlclose;

void keep_code_loaded(const void* address) {
  // The reference taken here is never given back.
  ::dlopen(path_of_code(address).c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

std::vector<std::string> list_folder(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  if (!dir && errno == ENOMEM) throw std::bad_alloc();  // as a container here would
  if (!dir) return names;
  while (const dirent* entry = ::readdir(dir.get())) names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string folder_fault(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  return dir ? std::string() : std::string(std::strerror(errno));
}

}  // namespace pfrt::os
