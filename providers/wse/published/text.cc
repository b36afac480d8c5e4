// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "providers/wse/published/rows.h"

namespace pfrt::wse {
namespace {

using published::number_text;

std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kMet:
      return "met";
    case Verdict::kNotMet:
      return "not met";
    case Verdict::kFitted:
      return "fitted on";
    case Verdict::kShown:
      return "shown";
  }
  return "";
}

int count_of(const Validation& validation, Verdict verdict) {
  const auto same = [verdict](const ValidationRow& row) { return row.verdict == verdict; };
  return static_cast<int>(std::count_if(validation.rows.begin(), validation.rows.end(), same));
}

std::string signed_percent(double value) {
  std::string text = number_text(value);
  if (text == "-0.00") text.erase(0, 1);
  return message(value > 0 && text != "0.00" ? "+" : "", text, " %");
}

constexpr size_t kCells = 7;
using Cells = std::array<std::string, kCells>;
constexpr std::array<bool, kCells> kToTheRight = {false, true, true, true, true, false, false};

Cells cells_of(const ValidationRow& row) {
  const bool error_only = row.target == 0;
  return {
      row.point,
      error_only ? "" : number_text(row.target),
      error_only ? "" : number_text(row.ours),
      error_only ? number_text(row.error_percent) + " %" : signed_percent(row.error_percent),
      row.tolerance_percent > 0 ? message("within ", number_text(row.tolerance_percent), " %") : "",
      std::string(verdict_text(row.verdict)),
      error_only ? "" : row.unit};
}

using Widths = std::array<size_t, kCells>;

Widths widths_of(const Validation& validation) {
  Widths widths{};
  for (const ValidationRow& row : validation.rows) {
    const Cells cells = cells_of(row);
    for (size_t i = 0; i < kCells; ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  return widths;
}

std::string line_of(const ValidationRow& row, const Widths& widths) {
  const Cells cells = cells_of(row);
  std::string out = " ";
  for (size_t i = 0; i < kCells; ++i) {
    const std::string padding(widths[i] - cells[i].size(), ' ');
    out += (i ? "  " : " ") + (kToTheRight[i] ? padding + cells[i] : cells[i] + padding);
  }
  return out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
}

std::string head_of(const Validation& validation) {
  std::string out = "simulated: ";
  for (size_t i = 0; i < validation.machines.size(); ++i)
    out += message(i ? "; " : "", validation.machines[i]);
  out += "\n";
  // Constants that were fitted on the same rows stand together.
  std::vector<std::pair<std::string, std::string>> groups;
  for (const auto& [constant, rows] : validation.fitted) {
    const auto same = [&rows = rows](const auto& group) { return group.first == rows; };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) {
      groups.emplace_back(rows, constant);
    } else {
      found->second += message(", ", constant);
    }
  }
  for (const auto& [rows, constants] : groups)
    out += message("fitted on ", rows, ": ", constants, "\n");
  return out;
}

nlohmann::json json_of(const ValidationRow& row) {
  return {{"id", row.id},
          {"point", row.point},
          {"source", row.source},
          {"kind", row.kind},
          {"target", row.target},
          {"ours", row.ours},
          {"error_percent", row.error_percent},
          {"tolerance_percent", row.tolerance_percent},
          {"verdict", verdict_text(row.verdict)},
          {"unit", row.unit},
          {"note", row.note}};
}

}  // namespace

std::string validation_text(const Validation& validation) {
  const Widths widths = widths_of(validation);
  std::string out = head_of(validation), group, note;
  for (const ValidationRow& row : validation.rows) {
    if (const std::string head = message(row.id, "  ", row.source, " (", row.kind, ")");
        head != group) {
      out += message("\n", head, ": published, ours, error\n");
      group = head;
      note.clear();
    }
    out += line_of(row, widths);
    if (!row.note.empty() && row.note != note) out += message("      ", row.note, "\n");
    note = row.note;
  }
  out += message("\n", validation.met, " met, ", validation.not_met, " not met, ",
                 count_of(validation, Verdict::kFitted), " fitted on, ",
                 count_of(validation, Verdict::kShown), " shown\n");
  return out;
}

std::string validation_json(const Validation& validation) {
  nlohmann::json rows = nlohmann::json::array(), fitted = nlohmann::json::array();
  for (const ValidationRow& row : validation.rows) rows.push_back(json_of(row));
  for (const auto& [constant, on] : validation.fitted)
    fitted.push_back({{"constant", constant}, {"rows", on}});
  const nlohmann::json out = {{"simulated", true},
                              {"machines", validation.machines},
                              {"fitted", std::move(fitted)},
                              {"rows", std::move(rows)},
                              {"met", validation.met},
                              {"not_met", validation.not_met},
                              {"fitted_on", count_of(validation, Verdict::kFitted)},
                              {"shown", count_of(validation, Verdict::kShown)}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace pfrt::wse
