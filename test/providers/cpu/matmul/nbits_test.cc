// SPDX-License-Identifier: Apache-2.0
//
// MatMulNBits with constant weights, compared with plain loops: every width, block, kind of zero
// points and order of g_idx, with float and int8 rows, on every instruction set. A row has the same
// bits among any other rows, and on all instruction sets with vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernels/matmul/matmul.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/providers/cpu/graph.h"
#include "test/sanitized.h"

namespace pfrt::test {
namespace {

constexpr const char* kNBitsIsas[] = {"generic",     "avx2",        "avx_vnni", "avx512",
                                      "avx512_vnni", "avx512_bf16", "amx"};

class NBitsIsa {
 public:
  explicit NBitsIsa(const char* isa) {
    if (const char* before = std::getenv("PFRT_ISA")) before_ = before;
    setenv("PFRT_ISA", isa, 1);
  }
  ~NBitsIsa() {
    if (before_)
      setenv("PFRT_ISA", before_->c_str(), 1);
    else
      unsetenv("PFRT_ISA");
  }

 private:
  std::optional<std::string> before_;
};

bool has_isa(const char* name) { return cpu::isa_from_name(name).value() <= cpu::machine_isa(); }

const cpu::KernelRow& nbits_row() {
  for (const auto family : cpu::kernels())
    for (const cpu::KernelRow& row : family)
      if (row.op == "MatMulNBits") return row;
  std::abort();
}

enum class NBitsGroups : uint8_t { kNone, kShuffled, kUneven };

struct NBits {
  int64_t m = 1, n = 1, k = 32, bits = 4, block = 32, level = 0;
  int64_t zeros = 0;  // none, packed, floats
  NBitsGroups groups = NBitsGroups::kNone;
  bool bias = false;
  pfrt_dtype dtype = PFRT_DTYPE_FLOAT32;

  int64_t blocks() const { return (k + block - 1) / block; }
  int64_t zero_bytes() const { return (blocks() * bits + 7) / 8; }
  bool int8_rows() const { return level == 4 && zeros != 2; }
};

double nbits_field(const Values& bytes, int64_t first_byte, int64_t bits, int64_t i) {
  const auto byte = static_cast<int64_t>(bytes[static_cast<size_t>(first_byte + i * bits / 8)]);
  return static_cast<double>(byte >> (i * bits % 8) & ((1 << bits) - 1));
}

NBits random_nbits(Random& r) {
  const int64_t widths[] = {2, 4, 8};
  NBits p;
  p.bits = widths[r.below(3)];
  p.block = 16 << r.below(5);
  p.m = r.once_in(3) ? 1 : r.from_to(1, r.once_in(5) ? 130 : 30);
  p.n = r.once_in(4) ? r.from_to(60, 200) : r.from_to(1, 60);
  p.k = r.from_to(1, r.once_in(4) ? 900 : 300);
  p.level = r.below(2) * 4;
  p.zeros = r.below(3);
  p.groups = r.once_in(3) ? static_cast<NBitsGroups>(r.from_to(1, 2)) : NBitsGroups::kNone;
  p.bias = r.once_in(2);
  return p;
}

// |scale| is the largest magnitude of elements of A.
Case nbits_inputs(Random& r, const NBits& p, double scale = 1) {
  Case c;
  c.inputs = {r.data(p.dtype, {p.m, p.k}, -scale, scale),
              r.data(PFRT_DTYPE_UINT8, {p.n, p.blocks(), p.block * p.bits / 8}, 0, 255),
              r.data(p.dtype, {p.n, p.blocks()}, -1, 1),
              p.zeros == 0   ? Data{}
              : p.zeros == 1 ? r.data(PFRT_DTYPE_UINT8, {p.n, p.zero_bytes()}, 0, 255)
                             : r.data(p.dtype, {p.n, p.blocks()}, 0, 8),
              Data{},
              p.bias ? r.data(p.dtype, {p.n}) : Data{}};
  if (p.groups != NBitsGroups::kNone) {
    Values groups;
    for (int64_t k = 0; k < p.k; ++k) groups.push_back(static_cast<double>(k / p.block));
    for (int64_t k = p.k; k-- > 1;)
      std::swap(groups[static_cast<size_t>(k)], groups[static_cast<size_t>(r.below(k + 1))]);
    if (p.groups == NBitsGroups::kUneven)
      for (double& g : groups)
        if (r.once_in(8)) g = static_cast<double>(r.below(p.blocks()));
    c.inputs[4] = {PFRT_DTYPE_INT32, {p.k}, groups, false};
  }
  for (size_t i = 1; i < 5; ++i) c.inputs[i].constant = true;
  c.attrs = {{"K", p.k},
             {"N", p.n},
             {"bits", p.bits},
             {"block_size", p.block},
             {"accuracy_level", p.level}};
  return c;
}

// Returns the indices k of each block, whose elements share a scale.
std::vector<std::vector<int64_t>> nbits_blocks(const NBits& p, const Case& c) {
  std::vector<std::vector<int64_t>> members(static_cast<size_t>(p.blocks())), out;
  for (int64_t k = 0; k < p.k; ++k)
    members[p.groups == NBitsGroups::kNone
                ? static_cast<size_t>(k / p.block)
                : static_cast<size_t>(c.inputs[4].values[static_cast<size_t>(k)])]
        .push_back(k);
  return members;
}

// Returns the numbers that int8 rows hold for |values|, a block: rounded as the vectors round.
Values nbits_rounded(const Values& values) {
  float largest = 0;
  for (const double v : values) largest = std::max(largest, std::fabs(static_cast<float>(v)));
  Values out;
  for (const double v : values) {
    const float factor = 127.0f / largest;
    const double q = largest == 0 ? 0 : std::nearbyint(static_cast<float>(v) * factor);
    out.push_back(q * static_cast<double>(largest / 127.0f));
  }
  return out;
}

void expect_nbits(const NBits& p, bool rounds, Case& c) {
  const auto blocks = nbits_blocks(p, c);
  Values y;
  double largest = 0;
  for (int64_t i = 0; i < p.m; ++i) {
    std::vector<Values> rows;  // by block
    for (const auto& block : blocks) {
      Values part;
      // A block with more elements than the layout has places for is stored as several, like its
      // weights.
      for (size_t at = 0; at < block.size(); at += static_cast<size_t>(p.block)) {
        Values some;
        for (size_t j = at; j < std::min(block.size(), at + static_cast<size_t>(p.block)); ++j)
          some.push_back(c.inputs[0].values[static_cast<size_t>(i * p.k + block[j])]);
        if (rounds) some = nbits_rounded(some);
        part.insert(part.end(), some.begin(), some.end());
      }
      rows.push_back(std::move(part));
    }
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = p.bias ? c.inputs[5].values[static_cast<size_t>(j)] : 0, size = 0;
      for (size_t b = 0; b < blocks.size(); ++b) {
        const size_t which = static_cast<size_t>(j * p.blocks()) + b;
        const auto at = static_cast<int64_t>(b);
        const double zero = p.zeros == 0 ? static_cast<double>(int64_t{1} << (p.bits - 1))
                            : p.zeros == 1
                                ? nbits_field(c.inputs[3].values, j * p.zero_bytes(), p.bits, at)
                                : c.inputs[3].values[which];
        for (size_t l = 0; l < blocks[b].size(); ++l) {
          const double stored = nbits_field(
              c.inputs[1].values, j * p.blocks() * p.block * p.bits / 8, p.bits, blocks[b][l]);
          const double term = rows[b][l] * (stored - zero) * c.inputs[2].values[which];
          sum += term;
          size += std::fabs(term);
        }
      }
      y.push_back(sum);
      largest = std::max(largest, size);
    }
  }
  c.outputs = {expected(p.dtype, {p.m, p.n}, y)};
  c.relative = 4;
  // This allows the error of as many float32 sums, which is far below one wrong element.
  c.absolute = largest * 24 * step_error(p.dtype);
}

std::string nbits_text(const NBits& p) {
  return message(p.m, "x", p.n, "x", p.k, " bits ", p.bits, " block ", p.block, " level ", p.level,
                 " zeros ", p.zeros, " groups ", static_cast<int>(p.groups), " bias ", p.bias);
}

std::vector<float> nbits_result(const Case& c, const RunForm& form = {}) {
  const Outcome outcome = run(nbits_row(), c, form);
  EXPECT_EQ(outcome.refused + outcome.fault, "");
  if (outcome.outputs.empty()) return {};
  std::vector<float> out(outcome.outputs[0].size() / sizeof(float));
  std::memcpy(out.data(), outcome.outputs[0].data(), out.size() * sizeof(float));
  return out;
}

// Uneven groups may run on the reference, which does not round rows.
std::string nbits_difference(const NBits& p, Case& c, const RunForm& form, bool generic) {
  const Outcome outcome = run(nbits_row(), c, form);
  if (!(outcome.refused + outcome.fault).empty()) return outcome.refused + outcome.fault;
  expect_nbits(p, p.int8_rows() && !generic, c);
  std::string wrong = difference(c, outcome);
  if (wrong.empty() || !p.int8_rows() || p.groups != NBitsGroups::kUneven) return wrong;
  expect_nbits(p, false, c);
  return difference(c, outcome);
}

TEST(NBits, match_plain_loops_on_every_instruction_set) {
  for (const char* isa : kNBitsIsas) {
    if (!has_isa(isa)) continue;
    const NBitsIsa scope(isa);
    const bool generic = std::string_view(isa) == "generic";
    for (uint64_t seed = 0; seed < (kSanitized ? 40 : generic ? 60 : 250); ++seed) {
      Random r(seed);
      NBits p = random_nbits(r);
      Case c = nbits_inputs(r, p);
      c.outputs = {expected(p.dtype, {p.m, p.n}, {})};
      RunForm form;
      form.placed = seed % 2 == 0 ? Placed::kAtEnd : Placed::kAtStart;
      ASSERT_EQ(nbits_difference(p, c, form, generic), "")
          << "PFRT_ISA=" << isa << " seed " << seed << ": " << nbits_text(p);
    }
  }
}

TEST(NBits, take_rows_and_scales_of_16_bits) {
  for (const pfrt_dtype dtype : {PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16})
    for (uint64_t seed = 0; seed < 40; ++seed) {
      Random r(seed);
      NBits p = random_nbits(r);
      p.dtype = dtype;
      p.level = 0;
      Case c = nbits_inputs(r, p);
      c.outputs = {expected(p.dtype, {p.m, p.n}, {})};
      ASSERT_EQ(nbits_difference(p, c, {}, false), "") << "seed " << seed << ": " << nbits_text(p);
    }
}

// All other kernels have to match that of the highest instruction set.
TEST(NBits, rows_have_the_same_bits_beside_others_and_on_all_vectors) {
  if (!has_isa("avx2")) GTEST_SKIP() << "no vectors here";
  for (uint64_t seed = 0; seed < (kSanitized ? 8 : 40); ++seed) {
    Random r(seed + 7000);
    NBits p = random_nbits(r);
    p.m = 61;
    p.groups = r.once_in(3) ? NBitsGroups::kShuffled : NBitsGroups::kNone;
    Case c = nbits_inputs(r, p);
    c.outputs = {expected(p.dtype, {p.m, p.n}, {})};
    const std::vector<float> all = nbits_result(c);
    ASSERT_EQ(all.size(), static_cast<size_t>(p.m * p.n));
    for (const char* isa : kNBitsIsas) {
      if (!has_isa(isa) || std::string_view(isa) == "generic") continue;
      const NBitsIsa scope(isa);
      for (const int64_t m :
           {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, r.from_to(5, 13), p.m}) {
        Case few = c;
        const auto first = static_cast<size_t>(r.below(p.m - m + 1));
        const auto width = static_cast<size_t>(p.k), columns = static_cast<size_t>(p.n);
        few.inputs[0].dims = {m, p.k};
        few.inputs[0].values.assign(
            c.inputs[0].values.begin() + static_cast<ptrdiff_t>(first * width),
            c.inputs[0].values.begin() +
                static_cast<ptrdiff_t>((first + static_cast<size_t>(m)) * width));
        few.outputs = {expected(p.dtype, {m, p.n}, {})};
        const std::vector<float> got = nbits_result(few);
        ASSERT_EQ(got.size(), static_cast<size_t>(m) * columns);
        ASSERT_EQ(std::memcmp(got.data(), all.data() + first * columns, got.size() * sizeof(float)),
                  0)
            << "PFRT_ISA=" << isa << " seed " << seed << " rows " << m << ": " << nbits_text(p);
      }
    }
  }
}

TEST(KernelThreads, weights_of_a_few_bits_give_the_same_bits_on_any_number) {
  for (const int64_t m : {1, 3, 40})
    for (const int64_t level : {0, 4}) {
      Random r(3);
      NBits p{.m = m, .n = 700, .k = 640, .level = level, .bias = true};
      Case c = nbits_inputs(r, p);
      c.outputs = {expected(p.dtype, {p.m, p.n}, {})};
      const std::vector<float> one = nbits_result(c);
      for (const uint32_t workers : {2u, 4u}) {
        RunForm form;
        form.workers = workers;
        EXPECT_EQ(nbits_result(c, form), one) << nbits_text(p) << " on " << workers;
      }
    }
}

// Compares with sums in the order of k that round each weight, product and sum once.
TEST(NBits, of_float_rows_err_no_more_than_float32_sums) {
  for (const int64_t block : {32, 128}) {
    Random r(static_cast<uint64_t>(block));
    NBits p{.m = 4, .n = 64, .k = kSanitized ? 1024 : 4096, .block = block};
    Case c = nbits_inputs(r, p);
    c.outputs = {expected(p.dtype, {p.m, p.n}, {})};
    const std::vector<float> got = nbits_result(c);
    expect_nbits(p, false, c);
    std::vector<float> plain;
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const auto scale = static_cast<float>(
              c.inputs[2].values[static_cast<size_t>(j * p.blocks() + k / block)]);
          const double stored =
              nbits_field(c.inputs[1].values, j * p.blocks() * block / 2, p.bits, k);
          const float weight = static_cast<float>(stored - 8) * scale;
          sum += weight * static_cast<float>(c.inputs[0].values[static_cast<size_t>(i * p.k + k)]);
        }
        plain.push_back(sum);
      }
    EXPECT_LT(rms_error(got, c.outputs[0].values), rms_error(plain, c.outputs[0].values));
  }
}

// A row with NaN or infinities gives results that are not finite; other rows stay the same. Numbers
// too small to have a reciprocal count as 0.
TEST(NBits, of_int8_rows_keep_odd_numbers_to_their_row) {
  Random r(11);
  NBits p{.m = 5, .n = 33, .k = 100, .level = 4};
  Case c = nbits_inputs(r, p);
  c.outputs = {expected(p.dtype, {p.m, p.n}, {})};
  const std::vector<float> before = nbits_result(c);
  c.inputs[0].values[static_cast<size_t>(p.k + 70)] = INFINITY;
  c.inputs[0].values[static_cast<size_t>(3 * p.k + 2)] = NAN;
  for (int64_t k = 0; k < p.k; ++k) c.inputs[0].values[static_cast<size_t>(4 * p.k + k)] = 1e-40;
  const std::vector<float> after = nbits_result(c);
  const bool vectors = has_isa("avx2") && cpu::isa() != cpu::Isa::kGeneric;
  if (!vectors) GTEST_SKIP() << "no vectors here";
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      const auto at = static_cast<size_t>(i * p.n + j);
      if (i == 1)
        EXPECT_FALSE(std::isfinite(after[at])) << i << ", " << j;
      else if (i == 3)
        EXPECT_TRUE(std::isnan(after[at])) << i << ", " << j;
      else
        EXPECT_EQ(after[at], i == 4 ? 0.0f : before[at]) << i << ", " << j;
    }
}

// Runs a graph, whose weights the host packs, with an epilogue.
GraphOutcome nbits_graph(const Case& c, const NBits& p, pfrt_compile_hints hints,
                         uint32_t workers = 1) {
  Graph graph;
  std::vector<uint32_t> inputs;
  for (const Data& data : c.inputs)
    inputs.push_back(data.dtype == 0 ? PFRT_NO_INDEX : graph.add(data));
  const uint32_t sums = graph.add("MatMulNBits", inputs, {p.m, p.n}, c.attrs);
  graph.nodes.back().domain = "com.microsoft";
  graph.outputs = {graph.add("Relu", {sums}, {p.m, p.n}, {}, 1)};
  graph.hints = hints;
  return test::run(graph, workers);
}

TEST(NBits, choose_int8_rows_by_level_and_precision) {
  if (!has_isa("avx2") || cpu::isa() == cpu::Isa::kGeneric) GTEST_SKIP() << "no vectors here";
  for (const int64_t level : {0, 1, 4})
    for (const pfrt_compile_hints hints :
         {pfrt_compile_hints{0}, pfrt_compile_hints{PFRT_COMPILE_PLAIN},
          pfrt_compile_hints{PFRT_COMPILE_FAST}, pfrt_compile_hints{PFRT_COMPILE_BF16},
          pfrt_compile_hints{PFRT_COMPILE_BATCH}}) {
      Random r(5);
      NBits p{.m = 3, .n = 40, .k = 96, .level = level};
      Case c = nbits_inputs(r, p);
      const bool plain = (hints & PFRT_COMPILE_PLAIN) != 0;
      const bool int8 = !plain && (level == 4 || (hints & PFRT_COMPILE_BF16) != 0);
      const GraphOutcome got = nbits_graph(c, p, hints, 2);
      ASSERT_EQ(got.fault, "");
      ASSERT_FALSE(got.kernels.empty());
      EXPECT_EQ(got.kernels[0].find("matmul_nbits_int8") == 0, int8)
          << got.kernels[0] << " level " << level << " hints " << hints;
      expect_nbits(p, int8, c);
      for (size_t i = 0; i < c.outputs[0].values.size(); ++i) {
        float y;
        std::memcpy(&y, got.outputs[0].data() + i * sizeof y, sizeof y);
        EXPECT_NEAR(static_cast<double>(y), std::max(c.outputs[0].values[i], 0.0), c.absolute);
      }
    }
}

TEST(NBits, take_at_most_a_fifth_more_memory_than_the_model) {
  if (!has_isa("avx2") || cpu::isa() == cpu::Isa::kGeneric) GTEST_SKIP() << "no vectors here";
  for (const int64_t block : {16, 32, 128})
    for (const int64_t zeros : {0, 1}) {
      Random r(5);
      const NBits p{.n = 512, .k = 1024, .block = block, .zeros = zeros};
      const Case c = nbits_inputs(r, p);
      const GraphOutcome got = nbits_graph(c, p, 0);
      ASSERT_EQ(got.fault, "");
      const int64_t model = p.n * (p.k / 2 + p.blocks() * 4 + (zeros == 1 ? p.zero_bytes() : 0));
      const auto of_runs = static_cast<uint64_t>((p.k + 2 * p.n) * 4);
      EXPECT_LE(static_cast<double>(got.bytes - of_runs), 1.2 * static_cast<double>(model))
          << "block " << block << " zeros " << zeros;
    }
}

}  // namespace
}  // namespace pfrt::test
