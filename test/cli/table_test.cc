// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/print/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "test/cli/tool.h"
#include "test/cxxapi/temporary_folder.h"

namespace pfrt_test {
namespace {

using cli::Table;

// Length in characters of the longest line, without the sentences that stand beside a table.
size_t longest_line(const std::string& text) {
  std::istringstream in(text);
  size_t longest = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string first = line.substr(0, line.find(' '));
    if (first == "note:" || first == "note" || first == "isa" || first == "cpu" || first == "wrote")
      continue;
    const auto width = std::count_if(line.begin(), line.end(), [](char c) {
      return c != '\r' && (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
    });
    longest = std::max(longest, static_cast<size_t>(width));
  }
  return longest;
}

TEST(Table, pads_columns_to_their_widest_cell) {
  Table table({"name", "size"});
  table.add({"a", "10"});
  table.add({"long one", "7"});
  EXPECT_EQ(table.text(0), "name      size\na         10\nlong one  7\n");
}

TEST(Table, leaves_out_what_is_the_same_in_every_row_and_says_it) {
  Table table({"name", "provider", "refused"});
  table.add({"a", "cpu", ""});
  EXPECT_EQ(table.text(0), "name  provider  refused\na     cpu\n");  // one row says nothing of it
  table.add({"b", "cpu", ""});
  EXPECT_EQ(table.text(0), "name\na\nb\nall 2 rows: provider cpu; refused none\n");
  table.add({"c", "null", ""});
  EXPECT_EQ(table.text(0),
            "name  provider\na     cpu\nb     cpu\nc     null\nall 3 rows: refused none\n");
}

TEST(Table, narrows_the_widest_columns_first) {
  Table table({"nodes", "ms"});
  table.add({"first_node,second_node,third_node", "1.25"});
  table.add({"x", "20.5"});
  const std::string text = table.text(20);
  EXPECT_EQ(text,
            "nodes           ms\n"
            "first_node,     1.25\n"
            "second_node,\n"
            "third_node\n"
            "x               20.5\n");
  EXPECT_EQ(longest_line(table.text(0)), 33u + 2 + 4);
}

TEST(Table, cuts_what_goes_on_for_too_long) {
  Table table({"name"});
  table.add({std::string(300, 'x')});
  table.add({"y"});
  const std::string narrow = table.text(10);
  EXPECT_EQ(longest_line(narrow), 10u);
  EXPECT_EQ(std::count(narrow.begin(), narrow.end(), '\n'), 6) << narrow;
  EXPECT_NE(narrow.find("xxxxxxx...\ny\n"), std::string::npos) << narrow;
  EXPECT_EQ(longest_line(table.text(0, 60)), 60u);
}

TEST(Table, counts_characters_and_lets_none_move_the_cursor) {
  Table table({"name", "n"});
  table.add({"größe", "1"});
  table.add({"a\x1b[2Jb", "2"});
  EXPECT_EQ(table.text(0), "name    n\ngröße   1\na?[2Jb  2\n");
  Table umlauts({"name"});
  umlauts.add({"ääääääääää"});
  umlauts.add({"b"});
  EXPECT_EQ(umlauts.text(8), "name\nääääääää\nää\nb\n");
}

using TablesOfCommands = InTemporaryFolder;

TEST_F(TablesOfCommands, fit_the_terminal) {
  for (const std::string command :
       {"explain " PFRT_DIGITS, "profile " PFRT_DIGITS, "optimize " PFRT_DIGITS " out.onnx",
        "bench " PFRT_DIGITS " --seconds 0.01", "providers", "providers --kernels", "plugins",
        "ops", "passes"}) {
    const Ran ran = run_in_terminal(command, 90);
    EXPECT_EQ(ran.code, 0) << command << ran.output;
    const size_t table = ran.output.rfind("\033[K");  // after the progress of bench
    const std::string shown =
        table == std::string::npos ? ran.output : ran.output.substr(table + 3);
    EXPECT_LE(longest_line(shown), 90u) << command << "\n" << shown;
  }
}

TEST_F(TablesOfCommands, obey_columns) {
  const std::string wide = run("explain " PFRT_DIGITS, "COLUMNS=").output;
  EXPECT_GT(longest_line(wide), 90u) << wide;
  const std::string narrow = run("explain " PFRT_DIGITS, "COLUMNS=90").output;
  EXPECT_LE(longest_line(narrow), 90u) << narrow;
  EXPECT_TRUE(has(narrow, "rows: provider CPUExecutionProvider")) << narrow;
}

}  // namespace
}  // namespace pfrt_test
