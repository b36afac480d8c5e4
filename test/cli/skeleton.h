// SPDX-License-Identifier: Apache-2.0
//
// Takes HTML apart as a browser does, as far as tests of pages need it: tags and the names of their
// attributes. Not thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pfrt_test {

// Gives "p title" for <p title="x"> and "/p" for </p>; the contents of script and style are passed
// over.
inline std::vector<std::string> skeleton(const std::string& html) {
  std::vector<std::string> out;
  size_t at = 0;
  while ((at = html.find('<', at)) != std::string::npos) {
    std::string tag;
    bool in_value = false, quoted = false;
    for (++at; at < html.size() && (quoted || html[at] != '>'); ++at) {
      if (html[at] == '"') quoted = !quoted;
      if (html[at] == '=' && !quoted) in_value = true;
      if (!in_value || (html[at] == ' ' && !quoted)) tag += html[at];
      if (!quoted && (html[at] == ' ' || html[at] == '"')) in_value = false;
    }
    out.push_back(tag);
    const std::string name = tag.substr(0, tag.find(' '));
    if (name == "script" || name == "style") at = html.find("</" + name, at);
  }
  return out;
}

inline void expect_balanced(const std::string& html) {
  std::vector<std::string> open;
  for (const std::string& tag : skeleton(html)) {
    const std::string name = tag.substr(0, tag.find(' '));
    if (name == "meta" || name == "input" || name[0] == '!' || tag.back() == '/') continue;
    if (name[0] != '/') {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name.substr(1));
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

}  // namespace pfrt_test
