// SPDX-License-Identifier: Apache-2.0
//
// Peak rates of the machine, as providers measure them: arithmetic on random numbers and reading
// from each level of memory. Takes seconds; nothing else should run meanwhile. Providers are asked
// by the verb "measure" of Environment::ask. Thread-safe.
#pragma once

#include <exception>
#include <functional>
#include <locale>
#include <pyflame_rt/ask.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace pyflame_rt {

// A peak rate of a device, as its provider has measured it.
struct Measurement {
  // The provider, as MeasureOptions::provider or Environment::providers() names it, and its name
  // for the rate: "fp32 fma", "read L2".
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

// Returns the request of verb "measure" (include/pyflame_rt/README.md).
inline std::string measure_request(const MeasureOptions& options) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  if (options.threads != 0) out << "threads=" << options.threads << ' ';
  if (options.seconds != 0) out << "seconds=" << options.seconds << ' ';
  if (!options.only.empty()) out << "only=" << options.only;
  return out.str();
}

inline void add_measurements(const std::string& provider, const Answer& answer,
                             std::vector<Measurement>& out) {
  const auto column = [&](const char* name) -> const Tensor& {
    for (const auto& one : answer.tensors) {
      if (one.first == name) return one.second;
    }
    throw BackendError("measuring " + provider + ": its answer has no tensor '" + name + "'");
  };
  const std::vector<std::string> names = column("name").strings();
  const std::vector<std::string> units = column("unit").strings();
  const std::vector<std::string> notes = column("note").strings();
  const Tensor &threads = column("threads"), &medians = column("median"), &bests = column("best");
  const auto count = static_cast<int64_t>(names.size());
  if (units.size() != names.size() || notes.size() != names.size() ||
      threads.num_elements() != count || medians.num_elements() != count ||
      bests.num_elements() != count) {
    throw BackendError("measuring " + provider + ": the tensors of its answer differ in size");
  }
  for (size_t i = 0; i < names.size(); ++i) {
    out.push_back({provider, names[i], units[i], notes[i],
                   static_cast<uint32_t>(threads.data_ptr<int64_t>()[i]),
                   medians.data_ptr<double>()[i], bests.data_ptr<double>()[i]});
  }
}

// Returns the providers that know the verb: they tell the names of their rates. Where there is
// none, throws what a device failed with, or UnsupportedError.
inline std::vector<std::string> providers_that_measure(const Environment& environment) {
  std::vector<std::string> out;
  std::exception_ptr failed;
  Question question;
  question.verb = "measure";
  question.request = "seconds=0";
  for (const ProviderInfo& provider : environment.providers()) {
    if (!provider.available) continue;
    question.provider = provider.name;
    try {
      (void)environment.ask(question);
      out.push_back(provider.name);
    } catch (const UnsupportedError&) {  // it takes no questions, or not this one
    } catch (const PyFlameRTError&) {
      if (!failed) failed = std::current_exception();
    }
  }
  if (out.empty() && failed) std::rethrow_exception(failed);
  if (out.empty()) {
    throw UnsupportedError(
        "measuring: none of the providers here measures its device; pfrt plugins says what was "
        "found");
  }
  return out;
}

}  // namespace detail

// Measures peak rates. Throws UnsupportedError where no provider can measure. Without a name in
// |options|, a provider whose device does not open is left out where another one measures.
inline std::vector<Measurement> measure(const MeasureOptions& options = {},
                                        const Environment& environment = Environment::instance()) {
  std::vector<std::string> providers;
  if (options.provider.empty()) {
    providers = detail::providers_that_measure(environment);
  } else {
    providers.push_back(options.provider);
  }
  Question question;
  question.verb = "measure";
  question.request = detail::measure_request(options);
  std::vector<Measurement> out;
  for (size_t i = 0; i < providers.size(); ++i) {
    question.provider = providers[i];
    if (options.progress) {
      question.progress = [&](double fraction) {
        return options.progress((static_cast<double>(i) + fraction) /
                                static_cast<double>(providers.size()));
      };
    }
    detail::add_measurements(providers[i], environment.ask(question), out);
  }
  return out;
}

}  // namespace pyflame_rt
