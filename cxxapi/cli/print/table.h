// SPDX-License-Identifier: Apache-2.0
//
// Tables as a person reads them, fitted to the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cli {

// The columns that lines on stdout may have: COLUMNS where it is set, else what the terminal has;
// 0, for any number, where stdout is none.
size_t output_columns();

// Columns padded to their widest cell. A column that says the same in every row is left out, and a
// line below the table says what it says. Where the lines would be longer than allowed, the widest
// columns are narrowed, whose cells go on below themselves. Externally synchronised.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : heading_(std::move(heading)) {}
  // As many cells as the heading has.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // |columns| as of output_columns(). Cells longer than |longest_cell| are cut.
  std::string text(size_t columns, size_t longest_cell = kLongestCell) const;
  void print(size_t longest_cell = kLongestCell) const;  // to stdout

 private:
  static constexpr size_t kLongestCell = 200;

  std::vector<std::string> heading_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cli
