// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/elf.h"

#include <elf.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/base/os/regular_file.h"

namespace pfrt::os {
namespace {

constexpr Elf64_Half kMachine = EM_X86_64;

class Object {
 public:
  Object(int fd, uint64_t size) : fd_(fd), size_(size) {}

  // The fault that was found; empty when there is none.
  std::string fault() {
    Elf64_Ehdr head{};
    if (!read(&head, sizeof head, 0)) return ends_before("its header does");
    if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return "it does not start like one";
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
        head.e_machine != kMachine)
      return "it was built for another kind of machine";
    if (head.e_type != ET_DYN) return "it is an ELF file of another type";
    if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum == 0)
      return "its program headers have no size that is known here";
    std::vector<Elf64_Phdr> segments(head.e_phnum);
    if (!read(segments.data(), segments.size() * sizeof(Elf64_Phdr), head.e_phoff))
      return ends_before("its program headers do");
    for (const Elf64_Phdr& s : segments)
      if (s.p_type != PT_NULL && !has(s.p_offset, s.p_filesz))
        return ends_before("one of its segments does");
    return section_fault(head);
  }

 private:
  // A file need not have sections; if it says that it has, it ends after them.
  std::string section_fault(const Elf64_Ehdr& head) const {
    const uint64_t bytes = uint64_t{head.e_shnum} * head.e_shentsize;
    return head.e_shoff == 0 || has(head.e_shoff, bytes) ? std::string()
                                                         : ends_before("its section headers do");
  }

  bool has(uint64_t offset, uint64_t bytes) const {
    return offset <= size_ && bytes <= size_ - offset;
  }

  bool read(void* to, size_t bytes, uint64_t offset) const {
    if (!has(offset, bytes)) return false;
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t n = ::pread(fd_, at, bytes, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      bytes -= static_cast<size_t>(n);
      offset += static_cast<uint64_t>(n);
    }
    return true;
  }

  std::string ends_before(const char* what) const {
    return message("it has ", size_, " bytes and ends before ", what, ": it is cut short");
  }

  int fd_;
  uint64_t size_;
};

}  // namespace

Status check_shared_object(const std::string& path) {
  uint64_t size = 0;
  PFRT_ASSIGN(const Descriptor fd, open_regular(path, &size));
  const std::string fault = Object(fd.get(), size).fault();
  if (fault.empty()) return {};
  return error(Code::kPLUGIN, "opening '", path, "' as a shared object: ", fault,
               "; build or install it anew");
}

}  // namespace pfrt::os
