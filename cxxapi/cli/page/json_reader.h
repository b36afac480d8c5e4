// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON value by value, and keeps none of it. Text that is no JSON, or has another value than
// the one that is asked for, throws std::runtime_error with the byte where. Not thread-safe; the
// text outlives the reader.
#pragma once

#include <string>
#include <string_view>

namespace cli {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  // Reads an object: |member| gets the name of each member and reads or skips its value.
  template <class Fn>
  void object(Fn member) {
    expect('{');
    if (take('}')) return;
    do {
      const std::string name = string();
      expect(':');
      member(name);
    } while (take(','));
    expect('}');
  }
  // Reads a list: |element| reads or skips each element.
  template <class Fn>
  void list(Fn element) {
    expect('[');
    if (take(']')) return;
    do {
      element();
    } while (take(','));
    expect(']');
  }
  std::string string();
  double number();
  void skip();
  // Fails where anything follows.
  void end();

 private:
  bool take(char c);
  void expect(char c);
  char blank();  // passes over blanks, and returns what follows them; 0 at the end
  unsigned code();
  void word(std::string_view word);
  void skip(int depth);
  [[noreturn]] void fail(const std::string& expected) const;

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace cli
