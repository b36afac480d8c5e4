// SPDX-License-Identifier: Apache-2.0
//
// The innermost matmul with short chains, by itself. It has the bits of its definition for any
// number of rows, panels and chunks and with any instructions, and touches nothing but its
// operands.
#include "providers/cpu/jit/short_chain_microkernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "test/providers/cpu/guarded.h"

namespace pfrt::test {
namespace {

using cpu::PanelMicrokernel;
using cpu::ShortChainMicrokernel;

struct ShortChains {
  static constexpr int64_t kPanel = ShortChainMicrokernel::kPanel;
  int64_t chain, rows, panels, chunks;
  bool adds, half = false;
  std::vector<float> a, b, c;

  ShortChains(int64_t chain_k, int64_t row_count, int64_t panel_count, int64_t chunk_count,
              bool adds_to_c)
      : chain(chain_k), rows(row_count), panels(panel_count), chunks(chunk_count), adds(adds_to_c) {
    std::mt19937_64 random(static_cast<uint64_t>(rows * 8 + chunks));
    std::normal_distribution<float> normal;
    for (auto [numbers, size] : {std::pair{&a, chunks * rows}, std::pair{&b, panels * chunks * 16},
                                 std::pair{&c, panels * rows}}) {
      numbers->resize(static_cast<size_t>(size * kPanel));
      for (float& x : *numbers) x = normal(random);
    }
  }
  int64_t columns() const { return half ? kPanel / 2 : kPanel; }

  float element(int64_t row, int64_t panel, int64_t column) const {
    float sum = 0, total = 0;
    for (int64_t k = 0; k < chunks * kPanel; ++k) {
      const float x = a[static_cast<size_t>((k / kPanel * rows + row) * kPanel + k % kPanel)];
      const float y = b[static_cast<size_t>((panel * chunks * kPanel + k) * kPanel + column)];
      if (k % chain == 0) {
        total += sum;
        sum = x * y;
      } else {
        sum = std::fma(x, y, sum);
      }
    }
    const float all = total + sum;
    return adds ? all + c[static_cast<size_t>((panel * rows + row) * kPanel + column)] : all;
  }
  std::vector<float> expected() const {
    std::vector<float> out = c;
    for (int64_t p = 0; p < panels; ++p)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t j = 0; j < columns(); ++j)
          out[static_cast<size_t>((p * rows + r) * kPanel + j)] = element(r, p, j);
    return out;
  }
  std::vector<float> computed(bool fetches) const {
    const ShortChainMicrokernel& microkernel = *ShortChainMicrokernel::get(chain);
    Guarded from = guarded(a), with = guarded(b), to = guarded(c);
    from.make_read_only();
    with.make_read_only();
    ShortChainMicrokernel::Blocks p{};
    p.a = floats(from);
    p.a_chunk = rows * kPanel;
    p.chunks = chunks;
    p.b = floats(with);
    p.b_panel = chunks * kPanel * kPanel;
    p.c = floats(to);
    p.c_panel = rows * kPanel;
    p.adds = adds;
    if (fetches) {
      p.ahead = floats(with);
      p.ahead_end = p.ahead + p.b_panel;
    }
    const int64_t most = half ? microkernel.half_rows() : microkernel.rows();
    const PanelMicrokernel::RowBlocks blocks = PanelMicrokernel::row_blocks(rows, most);
    if (half)
      microkernel.run_half(blocks, p);
    else
      microkernel.run(blocks, panels, p);
    EXPECT_EQ(p.a, floats(from) + rows * kPanel);
    EXPECT_EQ(p.c, floats(to) + rows * kPanel);
    EXPECT_EQ(p.ahead != nullptr, fetches);
    return {floats(to), floats(to) + c.size()};
  }

  static Guarded guarded(const std::vector<float>& from) {
    Guarded out(from.size() * sizeof(float), Placed::kAtEnd, sizeof(float));
    std::memcpy(out.data(), from.data(), out.size());
    return out;
  }
  static float* floats(Guarded& g) { return reinterpret_cast<float*>(g.data()); }
};

void expect_bits(ShortChains chains, const std::string& isa) {
  for (const bool fetches : {false, true})
    EXPECT_EQ(chains.computed(fetches), chains.expected())
        << isa << ", chains of " << chains.chain << ", " << chains.rows << " rows, "
        << chains.panels << " panels, " << chains.chunks << " chunks, half " << chains.half;
}

TEST(ShortChainMicrokernel, has_the_bits_of_its_definition) {
  if (ShortChainMicrokernel::get(8) == nullptr) GTEST_SKIP() << "needs avx2";
  const char* const set = std::getenv("PFRT_ISA");
  const std::string before = set == nullptr ? "" : set;
  for (const std::string& isa : {before, std::string("avx2")}) {
    if (!isa.empty()) setenv("PFRT_ISA", isa.c_str(), 1);
    for (const int64_t chain : {8, 16})
      for (const int64_t chunks : {1, 2, 3, 4})
        for (int64_t rows = 1; rows <= 26; ++rows) {
          const ShortChainMicrokernel& microkernel = *ShortChainMicrokernel::get(chain);
          for (int64_t panels = 1; panels <= microkernel.panels(); ++panels)
            expect_bits({chain, rows, panels, chunks, rows % 2 == 0}, isa);
          if (microkernel.half_rows() == 0) continue;
          ShortChains half(chain, rows, 1, chunks, rows % 2 == 0);
          half.half = true;
          expect_bits(half, isa);
        }
  }
  if (set == nullptr)
    unsetenv("PFRT_ISA");
  else
    setenv("PFRT_ISA", before.c_str(), 1);
}

}  // namespace
}  // namespace pfrt::test
