// SPDX-License-Identifier: Apache-2.0
//
// One test of a plug-in in a process of its own. The child notes, in memory it shares with the
// parent, which rule is at stake and what it is doing, so that a crash or a hang is the failure of
// that rule. One trial at a time, from one thread.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cli::check {

// Ends a trial whose findings say why.
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
  // From here on a crash or a hang breaks |rule|; |doing| ends the sentence "it crashed while".
  void at(std::string_view rule, std::string_view doing);
  void keep(std::string_view rule);  // it was tested, and kept unless it fails elsewhere
  void fail(std::string_view rule, const std::string& found);
  // keep or fail.
  bool expect(bool good, std::string_view rule, const std::string& found);
  // Something that could not be tested, and why.
  void skip(std::string what) { skipped_.push_back(std::move(what)); }

  // What is tested says that it computes otherwise than the model means (PFRT_PROVIDER_NO_FOLD), as
  // a device of half precision does: float32 results are held to a hundredth of the largest from
  // here on.
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
  bool timed_out = false;  // which is a finding too
};

// Runs |body| in a child, which may take |seconds|. An exception of |body| itself is thrown here.
// A child that ends before |body| is done, even with 0, has broken the rule that was at stake.
TrialResult run_trial(const std::function<void(Trial&)>& body, int seconds);

}  // namespace cli::check
