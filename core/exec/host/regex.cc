// SPDX-License-Identifier: Apache-2.0
#include "core/exec/host/regex.h"

#include <algorithm>
#include <memory>
#include <string>

#include "core/exec/host/utf8.h"

namespace pfrt::host {

using Class = Regex::Class;
using Assertion = Regex::Assertion;
using Step = Regex::Step;

namespace {

constexpr int kMostDepth = 1000;  // of groups in groups
constexpr int kMostTimes = 1000;  // of a repetition, as in RE2
constexpr size_t kMostSteps = 1 << 18;

struct Piece {
  enum Kind { kEmpty, kClass, kAssert, kSequence, kChoice, kRepeat } kind = kEmpty;
  Class characters;
  Assertion assertion{};
  int least = 0, most = 0;  // -1: any number
  std::vector<Piece> parts;
};

struct NamedClass {
  std::u32string_view name;
  std::vector<std::pair<char32_t, char32_t>> ranges;
};

const std::vector<NamedClass>& posix_classes() {
  static const auto* const classes = new std::vector<NamedClass>{
      {U"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {U"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {U"ascii", {{0, 0x7f}}},
      {U"blank", {{'\t', '\t'}, {' ', ' '}}},
      {U"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
      {U"digit", {{'0', '9'}}},
      {U"graph", {{'!', '~'}}},
      {U"lower", {{'a', 'z'}}},
      {U"print", {{' ', '~'}}},
      {U"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {U"space", {{'\t', '\r'}, {' ', ' '}}},
      {U"upper", {{'A', 'Z'}}},
      {U"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {U"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  return *classes;
}

// \d, \s, \w and their negations.
bool perl_class(char32_t letter, Class* out) {
  const char32_t small = lower_case(letter);
  if (small == 'd') out->ranges = {{'0', '9'}};
  if (small == 's') out->ranges = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
  if (small == 'w') out->ranges = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  out->negated = letter != small;
  return !out->ranges.empty();
}

// The class without |negated|.
std::vector<std::pair<char32_t, char32_t>> plain_ranges(const Class& c) {
  if (!c.negated) return c.ranges;
  auto sorted = c.ranges;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::pair<char32_t, char32_t>> out;
  char32_t next = 0;
  for (const auto& [low, high] : sorted) {
    if (low > next) out.emplace_back(next, low - 1);
    next = std::max<char32_t>(next, high + 1);
  }
  if (next < kNoText) out.emplace_back(next, kNoText - 1);
  return out;
}

class Parser {
 public:
  explicit Parser(std::u32string pattern) : text_(std::move(pattern)) {}

  Result<Piece> parse() {
    PFRT_ASSIGN(Piece whole, choice(0));
    if (!at_end()) return fail("a ')' without its '('");
    return whole;
  }

 private:
  struct Flags {
    bool fold = false, lines = false, dot_all = false;
  };

  bool at_end() const { return at_ == text_.size(); }
  char32_t peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : kNoText;
  }
  bool take(std::u32string_view wanted) {
    if (std::u32string_view(text_).substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  template <typename... Parts>
  Status fail(const Parts&... parts) const {
    return error(Code::kINVALID_MODEL, "pattern '", encode(text_), "' at ", at_, ": ", parts...);
  }

  Result<Piece> choice(int depth) {
    if (depth > kMostDepth) return fail("groups are nested more than ", kMostDepth, " deep");
    const Flags outer = flags_;
    Piece out;
    out.kind = Piece::kChoice;
    do {
      PFRT_ASSIGN(Piece part, sequence(depth));
      out.parts.push_back(std::move(part));
    } while (take(U"|"));
    flags_ = outer;
    return out;
  }

  Result<Piece> sequence(int depth) {
    Piece out;
    out.kind = Piece::kSequence;
    while (!at_end() && peek() != '|' && peek() != ')') {
      if (take(U"\\Q")) {
        while (!at_end() && !take(U"\\E")) out.parts.push_back(literal(text_[at_++]));
        continue;
      }
      if (take(U"\\E")) continue;
      PFRT_ASSIGN(Piece part, atom(depth));
      PFRT_ASSIGN(part, repeated(std::move(part)));
      out.parts.push_back(std::move(part));
    }
    return out;
  }

  Piece literal(char32_t point) const {
    Piece out;
    out.kind = Piece::kClass;
    out.characters.ranges = {{point, point}};
    out.characters.folded = flags_.fold;
    return out;
  }
  static Piece asserted(Assertion assertion) {
    Piece out;
    out.kind = Piece::kAssert;
    out.assertion = assertion;
    return out;
  }

  Result<Piece> atom(int depth) {
    const char32_t c = text_[at_];
    if (c == '(') return group(depth);
    if (c == '[') return bracket();
    if (c == '*' || c == '+' || c == '?') return fail("nothing precedes the repetition");
    if (c == '\\') return escape();
    ++at_;
    if (c == '^') return asserted(flags_.lines ? Assertion::kLineBegin : Assertion::kBegin);
    if (c == '$') return asserted(flags_.lines ? Assertion::kLineEnd : Assertion::kEnd);
    Piece out = literal(c);
    if (c == '.') {
      out.characters.ranges.clear();
      if (!flags_.dot_all) out.characters.ranges = {{'\n', '\n'}};
      out.characters.negated = true;
      out.characters.folded = false;
    }
    return out;
  }

  Result<Piece> group(int depth) {
    ++at_;
    const Flags outer = flags_;
    if (take(U"?P<") || take(U"?<")) {
      if (peek() == '=' || peek() == '!') return fail("RE2 has no look-behind");
      const size_t begin = at_;
      while (peek() == '_' || (peek() < 0x80 && isalnum(static_cast<int>(peek())))) ++at_;
      if (at_ == begin || !take(U">")) return fail("a group's name must be letters, digits or _");
    } else if (take(U"?")) {
      bool on = true;
      for (;; ++at_) {
        const char32_t c = peek();
        if (c == ':' || c == ')') break;
        if (c == '-' && on) {
          on = false;
        } else if (c == 'i') {
          flags_.fold = on;
        } else if (c == 'm') {
          flags_.lines = on;
        } else if (c == 's') {
          flags_.dot_all = on;
        } else if (c != 'U') {  // greed does not matter to whether all matches
          return fail("RE2 has no group of this kind");
        }
      }
      if (take(U")")) return Piece();  // until the end of the group around
      ++at_;
    }
    PFRT_ASSIGN(Piece out, choice(depth + 1));
    if (!take(U")")) return fail("a '(' without its ')'");
    flags_ = outer;
    return out;
  }

  // {n}, {n,} or {n,m}; anything else in braces is text.
  bool counts(int* least, int* most) {
    const size_t begin = at_;
    const auto number = [&](int* out) {
      const size_t first = at_;
      *out = 0;
      while (peek() >= '0' && peek() <= '9') {
        *out = std::min(*out * 10 + static_cast<int>(peek() - '0'), kMostTimes + 1);
        ++at_;
      }
      return at_ > first;
    };
    if (take(U"{") && number(least)) {
      *most = *least;
      if (take(U",") && !number(most)) *most = -1;
      if (take(U"}")) return true;
    }
    at_ = begin;
    return false;
  }

  Result<Piece> repeated(Piece part) {
    bool again = false;
    while (true) {
      int least = 0, most = -1;
      if (take(U"*")) {
      } else if (take(U"+")) {
        least = 1;
      } else if (take(U"?")) {
        most = 1;
      } else if (!counts(&least, &most)) {
        return part;
      }
      if (again) return fail("a repetition of a repetition needs a group");
      if (least > kMostTimes || most > kMostTimes || (most >= 0 && least > most))
        return fail("a repetition must be {n,m} with n <= m <= ", kMostTimes);
      take(U"?");  // as few as possible: the same texts match
      Piece out;
      out.kind = Piece::kRepeat;
      out.least = least;
      out.most = most;
      out.parts.push_back(std::move(part));
      part = std::move(out);
      again = true;
    }
  }

  Result<Piece> escape() {
    const char32_t c = peek(1);
    Class perl;
    if (perl_class(c, &perl)) {
      at_ += 2;
      Piece out = literal(0);
      out.characters = std::move(perl);
      return out;
    }
    constexpr std::pair<char32_t, Assertion> kPlaces[] = {{'A', Assertion::kBegin},
                                                          {'z', Assertion::kEnd},
                                                          {'b', Assertion::kWord},
                                                          {'B', Assertion::kNoWord}};
    for (const auto& [letter, place] : kPlaces) {
      if (c != letter) continue;
      at_ += 2;
      return asserted(place);
    }
    PFRT_ASSIGN(const char32_t point, escaped());
    return literal(point);
  }

  // A backslash and what it stands for, one character.
  Result<char32_t> escaped() {
    const char32_t c = peek(1);
    if (c == kNoText) return fail("a backslash ends the pattern");
    if (c == 'p' || c == 'P') return fail("Unicode classes (\\p) are not supported");
    if (c == 'C') return fail("\\C, a single byte, is not supported");
    if (c >= '1' && c <= '7' && !(peek(2) >= '0' && peek(2) <= '7'))
      return fail("RE2 has no references to groups");
    at_ += 2;
    if (c >= '0' && c <= '7') {
      char32_t value = c - '0';
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i)
        value = value * 8 + (text_[at_++] - '0');
      return value;
    }
    if (c == 'x') return hexadecimal();
    constexpr std::pair<char, char> kControls[] = {{'a', '\a'}, {'f', '\f'}, {'n', '\n'},
                                                   {'r', '\r'}, {'t', '\t'}, {'v', '\v'}};
    for (const auto& [letter, control] : kControls)
      if (c == static_cast<char32_t>(letter)) return static_cast<char32_t>(control);
    if (c < 0x80 && !isalnum(static_cast<int>(c))) return c;
    at_ -= 2;
    return fail("RE2 has no escape of this letter");
  }

  Result<char32_t> hexadecimal() {
    const bool braces = take(U"{");
    char32_t value = 0;
    int digits = 0;
    for (; braces || digits < 2; ++digits, ++at_) {
      const char32_t c = lower_case(peek());
      if (c >= '0' && c <= '9') {
        value = value * 16 + (c - '0');
      } else if (c >= 'a' && c <= 'f') {
        value = value * 16 + (c - 'a' + 10);
      } else {
        break;
      }
      if (value >= kNoText) return fail("there is no such character");
    }
    if (digits == 0 || (!braces && digits != 2) || (braces && !take(U"}")))
      return fail("\\x needs two digits, or any number in braces");
    return value;
  }

  Result<Piece> bracket() {
    const size_t begin = at_++;
    Piece out = literal(0);
    out.characters.ranges.clear();
    const bool negated = take(U"^");
    for (bool first = true; first || peek() != ']'; first = false) {
      if (at_end()) {
        at_ = begin;
        return fail("a '[' without its ']'");
      }
      Class named;
      PFRT_ASSIGN(const bool is_named, named_class(&named));
      if (is_named) {
        out.characters.add(named);
        continue;
      }
      PFRT_ASSIGN(const char32_t low, member());
      char32_t high = low;
      if (peek() == '-' && peek(1) != ']' && peek(1) != kNoText) {
        ++at_;
        PFRT_ASSIGN(high, member());
        if (high < low) return fail("a range runs backwards");
      }
      out.characters.ranges.emplace_back(low, high);
    }
    ++at_;
    out.characters.negated = negated;
    return out;
  }

  Result<char32_t> member() {
    if (peek() == '\\') return escaped();
    return text_[at_++];
  }

  Result<bool> named_class(Class* out) {
    if (peek() == '\\' && perl_class(peek(1), out)) {
      at_ += 2;
      return true;
    }
    if (peek() != '[' || peek(1) != ':') return false;
    const size_t end = text_.find(U":]", at_ + 2);
    if (end == std::u32string::npos) return false;
    std::u32string_view name = std::u32string_view(text_).substr(at_ + 2, end - at_ - 2);
    out->negated = !name.empty() && name.front() == '^';
    if (out->negated) name.remove_prefix(1);
    for (const NamedClass& c : posix_classes()) {
      if (c.name != name) continue;
      out->ranges = c.ranges;
      at_ = end + 2;
      return true;
    }
    return fail("there is no class of this name");
  }

  std::u32string text_;
  size_t at_ = 0;
  Flags flags_;
};

bool is_word(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

bool holds(Assertion assertion, const std::u32string& text, size_t at) {
  const bool begin = at == 0, end = at == text.size();
  switch (assertion) {
    case Assertion::kBegin:
      return begin;
    case Assertion::kEnd:
      return end;
    case Assertion::kLineBegin:
      return begin || text[at - 1] == '\n';
    case Assertion::kLineEnd:
      return end || text[at] == '\n';
    case Assertion::kWord:
    case Assertion::kNoWord: {
      const bool edge = (!begin && is_word(text[at - 1])) != (!end && is_word(text[at]));
      return edge == (assertion == Assertion::kWord);
    }
  }
  return false;
}

}  // namespace

// Turns pieces into steps.
class RegexProgram {
 public:
  explicit RegexProgram(Regex& out) : out_(out) {}

  bool put(const Piece& piece) {
    if (++puts_ > kMostSteps) return false;
    switch (piece.kind) {
      case Piece::kEmpty:
        return true;
      case Piece::kClass:
        add(Step::kClass, static_cast<uint32_t>(out_.classes_.size()));
        out_.classes_.push_back(piece.characters);
        return true;
      case Piece::kAssert:
        add(Step::kAssert, static_cast<uint32_t>(piece.assertion));
        return true;
      case Piece::kSequence:
        return std::all_of(piece.parts.begin(), piece.parts.end(),
                           [&](const Piece& part) { return put(part); });
      case Piece::kChoice:
        return put_choice(piece);
      case Piece::kRepeat:
        return put_repeat(piece);
    }
    return true;
  }
  uint32_t add(Step::Kind kind, uint32_t argument = 0, uint32_t other = 0) {
    out_.steps_.push_back({kind, argument, other});
    return next() - 1;
  }

 private:
  uint32_t next() const { return static_cast<uint32_t>(out_.steps_.size()); }

  bool put_choice(const Piece& piece) {
    std::vector<uint32_t> jumps;
    for (size_t i = 0; i < piece.parts.size(); ++i) {
      const bool last = i + 1 == piece.parts.size();
      const uint32_t split = last ? 0 : add(Step::kSplit, next() + 1);
      if (!put(piece.parts[i])) return false;
      if (last) break;
      jumps.push_back(add(Step::kJump));
      out_.steps_[split].other = next();
    }
    for (const uint32_t jump : jumps) out_.steps_[jump].argument = next();
    return true;
  }

  bool put_repeat(const Piece& piece) {
    const Piece& part = piece.parts[0];
    for (int i = 0; i < piece.least; ++i)
      if (!put(part)) return false;
    std::vector<uint32_t> splits;
    if (piece.most < 0) {
      const uint32_t split = add(Step::kSplit, next() + 1);
      if (!put(part)) return false;
      add(Step::kJump, split);
      splits.push_back(split);
    }
    for (int i = piece.least; i < piece.most; ++i) {
      splits.push_back(add(Step::kSplit, next() + 1));
      if (!put(part)) return false;
    }
    for (const uint32_t split : splits) out_.steps_[split].other = next();
    return true;
  }

  Regex& out_;
  size_t puts_ = 0;
};

bool Class::contains(char32_t point) const {
  if (point >= kNoText) return false;  // a byte that is no text
  const auto in = [&](char32_t p) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const auto& r) { return p >= r.first && p <= r.second; });
  };
  const bool found = in(point) || (folded && (in(lower_case(point)) || in(upper_case(point))));
  return found != negated;
}

void Class::add(const Class& other) {
  const auto more = plain_ranges(other);
  ranges.insert(ranges.end(), more.begin(), more.end());
}

Result<Regex> Regex::compile(std::string_view pattern) {
  PFRT_ASSIGN(const Piece whole, Parser(decode(pattern)).parse());
  Regex out;
  RegexProgram program(out);
  if (!program.put(whole))
    return error(Code::kINVALID_MODEL, "pattern '", pattern.substr(0, 80),
                 "': its repetitions make it too large");
  program.add(Step::kDone);
  return out;
}

bool Regex::matches_all(std::string_view bytes) const {
  const std::u32string text = decode(bytes);
  std::vector<uint32_t> here, there, todo;
  std::vector<size_t> seen(steps_.size(), SIZE_MAX);  // at which place last
  const auto reach = [&](uint32_t from, size_t at) {
    todo.push_back(from);
    while (!todo.empty()) {
      const uint32_t s = todo.back();
      todo.pop_back();
      if (seen[s] == at) continue;
      seen[s] = at;
      const Step& step = steps_[s];
      if (step.kind == Step::kClass || step.kind == Step::kDone) {
        there.push_back(s);
      } else if (step.kind == Step::kAssert) {
        if (holds(static_cast<Assertion>(step.argument), text, at)) todo.push_back(s + 1);
      } else {
        if (step.kind == Step::kSplit) todo.push_back(step.other);
        todo.push_back(step.argument);
      }
    }
  };
  reach(0, 0);
  for (size_t at = 0; at < text.size(); ++at) {
    here.swap(there);
    there.clear();
    for (const uint32_t s : here)
      if (steps_[s].kind == Step::kClass && classes_[steps_[s].argument].contains(text[at]))
        reach(s + 1, at + 1);
    if (there.empty()) return false;
  }
  return std::any_of(there.begin(), there.end(),
                     [&](uint32_t s) { return steps_[s].kind == Step::kDone; });
}

}  // namespace pfrt::host
