// SPDX-License-Identifier: Apache-2.0
#include "core/base/os/profile.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <utility>

#include "core/base/os/fork.h"

namespace pfrt {
namespace {

// Bytes of a thread's first chunk, and of its others. They are whole pages, which are populated in
// advance, so that no page fault falls between measured spans.
constexpr size_t kFirstChunk = size_t{12} << 10, kChunk = size_t{64} << 10;
// Bytes that a name or a step takes besides its text.
constexpr uint64_t kNameBytes = 128, kStepBytes = 256;
std::atomic<uint64_t> last_id{0};

}  // namespace

struct Profile::Chunk {
  explicit Chunk(size_t size) : bytes(size) {}
  const size_t bytes;
  std::atomic<uint32_t> count{0};
  std::atomic<Chunk*> next{nullptr};
  Record* records() const {
    return reinterpret_cast<Record*>(const_cast<char*>(reinterpret_cast<const char*>(this + 1)));
  }
  bool full() const {
    return sizeof *this + (count.load(std::memory_order_relaxed) + 1) * sizeof(Record) > bytes;
  }

  static Chunk* make(size_t bytes) {
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return pages == MAP_FAILED ? nullptr : new (pages) Chunk(bytes);
  }
  static void free(Chunk* chunk) { ::munmap(chunk, chunk->bytes); }
};

// Records of one thread, which writes them; a Reading sees those published by |count| and |next|.
struct Profile::Thread {
  int64_t id = ::gettid();
  std::atomic<Chunk*> first{nullptr};
  Chunk* last = nullptr;
  Record* newest = nullptr;
  std::string text;  // the last one named
  uint32_t number = 0;

  Thread() = default;
  ~Thread() {
    for (Chunk* at = first; at;) Chunk::free(std::exchange(at, at->next.load()));
  }
};

namespace {

// The thread's place in the profile that it recorded for last. The pointers are plain because
// registering a destructor of a thread ends the process when memory is out.
thread_local struct {
  uint64_t profile;
  void* thread;
} here;

}  // namespace

Profile::Profile() : id_(last_id.fetch_add(1, std::memory_order_relaxed) + 1) {
  names_.emplace_back();
  numbers_.emplace(names_.back(), 0);
}

Profile::~Profile() = default;

uint64_t Profile::processor_ns() {
  struct timespec now {};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

bool Profile::charge(uint64_t bytes) noexcept {
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= kMostBytes) return true;
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

Profile::Thread* Profile::thread() noexcept {
  if (here.profile == id_) return static_cast<Thread*>(here.thread);
  try {
    const os::ForkScope scope;
    const std::lock_guard lock(mutex_);
    const int64_t id = ::gettid();
    auto at = std::ranges::find_if(threads_, [&](const auto& t) { return t->id == id; });
    if (at == threads_.end()) at = threads_.insert(at, std::make_unique<Thread>());
    here = {id_, at->get()};
    return at->get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Profile::Record* Profile::next(Thread& thread) noexcept {
  Chunk* chunk = thread.last;
  if (!chunk || chunk->full()) {
    const size_t bytes = chunk ? kChunk : kFirstChunk;
    if (!charge(bytes)) return nullptr;
    chunk = Chunk::make(bytes);
    if (!chunk) return nullptr;
    (thread.last ? thread.last->next : thread.first).store(chunk, std::memory_order_release);
    thread.last = chunk;
  }
  return &chunk->records()[chunk->count.load(std::memory_order_relaxed)];
}

void Profile::add(Kind kind, uint64_t start_ns, uint64_t end_ns, uint32_t name, uint32_t run,
                  uint64_t value) noexcept {
  Thread* const on = thread();
  Record* const record = on && name != kDropped ? next(*on) : nullptr;
  if (!record) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  record->start_ns = start_ns;
  record->set(kind, end_ns);
  record->value = value;
  record->name = name;
  record->run = run;
  on->newest = record;
  std::atomic<uint32_t>& count = on->last->count;
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void Profile::add_share(uint64_t start_ns, uint64_t end_ns, uint32_t name, uint32_t run) noexcept {
  Thread* const on = thread();
  if (on && on->newest && on->newest->kind() == Kind::kShare && on->newest->name == name &&
      on->newest->run == run)
    return on->newest->set(Kind::kShare, end_ns);
  add(Kind::kShare, start_ns, end_ns, name, run);
}

uint32_t Profile::name(std::string_view text) noexcept {
  Thread* const on = thread();
  if (!on) return kDropped;
  if (on->text == text) return on->number;
  try {
    const os::ForkScope scope;
    const std::lock_guard lock(mutex_);
    auto at = numbers_.find(text);
    if (at == numbers_.end()) {
      if (!charge(text.size() + kNameBytes)) return kDropped;
      names_.emplace_back(text);
      at = numbers_.emplace(names_.back(), static_cast<uint32_t>(names_.size() - 1)).first;
    }
    on->text = text;
    return on->number = at->second;
  } catch (const std::bad_alloc&) {
    on->text.clear();
    on->number = 0;
    return kDropped;
  }
}

uint32_t Profile::add_steps(std::vector<ProfileStep> steps) noexcept {
  uint64_t bytes = 0;
  for (const ProfileStep& s : steps) bytes += kStepBytes + s.nodes.size() + s.ops.size();
  if (!charge(bytes)) return kDropped;
  const os::ForkScope scope;
  const std::lock_guard lock(mutex_);
  const size_t first = steps_.size();
  try {
    for (ProfileStep& s : steps) steps_.push_back(std::move(s));
    return static_cast<uint32_t>(first);
  } catch (const std::bad_alloc&) {
    return kDropped;
  }
}

int64_t Profile::Reading::thread_id(size_t at) const { return profile_.threads_[at]->id; }

std::vector<const Profile::Record*> Profile::Reading::records(size_t at) const {
  std::vector<const Record*> out;
  for (const Chunk* chunk = profile_.threads_[at]->first.load(std::memory_order_acquire); chunk;
       chunk = chunk->next.load(std::memory_order_acquire)) {
    const uint32_t count = chunk->count.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < count; ++i) out.push_back(&chunk->records()[i]);
  }
  return out;
}

}  // namespace pfrt
