// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/markup.h"

#include <gtest/gtest.h>

namespace pfrt_test {
namespace {

using cli::clean;
using cli::clean_tail;
using cli::Markup;

TEST(Markup, text_is_escaped) {
  EXPECT_EQ(Markup().text("<a b=\"c\" d='e'>&amp;").str(),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;amp;");
}

TEST(Markup, data_cannot_end_its_element) {
  cli::Json json;
  json.list().value("</script><!--&\"\n").end();
  EXPECT_EQ(Markup().data(json).str(), "[\"\\u003c/script\\u003e\\u003c!--\\u0026\\\"\\u000a\"]");
}

TEST(Markup, numbers_have_one_digit_after_the_point) {
  EXPECT_EQ(Markup().number(3).raw(" ").number(-0.25).raw(" ").number(12.34).str(), "3 -0.3 12.3");
}

TEST(Clean, keeps_utf_8) {
  const std::string text = "a \u00e9 \u4e2d \U0001F600";
  EXPECT_EQ(clean(text, 100), text);
  EXPECT_EQ(clean_tail(text, 100), text);
  EXPECT_EQ(cli::columns("a\u4e2d\u2026"), 4U);
}

TEST(Clean, replaces_what_is_not_text) {
  const std::string bad = "\uFFFD";
  EXPECT_EQ(clean(std::string("a\0b", 3), 9), "a" + bad + "b");
  EXPECT_EQ(clean("\x1b[31m", 9), bad + "[31m");
  EXPECT_EQ(clean("\xff\xc3", 9), bad + bad);
  EXPECT_EQ(clean("\xed\xa0\x80", 9), bad + bad + bad);  // a surrogate
  EXPECT_EQ(clean("\xc0\xbc", 9), bad + bad);            // a long form of '<'
  EXPECT_EQ(clean("\u202E\u200B\u0085\uFEFF", 9), bad + bad + bad + bad);
}

TEST(Clean, cuts_at_code_points) {
  EXPECT_EQ(clean("abcdef", 6), "abcdef");
  EXPECT_EQ(clean("abcdefg", 6), "abcde\u2026");
  EXPECT_EQ(clean("\u00e9\u00e9\u00e9", 2), "\u00e9\u2026");
  EXPECT_EQ(clean_tail("abcdefg", 6), "\u2026cdefg");
  EXPECT_EQ(clean_tail(std::string(1 << 20, 'x') + "\u00e9", 3), "\u2026x\u00e9");
  EXPECT_EQ(clean_tail(std::string(1 << 20, '\x80'), 3), "\u2026");
}

}  // namespace
}  // namespace pfrt_test
