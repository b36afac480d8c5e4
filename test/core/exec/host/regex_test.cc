// SPDX-License-Identifier: Apache-2.0
//
// Faults and limits; what patterns match is recorded from RE2 in test/recorded.
#include "core/exec/host/regex.h"

#include <gtest/gtest.h>

#include <string>

namespace pfrt::host {
namespace {

TEST(Regex, faults_name_pattern_and_place) {
  const struct {
    const char *pattern, *part;
  } cases[] = {
      {"a)", "')'"},          {"(a", "'('"},
      {"[a", "'['"},          {"*a", "repetition"},
      {"a**", "repetition"},  {"a{1001}", "1000"},
      {"a{3,2}", "{n,m}"},    {"(?=a)", "RE2"},
      {"(?<=a)", "look"},     {"(a)\\1", "groups"},
      {"\\q", "escape"},      {"\\", "backslash"},
      {"[b-a]", "backwards"}, {"[[:alfa:]]", "name"},
      {"\\pN", "\\p"},        {"\\x{110000}", "character"},
      {"\\xg", "digits"},     {"(?P<a", "name"},
      {"\\C", "byte"},
  };
  for (const auto& c : cases) {
    const auto regex = Regex::compile(c.pattern);
    ASSERT_FALSE(regex.ok()) << c.pattern;
    EXPECT_EQ(regex.status().code(), Code::kINVALID_MODEL);
    EXPECT_NE(regex.status().message().find(c.pattern), std::string::npos)
        << regex.status().message();
    EXPECT_NE(regex.status().message().find(c.part), std::string::npos) << regex.status().message();
  }
}

TEST(Regex, depth_and_size_are_bounded) {
  const auto times = [](size_t n, const std::string& text) {
    std::string out;
    for (size_t i = 0; i < n; ++i) out += text;
    return out;
  };
  EXPECT_TRUE(Regex::compile(times(900, "(") + "a" + times(900, ")")).ok());
  EXPECT_FALSE(Regex::compile(times(100000, "(") + "a" + times(100000, ")")).ok());
  EXPECT_FALSE(Regex::compile("((a{1000}){1000}){1000}").ok());
  EXPECT_FALSE(Regex::compile("((((){1000}){1000}){1000}){1000}").ok());
}

TEST(Regex, no_pattern_takes_more_than_its_length_a_character) {
  const auto regex = Regex::compile("(a*)*(a|aa)*(a?){50}b");
  ASSERT_TRUE(regex.ok());
  EXPECT_FALSE(regex->matches_all(std::string(5000, 'a')));
  EXPECT_TRUE(regex->matches_all(std::string(5000, 'a') + "b"));
}

TEST(Regex, bytes_that_are_no_text_match_nothing) {
  const auto any = Regex::compile("(?s).*|[^a]*");
  ASSERT_TRUE(any.ok());
  EXPECT_TRUE(any->matches_all("\xe6\x97\xa5"));
  EXPECT_FALSE(any->matches_all("a\xff"));
  EXPECT_FALSE(any->matches_all("\xe6\x97"));
}

}  // namespace
}  // namespace pfrt::host
