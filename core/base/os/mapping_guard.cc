// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "core/base/os/library.h"

namespace pfrt::os {
namespace {

// ---- data of the handler: without locks, never freed ----

struct Slot {
  std::atomic<uint32_t> sequence{0};  // odd while the slot is being written
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<FileHealth*> health{nullptr};

  void set(uintptr_t from, uintptr_t to, FileHealth* file) {
    sequence.fetch_add(1);
    begin.store(from);
    end.store(to);
    health.store(file);
    sequence.fetch_add(1);
  }
};

// The first chunk is part of the library. More mappings at once are rare; further chunks stay
// allocated.
struct Chunk {
  Slot slots[1024];
  std::atomic<Chunk*> next{nullptr};
};
Chunk first_chunk;

// Puts zeros in the place of the mapping around |address|. A slot that changes while it is read
// does not belong to a mapping in use.
bool replace_mapping(uintptr_t address) {
  for (Chunk* chunk = &first_chunk; chunk; chunk = chunk->next.load()) {
    for (Slot& slot : chunk->slots) {
      const uint32_t sequence = slot.sequence.load();
      const uintptr_t begin = slot.begin.load(), end = slot.end.load();
      FileHealth* health = slot.health.load();
      if (address < begin || address >= end || sequence % 2 || slot.sequence.load() != sequence)
        continue;
      health->lose();
      return ::syscall(SYS_mmap, begin, end - begin, PROT_READ,
                       MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                       0) == static_cast<long>(begin);
    }
  }
  return false;
}

// ---- the handler ----

// Each level has a handler function of its own: a handler that a host has put its own over stays in
// that host's chain, with the one it passes on to. The next installation uses the next level, so
// that the chain has an end.
constexpr size_t kLevels = 8;
struct sigaction records[kLevels];  // earlier handlers, by level
std::atomic<const struct sigaction*> previous[kLevels];
struct sigaction default_action;  // all zero is SIG_DFL

void pass_on(size_t level, int signal, siginfo_t* info, void* context) {
  const struct sigaction* to = previous[level].load();
  if ((static_cast<unsigned>(to->sa_flags) & SA_RESETHAND) != 0)
    previous[level].store(&default_action);
  if (to->sa_flags & SA_SIGINFO) return to->sa_sigaction(signal, info, context);
  const bool raised_by_a_fault = info->si_code > 0;
  if (to->sa_handler == SIG_IGN && !raised_by_a_fault) return;
  if (to->sa_handler != SIG_DFL && to->sa_handler != SIG_IGN) return to->sa_handler(signal);
  // The process ends when the signal comes again, on return. (A fault cannot be ignored.)
  ::sigaction(SIGBUS, &default_action, nullptr);
  ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), SIGBUS);
}

template <size_t Level>
void on_sigbus(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  const bool page_is_gone =
      info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR || info->si_code == BUS_MCEERR_AR;
  if (!page_is_gone || !replace_mapping(reinterpret_cast<uintptr_t>(info->si_addr)))
    pass_on(Level, signal, info, context);
  errno = saved;
}

using Handler = void (*)(int, siginfo_t*, void*);
template <size_t... Level>
constexpr std::array<Handler, sizeof...(Level)> handlers(std::index_sequence<Level...>) {
  return {on_sigbus<Level>...};
}
constexpr auto kHandlers = handlers(std::make_index_sequence<kLevels>());

size_t level_of(const struct sigaction& action) {
  if (!(action.sa_flags & SA_SIGINFO)) return kLevels;
  return static_cast<size_t>(std::distance(
      kHandlers.begin(), std::find(kHandlers.begin(), kHandlers.end(), action.sa_sigaction)));
}

// ---- the registry ----

struct Mapping {
  uintptr_t end;
  std::shared_ptr<FileHealth> health;
  Slot* slot;
};

struct Registry {
  std::mutex mutex;
  std::map<uintptr_t, Mapping> mappings;  // by begin
  bool buried[kLevels] = {};

  Slot* free_slot();
  void install();
  void uninstall();
};

// The registry is never destroyed: mappings may go after static destructors have run.
Registry& registry() {
  alignas(Registry) static unsigned char storage[sizeof(Registry)];
  static Registry* const the_registry = new (storage) Registry;
  return *the_registry;
}

Slot* Registry::free_slot() {
  for (Chunk* chunk = &first_chunk;; chunk = chunk->next.load()) {
    for (Slot& slot : chunk->slots)
      if (!slot.health.load()) return &slot;
    if (!chunk->next.load()) chunk->next.store(new Chunk);
  }
}

void Registry::install() {
  struct sigaction now {};
  if (::sigaction(SIGBUS, nullptr, &now) != 0 || level_of(now) < kLevels) return;
  const size_t level =
      static_cast<size_t>(std::distance(buried, std::find(buried, buried + kLevels, false)));
  if (level == kLevels) return;  // eight hosts' handlers pass on to these
  // A thread that is still in the handler may be reading the former record.
  if (records[level].sa_sigaction != now.sa_sigaction || records[level].sa_flags != now.sa_flags)
    records[level] = now;
  previous[level].store(&records[level]);
  struct sigaction ours {};
  ours.sa_sigaction = kHandlers[level];
  ours.sa_mask = now.sa_mask;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (now.sa_flags & (SA_RESTART | SA_NODEFER));
  if (::sigaction(SIGBUS, &ours, nullptr) != 0) previous[level].store(nullptr);
}

void Registry::uninstall() {
  struct sigaction now {};
  if (::sigaction(SIGBUS, nullptr, &now) != 0) return;
  if (const size_t level = level_of(now); level < kLevels) {
    ::sigaction(SIGBUS, previous[level].load(), nullptr);
    previous[level].store(nullptr);
  }
  // A level that is still in use has a handler of somebody else above it.
  for (size_t level = 0; level < kLevels; ++level) {
    if (!previous[level].load() || buried[level]) continue;
    buried[level] = true;
    keep_code_loaded(reinterpret_cast<const void*>(kHandlers[level]));
  }
}

}  // namespace

FileHealth::FileHealth(uint64_t size, std::string path) : size_(size), path_(std::move(path)) {}

FileHealth::~FileHealth() {
  if (fd_ >= 0) ::close(fd_);
}

bool FileHealth::read_stamp(Stamp& out) const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return false;
  out = {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size), info.st_mtim.tv_sec,
         info.st_mtim.tv_nsec};
  return true;
}

void FileHealth::watch(int fd) {
  fd_ = fd;
  if (!read_stamp(stamp_)) lose();
}

bool FileHealth::check() {
  if (lost()) return true;
  Stamp now;
  const bool known = read_stamp(now);
  if (known && now == stamp_) return false;
  if (known && now.size >= size_) written_.store(true);
  lose();
  return true;
}

Status FileHealth::status() const {
  if (written_)
    return error(Code::kDATA_LOSS, "file '", path_,
                 "' was written to while it was in use; load the model again, and replace a file "
                 "that may be in use by renaming another over it");
  return error(Code::kDATA_LOSS, "file '", path_, "' of ", size_,
               " bytes was cut short or could not be read while it was in use; restore it and load "
               "the model again");
}

void add_mapping(const void* data, uint64_t size, std::shared_ptr<FileHealth> health) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t end = begin + (static_cast<uintptr_t>(size) + page - 1) / page * page;
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  Slot* slot = r.free_slot();
  FileHealth* file = health.get();
  r.mappings.emplace(begin, Mapping{end, std::move(health), slot});
  slot->set(begin, end, file);
  if (r.mappings.size() == 1) r.install();
}

void remove_mapping(const void* data) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto found = r.mappings.find(reinterpret_cast<uintptr_t>(data));
  if (found == r.mappings.end()) return;
  found->second.slot->set(0, 0, nullptr);
  r.mappings.erase(found);
  if (r.mappings.empty()) r.uninstall();
}

MappedPlace mapped_place(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  auto after = r.mappings.upper_bound(address);
  if (after == r.mappings.begin()) return {};
  const auto& [begin, mapping] = *--after;
  if (address >= mapping.end) return {};
  return {mapping.health, address - begin};
}

std::shared_ptr<FileHealth> health_of(const void* data) { return mapped_place(data).file; }

}  // namespace pfrt::os
