// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/faults.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "cxxapi/cli/check_plugin/crash_note.h"

namespace cli::check {
namespace {

constexpr size_t kPage = 4096;
constexpr unsigned char kFill = 0xcd;
constexpr size_t kMostRegions = 4096;

// The live regions, in a plain array for the signal handler.
const Guarded* regions[kMostRegions];

bool was_write(const void* context) {
#if defined(__x86_64__)
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
  return (machine.gregs[REG_ERR] & 2) != 0;
#else
  (void)context;
  return true;
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto* address = static_cast<const char*>(info->si_addr);
  char text[512];
  for (const Guarded* r : regions) {
    if (signal != SIGSEGV || !r || address < r->map() || address >= r->map() + r->mapped())
      continue;
    const bool write = was_write(context);
    const auto offset = static_cast<long long>(address - r->data());
    const bool inside = offset >= 0 && offset < static_cast<long long>(r->size());
    std::snprintf(text, sizeof text, "it %s byte %lld of %s, which has %zu bytes%s",
                  write ? "wrote" : "read", offset, r->label().c_str(), r->size(),
                  inside ? " and is not its to touch" : "");
    die(inside  ? r->guards().access_inside
        : write ? r->guards().write_outside
                : r->guards().read_outside,
        text);
  }
  std::snprintf(text, sizeof text, "it crashed: %s at address %p", strsignal(signal),
                info->si_addr);
  die(nullptr, text);
}

}  // namespace

Guarded::Guarded(size_t bytes, std::string_view label, const Guards& guards, size_t alignment,
                 Placed placed)
    : label_(label), guards_(guards), bytes_(bytes) {
  const size_t body = (bytes + kPage) / kPage * kPage;
  mapped_ = body + 2 * kPage;
  void* map = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw std::runtime_error("no memory for " + label_);
  map_ = static_cast<char*>(map);
  if (mprotect(map_ + kPage, body, PROT_READ | PROT_WRITE) != 0)
    throw std::runtime_error("no memory for " + label_);
  const size_t before = placed == Placed::kAtStart ? 0 : (body - bytes) / alignment * alignment;
  data_ = map_ + kPage + before;
  std::memset(map_ + kPage, kFill, body);
  const auto slot = std::find(std::begin(regions), std::end(regions), nullptr);
  if (slot != std::end(regions)) *slot = this;
}

Guarded::~Guarded() {
  const auto slot = std::find(std::begin(regions), std::end(regions), this);
  if (slot != std::end(regions)) *slot = nullptr;
  munmap(map_, mapped_);
}

void Guarded::allow(Access access) {
  const int bits = access == Access::kNone   ? PROT_NONE
                   : access == Access::kRead ? PROT_READ
                                             : PROT_READ | PROT_WRITE;
  (void)mprotect(map_ + kPage, mapped_ - 2 * kPage, bits);
}

bool Guarded::margins_intact() const {
  const auto untouched = [](const char* begin, const char* end) {
    return std::all_of(begin, end, [](char c) { return static_cast<unsigned char>(c) == kFill; });
  };
  return untouched(map_ + kPage, data_) && untouched(data_ + bytes_, map_ + mapped_ - kPage);
}

void catch_faults() {
  constexpr size_t kStack = 64 * 1024;
  static char* const memory = new char[kStack];  // a stack overflow is a fault too
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kStack;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
    sigaction(signal, &action, nullptr);
}

}  // namespace cli::check
