// SPDX-License-Identifier: Apache-2.0
//
// Memory for generated code, and xbyak as this folder uses it: without exceptions, writable first
// and executable afterwards.
#pragma once

#include <sys/mman.h>

#define XBYAK_NO_EXCEPTION
#include <xbyak/xbyak.h>

namespace pfrt::cpu {

// Pages for one generator. Xbyak's own allocator loses them when it has no memory to note their
// size.
class CodePages final : public Xbyak::Allocator {
 public:
  uint8_t* alloc(size_t size) override {
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    size_ = size;
    return static_cast<uint8_t*>(data);
  }
  void free(uint8_t* data) override {
    if (data) munmap(data, size_);
  }

 private:
  size_t size_ = 0;
};

// A base, so that it is there before the code is and after.
struct HasCodePages {
  CodePages pages;
};

// Makes what |generator| wrote executable; false where the system or an error of xbyak's forbids.
inline bool seal(Xbyak::CodeGenerator& generator) {
  if (Xbyak::GetError() != Xbyak::ERR_NONE) {
    Xbyak::ClearError();
    return false;
  }
  return generator.setProtectModeRE(false);
}

}  // namespace pfrt::cpu
