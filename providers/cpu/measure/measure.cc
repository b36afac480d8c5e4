// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/measure/measure.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/base/os/cpu.h"
#include "providers/cpu/isa/amx.h"
#include "providers/cpu/measure/cases.h"
#include "providers/cpu/measure/data.h"
#include "providers/cpu/measure/team.h"

namespace pfrt::cpu {
namespace {

constexpr double kTurnNs = 16e6, kLongest = 3600;
constexpr uint64_t kBursts = 5;  // of a turn; the first warms up
#if defined(PFRT_SANITIZE_THREAD)
constexpr uint64_t kMemoryAByte = 5;  // ThreadSanitizer has four beside each
#else
constexpr uint64_t kMemoryAByte = 1;
#endif

// A case on a number of threads. It takes its turn once a round.
struct Trial {
  const MeasureCase* what;
  uint32_t threads;
  int64_t bytes;       // of the data that a thread goes through
  int64_t blocks = 0;  // of a thread's burst; 0 = not known yet
  std::vector<double> rates;
};

struct alignas(64) Place {
  MeasureData data;
  uint64_t start = 0, end = 0;  // of the burst
  bool failed = false;
};

class Measurement {
 public:
  explicit Measurement(Team& team) : team_(team), places_(team.size()) {}

  // A case for which there is no memory becomes absent.
  void prepare(std::vector<MeasureCase>& cases) {
    for (MeasureCase& c : cases) {
      if (!c.loop) continue;
      const auto bytes = [&](uint32_t thread) {
        return thread == 0 ? std::max(c.alone_bytes, c.shared_bytes) : c.shared_bytes;
      };
      team_.run(team_.size(), [&](uint32_t thread) {
        places_[thread].failed = !places_[thread].data.fill(c.loop->data, bytes(thread));
      });
      for (uint32_t i = 0; i < team_.size(); ++i)
        if (places_[i].failed)
          c.absent = message("there is no memory for the ", bytes(i) >> 20, " MiB it needs");
      if (!c.absent.empty()) c.loop = nullptr;
    }
  }

  // Bursts take about |burst_ns|; |trial|'s rates have room.
  void turn(Trial& trial, double burst_ns) {
    Barrier barrier(trial.threads);
    const PeakLoop& loop = *trial.what->loop;
    team_.run(trial.threads, [&](uint32_t thread) {
      int64_t blocks = trial.blocks;
      if (blocks == 0) {
        // All threads see the same times and so do the same.
        double ns = 0;
        for (blocks = 16; ns < burst_ns / 4; ns = burst(trial, barrier, thread, blocks))
          blocks *= 4;
        blocks = std::max(int64_t(static_cast<double>(blocks) * burst_ns / ns), int64_t{1});
        if (thread == 0) trial.blocks = blocks;
      }
      for (uint64_t i = 0; i < kBursts; ++i) {
        const double ns = burst(trial, barrier, thread, blocks);
        const double work = static_cast<double>(blocks * loop.work) * trial.threads;
        if (thread == 0 && i > 0) trial.rates.push_back(work / ns);
      }
    });
  }

 private:
  // Nanoseconds from the first thread's start to the last one's end.
  double burst(const Trial& trial, Barrier& barrier, uint32_t thread, int64_t blocks) {
    Place& own = places_[thread];
    barrier.wait();
    own.start = os::monotonic_ns();
    own.data.go_through(*trial.what->loop, trial.bytes, blocks);
    own.end = os::monotonic_ns();
    barrier.wait();
    uint64_t start = own.start, end = own.end;
    for (uint32_t i = 0; i < trial.threads; ++i) {
      start = std::min(start, places_[i].start);
      end = std::max(end, places_[i].end);
    }
    return static_cast<double>(std::max(end - start, uint64_t{1}));
  }

  Team& team_;
  std::vector<Place> places_;
};

Machine this_machine(uint32_t threads) {
  Machine machine;
  machine.isa = isa();
  if (machine.isa < Isa::kAmx) {
    machine.no_tiles = message("needs amx; usable is ", isa_name(machine.isa));
  } else if (!amx_usable()) {
    machine.no_tiles = "the system refuses this process the use of tiles";
  }
  machine.caches = data_caches();
  machine.memory = os::available_memory() / kMemoryAByte;
  machine.threads = threads;
  return machine;
}

std::string bytes_text(int64_t bytes) {
  return bytes >> 20 >= 8 ? message(bytes >> 20, " MiB") : message(bytes >> 10, " KiB");
}

Rate rate_of(const MeasureCase& what, const char* otherwise = "") {
  return {what.name, what.unit, what.loop ? otherwise : what.absent, 0, 0, 0};
}
Rate rate_of(Trial& trial, bool pinned) {
  const MeasureCase& what = *trial.what;
  std::vector<double>& rates = trial.rates;
  std::sort(rates.begin(), rates.end());
  return {what.name,
          what.unit,
          message(what.loop->instructions, ", ", bytes_text(trial.bytes), " a thread",
                  pinned ? "" : ", not pinned"),
          trial.threads,
          rates[rates.size() / 2],
          rates.back()};
}

Result<std::vector<uint32_t>> processors(uint32_t threads) {
  std::vector<uint32_t> all = os::allowed_processors();
  if (all.empty()) {
    all.resize(threads);
    std::iota(all.begin(), all.end(), 0u);
  }
  if (threads > all.size())
    return error(Code::kINVALID_ARGUMENT, "measuring with ", threads,
                 " threads: each needs a processor of its own, and this process may use ",
                 all.size(), "; ask for no more");
  std::reverse(all.begin(), all.end());  // the first tends to have more to do
  all.resize(threads);
  return all;
}

}  // namespace

Result<std::vector<Rate>> measure(const MeasureRequest& request,
                                  const std::function<Status(double)>& at) {
  if (request.threads == 0 || !(request.seconds >= 0 && request.seconds <= kLongest))
    return error(Code::kINVALID_ARGUMENT, "measuring with ", request.threads, " threads for ",
                 request.seconds, " seconds: give at least one thread, and 0 to ", kLongest,
                 " seconds");
  PFRT_ASSIGN(const std::vector<uint32_t> where, processors(request.threads));
  const Machine machine = this_machine(request.threads);
  PFRT_ASSIGN(const auto loops, PeakLoops::make(machine.isa, machine.no_tiles.empty()));
  std::vector<MeasureCase> cases = measure_cases(machine, *loops, request.only);
  if (cases.empty())
    return error(
        Code::kNOT_FOUND, "measuring what begins with '", request.only,
        "': the CPU provider measures nothing of that name; pfrt doctor --measure lists all");
  if (request.seconds == 0) {
    std::vector<Rate> names;
    names.reserve(cases.size());
    for (const MeasureCase& c : cases) names.push_back(rate_of(c, "no time was given for it"));
    return names;
  }
  PFRT_ASSIGN(const auto team, Team::make(where));
  Measurement measurement(*team);
  measurement.prepare(cases);

  std::vector<Trial> trials;
  for (const MeasureCase& c : cases) {
    if (!c.loop) continue;
    trials.push_back({&c, 1, c.alone_bytes, 0, {}});
    if (team->size() > 1) trials.push_back({&c, team->size(), c.shared_bytes, 0, {}});
  }
  const double turns = request.seconds * 1e9 / kTurnNs;
  const double count = static_cast<double>(std::max(trials.size(), size_t{1}));
  const uint64_t rounds = std::max(static_cast<uint64_t>(turns / count), uint64_t{1});
  const double burst_ns =
      request.seconds * 1e9 / (count * static_cast<double>(rounds) * double{kBursts});
  for (Trial& trial : trials) trial.rates.reserve(rounds * (kBursts - 1));
  // If other programs want the processors too, turns take longer: later rounds are then left out.
  const auto late = [&, start = os::monotonic_ns()] {
    return static_cast<double>(os::monotonic_ns() - start) > request.seconds * 1e9;
  };
  const uint64_t all = rounds * trials.size();
  for (uint64_t i = 0; i < all;) {
    measurement.turn(trials[i++ % trials.size()], burst_ns);
    if (i % trials.size() == 0 && late()) i = all;
    PFRT_TRY(at(static_cast<double>(i) / static_cast<double>(all)));
  }

  std::vector<Rate> out;
  for (const MeasureCase& c : cases) {
    if (!c.loop) out.push_back(rate_of(c));
    for (Trial& trial : trials)
      if (trial.what == &c) out.push_back(rate_of(trial, team->pinned()));
  }
  return out;
}

}  // namespace pfrt::cpu
