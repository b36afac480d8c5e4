// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
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

bool is_judged(const ValidationRow& row) {
  return row.verdict == Verdict::kMet || row.verdict == Verdict::kNotMet;
}

// Errors of the figures of a block, ours and a naive model's where there is one.
struct Block {
  std::string id, baseline_name;
  int met = 0, judged = 0, predictions = 0;
  std::vector<double> ours, baseline;
};

std::vector<Block> blocks_of(const Validation& validation) {
  std::vector<Block> out;
  for (const ValidationRow& row : validation.rows) {
    if (out.empty() || out.back().id != row.id) out.push_back({row.id, {}, 0, 0, 0, {}, {}});
    if (!is_judged(row)) continue;
    Block& block = out.back();
    ++block.judged;
    block.met += row.verdict == Verdict::kMet ? 1 : 0;
    block.predictions += row.evidence == Evidence::kPrediction ? 1 : 0;
    if (row.evidence == Evidence::kMedian || row.evidence == Evidence::kOrder) continue;
    block.ours.push_back(std::fabs(row.error_percent));
    if (row.baseline == 0 || row.target == 0) continue;
    block.baseline.push_back(std::fabs(100 * (row.baseline / row.target - 1)));
    block.baseline_name = row.baseline_name;
  }
  return out;
}

double largest_of(const std::vector<double>& errors) {
  return errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end());
}

std::string errors_text(const std::vector<double>& errors) {
  return message("median ", number_text(published::median_of(errors)), " %, largest ",
                 number_text(largest_of(errors)), " %");
}

std::string line_of(const Block& block) {
  if (block.ours.empty()) return {};
  std::string out = message("  ", block.met, " of ", block.judged, " met, of ", block.predictions,
                            " independent predictions; errors: ", errors_text(block.ours), "\n");
  if (!block.baseline.empty())
    out += message("  naive (", block.baseline_name, "), ", block.baseline.size(),
                   " rows: ", errors_text(block.baseline), "\n");
  return out;
}

// Numbers of judged rows that are evidence of each kind but predictions.
std::string others_text(const Validation& validation) {
  std::string out;
  for (const Evidence kind :
       {Evidence::kScaled, Evidence::kFit, Evidence::kPartlyFitted, Evidence::kConstruction,
        Evidence::kMedian, Evidence::kOrder, Evidence::kInternal}) {
    const auto same = [kind](const ValidationRow& r) { return is_judged(r) && r.evidence == kind; };
    const auto count = std::count_if(validation.rows.begin(), validation.rows.end(), same);
    if (count > 0) out += message(out.empty() ? "" : ", ", count, " ", name_of(kind));
  }
  return out;
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
  std::string idle;
  for (const std::string& number : validation.idle) idle += (idle.empty() ? "" : ", ") + number;
  if (!idle.empty()) out += message("idle, no judged row depends on them: ", idle, "\n");
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
          {"evidence", name_of(row.evidence)},
          {"baseline", row.baseline},
          {"machine", row.machine},
          {"program", row.program},
          {"unit", row.unit},
          {"note", row.note}};
}

}  // namespace

std::string_view name_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::kPrediction:
      return "predictions";
    case Evidence::kScaled:
      return "scaled up by their source";
    case Evidence::kFit:
      return "points of a published fit";
    case Evidence::kPartlyFitted:
      return "sums of parts that were fitted";
    case Evidence::kConstruction:
      return "true by construction";
    case Evidence::kMedian:
      return "medians";
    case Evidence::kOrder:
      return "orders";
    case Evidence::kInternal:
      return "against the oracle";
  }
  return "";
}

std::string validation_text(const Validation& validation) {
  const std::vector<Block> blocks = blocks_of(validation);
  size_t block = 0;
  const Widths widths = widths_of(validation);
  std::string out = head_of(validation), group, note;
  for (const ValidationRow& row : validation.rows) {
    if (row.id != blocks[block].id) out += line_of(blocks[block++]);
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
  if (!blocks.empty()) out += line_of(blocks.back());
  out += message("\nindependent predictions: ", validation.predictions_met, " of ",
                 validation.predictions_met + validation.predictions_not_met,
                 " met; other judged rows: ", others_text(validation), "\n");
  out += message(validation.met, " met, ", validation.not_met, " not met, ",
                 count_of(validation, Verdict::kFitted), " fitted on, ",
                 count_of(validation, Verdict::kShown), " shown\n");
  return out;
}

std::string validation_json(const Validation& validation) {
  nlohmann::json rows = nlohmann::json::array(), fitted = nlohmann::json::array();
  nlohmann::json blocks = nlohmann::json::array();
  for (const Block& block : blocks_of(validation))
    blocks.push_back({{"id", block.id},
                      {"met", block.met},
                      {"judged", block.judged},
                      {"predictions", block.predictions},
                      {"median_error_percent", published::median_of(block.ours)},
                      {"largest_error_percent", largest_of(block.ours)},
                      {"baseline", block.baseline_name},
                      {"baseline_rows", block.baseline.size()},
                      {"baseline_median_error_percent", published::median_of(block.baseline)},
                      {"baseline_largest_error_percent", largest_of(block.baseline)}});
  for (const ValidationRow& row : validation.rows) rows.push_back(json_of(row));
  for (const auto& [constant, on] : validation.fitted)
    fitted.push_back({{"constant", constant}, {"rows", on}});
  const nlohmann::json out = {{"simulated", true},
                              {"machines", validation.machines},
                              {"fitted", std::move(fitted)},
                              {"idle", validation.idle},
                              {"rows", std::move(rows)},
                              {"blocks", std::move(blocks)},
                              {"predictions_met", validation.predictions_met},
                              {"predictions_not_met", validation.predictions_not_met},
                              {"met", validation.met},
                              {"not_met", validation.not_met},
                              {"fitted_on", count_of(validation, Verdict::kFitted)},
                              {"shown", count_of(validation, Verdict::kShown)}};
  return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace pfrt::wse
