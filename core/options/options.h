// SPDX-License-Identifier: Apache-2.0
//
// Typed options with a schema: a table for each kind has every key, its type, default and choices.
// Options is a value but for the cancel flag and the listener to progress, which copies share; the
// flag may be touched by others at any time.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/os/progress.h"
#include "core/base/status.h"
#include "core/options/keys.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {

std::string_view options_kind_name(pfrt_options_kind kind);

// |text| is of |row|'s type and among its choices; |key| is for the message.
Status check_text(const OptionRow& row, std::string_view key, std::string_view text);

class Options {
 public:
  explicit Options(pfrt_options_kind kind);

  pfrt_options_kind kind() const { return kind_; }
  Status set_bool(std::string_view key, bool value);
  Status set_int(std::string_view key, int64_t value);
  Status set_float(std::string_view key, double value);
  Status set_string(std::string_view key, std::string_view value);
  Status set_strings(std::string_view key, const std::vector<std::string>& values);
  Status set_text(std::string_view key, std::string_view text);
  // The value as text, lists comma-separated; valid until the key is set again.
  Result<std::string_view> text(std::string_view key) const;
  // Options set for a plug-in: "provider.<word>.<key>" of SESSION and ASK options and
  // "import.<word>.<key>" of LOAD options. Any key is taken here; the plug-in says later which it
  // knows.
  struct ForPlugin {
    std::string word, key, value;
  };
  std::vector<ForPlugin> for_plugins() const;

  // The value of a key of keys.h, whose kind is these options' own.
  template <pfrt_options_kind kind, typename T>
  T get(const Option<kind, T>& option) const {
    assert(kind == kind_);
    T out{};
    read(stored(option.key), out);
    return out;
  }
  // Whether the caller has set it: a default does not count.
  template <pfrt_options_kind kind, typename T>
  bool is_set(const Option<kind, T>& option) const {
    assert(kind == kind_);
    return set_.contains(option.key);
  }

  // Stops work that uses these options or their copies, now and later, or lets it go on; any
  // thread.
  void set_cancelled(bool yes) const { std::atomic_ref(call_->cancelled).store(yes ? 1 : 0); }
  // Sets the callback for the progress of work that uses these options or their copies. No such
  // work is under way.
  void set_progress(pfrt_progress_fn fn, void* user) const {
    call_->progress = fn;
    call_->user = user;
  }
  // The function that builds the graphs of files that have weights alone, of LOAD options.
  struct Definer {
    pfrt_define_fn fn = nullptr;
    void* user = nullptr;
  };
  void set_definer(Definer definer) { definer_ = definer; }
  const Definer& definer() const { return definer_; }
  // The progress of a call, which the cancel flag stops, and a timeout that counts from now.
  Progress progress() const;

 private:
  Result<const OptionRow*> row(std::string_view key, pfrt_option_type type) const;
  Status store(const OptionRow& row, std::string_view key, std::string text);
  const std::string& stored(std::string_view key) const;  // the schema has it
  static void read(const std::string& text, bool& out);
  static void read(const std::string& text, int64_t& out);
  static void read(const std::string& text, double& out);
  static void read(const std::string& text, std::string& out);
  static void read(const std::string& text, std::vector<std::string>& out);

  pfrt_options_kind kind_;
  std::map<std::string, std::string, std::less<>> values_;  // text form, defaults included
  std::map<std::string, bool, std::less<>> set_;
  Definer definer_;
  // What copies share.
  struct Call {
    uint32_t cancelled = 0;
    pfrt_progress_fn progress = nullptr;
    void* user = nullptr;
  };
  std::shared_ptr<Call> call_ = std::make_shared<Call>();
};

// The nearest of |names| to |name| by edits, or empty when none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace pfrt
