// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/published/rows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace pfrt::wse::published {
namespace {

void append_note(ValidationRow& row, std::string_view text) {
  if (text.empty()) return;
  row.note += message(row.note.empty() ? "" : "; ", text);
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Status Rows::add(ValidationRow row, std::string_view derivation) {
  row.error_percent = row.target == 0 ? row.ours : 100 * (row.ours / row.target - 1);
  if (row.verdict == Verdict::kFitted || row.verdict == Verdict::kShown) {
    row.tolerance_percent = 0;
  } else if (std::fabs(row.error_percent) <= row.tolerance_percent) {
    row.verdict = Verdict::kMet;
  } else {
    row.verdict = Verdict::kNotMet;
    append_note(row, derivation);
  }
  rows_.push_back(std::move(row));
  if (stop_ && stop_()) return Status(Code::kCANCELLED, "the validation table was stopped");
  return {};
}

Status Rows::add_median(ValidationRow row, size_t first) {
  std::vector<double> errors;
  const ValidationRow* worst = nullptr;
  for (size_t i = first; i < rows_.size(); ++i) {
    const ValidationRow& other = rows_[i];
    if (other.verdict == Verdict::kFitted || other.verdict == Verdict::kShown) continue;
    errors.push_back(std::fabs(other.error_percent));
    if (worst == nullptr || errors.back() > std::fabs(worst->error_percent)) worst = &other;
  }
  row.ours = median_of(errors);
  row.unit = "%";
  if (worst != nullptr)
    append_note(row, message("of ", errors.size(), " rows; the largest error is that of ",
                             worst->point, ", ", number_text(worst->error_percent), " %"));
  return add(std::move(row));
}

std::string largest_phases(const Schedule& schedule) {
  constexpr size_t kMost = 6;
  std::vector<std::pair<std::string_view, double>> sums;
  for (const Phase& phase : schedule.phases()) {
    const auto same = [&](const auto& sum) { return sum.first == phase.name; };
    const auto found = std::find_if(sums.begin(), sums.end(), same);
    if (found == sums.end()) {
      sums.emplace_back(phase.name, phase.cycles);
    } else {
      found->second += phase.cycles;
    }
  }
  std::stable_sort(sums.begin(), sums.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out = message("of ", number_text(schedule.finish()), " cycles: ");
  for (size_t i = 0; i < std::min(kMost, sums.size()); ++i)
    out += message(i ? ", " : "", sums[i].first, " ", number_text(sums[i].second));
  return sums.size() > kMost ? out + ", ..." : out;
}

std::string number_text(double value) {
  const double size = std::fabs(value);
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", size >= 1000 ? 0 : size >= 100 ? 1 : 2, value);
  std::string out = text;
  if (size < 1000 || !std::isfinite(value)) return out;
  const size_t digits = out.find_first_of("0123456789");
  for (size_t at = out.size(); at > digits + 3;) out.insert(at -= 3, ",");
  return out;
}

}  // namespace pfrt::wse::published
