// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/tune.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/immortal.h"
#include "core/base/os/pages.h"
#include "providers/cpu/isa/isa.h"

namespace pfrt::cpu {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstTime = 30ms, kSecondTime = 20ms;  // of a step; slow ones take kLeastRounds
constexpr auto kProgramTime = 3s;
constexpr int kLeastRounds = 3, kMostRounds = 24;
constexpr double kHopeless = 1.25, kLeastGain = 1.03;
// A run of a model reads each constant from beyond the near caches. So that it is the same here,
// copies of a constant fill more memory than those caches hold, and runs take turns among them.
constexpr uint64_t kConstantsBytes = 32 << 20;
constexpr uint64_t kMostBytes = 256 << 20;
constexpr uint64_t kLine = 64, kPage = 4096;
constexpr std::string_view kNoMemory = "not tuned: no memory", kNoTime = "not tuned: no time",
                           kFailed = "not tuned: a trial run failed";

uint64_t rounded_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

// Both halves of a word are bfloat16 numbers with magnitudes of 0.5 to 2, and so is the whole word
// as a float32: whichever a kernel reads, its sums are of ordinary size. No constant begins with a
// byte of 0, which would say that it could not be split.
void fill(char* data, uint64_t bytes) {
  constexpr uint64_t kBlock = 64 << 10;
  uint64_t state = 0x9e3779b97f4a7c15u, done = 0;
  for (; done + 4 <= std::min(bytes, kBlock); done += 4) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const auto random = static_cast<uint32_t>(state >> 32);
    const uint32_t word = (random & 0x80ff80ffu) | 0x3f003f01u;
    std::memcpy(data + done, &word, sizeof word);
  }
  for (; done < bytes; done += std::min(done, bytes - done))
    std::memcpy(data + done, data, static_cast<size_t>(std::min(done, bytes - done)));
}

uint64_t hash(std::string_view text, uint64_t h) {  // FNV-1a
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

}  // namespace

// Which of a step's kernels is best: 0 is the default, the others are its alternatives in order.
struct Tuner::Choice {
  uint32_t kernel = 0;
  float gain = 1;  // the default's time by this one's
};

// Choices, by the hash of the step's key. No thread waits for a lock, since a process that was
// forked while it was held would wait for ever. Nothing is on the heap, since the library may be
// closed.
struct Tuner::Known {
  struct Entry {
    uint64_t key = 0;
    Choice choice;
  };
  static constexpr size_t kNear = 8;

  std::optional<Choice> find(uint64_t key) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return {};
    for (const Entry& entry : near(key))
      if (entry.key == key) return entry.choice;
    return {};
  }
  void add(uint64_t key, const Choice& choice) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return;
    const std::span<Entry> places = near(key);
    const auto free = std::ranges::find_if(places, [](const Entry& e) { return e.key == 0; });
    (free == places.end() ? places.front() : *free) = {key, choice};
  }

 private:
  std::span<Entry> near(uint64_t key) {
    return std::span(entries_).subspan(key % (entries_.size() - kNear), kNear);
  }
  std::mutex mutex_;
  std::array<Entry, 2048> entries_{};
};

Tuner::Known& Tuner::known() {
  static Immortal<Known> known;
  return known.get();
}

// A step with each of its kernels, and memory for any of them.
struct Tuner::Trial {
  std::vector<Step> forms;
  std::vector<void*> buffers;  // the last is shared memory
  char* scratch = nullptr;
  // Copies of the packed constant, of which each run takes the next.
  char* constants = nullptr;
  uint64_t constant_step = 0, constant_places = 1, runs = 0;

  // Nanoseconds; less than 0 when it failed.
  double time(size_t form);
};

double Tuner::Trial::time(size_t form) {
  Step& step = forms[form];
  if (step.packed != PFRT_NO_INDEX)
    buffers[step.packed] = constants + runs++ % constant_places * constant_step;
  pfrt_step_context context{};
  context.struct_size = sizeof context;
  context.abi = PFRT_ABI_VERSION;
  context.host = scratch;
  context.buffers = buffers.data();
  context.workers = 1;
  context.parallel = [](const pfrt_step_context*, uint64_t n, void (*fn)(void*, uint64_t, uint32_t),
                        void* arg) {
    for (uint64_t i = 0; i < n; ++i) fn(arg, i, 0);
  };
  context.stop = [](const pfrt_step_context*) { return pfrt_code{PFRT_CODE_OK}; };
  context.scratch = [](const pfrt_step_context* c, uint32_t) { return c->host; };
  context.alloc_output = [](const pfrt_step_context*, uint32_t, const int64_t*, uint32_t, void**) {
    return pfrt_code{PFRT_CODE_UNSUPPORTED};
  };
  context.fail = [](const pfrt_step_context*, pfrt_code code, pfrt_string) { return code; };
  const auto start = Clock::now();
  const pfrt_code code = run_step(&step, &context);
  const double took = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  return code == PFRT_CODE_OK ? took : -1;
}

Tuner::Memory::~Memory() {
  if (data_ != nullptr) os::unmap_memory(data_, bytes_);
}

bool Tuner::Memory::reserve(uint64_t bytes) {
  if (bytes <= bytes_) return true;
  if (data_ != nullptr) os::unmap_memory(data_, bytes_);
  data_ = static_cast<char*>(os::map_memory(bytes));
  bytes_ = data_ == nullptr ? 0 : bytes;
  return data_ != nullptr;
}

// Finds memory for all that the kernels read and write; false when there is none.
bool Tuner::place(Trial& trial, const Step& step, std::span<const pfrt_buffer> buffers) {
  uint64_t scratch = 0, shared = 0, bytes = 0;
  for (const Step& form : trial.forms) {
    scratch = std::max(scratch, form.kernel.scratch_bytes);
    shared = std::max(shared, form.kernel.shared_bytes);
  }
  std::vector<uint32_t> used = step.reads;
  used.insert(used.end(), step.writes.begin(), step.writes.end());
  std::ranges::sort(used);
  used.erase(std::ranges::unique(used).begin(), used.end());
  for (uint32_t b : used) {
    if (buffers[b].bytes > kMostBytes) return false;
    bytes += rounded_up(buffers[b].bytes, kLine);
  }
  const uint64_t constant = step.packed == PFRT_NO_INDEX ? 0 : buffers[step.packed].bytes;
  if (std::max({bytes, scratch, shared, constant}) > kMostBytes) return false;
  const uint64_t rest = rounded_up(shared, kLine) + rounded_up(scratch, kLine);
  if (!memory_.reserve(bytes + rest)) return false;
  fill(memory_.data(), bytes);
  char* at = memory_.data();
  trial.buffers.assign(buffers.size() + 1, nullptr);
  for (uint32_t b : used) {
    trial.buffers[b] = at;
    at += rounded_up(buffers[b].bytes, kLine);
  }
  trial.buffers.back() = at;
  trial.scratch = at + rounded_up(shared, kLine);
  trial.constant_step = rounded_up(std::max<uint64_t>(constant, 1), kPage);
  const uint64_t before = constants_.bytes();
  if (!constants_.reserve(std::max(trial.constant_step, kConstantsBytes))) return false;
  if (constants_.bytes() != before) fill(constants_.data(), constants_.bytes());
  trial.constants = constants_.data();
  trial.constant_places = constants_.bytes() / trial.constant_step;
  return true;
}

// Runs the entrants in turns and puts the shortest time of each into |best|, by kernel. Entrants
// that fall behind are left out. Gives the reason when that could not be done, else an empty
// string.
std::string_view Tuner::race(Trial& trial, std::span<const size_t> entrants, Clock::duration time,
                             std::span<double> best) const {
  const auto end = Clock::now() + time;
  std::ranges::fill(best, std::numeric_limits<double>::infinity());
  for (int round = 0; round < kMostRounds; ++round) {
    if (round >= kLeastRounds && Clock::now() >= end) break;
    const double limit = kHopeless * std::ranges::min(best);
    for (size_t i = 0; i < entrants.size(); ++i) {
      const size_t form = entrants[(i + static_cast<size_t>(round)) % entrants.size()];
      if (form != 0 && round > 0 && best[form] > limit) continue;
      const double took = trial.time(form);
      if (took < 0) return kFailed;
      if (Clock::now() >= end_) return kNoTime;
      best[form] = std::min(best[form], took);
    }
  }
  return {};
}

// The best of many may owe it to chance, so it has to win again against the default alone.
std::string_view Tuner::choose(Trial& trial, Choice& out) const {
  std::vector<double> best(trial.forms.size());
  std::vector<size_t> all(trial.forms.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  if (trial.time(0) < 0) return kFailed;
  if (const auto why = race(trial, all, kFirstTime, best); !why.empty()) return why;
  const auto winner = static_cast<size_t>(std::ranges::min_element(best) - best.begin());
  if (best[0] < kLeastGain * best[winner]) return {};
  const size_t both[] = {0, winner};
  if (const auto why = race(trial, both, kSecondTime, best); !why.empty()) return why;
  if (best[0] < kLeastGain * best[winner]) return {};
  out.kernel = static_cast<uint32_t>(winner);
  out.gain = static_cast<float>(best[0] / best[winner]);
  return {};
}

void Tuner::tune(Step& step, std::span<const pfrt_buffer> buffers, std::string_view key) noexcept
    try {
  step.detail.reserve(kNoMemory.size());
  try {
    std::vector<Alternative> others = step.kernel.alternatives();
    if (others.empty()) {
      step.detail = "tuned: no other blocking";
      return;
    }
    uint64_t id = hash(key, hash(isa_name(isa()), 0xcbf29ce484222325u));
    for (const Alternative& other : others) id = hash(other.change, hash("/", id));
    id |= 1;  // 0 is where nothing is known
    std::optional<Choice> choice = known().find(id);
    const bool before = choice && choice->kernel <= others.size();
    if (!before) {
      if (end_ == Clock::time_point{}) end_ = Clock::now() + kProgramTime;
      if (Clock::now() >= end_) {
        step.detail = kNoTime;
        return;
      }
      Trial trial;
      trial.forms.assign(others.size() + 1, step);
      for (size_t i = 0; i < others.size(); ++i) trial.forms[i + 1].kernel = others[i].kernel;
      for (Step& form : trial.forms) form.shared = static_cast<uint32_t>(buffers.size());
      if (!place(trial, step, buffers)) {
        step.detail = kNoMemory;
        return;
      }
      choice.emplace();
      if (const auto why = choose(trial, *choice); !why.empty()) {
        step.detail = why;
        return;
      }
      known().add(id, *choice);
    }
    std::string detail;
    if (choice->kernel == 0) {
      detail = message("tuned: default kept, ", others.size(),
                       others.size() == 1 ? " other" : " others", " tried");
    } else {
      const Alternative& taken = others[choice->kernel - 1];
      detail = message("tuned: ", taken.change, ", ",
                       std::lround(100 * (static_cast<double>(choice->gain) - 1)), " % faster");
    }
    if (before) detail += " (measured before)";
    step.detail = std::move(detail);
    if (choice->kernel == 0) return;
    Kernel& kernel = others[choice->kernel - 1].kernel;
    step.kernel.run = std::move(kernel.run);
    step.kernel.scratch_bytes = kernel.scratch_bytes;
    step.kernel.shared_bytes = kernel.shared_bytes;
  } catch (...) {
    step.detail = kNoMemory;
  }
} catch (...) {  // no memory for a message either
}

}  // namespace pfrt::cpu
