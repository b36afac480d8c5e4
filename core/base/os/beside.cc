// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/beside.h"

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "core/base/os/io_error.h"
#include "core/base/os/path.h"
#include "core/base/os/regular_file.h"

namespace pfrt::os {
namespace {

// errno is EXDEV when the path leaves the folder, whether the kernel or this code found that out.
struct Opened {
  int fd = -1;
  int code = 0;
};

// The path of |real| within the resolved |folder|; empty when it is not in it.
std::string within(const std::string& folder, const std::string& real) {
  const std::string prefix = folder == "/" ? folder : folder + "/";
  return real.compare(0, prefix.size(), prefix) == 0 ? real.substr(prefix.size()) : std::string();
}

// Opens |relative| with a walk by the kernel, which stops where it leaves |folder|; no link can be
// changed in between.
Opened open_beneath(const std::string& folder, const std::string& relative, uint64_t resolve) {
  const Descriptor dir(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (dir.get() < 0) return {-1, errno};
  open_how how{};
  how.flags = kReadFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve;
  const long fd = ::syscall(SYS_openat2, dir.get(), relative.c_str(), &how, sizeof how);
  return {static_cast<int>(fd), fd < 0 ? errno : 0};
}

bool without_openat2(const Opened& opened) {
  return opened.fd < 0 && (opened.code == ENOSYS || opened.code == EPERM);
}

// Opens |from|/|relative| with all links followed, where that is in the folder |inside|.
Opened open_resolved(const std::string& from, const std::string& relative,
                     const std::string& inside) {
  const auto folder = resolved(inside);
  if (!folder) return {-1, errno};
  const auto real = resolved(from + "/" + relative);
  if (!real) return {-1, errno};
  const std::string rest = within(*folder, *real);
  if (rest.empty()) return {-1, EXDEV};
  const Opened opened = open_beneath(*folder, rest, RESOLVE_NO_SYMLINKS);
  if (!without_openat2(opened)) return opened;
  const int fd = ::open(real->c_str(), kReadFlags | O_NOFOLLOW);
  return {fd, fd < 0 ? errno : 0};
}

// Opens |location| of a model in |folder|, which no link may leave.
Opened open_strict(const std::string& folder, const std::string& location) {
  const Opened opened = open_beneath(folder, location, 0);
  return without_openat2(opened) ? open_resolved(folder, location, folder) : opened;
}

bool leaves(const Opened& opened) {
  return opened.fd < 0 && (opened.code == EXDEV || opened.code == ELOOP);
}

bool climbs(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  return false;
}

// The folder that the model's path leads to when it is a link; empty when it is none.
std::string folder_behind(const std::string& model) {
  struct stat info {};
  if (::lstat(model.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return {};
  const auto real = resolved(model);
  return real ? folder_of(*real) : std::string();
}

// Opens a file of a model that is a link, as caches keep models: the file beside the link may be a
// link to the one beside the model itself, or only exist there.
Opened open_behind(const std::string& model, const std::string& location, const Opened& strict) {
  const std::string behind = folder_behind(model);
  if (behind.empty() || climbs(location) || location.front() == '/') return strict;
  return leaves(strict) ? open_resolved(folder_of(model), location, behind)
                        : open_strict(behind, location);
}

}  // namespace

Result<Descriptor> beside(const std::string& model, const std::string& location, Confine confine) {
  const std::string folder = folder_of(model);
  if (location.empty() || location.find('\0') != std::string::npos)
    return error(Code::kINVALID_MODEL, "opening external data of a model in '", folder,
                 "': empty or malformed file name");
  Opened opened = location.front() == '/' ? Opened{-1, EXDEV} : open_strict(folder, location);
  const bool missing = opened.fd < 0 && opened.code == ENOENT;
  if (confine == Confine::kLinks && (missing || leaves(opened)))
    opened = open_behind(model, location, opened);
  if (opened.fd >= 0) return Descriptor(opened.fd);
  if (leaves(opened))
    return error(Code::kINVALID_MODEL, "opening external data '", location, "' of a model in '",
                 folder,
                 "': the path leaves the model's folder; put the file beside the model and use a "
                 "relative name");
  return io_error("opening external data", folder + "/" + location, opened.code);
}

}  // namespace pfrt::os
