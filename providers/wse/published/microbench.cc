// SPDX-License-Identifier: Apache-2.0
//
// V12: what was measured of one WSE-3 PE and of its links, an operation at a time.
#include "providers/wse/published/data.h"
#include "providers/wse/published/rows.h"

namespace pfrt::wse::published {
namespace {

struct Microbench {
  const Measured& measured;
  Verdict verdict;
  double (*ours)(Schedule&);
  std::string_view note = {};
  Arithmetic arithmetic = Arithmetic::kFp16;
  Evidence evidence = Evidence::kPrediction;
  double baseline = 0;  // by the rates alone, without set-ups
};

constexpr int64_t kRateElements = 4096;  // for rates: so many that whole groups do not matter

double copy_rate(Schedule& s) { return kRateElements / s.copy(kRateElements); }
double fmac_rate(Schedule& s) { return kRateElements / s.fmac(kRateElements); }

double vector_addition(Schedule& s) {
  s.vectors("vector addition", 1, 2048);
  return s.finish();
}

constexpr std::string_view kWithSetup = "ours from the first descriptor load on (dsd_setup)";
constexpr std::string_view kRate = "the rate is taken from here";
constexpr std::string_view kRatesAlone = "the rates alone, without set-ups";

const Microbench kSimulator[] = {
    {kOneVector, Verdict::kMet,
     [](Schedule& s) {
       s.work("vector", s.machine().dsd_setup + s.fmac(4096));
       return s.finish();
     },
     "the rate was taken from another row", Arithmetic::kFp16, Evidence::kPartlyFitted, 1024},
    {kWhileForm, Verdict::kFitted,
     [](Schedule& s) {
       s.work("loop calls", 256 * s.machine().loop_call);
       s.work("multiply-adds", 256 * s.fmac(16));
       return s.finish();
     },
     "loop_call was fitted here"},
    {kMapForm, Verdict::kFitted,
     [](Schedule& s) {
       s.work("map", s.map_cycles(256, 16, true));
       return s.finish();
     },
     "dependent was fitted here"},
    {kForMapForm, Verdict::kFitted,
     [](Schedule& s) {
       s.work("maps", 16 * s.map_cycles(16, 16, true));
       return s.finish();
     },
     "map_setup, which has the edge of the loop around a map, was chosen with this row"},
    {kVectorAdd, Verdict::kMet, vector_addition, kWithSetup, Arithmetic::kFp16,
     Evidence::kPrediction, 512},
    {kAddAndScalars, Verdict::kMet,
     [](Schedule& s) {
       s.work("scalar steps", 256 * s.machine().register_element);
       return vector_addition(s);
     },
     kWithSetup, Arithmetic::kFp16, Evidence::kPrediction, 1024},
    {kReduction,
     Verdict::kMet,
     [](Schedule& s) {
       s.register_join("sum", 2048);
       return s.finish() / 2048;
     },
     {},
     Arithmetic::kFp16,
     Evidence::kPrediction,
     2},
    {kDot, Verdict::kMet,
     [](Schedule& s) {
       s.vectors("products", 1, 2048);
       s.register_join("sum", 2048);
       return s.finish() / 2048;
     },
     "its source has it as the sum of two other rows", Arithmetic::kFp16, Evidence::kPartlyFitted,
     2.25},
    {kCopy16, Verdict::kFitted, copy_rate, kRate},
    {kCopy32, Verdict::kFitted, copy_rate, kRate, Arithmetic::kFp32},
    {kFmac16, Verdict::kFitted, fmac_rate, kRate},
    {kFmac32, Verdict::kFitted, fmac_rate, kRate, Arithmetic::kFp32},
    {kMessage, Verdict::kFitted,
     [](Schedule& s) {
       const Machine& m = s.machine();
       return m.dispatch + 2 * m.ramp + m.hop + m.completion + 7 * m.wavelet;
     },
     "dispatch and completion are taken from here; rule 10 has the ramp into the core besides"},
};

const Microbench kSilicon[] = {
    {kSiliconCopy16, Verdict::kFitted, copy_rate, kRate},
    {kSiliconCopy32, Verdict::kFitted, copy_rate, kRate, Arithmetic::kFp32},
    {kSiliconFmac16, Verdict::kFitted, fmac_rate, kRate},
    {kSiliconFmac32, Verdict::kFitted, fmac_rate, kRate, Arithmetic::kFp32},
    {kHop, Verdict::kFitted, [](Schedule& s) { return s.machine().hop; }, "taken from here"},
    {kTurn, Verdict::kFitted, [](Schedule& s) { return s.machine().turn; }, "taken from here"},
};

ValidationRow microbench_row(const Machine& m) {
  ValidationRow row;
  row.id = "V12";
  row.machine = m.name;
  row.program = "operations of one PE";
  row.baseline_name = kRatesAlone;
  row.kind = m.silicon ? "silicon" : "simulator";
  row.tolerance_percent = 3;
  return row;
}

Status add_microbench(Rows& rows, const Machine& m, const Microbench& bench) {
  Schedule s(m, bench.arithmetic, 1, 1);
  ValidationRow row = microbench_row(m);
  row.point = bench.measured.point;
  row.source = message("WSE-3 characterization, ", bench.measured.section);
  row.unit = bench.measured.unit;
  row.target = bench.measured.value;
  row.ours = bench.ours(s);
  row.verdict = bench.verdict;
  row.evidence = bench.evidence;
  row.baseline = bench.baseline;
  row.note = bench.note;
  return rows.add(std::move(row), largest_phases(s));
}

Status add_relays(Rows& rows, const Machine& m) {
  ValidationRow row = microbench_row(m);
  row.source = "WSE-3 characterization, 10g";
  row.program = "relay";
  row.evidence = Evidence::kFit;
  row.unit = "cycles";
  for (const int64_t wavelets : kRelayWavelets)
    for (const int64_t hops : kRelayHops) {
      Grid grid(hops + 1, 1);
      pass_along(grid, m, Axis::kX, wavelets);
      row.point = message("relay of whole messages, N=", hops, " B=", wavelets);
      row.target = relay_cycles(static_cast<double>(hops), static_cast<double>(wavelets));
      row.ours = m.dsd_setup + grid.finish();
      row.baseline = static_cast<double>(hops * wavelets) * m.wavelet;
      row.note = kWithSetup;
      PFRT_TRY(rows.add(row, message("dsd_setup ", number_text(m.dsd_setup), ", stages ",
                                     number_text(grid.finish()))));
    }
  return {};
}

}  // namespace

Status add_microbenches(Rows& rows, const Machines& machines) {
  for (const Microbench& bench : kSimulator) PFRT_TRY(add_microbench(rows, machines.wse3, bench));
  PFRT_TRY(add_relays(rows, machines.wse3));
  for (const Microbench& bench : kSilicon)
    PFRT_TRY(add_microbench(rows, machines.wse3_silicon, bench));
  return {};
}

}  // namespace pfrt::wse::published
