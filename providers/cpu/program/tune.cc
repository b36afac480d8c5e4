// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/tune.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/immortal.h"
#include "core/base/os/pages.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/program/surrogate.h"

namespace pfrt::cpu {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstTime = 30ms, kSecondTime = 20ms;  // of a step; slow ones take kLeastRounds
constexpr auto kFormTime = 4ms;                        // of a form, where many are searched
constexpr auto kProgramTime = 3s;                      // used where the host gives none
constexpr int kLeastRounds = 3, kMostRounds = 24;
constexpr double kHopeless = 1.25, kLeastGain = 1.03;
constexpr size_t kFirstForms = 10;  // forms that a search begins with
constexpr double kNoise = 0.01;     // of measured times, about
// A run of a model reads each constant from beyond the near caches. So that it is the same here,
// copies of a constant fill more memory than those caches hold, and runs take turns among them.
constexpr uint64_t kConstantsBytes = 32 << 20;
constexpr uint64_t kMostBytes = 256 << 20;
constexpr uint64_t kLine = 64, kPage = 4096;
constexpr std::string_view kNoMemory = "not tuned: no memory", kNoTime = "not tuned: no time",
                           kFailed = "not tuned: a trial run failed",
                           kStopped = "not tuned: stopped",
                           kUnknown = "not tuned: nothing is remembered";

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

// "band=28 positions=512".
std::string text_of(const Parameters& parameters) {
  std::string out;
  for (const TuningParameter& p : parameters)
    out += message(out.empty() ? "" : " ", p.name, "=", p.value);
  return out;
}

// "band 14 -> 28".
std::string change(const Parameters& from, const Parameters& to) {
  std::string out;
  for (size_t i = 0; i < std::min(from.size(), to.size()); ++i)
    if (from[i].value != to[i].value)
      out += message(out.empty() ? "" : ", ", to[i].name, " ", from[i].value, " -> ", to[i].value);
  return out;
}

uint64_t next_random(uint64_t& state) {  // xorshift
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

// The forms' parameters, the default's first, each logarithm scaled to 0 to 1.
std::vector<std::vector<double>> points_of(const Alternatives& offered) {
  std::vector<std::vector<double>> out;
  const auto add = [&](const Parameters& parameters) {
    std::vector<double>& point = out.emplace_back();
    for (const TuningParameter& p : parameters)
      point.push_back(std::log2(1 + std::abs(double(p.value))));
  };
  add(offered.own);
  for (const Alternative& other : offered.others) add(other.parameters);
  for (size_t i = 0; i < out[0].size(); ++i) {
    double least = out[0][i], most = least;
    for (const auto& point : out) {
      least = std::min(least, point[i]);
      most = std::max(most, point[i]);
    }
    for (auto& point : out) point[i] = most > least ? (point[i] - least) / (most - least) : 0;
  }
  return out;
}

}  // namespace

const pfrt_tuning* tuning_of(const pfrt_sink& sink) {
  // An older host's sink ends before.
  return sink.struct_size >= offsetof(pfrt_sink, tuning) + sizeof sink.tuning ? sink.tuning
                                                                              : nullptr;
}

Tuner::Tuner(bool measure, const pfrt_sink* sink)
    : measure_(measure), sink_(sink), own_left_ns_(std::chrono::nanoseconds(kProgramTime).count()) {
  if (sink != nullptr) tuning_ = tuning_of(*sink);
  if (tuning_ != nullptr) search_ = tuning_->search;
}

uint64_t Tuner::left_ns(uint64_t spent_ns) {
  if (tuning_ != nullptr) return tuning_->left_ns(tuning_, spent_ns);
  return own_left_ns_ -= std::min(own_left_ns_, spent_ns);
}

bool Tuner::stopped() const { return sink_ != nullptr && sink_->stop(sink_) != PFRT_CODE_OK; }

// The best of a step's kernels: 0 is the default, the others are its alternatives in order.
struct Tuner::Choice {
  uint32_t kernel = 0;
  float gain = 1;         // the default's time by this one's
  uint32_t measured = 0;  // forms, the default too
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
  const uint32_t repeats = tuning_ != nullptr ? tuning_->repeats : 0;
  const int rounds = repeats > 0 ? static_cast<int>(repeats) : kMostRounds;
  std::ranges::fill(best, std::numeric_limits<double>::infinity());
  for (int round = 0; round < rounds; ++round) {
    if (repeats == 0 && round >= kLeastRounds && Clock::now() >= end) break;
    const double limit = kHopeless * std::ranges::min(best);
    for (size_t i = 0; i < entrants.size(); ++i) {
      const size_t form = entrants[(i + static_cast<size_t>(round)) % entrants.size()];
      if (form != 0 && round > 0 && best[form] > limit) continue;
      const double took = trial.time(form);
      if (took < 0) return kFailed;
      if (Clock::now() >= end_) return kNoTime;
      if (stopped()) return kStopped;
      best[form] = std::min(best[form], took);
    }
  }
  return {};
}

// The shortest time of a form, or what it took at first where that is far beyond |best|. Less than
// 0 when it failed.
double Tuner::time(Trial& trial, size_t form, double best) const {
  const auto end = Clock::now() + kFormTime;
  const uint32_t repeats = tuning_->repeats;
  double least = trial.time(form);
  if (least < 0 || least > 2 * best) return least;
  for (uint32_t i = 1; i < (repeats > 0 ? repeats : kMostRounds); ++i) {
    if (repeats == 0 && i >= kLeastRounds && Clock::now() >= end) break;
    const double took = trial.time(form);
    if (took < 0) return took;
    least = std::min(least, took);
  }
  return least;
}

// Measures some of many forms, one after another; |best| as race has it. The usual ones come first,
// so that what is found is no worse than by a race, and the model has seen several sides of what it
// is to predict.
std::string_view Tuner::search(Trial& trial, const Alternatives& offered, uint64_t seed,
                               std::span<double> best) const {
  const auto end = end_ - kSecondTime;
  const auto points = points_of(offered);
  Surrogate model(kNoise);
  std::vector<size_t> left(trial.forms.size() - 1);
  for (size_t i = 0; i < left.size(); ++i) left[i] = i + 1;
  for (size_t i = left.size(); i > kFirstForms + 1; --i)
    std::swap(left[i - 1], left[kFirstForms + next_random(seed) % (i - kFirstForms)]);
  std::ranges::reverse(left);  // the next one is the last
  std::ranges::fill(best, std::numeric_limits<double>::infinity());
  const size_t most = kFirstForms + tuning_->iterations;
  for (size_t form = 0, n = 0;; ++n) {
    const double took = time(trial, form, std::ranges::min(best));
    if (took < 0) return kFailed;
    if (stopped()) return kStopped;
    best[form] = took;
    model.observe(points[form], std::log(std::max(took, 1.0)));
    if (left.empty() || n >= most || Clock::now() >= end) break;
    auto next = left.end() - 1;
    if (search_ == PFRT_TUNE_MODEL && n >= kFirstForms) {
      double hope = -1;
      for (auto at = left.begin(); at != left.end(); ++at) {
        const double improvement = model.expected_improvement(points[*at]);
        if (improvement <= hope) continue;
        hope = improvement;
        next = at;
      }
    }
    form = *next;
    left.erase(next);
  }
  return Clock::now() >= end_ ? kNoTime : std::string_view();
}

// The best of many may owe it to chance, so it has to win again against the default alone.
std::string_view Tuner::choose(Trial& trial, const Alternatives& offered, uint64_t seed,
                               Choice& out) const {
  std::vector<double> best(trial.forms.size());
  std::vector<size_t> all(trial.forms.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  if (trial.time(0) < 0) return kFailed;
  const auto why =
      searches() ? search(trial, offered, seed, best) : race(trial, all, kFirstTime, best);
  if (!why.empty()) return why;
  out.measured = static_cast<uint32_t>(
      std::ranges::count_if(best, [](double ns) { return std::isfinite(ns); }));
  const auto winner = static_cast<size_t>(std::ranges::min_element(best) - best.begin());
  if (best[0] < kLeastGain * best[winner]) return {};
  const size_t both[] = {0, winner};
  if (const auto again = race(trial, both, kSecondTime, best); !again.empty()) return again;
  if (best[0] < kLeastGain * best[winner]) return {};
  out.kernel = static_cast<uint32_t>(winner);
  out.gain = static_cast<float>(best[0] / best[winner]);
  return {};
}

std::string_view Tuner::measure(const Step& step, std::span<const pfrt_buffer> buffers,
                                const Alternatives& offered, uint64_t seed, Choice& out) {
  const uint64_t left = left_ns(0);
  if (left == 0) return kNoTime;
  const auto start = Clock::now();
  constexpr uint64_t kLongest = uint64_t{1} << 60;
  end_ = start + std::chrono::nanoseconds(std::min(left, kLongest));
  Trial trial;
  trial.forms.assign(offered.others.size() + 1, step);
  for (size_t i = 0; i < offered.others.size(); ++i)
    trial.forms[i + 1].kernel = offered.others[i].kernel;
  for (Step& form : trial.forms) form.shared = static_cast<uint32_t>(buffers.size());
  if (!place(trial, step, buffers)) return kNoMemory;
  const auto why = choose(trial, offered, seed, out);
  (void)left_ns(static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count()));
  return why;
}

// Reads what the host kept for |key|: the search that found it, the gain, and the parameters.
// Returns false where that came from a race and a search is wanted. |offered| becomes all forms
// where the kept one is not among those that it had.
bool Tuner::recall(const Step& step, const std::string& key, Alternatives& offered,
                   Choice& out) const {
  pfrt_string value{};
  if (tuning_ == nullptr || tuning_->recall(tuning_, to_c(key), &value) != PFRT_CODE_OK)
    return false;
  const std::string_view text = view(value);
  const char* const end = text.data() + text.size();
  uint32_t search = 0;
  const auto first = std::from_chars(text.data(), end, search);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return false;
  if (measure_ && searches() && search == PFRT_TUNE_RACE) return false;
  const auto second = std::from_chars(first.ptr + 1, end, out.gain);
  if (second.ec != std::errc() || second.ptr == end || !(out.gain > 0)) return false;
  const std::string_view parameters(second.ptr + 1, end);
  const auto is_of = [&](const Alternatives& forms) {
    out.kernel = 0;
    if (text_of(forms.own) == parameters) return true;
    for (const Alternative& other : forms.others) {
      ++out.kernel;
      if (text_of(other.parameters) == parameters) return true;
    }
    return false;
  };
  if (is_of(offered)) return true;
  Alternatives all = step.kernel.alternatives(true);
  if (!is_of(all)) return false;
  offered = std::move(all);
  return true;
}

void Tuner::remember(const std::string& key, const Alternatives& offered,
                     const Choice& choice) const {
  if (tuning_ == nullptr) return;
  const uint32_t search = searches() ? search_ : uint32_t{PFRT_TUNE_RACE};
  const Parameters& parameters =
      choice.kernel == 0 ? offered.own : offered.others[choice.kernel - 1].parameters;
  const std::string value = message(search, " ", choice.gain, " ", text_of(parameters));
  (void)tuning_->remember(tuning_, to_c(key), to_c(value));
}

void Tuner::tune(Step& step, std::span<const pfrt_buffer> buffers, std::string_view key) noexcept
    try {
  step.detail.reserve(kNoMemory.size());
  try {
    Alternatives offered = step.kernel.alternatives(measure_ && searches());
    const std::string name = message(isa_name(isa()), "/", key);
    uint64_t id = hash(name, 0xcbf29ce484222325u);
    for (const Alternative& other : offered.others)
      id = hash(text_of(other.parameters), hash("/", id));
    id |= 1;  // 0 is where nothing is known
    std::string_view before;
    Choice choice;
    const auto known_before = known().find(id);
    if (recall(step, name, offered, choice)) {
      before = " (remembered)";
    } else if (offered.others.empty()) {
      step.detail = "tuned: no other blocking";
      return;
    } else if (known_before && known_before->kernel <= offered.others.size()) {
      choice = *known_before;
      before = " (measured before)";
      remember(name, offered, choice);
    } else if (!measure_) {
      step.detail = kUnknown;
      return;
    } else {
      choice = {};
      if (const auto why = measure(step, buffers, offered, id, choice); !why.empty()) {
        step.detail = why;
        return;
      }
      known().add(id, choice);
      remember(name, offered, choice);
    }
    std::string detail = "tuned: default kept";
    const Parameters* parameters = &offered.own;
    if (choice.kernel > 0) {
      parameters = &offered.others[choice.kernel - 1].parameters;
      detail = message("tuned: ", change(offered.own, *parameters), ", ",
                       std::lround(100 * (static_cast<double>(choice.gain) - 1)), " % faster");
    } else if (choice.measured > 0) {
      detail +=
          message(", ", choice.measured - 1, choice.measured == 2 ? " other" : " others", " tried");
    }
    std::string tuning = message(text_of(*parameters), " gain=", choice.gain,
                                 " measured=", before.empty() ? choice.measured : 0);
    step.detail = std::move(detail += before);
    step.tuning = std::move(tuning);
    if (choice.kernel == 0) return;
    Kernel& kernel = offered.others[choice.kernel - 1].kernel;
    step.kernel.run = std::move(kernel.run);
    step.kernel.scratch_bytes = kernel.scratch_bytes;
    step.kernel.shared_bytes = kernel.shared_bytes;
  } catch (...) {
    step.detail = kNoMemory;
  }
} catch (...) {  // no memory for a message either
}

}  // namespace pfrt::cpu
