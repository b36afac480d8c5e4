// SPDX-License-Identifier: Apache-2.0
//
// Refuses cases that the oracle does not take.
#include <cmath>

#include "providers/wse/oracle/plan.h"

namespace pfrt::wse::oracle {
namespace {

using Algorithm = Case::Algorithm;

constexpr int kMostPes = 96;  // on a side
constexpr int64_t kMostElements =
    65536;  // of a tile or message; a PE's memory has no room for more

template <typename... Parts>
Status invalid(const Parts&... parts) {
  return error(Code::kINVALID_ARGUMENT, parts...);
}

bool is_line(Algorithm algorithm) { return algorithm <= Algorithm::kTreeAllReduce; }

bool is_product(Algorithm algorithm) {
  return algorithm >= Algorithm::kMeshGemm && algorithm <= Algorithm::kSumma;
}

bool has_groups(Algorithm algorithm) {
  return algorithm == Algorithm::kTwoPhaseReduce || algorithm == Algorithm::kTreeAllReduce ||
         algorithm == Algorithm::kMeshGemv;
}

Status check_mesh(const Case& work) {
  if (work.algorithm < Algorithm::kChainReduce || work.algorithm > Algorithm::kKvShift)
    return invalid("the oracle has no algorithm ", static_cast<int>(work.algorithm),
                   "; take one of Case::Algorithm");
  if (work.columns < 1 || work.rows < 1 || work.columns > kMostPes || work.rows > kMostPes)
    return invalid("the oracle simulates 1 x 1 to ", kMostPes, " x ", kMostPes, " PEs, not ",
                   work.columns, " x ", work.rows);
  if (is_line(work.algorithm) && work.rows != 1)
    return invalid("reduces and multicasts run on a line: rows is 1, not ", work.rows);
  if (is_product(work.algorithm) && work.columns != work.rows)
    return invalid("products of matrices run on a square, not on ", work.columns, " x ", work.rows,
                   " PEs");
  if (has_groups(work.algorithm) && work.group < 1)
    return invalid("this algorithm has groups of one PE at least, not of ", work.group);
  return {};
}

Status check_size(const char* name, int64_t size) {
  if (size >= 1 && size <= kMostElements) return {};
  return invalid("the size ", name, " of a PE's part is 1 to ", kMostElements, ", not ", size);
}

Status check_sizes(const Case& work) {
  const bool product = is_product(work.algorithm);
  const bool vector = work.algorithm == Algorithm::kMeshGemv;
  PFRT_TRY(check_size("n", work.n));
  if (product || vector) {
    PFRT_TRY(check_size("k", work.k));
    PFRT_TRY(check_size("k x n", work.k * work.n));
  }
  if (product) {
    PFRT_TRY(check_size("m", work.m));
    PFRT_TRY(check_size("m x k", work.m * work.k));
    PFRT_TRY(check_size("m x n", work.m * work.n));
  }
  return {};
}

// Elements of an input; |least| is what is read of it.
Status check_input(const char* name, size_t has, int64_t least, bool exact) {
  const int64_t elements = static_cast<int64_t>(has);
  if (elements == least || (!exact && elements > least)) return {};
  return invalid("the input ", name, " has ", elements, " elements; this case takes ", least,
                 exact ? "" : " or more");
}

Status check_inputs(const Case& work) {
  const int64_t pes = int64_t{work.columns} * work.rows;
  int64_t a = work.n * pes, b = 0;
  if (is_product(work.algorithm)) {
    a = work.m * work.k * pes;
    b = work.k * work.n * pes;
  } else if (work.algorithm == Algorithm::kMeshGemv) {
    a = work.k * work.rows;
    b = work.k * work.n * pes;
  } else if (work.algorithm == Algorithm::kHalo) {
    a = work.n * pes * 4;
  } else if (work.algorithm == Algorithm::kMulticast) {
    return check_input("a", work.a.size(), work.n, /*exact=*/false);
  }
  PFRT_TRY(check_input("a", work.a.size(), a, /*exact=*/true));
  return check_input("b", work.b.size(), b, /*exact=*/b > 0);
}

// Times go forward, which a machine that was not read from a file need not do.
Status check_machine(const Machine& m) {
  const struct {
    const char* name;
    double value;
  } cycles[] = {{"hop", m.hop},
                {"ramp", m.ramp},
                {"dispatch", m.dispatch},
                {"completion", m.completion},
                {"task", m.task},
                {"async", m.async},
                {"role_test", m.role_test},
                {"dsd_setup", m.dsd_setup},
                {"send_setup", m.send_setup},
                {"loop_call", m.loop_call},
                {"map_setup", m.map_setup},
                {"map_call", m.map_call},
                {"dependent", m.dependent},
                {"fp16_fmac", m.fp16_fmac.cycles(kMostElements)},
                {"fp32_fmac", m.fp32_fmac.cycles(kMostElements)},
                {"wavelet", m.wavelet}};
  for (const auto& [name, value] : cycles)
    if (!std::isfinite(value) || value < 0)
      return invalid("the machine '", m.name, "' has ", value, " cycles for ", name,
                     "; they are finite and 0 at least");
  if (!(m.wavelet > 0))
    return invalid("the machine '", m.name, "' has 0 cycles for wavelet; it is more than 0");
  for (const double words : {m.input_queue_words, m.output_queue_words, m.router_words})
    if (!(words >= 1))
      return invalid("the machine '", m.name, "' has a queue of ", words, " words; 1 at least");
  return {};
}

}  // namespace

Status check(const Machine& machine, const Case& work) {
  PFRT_TRY(check_machine(machine));
  PFRT_TRY(check_mesh(work));
  PFRT_TRY(check_sizes(work));
  return check_inputs(work);
}

}  // namespace pfrt::wse::oracle
