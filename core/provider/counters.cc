// SPDX-License-Identifier: Apache-2.0
//
// Reads the figures that a device counted in a program's last run.
#include <algorithm>

#include "core/provider/provider.h"

namespace pfrt {
namespace {

// Keeps counters, and the first fault in them.
struct Collector {
  std::vector<Counter> counters;
  uint32_t step_count;
  Status fault;
  bool no_memory = false;

  Status outcome() {
    if (no_memory) return error(Code::kOUT_OF_MEMORY, "no memory is left for the counters");
    return std::move(fault);
  }
  void add(pfrt_string name, double value, pfrt_string unit, uint32_t step) {
    if (!fault.ok()) return;
    if (view(name).empty()) {
      fault = error(Code::kPROVIDER, "a counter of value ", value, " has no name");
    } else if (step != PFRT_NO_INDEX && step >= step_count) {
      fault = error(Code::kPROVIDER, "counter '", name, "' is of step ", step, ", the program has ",
                    step_count);
    } else {
      keep({std::string(view(name)), std::string(view(unit)), value, step});
    }
  }

 private:
  void keep(Counter counter) {
    const auto same = [&](const Counter& c) {
      return c.step == counter.step && c.name == counter.name;
    };
    const auto at = std::ranges::find_if(counters, same);
    if (at == counters.end()) {
      counters.push_back(std::move(counter));
    } else {
      *at = std::move(counter);
    }
  }
};

void add(const pfrt_counters* table, pfrt_string name, double value, pfrt_string unit,
         uint32_t step) {
  auto& collector = *static_cast<Collector*>(table->host);
  if (!call_foreign([&] { collector.add(name, value, unit, step); })) collector.no_memory = true;
}

}  // namespace

Result<std::vector<Counter>> Executable::report(const ProgramTable& program) {
  if (!(provider_->features() & PFRT_PROVIDER_REPORT)) return std::vector<Counter>();
  PFRT_ASSIGN(const auto lock, provider_->turn({}));
  Collector collector{{}, program.step_count, {}, false};
  const pfrt_counters table{sizeof(pfrt_counters), PFRT_ABI_VERSION, &collector, add};
  Sink sink(provider_->logger_);
  const pfrt_code code = sink.call(
      [&] { return provider_->table().report(handle_, &program.given, &table, sink.get()); });
  const std::string doing = provider_->name() + " reporting what it counted";
  PFRT_TRY(sink.status(code, doing));
  if (Status fault = collector.outcome(); !fault.ok()) return fault.prepend(doing);
  return std::move(collector.counters);
}

}  // namespace pfrt
