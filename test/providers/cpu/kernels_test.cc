// SPDX-License-Identifier: Apache-2.0
//
// Compares every row of the kernel table with plain references: random types and shapes, buffers
// between guard pages, in place, on several threads. PFRT_TEST_CASE="ROW TYPE SEED", as a failure
// prints it, runs that case alone; PFRT_TEST_SEEDS=N takes N seeds for each row and type in place
// of 16 (8 under a sanitizer).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "core/base/dtype.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/jit/dot_microkernel.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"
#include "providers/cpu/registry/registry.h"
#include "test/providers/cpu/cases/cases.h"
#include "test/sanitized.h"

namespace pfrt::test {
namespace {

using cpu::KernelRow;

constexpr pfrt_dtype kTypes[] = {
    PFRT_DTYPE_FLOAT32,        PFRT_DTYPE_FLOAT64,      PFRT_DTYPE_FLOAT16,
    PFRT_DTYPE_BFLOAT16,       PFRT_DTYPE_INT8,         PFRT_DTYPE_INT16,
    PFRT_DTYPE_INT32,          PFRT_DTYPE_INT64,        PFRT_DTYPE_UINT8,
    PFRT_DTYPE_UINT16,         PFRT_DTYPE_UINT32,       PFRT_DTYPE_UINT64,
    PFRT_DTYPE_BOOL,           PFRT_DTYPE_COMPLEX64,    PFRT_DTYPE_COMPLEX128,
    PFRT_DTYPE_FLOAT8E5M2,     PFRT_DTYPE_FLOAT8E4M3FN, PFRT_DTYPE_FLOAT8E4M3FNUZ,
    PFRT_DTYPE_FLOAT8E5M2FNUZ, PFRT_DTYPE_FLOAT4E2M1,   PFRT_DTYPE_INT4,
    PFRT_DTYPE_UINT4,          PFRT_DTYPE_INT2,         PFRT_DTYPE_UINT2};

// Names a case of |row|.
struct Named {
  const KernelRow& row;
  pfrt_dtype dtype;
  uint64_t seed;
  std::string text() const {
    return message("PFRT_TEST_CASE=\"", row.name, " ", dtype_name(dtype), " ", seed, "\"");
  }
};

// True when PFRT_TEST_CASE is unset or names the case.
bool is_wanted(const Named& named) {
  const char* wanted = std::getenv("PFRT_TEST_CASE");
  return wanted == nullptr || named.text() == std::string("PFRT_TEST_CASE=\"") + wanted + "\"";
}

uint64_t wanted_seed(uint64_t otherwise) {
  const char* wanted = std::getenv("PFRT_TEST_CASE");
  std::string row, dtype;
  if (wanted != nullptr) std::istringstream(wanted) >> row >> dtype >> otherwise;
  return otherwise;
}

// Cases of later seeds have NaN, infinities and denormals too.
constexpr uint64_t kFirstSpecial = 500;

// True when the reference defines the results of such numbers. For products it does not: a
// padding's zero times an infinite weight is NaN in some kernels and left out by others.
bool defines_specials(const Generators& generators, std::string_view op) {
  return &generators == &elementwise_cases() || &generators == &reduce_cases() ||
         (&generators == &window_cases() && op.find("Pool") != op.npos);
}

constexpr uint64_t kSeeds = 16;

// Products take minutes under a sanitizer, which finds as much in few of them as in many.
uint64_t seeds_of_a_type(const Generators& generators) {
  const char* wanted = std::getenv("PFRT_TEST_SEEDS");
  if (wanted != nullptr) return std::strtoull(wanted, nullptr, 10);
  return !kSanitized ? kSeeds : &generators == &matmul_cases() ? 3 : 8;
}

// True when all elements are equal: a row that writes one number everywhere would pass.
bool is_trivial(const Case& c) {
  return std::ranges::all_of(c.outputs, [](const Data& out) {
    return std::ranges::adjacent_find(out.values, std::not_equal_to<>()) == out.values.end();
  });
}

template <typename Fn>
void for_each_row(const Generators& generators, Fn fn) {
  const std::string_view domain =
      &generators == &ml_cases()                                             ? "ai.onnx.ml"
      : &generators == &contrib_cases() || &generators == &byte_pool_cases() ? "com.microsoft"
                                                                             : "";
  for (const auto family : cpu::kernels())
    for (const KernelRow& row : family)
      if (const auto found = generators.find(row.op);
          found != generators.end() && row.domain == domain)
        fn(row, found->second);
}

// True when the row rounds factors of float32 to bfloat16, which the precision has to allow.
bool rounds_factors(const KernelRow& row) { return row.name.ends_with("_bf16"); }

// Turns a case of bfloat16 into one of |dtype|, whose factors rounding does not change. Winograd's
// transformed factors do change.
Case case_of_bfloat16(const KernelRow& row, pfrt_dtype dtype, Case c) {
  for (std::vector<Data>* const list : {&c.inputs, &c.outputs})
    for (Data& data : *list)
      if (data.dtype == PFRT_DTYPE_BFLOAT16) data.dtype = dtype;
  if (row.name == "conv_winograd_bf16") c.absolute *= 1500;
  return c;
}

// Cases of an operator, which its rows share: expected results of products take longer to compute
// than the rows do.
class Cases {
 public:
  const Case& get(const KernelRow& row, const Generator& generator, pfrt_dtype dtype, uint64_t seed,
                  int64_t size) {
    if (!rounds_factors(row)) return of(row.op, generator, dtype, seed, size);
    const Case& exact = of(row.op, generator, PFRT_DTYPE_BFLOAT16, seed, size);
    return rounded_ = case_of_bfloat16(row, dtype, exact);
  }

 private:
  const Case& of(std::string_view op, const Generator& generator, pfrt_dtype dtype, uint64_t seed,
                 int64_t size) {
    if (op != op_) made_.clear();
    op_ = op;
    const auto [at, fresh] = made_.try_emplace({dtype, seed});
    if (fresh) {
      Random random(seed * 1000 + dtype, seed >= kFirstSpecial);
      at->second = generator(random, dtype, size);
    }
    return at->second;
  }

  std::string_view op_;
  std::map<std::pair<pfrt_dtype, uint64_t>, Case> made_;
  Case rounded_;
};

// Returns the most exact precision that a row takes: some rows are only for those with larger
// errors.
Precision precision_of(const KernelRow& row) {
  if (rounds_factors(row)) return Precision::kBfloat16;
  const bool larger = row.name.ends_with("winograd_4x4") || row.name == "conv_winograd_5x5";
  return larger ? Precision::kFast : Precision::kFloat32;
}

bool same_bytes(const Outcome& a, const Outcome& b) {
  for (size_t i = 0; i < a.outputs.size(); ++i)
    if (a.outputs[i].size() != 0 &&
        memcmp(a.outputs[i].data(), b.outputs[i].data(), a.outputs[i].size()) != 0)
      return false;
  return true;
}

// Returns false when the row refuses the case.
bool check(const Named& named, const Case& c) {
  const auto what = [&] { return named.text() + ": " + c.text() + "\n  "; };
  RunForm form;
  form.placed = named.seed % 2 == 0 ? Placed::kAtEnd : Placed::kAtStart;
  form.precision = precision_of(named.row);
  Outcome plain = run(named.row, c, form);
  if (!plain.refused.empty() && cpu::split_matmul_usable()) {  // for tiles, which ieee has not
    form.precision = Precision::kIeee;
    plain = run(named.row, c, form);
  }
  if (!plain.refused.empty()) return false;
  if (!plain.fault.empty()) {
    ADD_FAILURE() << what() << plain.fault;
    return true;
  }
  const std::string wrong = difference(c, plain);
  if (!wrong.empty()) ADD_FAILURE() << what() << wrong;
  form.in_place = true;
  const Outcome in_place = run(named.row, c, form);
  if (in_place.aliased && !same_bytes(plain, in_place))
    ADD_FAILURE() << what() << "in place gives something else";
  return true;
}

void check_rows(const Generators& generators) {
  int cases = 0, trivial = 0;
  Cases made;
  const uint64_t seeds = seeds_of_a_type(generators);
  const uint64_t first = wanted_seed(1);
  for_each_row(generators, [&](const KernelRow& row, const Generator& generator) {
    if (const auto needs = cpu::isa_from_name(row.isa); needs.ok() && needs.value() > cpu::isa()) {
      std::cout << "skipped: " << row.name << " needs " << row.isa << "\n";
      return;
    }
    if ((row.name == "conv_transpose_winograd" || rounds_factors(row)) &&
        cpu::split_matmul_usable()) {
      std::cout << "skipped: " << row.name << " is for machines without tiles\n";
      return;
    }
    const cpu::DotMicrokernel* const dots = cpu::DotMicrokernel::get();
    if ((row.name == "conv_integer_winograd" || row.name == "qlinear_conv_winograd") &&
        dots != nullptr && dots->bytes()) {
      std::cout << "skipped: " << row.name << " is for machines without products of bytes\n";
      return;
    }
    int ran = 0, plain = 0, failed_before = testing::Test::HasFailure();
    bool wanted = false;
    const auto check_seeds = [&](uint64_t begin, uint64_t end) {
      for (pfrt_dtype dtype : kTypes) {
        if (!row.types.has(dtype)) continue;
        bool enough = false;  // one failure for each type is enough
        for (uint64_t seed = begin; seed < end && !enough; ++seed) {
          const Named named{row, dtype, seed};
          const bool specials = seed >= kFirstSpecial;
          if (!is_wanted(named) || (specials && !defines_specials(generators, row.op))) continue;
          wanted = true;
          const int64_t size = seed % 8 == 7 ? 5000 : 700;
          const Case& c = made.get(row, generator, dtype, seed, size);
          const bool taken = check(named, c);
          ran += taken;
          plain += taken && is_trivial(c);
          enough = testing::Test::HasFailure() && !failed_before;
        }
      }
    };
    check_seeds(first, first + seeds);
    check_seeds(kFirstSpecial, kFirstSpecial + std::max<uint64_t>(1, seeds / 4));
    // A row may refuse all of few cases.
    for (uint64_t seed = first + seeds; ran == 0 && seed < first + kSeeds; ++seed)
      check_seeds(seed, seed + 1);
    // Elements of cases take a byte at least; rows that take packed sub-byte types have recorded
    // cases.
    EXPECT_TRUE(ran > 0 || !wanted || row.has(cpu::kSubByteAsIs))
        << row.name << " took none of its cases";
    if (2 * plain > ran)
      std::cout << "trivial data: " << row.name << ", " << plain << " of " << ran << " cases\n";
    cases += ran;
    trivial += plain;
  });
  std::cout << cases << " cases, " << trivial << " of them with all outputs constant; " << seeds
            << " seeds a row and type, from " << wanted_seed(1) << "\n";
  testing::Test::RecordProperty("cases", cases);
}

TEST(Kernels, elementwise) { check_rows(elementwise_cases()); }
TEST(Kernels, reductions) { check_rows(reduce_cases()); }
TEST(Kernels, products) { check_rows(matmul_cases()); }
TEST(Kernels, windows_and_normalisations) { check_rows(window_cases()); }
TEST(Kernels, trees_vectors_and_encoders) { check_rows(ml_cases()); }
TEST(Kernels, moves) { check_rows(move_cases()); }
TEST(Kernels, indices) { check_rows(index_cases()); }
TEST(Kernels, recurrent) { check_rows(recurrent_cases()); }
TEST(Kernels, images) { check_rows(image_cases()); }
TEST(Kernels, quantizations) { check_rows(quantize_cases()); }
TEST(Kernels, contributed) { check_rows(contrib_cases()); }
TEST(Kernels, averages_of_bytes) { check_rows(byte_pool_cases()); }
TEST(Kernels, signals_and_random_numbers) { check_rows(signal_cases()); }
TEST(Kernels, vision_and_losses) { check_rows(vision_cases()); }
TEST(Kernels, attention) { check_rows(attention_cases()); }

// A result has the same bits on any number of threads.
void check_workers(const Named& named, const Case& c) {
  RunForm form;
  form.precision = precision_of(named.row);
  const Outcome one = run(named.row, c, form);
  if (!one.refused.empty()) return;
  EXPECT_EQ(one.fault, "") << named.text() << ": " << c.text();
  for (uint32_t workers : {2u, 4u}) {
    form.workers = workers;
    EXPECT_TRUE(same_bytes(one, run(named.row, c, form)))
        << named.text() << ": " << c.text() << "\n  differs on " << workers << " threads";
  }
}

void check_workers(const Generators& generators) {
  Cases made;
  for_each_row(generators, [&](const KernelRow& row, const Generator& generator) {
    std::vector<pfrt_dtype> types{PFRT_DTYPE_FLOAT32};
    for (pfrt_dtype other : kTypes)
      if (!row.types.has(types[0])) types[0] = other;
    // Floats of 16 bits may take another path.
    if (types[0] == PFRT_DTYPE_FLOAT32 && row.types.has(PFRT_DTYPE_FLOAT16))
      types.push_back(PFRT_DTYPE_FLOAT16);
    for (const pfrt_dtype dtype : types)
      for (uint64_t seed = wanted_seed(100), end = seed + (kSanitized ? 1 : 2); seed < end;
           ++seed) {
        const Named named{row, dtype, seed};
        if (!is_wanted(named)) continue;
        check_workers(named, made.get(row, generator, dtype, seed, 2 * kLarge));
      }
  });
}

TEST(KernelThreads, elementwise) { check_workers(elementwise_cases()); }
TEST(KernelThreads, reductions) { check_workers(reduce_cases()); }
TEST(KernelThreads, trees_vectors_and_encoders) { check_workers(ml_cases()); }
TEST(KernelThreads, products) { check_workers(matmul_cases()); }
TEST(KernelThreads, windows_and_normalisations) { check_workers(window_cases()); }
TEST(KernelThreads, moves) { check_workers(move_cases()); }
TEST(KernelThreads, indices) { check_workers(index_cases()); }
TEST(KernelThreads, recurrent) { check_workers(recurrent_cases()); }
TEST(KernelThreads, images) { check_workers(image_cases()); }
TEST(KernelThreads, quantizations) { check_workers(quantize_cases()); }
TEST(KernelThreads, contributed) { check_workers(contrib_cases()); }
TEST(KernelThreads, averages_of_bytes) { check_workers(byte_pool_cases()); }
TEST(KernelThreads, signals_and_random_numbers) { check_workers(signal_cases()); }
TEST(KernelThreads, vision_and_losses) { check_workers(vision_cases()); }
TEST(KernelThreads, attention) { check_workers(attention_cases()); }

TEST(Kernels, every_operator_has_a_reference) {
  std::set<std::string_view> named, found;
  for (const Generators* all :
       {&elementwise_cases(), &reduce_cases(), &matmul_cases(), &window_cases(), &move_cases(),
        &index_cases(), &recurrent_cases(), &image_cases(), &quantize_cases(), &signal_cases(),
        &vision_cases(), &attention_cases()})
    for (const auto& [op, generator] : *all) named.insert(op);
  for (const auto family : cpu::kernels())
    for (const KernelRow& row : family)  // other domains have recorded outputs: test/recorded
      if (row.domain.empty()) found.insert(row.op);
  for (std::string_view op : found) EXPECT_EQ(named.count(op), 1u) << op << " has no reference";
  for (std::string_view op : named) EXPECT_EQ(found.count(op), 1u) << op << " has no row";
}

}  // namespace
}  // namespace pfrt::test
