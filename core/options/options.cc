// SPDX-License-Identifier: Apache-2.0
#include "core/options/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace pfrt {
namespace {

constexpr int64_t kMostThreads = 4096;  // more than any machine has processors

// Stands for every option of every provider: who they are is not known here.
constexpr OptionRow kOfPlugin = {"", PFRT_OPTION_STRING, "", "", ""};

// The prefix of keys for plug-ins, in options of kind |kind|.
std::string_view plugin_prefix(pfrt_options_kind kind) {
  if (kind == PFRT_OPTIONS_SESSION || kind == PFRT_OPTIONS_ASK) return "provider.";
  return kind == PFRT_OPTIONS_LOAD ? "import." : "";
}

bool of_plugin(pfrt_options_kind kind, std::string_view key) {
  const std::string_view prefix = plugin_prefix(kind);
  if (prefix.empty() || !key.starts_with(prefix)) return false;
  const size_t dot = key.find('.', prefix.size());
  return dot != std::string_view::npos && dot > prefix.size() && dot + 1 < key.size();
}

constexpr std::string_view kTypeNames[] = {"?",     "bool",   "int",
                                           "float", "string", "list of strings"};

size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t up = row[j];
      row[j] = std::min({up + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      diagonal = up;
    }
  }
  return row[b.size()];
}

double as_double(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool in_words(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t space = words.find(' ');
    if (words.substr(0, space) == word) return true;
    words = space == std::string_view::npos ? std::string_view() : words.substr(space + 1);
  }
  return false;
}

}  // namespace

std::string_view options_kind_name(pfrt_options_kind kind) {
  constexpr std::string_view kNames[] = {"unset",     "environment", "load",    "session",
                                         "optimizer", "ask",         "batcher", "streams"};
  return kind < std::size(kNames) ? kNames[kind] : "unknown";
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  std::string best;
  size_t best_edits = std::max<size_t>(2, name.size() / 2) + 1;
  for (const std::string& candidate : names) {
    const size_t n = edits(name, candidate);
    if (n < best_edits) {
      best_edits = n;
      best = candidate;
    }
  }
  return best;
}

Status check_text(const OptionRow& row, std::string_view key, std::string_view text) {
  const auto wrong = [&](std::string_view what) {
    return error(Code::kINVALID_ARGUMENT, "setting option '", key, "' to '", text, "': it must be ",
                 what);
  };
  const auto number = [&](auto value) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() && end == text.data() + text.size();
  };
  if (row.type == PFRT_OPTION_BOOL && !in_words("true 1 on false 0 off", text))
    return wrong("true or false");
  if (row.type == PFRT_OPTION_INT && !number(int64_t{0})) return wrong("an integer");
  if (row.type == PFRT_OPTION_FLOAT && !(number(0.0) && std::isfinite(as_double(text))))
    return wrong("a finite number");
  if (text.find('\0') != std::string_view::npos) return wrong("text without NUL characters");
  if (!row.choices.empty() && !in_words(row.choices, text)) return wrong(row.choices);
  return {};
}

Options::Options(pfrt_options_kind kind) : kind_(kind) {
  for (const OptionRow& r : option_schema(kind)) values_.emplace(r.key, r.default_text);
}

Result<const OptionRow*> Options::row(std::string_view key, pfrt_option_type type) const {
  if (of_plugin(kind_, key)) return &kOfPlugin;
  std::vector<std::string> keys;
  for (const OptionRow& r : option_schema(kind_)) {
    if (r.key != key) {
      keys.emplace_back(r.key);
      continue;
    }
    if (type != PFRT_OPTION_UNSET && r.type != type)
      return error(Code::kINVALID_ARGUMENT, "setting ", options_kind_name(kind_), " option '", key,
                   "': it is a ", kTypeNames[r.type], ", not a ", kTypeNames[type]);
    return &r;
  }
  const std::string near = nearest_name(key, keys);
  return error(Code::kINVALID_ARGUMENT, "setting ", options_kind_name(kind_), " option '", key,
               "': there is no such option", near.empty() ? "" : "; the nearest is '", near,
               near.empty() ? "" : "'");
}

Status Options::store(const OptionRow& r, std::string_view key, std::string text) {
  if (text.find('\0') != std::string::npos)
    return error(Code::kINVALID_ARGUMENT, "setting ", options_kind_name(kind_), " option '", key,
                 "' to '", text.c_str(), "...': it has a NUL character in it");
  if (!r.choices.empty() && !(text.empty() && r.default_text.empty()) && !in_words(r.choices, text))
    return error(Code::kINVALID_ARGUMENT, "setting ", options_kind_name(kind_), " option '", r.key,
                 "' to '", text, "': this version knows ", r.choices);
  values_.insert_or_assign(std::string(key), std::move(text));
  set_[std::string(key)] = true;
  return {};
}

Status Options::set_bool(std::string_view key, bool value) {
  PFRT_ASSIGN(const OptionRow* r, row(key, PFRT_OPTION_BOOL));
  return store(*r, key, value ? "true" : "false");
}

Status Options::set_int(std::string_view key, int64_t value) {
  PFRT_ASSIGN(const OptionRow* r, row(key, PFRT_OPTION_INT));
  const int64_t most = key == "num_threads" ? kMostThreads : int64_t{1} << 40;
  if (value < 0 || value > most)
    return error(Code::kINVALID_ARGUMENT, "setting ", options_kind_name(kind_), " option '", key,
                 "' to ", value, ": it must be 0 to ", most);
  return store(*r, key, std::to_string(value));
}

Status Options::set_float(std::string_view key, double value) {
  PFRT_ASSIGN(const OptionRow* r, row(key, PFRT_OPTION_FLOAT));
  if (!std::isfinite(value) || value < 0)
    return error(Code::kINVALID_ARGUMENT, "setting ", options_kind_name(kind_), " option '", key,
                 "' to ", value, ": it must be a finite number, at least 0");
  return store(*r, key, message(value));
}

Status Options::set_string(std::string_view key, std::string_view value) {
  PFRT_ASSIGN(const OptionRow* r, row(key, PFRT_OPTION_STRING));
  return store(*r, key, std::string(value));
}

Status Options::set_strings(std::string_view key, const std::vector<std::string>& values) {
  PFRT_ASSIGN(const OptionRow* r, row(key, PFRT_OPTION_STRINGS));
  std::string text;
  for (const std::string& v : values) {
    if (v.find(',') != std::string::npos)
      return error(Code::kINVALID_ARGUMENT, "setting option '", key, "': '", v, "' has a comma");
    text += (text.empty() ? "" : ",") + v;
  }
  return store(*r, key, std::move(text));
}

Status Options::set_text(std::string_view key, std::string_view text) {
  PFRT_ASSIGN(const OptionRow* r, row(key, PFRT_OPTION_UNSET));
  switch (r->type) {
    case PFRT_OPTION_BOOL: {
      const bool yes = text == "true" || text == "1" || text == "on";
      if (!yes) PFRT_TRY(check_text(*r, key, text));
      return set_bool(key, yes);
    }
    case PFRT_OPTION_INT: {
      PFRT_TRY(check_text(*r, key, text));
      int64_t value = 0;
      std::from_chars(text.data(), text.data() + text.size(), value);
      return set_int(key, value);
    }
    case PFRT_OPTION_FLOAT: {
      PFRT_TRY(check_text(*r, key, text));
      return set_float(key, as_double(text));
    }
    default:
      return store(*r, key, std::string(text));
  }
}

Result<std::string_view> Options::text(std::string_view key) const {
  PFRT_TRY(row(key, PFRT_OPTION_UNSET).take_status());
  const auto it = values_.find(key);
  if (it == values_.end())
    return error(Code::kNOT_FOUND, "reading option '", key, "' of a plug-in: it was not set");
  return std::string_view(it->second);
}

std::vector<Options::ForPlugin> Options::for_plugins() const {
  std::vector<ForPlugin> out;
  const size_t prefix = plugin_prefix(kind_).size();
  for (const auto& [key, value] : values_) {
    if (!of_plugin(kind_, key)) continue;
    const size_t dot = key.find('.', prefix);
    out.push_back({key.substr(prefix, dot - prefix), key.substr(dot + 1), value});
  }
  return out;
}

const std::string& Options::stored(std::string_view key) const {
  static const std::string none;
  const auto it = values_.find(key);
  assert(it != values_.end());
  return it == values_.end() ? none : it->second;
}

Progress Options::progress() const {
  Progress progress(&call_->cancelled, call_->progress, call_->user);
  const std::string& text = stored(kind_ == PFRT_OPTIONS_SESSION
                                       ? session_option::kCreateTimeoutMs.key
                                       : load_option::kTimeoutMs.key);  // as in every other kind
  int64_t ms = 0;
  read(text, ms);
  if (ms > 0) progress.set_deadline(os::monotonic_ns() + static_cast<uint64_t>(ms) * 1'000'000u);
  return progress;
}

void Options::read(const std::string& text, bool& out) { out = text == "true"; }

void Options::read(const std::string& text, int64_t& out) {
  std::from_chars(text.data(), text.data() + text.size(), out);
}

void Options::read(const std::string& text, double& out) { out = as_double(text); }

void Options::read(const std::string& text, std::string& out) { out = text; }

void Options::read(const std::string& text, std::vector<std::string>& out) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    if (comma != 0) out.emplace_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
}

}  // namespace pfrt
