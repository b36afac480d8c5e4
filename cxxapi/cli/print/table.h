// SPDX-License-Identifier: Apache-2.0
//
// Tables as a person reads them, fitted to the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cli {

// Returns the columns that lines on stdout may have: COLUMNS where it is set, else those of the
// terminal; 0, for any number, where stdout is no terminal.
size_t output_columns();

// A table whose columns are padded to their widest cell. A column with the same text in every row
// is left out, and a line below the table has it. Where lines would be longer than allowed, the
// widest columns are narrowed, and their cells continue below themselves. Externally synchronised.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : heading_(std::move(heading)) {}
  // Adds a row, of as many cells as the heading has.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Returns the table. |columns| is as output_columns() returns it. Cells longer than
  // |longest_cell| are cut.
  std::string text(size_t columns, size_t longest_cell = kLongestCell) const;
  void print(size_t longest_cell = kLongestCell) const;  // to stdout

 private:
  static constexpr size_t kLongestCell = 200;

  std::vector<std::string> heading_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cli
