// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/print/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace cli {
namespace {

constexpr size_t kGap = 2;         // between columns
constexpr size_t kLeastWidth = 8;  // of a column that is narrowed
constexpr size_t kMostLines = 4;   // of a cell that goes on below itself
constexpr char kCut[] = "...";

using Row = std::vector<std::string>;

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }

// Returns the width in columns of the terminal: characters of UTF-8, each taken for one wide.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

// Returns the bytes of the first |characters| from |at| on.
size_t bytes_of(const std::string& text, size_t at, size_t characters) {
  size_t end = at;
  for (; end < text.size(); ++end)
    if (begins_character(text[end]) && characters-- == 0) break;
  return end - at;
}

std::string cut(const std::string& text, size_t width) {
  if (width_of(text) <= width) return text;
  return text.substr(0, bytes_of(text, 0, width - std::strlen(kCut))) + kCut;
}

// Shows characters that would move the cursor as question marks; names come from files.
std::string printable(const std::string& text) {
  std::string out = text;
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return out;
}

// Breaks text into lines of at most |width|, after a space, a comma or a slash where there is one.
std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  size_t at = 0;
  while (at < text.size()) {
    size_t size = bytes_of(text, at, width);
    if (at + size < text.size()) {
      if (lines.size() + 1 == kMostLines) {
        lines.push_back(cut(text.substr(at), width));
        break;
      }
      const size_t last =
          text[at + size] == ' ' ? at + size : text.find_last_of(" ,/", at + size - 1);
      if (last != std::string::npos && last > at) size = last + 1 - at;
    }
    std::string line = text.substr(at, size);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    lines.push_back(std::move(line));
    at += size;
  }
  return lines;
}

// Narrows the widest of |widths| until they take |columns| together, or all are as narrow as they
// may be.
void narrow(std::vector<size_t>* widths, size_t columns) {
  const size_t gaps = kGap * (widths->size() - 1);
  size_t sum = std::accumulate(widths->begin(), widths->end(), gaps);
  while (sum > columns) {
    size_t& widest = *std::max_element(widths->begin(), widths->end());
    if (widest <= kLeastWidth) return;
    --widest;
    --sum;
  }
}

void append(const Row& row, const std::vector<size_t>& widths, std::string* out) {
  std::vector<std::vector<std::string>> cells;
  size_t height = 1;
  for (size_t i = 0; i < row.size(); ++i) {
    cells.push_back(wrapped(row[i], widths[i]));
    height = std::max(height, cells.back().size());
  }
  for (size_t line = 0; line < height; ++line) {
    std::string text;
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = line < cells[i].size() ? cells[i][line] : std::string();
      text += cell;
      text.append(widths[i] - width_of(cell) + kGap, ' ');
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    *out += text + '\n';
  }
}

}  // namespace

size_t output_columns() {
  if (const char* text = std::getenv("COLUMNS"); text != nullptr && *text != 0) {
    size_t columns = 0;
    const char* const end = text + std::strlen(text);
    const auto parsed = std::from_chars(text, end, columns);
    if (parsed.ec == std::errc() && parsed.ptr == end) return columns;
  }
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

std::string Table::text(size_t columns, size_t longest_cell) const {
  std::vector<size_t> shown;
  std::string same;
  for (size_t i = 0; i < heading_.size(); ++i) {
    const auto differs = [&](const Row& row) { return row[i] != rows_.front()[i]; };
    if (rows_.size() < 2 || std::any_of(rows_.begin(), rows_.end(), differs)) {
      shown.push_back(i);
      continue;
    }
    const std::string& cell = rows_.front()[i];
    same += (same.empty() ? "" : "; ") + heading_[i] + (heading_[i].empty() ? "" : " ") +
            (cell.empty() ? "none" : printable(cell));
  }
  std::vector<Row> rows;
  std::vector<size_t> widths(shown.size(), 0);
  const auto take = [&](const Row& row) {
    rows.emplace_back();
    for (size_t k = 0; k < shown.size(); ++k) {
      rows.back().push_back(cut(printable(row[shown[k]]), longest_cell));
      widths[k] = std::max(widths[k], width_of(rows.back()[k]));
    }
  };
  if (!shown.empty()) take(heading_);
  if (!shown.empty()) std::for_each(rows_.begin(), rows_.end(), take);
  if (columns != 0 && !shown.empty()) narrow(&widths, columns);
  std::string out;
  for (const Row& row : rows) append(row, widths, &out);
  if (!same.empty()) {
    for (const std::string& line :
         wrapped("all " + std::to_string(rows_.size()) + " rows: " + same,
                 columns == 0 ? std::string::npos : std::max(columns, kLeastWidth)))
      out += line + '\n';
  }
  return out;
}

void Table::print(size_t longest_cell) const {
  std::fputs(text(output_columns(), longest_cell).c_str(), stdout);
}

}  // namespace cli
