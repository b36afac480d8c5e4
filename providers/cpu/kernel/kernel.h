// SPDX-License-Identifier: Apache-2.0
//
// A kernel: the work of a node at one signature, as a closure over what was computed beforehand
// (strides, block sizes, coefficients).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "providers/cpu/kernel/float_range.h"
#include "providers/cpu/kernel/run.h"

namespace pfrt::cpu {

struct Alternatives;

// A row made for one signature.
struct Kernel {
  std::function<pfrt_code(const Run&)> run;  // returns 0, or what fail returned
  std::string_view name;                     // static; empty: its row's
  double flops = 0;
  uint64_t scratch_bytes = 0;  // a worker
  uint64_t shared_bytes = 0;   // of all workers together
  uint32_t width = 0;          // widest useful parallelism; 0 = any
  int32_t may_alias = -1;      // input whose memory output 0 may take when that input dies here
  // Finds the range of input 0, which is of float32. The step that writes that input may call it
  // meanwhile: Run::given_range then has the range. Null: the kernel has no use for it.
  RangeFn range_of_input = nullptr;
  bool packed_alone = false;  // of the packed inputs it reads nothing but the packed form
  // Other divisions of the work, all with the same bits as results: the few that are usually worth
  // a measurement, or |all| that are possible. Null: there is none to choose.
  std::function<Alternatives(bool all)> alternatives = nullptr;
};

// A number that the kernel's work is divided by, such as "band", 14. The name is static, one word,
// and the kernel's own.
struct TuningParameter {
  std::string_view name;
  int64_t value = 0;
  bool operator==(const TuningParameter&) const = default;
};
using Parameters = std::vector<TuningParameter>;

// Another division of a kernel's work, which a measurement may prefer to the default
// (program/tune.h).
struct Alternative {
  Parameters parameters;  // other values of those that the kernel has which offers it
  Kernel kernel;          // differs from that one in |run| and its memory
};
struct Alternatives {
  Parameters own;  // of the kernel that offers them
  std::vector<Alternative> others;

  // Whether the division is one that is not among them.
  bool lacks(const Parameters& parameters) const;
};
// Whether as many threads have work in |tasks| as in |of|, or as in |wanted|, which are enough.
constexpr bool enough_tasks(int64_t tasks, int64_t of, int64_t wanted) {
  return tasks >= of || tasks >= wanted;
}

// "axis 3 is outside [-2, 2)" errors of make: prefixed with the operator by the caller.
template <typename... Parts>
Status kernel_error(const Parts&... parts) {
  return error(Code::kSHAPE_MISMATCH, parts...);
}

}  // namespace pfrt::cpu
