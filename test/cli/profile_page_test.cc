// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/profile_page.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "test/cli/skeleton.h"

namespace pfrt_test {
namespace {

// |text| as a string of JSON, as the library writes it.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned char>(c));
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20)
      out += code;
    else
      out += c;
  }
  return out + "\"";
}

// A trace in which every text that a model or a plug-in may choose is |word|.
std::string trace_of(const std::string& word, size_t steps, const std::string& each = "") {
  const std::string name = quoted(word);
  std::string out =
      "{\"traceEvents\":[{\"ph\":\"M\",\"tid\":1,\"ts\":0,\"name\":\"thread_name\","
      "\"args\":{\"name\":" +
      name + "}}";
  for (size_t i = 0; i < steps; ++i)
    out += ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":" + std::to_string(i) +
           ".000,\"cat\":\"Node\",\"name\":" +
           quoted(word + (each.empty() ? "" : each + std::to_string(i)) + "_kernel_time") +
           ",\"dur\":0.900,\"args\":{\"run\":1,\"op_name\":" + name + ",\"provider\":" + name +
           ",\"kernel\":" + name + ",\"bytes\":10,\"flops\":20}}";
  return out +
         ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0.000,\"cat\":\"Session\",\"name\":" + name +
         ",\"dur\":1.0,\"args\":{}},\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0.000,"
         "\"cat\":\"Session\",\"name\":\"model_run\",\"dur\":2.0,\"args\":{\"run\":1,\"tag\":"
         "\"profiled\"}}],\"otherData\":{\"graph\":" +
         name + "}}";
}

cli::Roofline roofline() {
  cli::Roofline out;
  out.gflops = 12.5;
  out.levels = {{"read L1", 32768, 100}};
  return out;
}

std::string page_of(const std::string& word, size_t steps = 1) {
  return cli::profile_page(word, trace_of(word, steps), roofline());
}

class HostileProfile : public testing::TestWithParam<std::string> {};

TEST_P(HostileProfile, text_changes_no_markup) {
  const std::string page = page_of(GetParam()), plain = page_of("x");
  EXPECT_EQ(skeleton(page), skeleton(plain));
  EXPECT_LT(page.size(), plain.size() + 20000);
}

INSTANTIATE_TEST_SUITE_P(Words, HostileProfile,
                         testing::Values("</script><script>alert(1)</script>",
                                         "\"><img src=x onerror=alert(1)>", "<!--", "]]>",
                                         "&lt;b&gt;", "two\nlines", "</title></style>",
                                         "\xff\xfe\xc0\xbcscript>", "\u202Etxt.exe\u2066",
                                         std::string(1 << 20, '<')));

TEST(ProfilePage, is_whole_and_refers_to_nothing_outside) {
  const std::string page = page_of("x");
  expect_balanced(page);
  // The name of SVG's namespace is no address that anything is loaded from.
  for (const char* part : {"https:", "src=", "href=", "url(", "@import", "<link"})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(page.find("\"gflops\":12.5"), std::string::npos);
  EXPECT_NE(page.find("<noscript>"), std::string::npos);
}

TEST(ProfilePage, has_the_time_line_before_the_tables) {
  const std::string page = page_of("x");
  EXPECT_LT(page.find("id=\"legend\""), page.find("id=\"line\""));
  EXPECT_LT(page.find("id=\"line\""), page.find("<table"));
}

TEST(ProfilePage, of_any_number_of_steps_is_written) {
  EXPECT_NE(page_of("x", 0).find("\"steps\":[]"), std::string::npos);
  EXPECT_NE(page_of("x", 1).find("\"rows\":[[0,0,900,0]]"), std::string::npos);
  const std::string many =
      cli::profile_page("x", trace_of("/a/block/of/a/network/part", 100000, "."), {});
  EXPECT_NE(many.find("part.99999\""), std::string::npos);
  EXPECT_LT(many.size(), 12U << 20) << "about 100 bytes a step";
}

TEST(ProfilePage, of_what_is_no_trace_fails) {
  EXPECT_THROW((void)cli::profile_page("x", "no trace", {}), std::runtime_error);
}

}  // namespace
}  // namespace pfrt_test
