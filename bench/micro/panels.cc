// SPDX-License-Identifier: Apache-2.0
//
// The generated loop by itself, with operands that stay in the nearest caches: what the kernels
// around it could reach at most.
#include <random>
#include <vector>

#include "bench/micro/micro.h"
#include "providers/cpu/jit/panel_microkernel.h"

namespace micro {
namespace {

using pfrt::cpu::PanelMicrokernel;

std::vector<float> numbers(int64_t count) {
  std::mt19937_64 engine(1);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = normal(engine);
  return out;
}

// Arguments: rows, panels of 16 columns, and |depth| k, in chains of 64.
void run(benchmark::State& state) {
  const PanelMicrokernel* const microkernel = PanelMicrokernel::get();
  const int64_t rows = state.range(0), panels = state.range(1), depth = state.range(2);
  constexpr int64_t kChain = 64, kPanel = PanelMicrokernel::kPanel;
  const auto a = numbers(rows * depth), b = numbers(panels * depth * kPanel);
  std::vector<float> c(static_cast<size_t>(rows * panels * kPanel));
  std::vector<int64_t> offsets;
  for (int64_t k = 0; k < depth; k += kChain) offsets.push_back(k);
  const auto once = [&] {
    PanelMicrokernel::Blocks p{};
    p.a = a.data();
    p.offsets = offsets.data();
    p.a_row = depth;
    p.chunks = depth / kChain, p.depth = kChain, p.chain = 1;
    p.b = b.data();
    p.b_panel = depth * kPanel;
    p.c = c.data();
    p.c_row = panels * kPanel, p.c_panel = kPanel;
    microkernel->run(microkernel->row_blocks(rows), panels, p);
    benchmark::ClobberMemory();
  };
  measure(state, once, 2.0 * static_cast<double>(rows * panels * kPanel * depth), 0);
}

}  // namespace

void add_panels() {
  const PanelMicrokernel* const microkernel = PanelMicrokernel::get();
  if (microkernel == nullptr) return;
  auto* const made = benchmark::RegisterBenchmark("panels", run);
  made->ArgNames({"rows", "panels", "k"});
  for (const int64_t rows : {1, 2, 4, 6, 12, 13, 24, 48, 128})
    for (const int64_t k : {128, 384})
      made->Args({rows, microkernel->panels(microkernel->row_blocks(rows).first()), k});
}

}  // namespace micro
