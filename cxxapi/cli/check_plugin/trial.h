// SPDX-License-Identifier: Apache-2.0
//
// A test of a plug-in in a process of its own. In memory that it shares with the parent, the child
// notes the rule at stake and the call under way, so that a crash or a hang is the failure of that
// rule. Trials run one at a time, from one thread.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cli::check {

// Ends a trial whose findings give the reason.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Finding {
  std::string rule;
  std::string found;  // empty = the rule was kept
};

class Trial {
 public:
  // Sets the rule that a crash or a hang breaks from here on; |doing| ends the sentence "it crashed
  // while".
  void at(std::string_view rule, std::string_view doing);
  void keep(std::string_view rule);  // it was tested, and is kept unless it fails elsewhere
  void fail(std::string_view rule, const std::string& found);
  // Calls keep or fail.
  bool expect(bool good, std::string_view rule, const std::string& found);
  // Records something that could not be tested, and the reason.
  void skip(std::string what) { skipped_.push_back(std::move(what)); }

  // Allows float32 results an error of a hundredth of the largest from here on, for a provider that
  // says that it computes otherwise than the model means (PFRT_PROVIDER_NO_FOLD), as a device of
  // half precision does.
  void allow_half_precision(bool allowed) { half_precision_ = allowed; }
  bool half_precision() const { return half_precision_; }

  void tell(std::string key, std::string value) {
    facts_.emplace_back(std::move(key), std::move(value));
  }

  const std::vector<Finding>& findings() const { return findings_; }
  const std::vector<std::pair<std::string, std::string>>& facts() const { return facts_; }
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  std::vector<Finding> findings_;
  std::vector<std::string> skipped_;
  std::vector<std::pair<std::string, std::string>> facts_;
  bool half_precision_ = false;
};

struct TrialResult {
  std::vector<Finding> findings;
  std::map<std::string, std::string> facts;
  std::vector<std::string> skipped;
  bool timed_out = false;  // also a finding
};

// Runs |body| in a child, which may take |seconds|. An exception of |body| itself is thrown here.
// A child that ends before |body| is done, even with 0, has broken the rule that was at stake.
TrialResult run_trial(const std::function<void(Trial&)>& body, int seconds);

}  // namespace cli::check
