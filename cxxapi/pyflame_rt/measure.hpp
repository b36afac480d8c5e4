// SPDX-License-Identifier: Apache-2.0
//
// Peak rates of the machine, as providers measure them: arithmetic on random numbers and reading
// from each level of memory. Takes seconds; nothing else should run meanwhile. Thread-safe.
#pragma once

#include <exception>
#include <functional>
#include <pyflame_rt/env.hpp>
#include <string>
#include <vector>

namespace pyflame_rt {

// A peak rate of a device, as its provider has measured it.
struct Measurement {
  // The provider, and its name for the rate: "fp32 fma", "read L2".
  std::string provider, name;
  std::string unit;      // "GFLOP/s", "GOP/s" or "GB/s", of all threads together
  std::string note;      // instructions and data; where nothing was measured, the reason
  uint32_t threads = 0;  // 0 = not measured
  // Median and best of several bursts, in |unit|.
  double median = 0, best = 0;
};

// Options of a measurement.
struct MeasureOptions {
  std::string provider;  // empty = every provider that can measure
  uint32_t threads = 0;  // figures are for one thread and for so many; 0 = as many as runs have
  double seconds = 0;    // time for each provider, about; 0 = 10
  std::string only;      // prefix of the names to measure; empty = everything
  // Hears a fraction that grows from 0 to 1; returning false ends the measurement, which then
  // throws.
  std::function<bool(double)> progress;
};

namespace detail {

// Receives the C callbacks, which must not throw.
struct MeasureCall {
  const MeasureOptions& options;
  std::vector<Measurement> out;
  std::exception_ptr thrown;

  static void report(void* user, const pfrt_measurement* c) {
    static_cast<MeasureCall*>(user)->guard([c](MeasureCall& self) {
      self.out.push_back({str(c->provider), str(c->name), str(c->unit), str(c->note), c->threads,
                          c->median, c->best});
    });
  }
  static pfrt_code progress(void* user, double fraction) {
    auto* const self = static_cast<MeasureCall*>(user);
    bool go_on = true;
    self->guard([&](MeasureCall& call) {
      go_on = !call.options.progress || call.options.progress(fraction);
    });
    return go_on && !self->thrown ? PFRT_CODE_OK : PFRT_CODE_CANCELLED;
  }

 private:
  template <class Fn>
  void guard(Fn fn) noexcept {
    try {
      fn(*this);
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  }
};

}  // namespace detail

// Measures peak rates. Throws PyFlameRTError with code UNSUPPORTED where no provider can measure.
inline std::vector<Measurement> measure(const MeasureOptions& options = {},
                                        const Environment& environment = Environment::instance()) {
  detail::MeasureCall call{options, {}, nullptr};
  pfrt_measure_request request{};
  request.struct_size = sizeof(request);
  request.threads = options.threads;
  request.seconds = options.seconds;
  request.only = detail::text(options.only);
  request.user = &call;
  request.report = &detail::MeasureCall::report;
  request.progress = &detail::MeasureCall::progress;
  pfrt_status* const status =
      api().env->measure(environment.handle(), detail::text(options.provider), &request);
  if (call.thrown) {
    api().status->release(status);
    std::rethrow_exception(call.thrown);
  }
  detail::check(status);
  return std::move(call.out);
}

}  // namespace pyflame_rt
