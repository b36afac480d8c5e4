// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/micro.h"

#include <chrono>
#include <cstdio>
#include <stdexcept>

#include "bench/micro/rate.h"
#include "providers/cpu/isa/isa.h"

namespace micro {
namespace {

using pfrt::cpu::KernelRow;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run_row(benchmark::State& state, const KernelRow& row, const Node& node) {
  std::string why;
  const auto step = Step::make(row, node, why);
  if (step == nullptr) throw std::runtime_error(why);
  measure(
      state, [&] { step->run(); }, step->flops(), step->bytes());
}

}  // namespace

void measure(benchmark::State& state, const std::function<void()>& once, double flops,
             double bytes) {
  once();
  const Rate before = Rate::now();
  const double start = now();
  for (auto _ : state) once();
  const double each = (now() - start) / static_cast<double>(state.iterations()) * 1e9;
  const Rate after = Rate::now();
  if (flops > 0) {
    state.counters["GFLOP/s"] = flops / each;
    const double peak = (before.gflops + after.gflops) / 2;
    if (peak > 0) state.counters["of_fma"] = flops / each / peak;
  }
  if (bytes > 0) {
    state.counters["GB/s"] = bytes / each;
    const double peak = (before.gbs + after.gbs) / 2;
    if (peak > 0) state.counters["of_L1"] = bytes / each / peak;
  }
}

void add(const Node& node) {
  double flops = 0, bytes = 0;
  bool any = false;
  for (const auto& family : pfrt::cpu::kernels())
    for (const KernelRow& row : family) {
      if (row.op != node.op || row.domain != node.domain) continue;
      std::string why;
      const auto step = Step::make(row, node, why);
      if (step == nullptr) continue;
      if (!any) flops = step->flops(), bytes = step->bytes();
      any = true;
      benchmark::RegisterBenchmark(
          (node.op + "/" + std::string(step->name()) + "/" + node.shape).c_str(),
          [&row, node](benchmark::State& state) { run_row(state, row, node); });
    }
  if (!any) throw std::runtime_error("no row takes " + node.op + " " + node.shape);
  benchmark::RegisterBenchmark(
      (node.op + "/session/" + node.shape).c_str(),
      [=](benchmark::State& state) { measure_session(state, node, flops, bytes); });
}

}  // namespace micro

int main(int argc, char** argv) {
  try {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    micro::add_panels();
    micro::add_products();
    micro::add_convolutions();
    micro::add_attention();
    micro::add_normalisations();
    micro::add_elementwise();
    micro::add_pools();
    micro::add_reductions();
    benchmark::AddCustomContext("isa", std::string(pfrt::cpu::isa_name(pfrt::cpu::isa())));
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "micro: %s\n", error.what());
    return 1;
  }
}
