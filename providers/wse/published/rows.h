// SPDX-License-Identifier: Apache-2.0
//
// Shared by the files of this folder: the machines, the growing list of rows, and the functions
// that add the rows of one kind each. Not thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "providers/wse/published/validation.h"
#include "providers/wse/schedule/schedule.h"

namespace pfrt::wse::published {

struct Machines {
  Machine wse2, wse3, wse3_silicon;
};

class Rows {
 public:
  explicit Rows(const std::function<bool()>& stop) : stop_(stop) {}

  // Computes the error of |row|, and its verdict unless it is kFitted or kShown already.
  // |derivation| is noted where the row is not met. CANCELLED once the caller wants no more rows.
  Status add(ValidationRow row, std::string_view derivation = {});
  // The median of the errors of all judged rows from |first| on. |row| has everything but its
  // numbers.
  Status add_median(ValidationRow row, size_t first);

  size_t size() const { return rows_.size(); }
  std::vector<ValidationRow> take() { return std::move(rows_); }

 private:
  const std::function<bool()>& stop_;
  std::vector<ValidationRow> rows_;
};

// "name cycles, name cycles, ...": the phases of |schedule| that most cycles went to.
std::string largest_phases(const Schedule& schedule);
// 0 where there is none.
double median_of(std::vector<double> values);
// "1,234", "123.4", "1.23".
std::string number_text(double value);

Status add_reduces(Rows& rows, const Machines& machines);       // V1, V2
Status add_one_pe(Rows& rows, const Machines& machines);        // V3
Status add_summa(Rows& rows, const Machines& machines);         // V4
Status add_mesh_gemm(Rows& rows, const Machines& machines);     // V6
Status add_decode(Rows& rows, const Machines& machines);        // V7
Status add_prefill(Rows& rows, const Machines& machines);       // V8
Status add_vectors(Rows& rows, const Machines& machines);       // V9
Status add_end_to_end(Rows& rows, const Machines& machines);    // V10
Status add_caches(Rows& rows, const Machines& machines);        // V11
Status add_microbenches(Rows& rows, const Machines& machines);  // V12
Status add_oracle(Rows& rows, const Machines& machines);        // V13
Status add_orderings(Rows& rows, const Machines& machines);     // V14

}  // namespace pfrt::wse::published
