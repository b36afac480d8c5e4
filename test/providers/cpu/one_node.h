// SPDX-License-Identifier: Apache-2.0
//
// An operator with its inputs and expected outputs, and the outputs of a kernel row. Values are
// doubles for any element type; those of a case are exact in their type. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "providers/cpu/kernel/row.h"
#include "test/providers/cpu/guarded.h"

namespace pfrt::test {

using Dims = std::vector<int64_t>;
using Values = std::vector<double>;

// These write and read elements with the runtime's conversions: integers wrap around.
void store(pfrt_dtype dtype, const Values& values, void* out);
Values load(pfrt_dtype dtype, const void* data, size_t count);
// Returns |values| rounded to |dtype|.
Values rounded(pfrt_dtype dtype, const Values& values);
// Half a unit in the last place of 1; 0 for integers.
double epsilon(pfrt_dtype dtype);
// Epsilon of the type that kernels compute in: float for shorter ones.
double step_error(pfrt_dtype dtype);
int64_t count(const Dims& dims);

struct Data {
  pfrt_dtype dtype = 0;  // 0: absent
  Dims dims;
  Values values;
  bool constant = false;
  bool late = false;  // only the run tells this output's dimensions
};

struct Attr {
  std::string name;
  std::variant<int64_t, float, std::string, Dims, std::vector<float>, std::vector<std::string>,
               Data>
      value;
};

struct Case {
  std::vector<Data> inputs, outputs;  // outputs hold the expected values
  std::vector<Attr> attrs;
  // Error allowed beyond one rounding to the element type: |relative| compute steps of the value,
  // and |absolute|. With both 0 the result is exact.
  double relative = 0, absolute = 0;
  std::string text() const;  // such as "float32[2,3] int64[] axis=1 -> float32[2]"
};

struct RunForm {
  uint32_t workers = 1;
  Placed placed = Placed::kAtEnd;
  bool in_place = false;        // output 0 over the input that the kernel may alias, if any
  uint64_t looks = UINT64_MAX;  // the run is cancelled after so many looks
  size_t alternative = 0;       // 1 + index of the kernel's alternative; 0 = the kernel itself
  bool all = false;             // takes all alternatives, not the usual ones alone
  Precision precision = Precision::kFloat32;
};

struct Outcome {
  std::string refused;                    // why the row does not take the case
  std::string fault;                      // why it was not made, or did not run
  std::vector<std::string> alternatives;  // parameters of the divisions that the kernel offers
  bool aliased = false;
  bool cancelled = false;
  uint64_t looks = 0;  // number of looks at whether the run is to stop
  std::vector<Guarded> outputs;
};

Outcome run(const cpu::KernelRow& row, const Case& c, const RunForm& form = {});
// Returns the float32 output 0 of the row of that name; the test fails where it does not run.
std::vector<float> floats_by(std::string_view name, const Case& c,
                             Precision precision = Precision::kFloat32);
// Returns the root mean square of the differences.
double rms_error(const std::vector<float>& got, const std::vector<double>& want);
// Returns the first difference from the expected outputs; empty when there is none.
std::string difference(const Case& c, const Outcome& outcome);

}  // namespace pfrt::test
