// SPDX-License-Identifier: Apache-2.0
//
// The validation table: rows are judged by their tolerance, counted by their kind of evidence, and
// depend on the numbers of the machines; the README's counts are the table's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "providers/wse/published/validate.h"
#include "test/providers/wse/values.h"

namespace pfrt::wse::test {
namespace {

Validation validated(const std::vector<Change>& changes, bool oracle = false) {
  Result<Validation> out = validate(changes, {}, oracle);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? out.take() : Validation();
}

const Validation& table() {
  static const Validation kTable = validated({}, true);
  return kTable;
}

// Returns the table without the engine's rows beside the oracle.
const Validation& published() {
  static const Validation kTable = validated({});
  return kTable;
}

bool is_judged(const ValidationRow& row) {
  return row.verdict == Verdict::kMet || row.verdict == Verdict::kNotMet;
}

std::string text_of(const ValidationRow& row) {
  return message(row.id, " ", row.point, ": published ", row.target, ", ours ", row.ours);
}

// Expects |changed| to have other numbers in rows of every id in |moved|, and in none of |unmoved|.
void expect_moves(const Validation& changed, const std::vector<std::string>& moved,
                  const std::vector<std::string>& unmoved) {
  ASSERT_EQ(changed.rows.size(), published().rows.size());
  std::set<std::string> ids;
  for (size_t i = 0; i < changed.rows.size(); ++i) {
    const ValidationRow &is = changed.rows[i], &was = published().rows[i];
    EXPECT_EQ(is.id, was.id);
    EXPECT_EQ(is.point, was.point);
    if (is.ours != was.ours) ids.insert(is.id);
  }
  for (const std::string& id : moved) EXPECT_TRUE(ids.contains(id)) << id;
  for (const std::string& id : unmoved) EXPECT_FALSE(ids.contains(id)) << id;
}

TEST(ValidationTable, every_judged_row_is_judged_by_its_tolerance) {
  int judged = 0;
  for (const ValidationRow& row : table().rows) {
    EXPECT_TRUE(std::isfinite(row.ours) && std::isfinite(row.error_percent)) << text_of(row);
    if (!is_judged(row)) {
      EXPECT_EQ(row.tolerance_percent, 0) << text_of(row);
      continue;
    }
    ++judged;
    const double error = row.target == 0 ? row.ours : 100 * (row.ours / row.target - 1);
    EXPECT_NEAR(row.error_percent, error, 1e-9) << text_of(row);
    EXPECT_EQ(row.verdict == Verdict::kMet, std::fabs(error) <= row.tolerance_percent)
        << text_of(row);
  }
  EXPECT_EQ(judged, table().met + table().not_met);
  EXPECT_GT(judged, 50);
}

TEST(ValidationTable, every_kind_of_row_is_there_with_its_source_and_equal_values) {
  std::set<std::string> ids;
  for (const ValidationRow& row : table().rows) {
    ids.insert(row.id);
    EXPECT_FALSE(row.source.empty()) << text_of(row);
    EXPECT_FALSE(row.unit.empty()) << text_of(row);
    EXPECT_TRUE(row.kind == "simulator" || row.kind == "silicon" || row.kind == "internal")
        << text_of(row);
  }
  EXPECT_EQ(ids, (std::set<std::string>{"V1", "V2", "V3", "V4", "V6", "V7", "V8", "V9", "V10",
                                        "V11", "V12", "V13", "V14"}));
}

const ValidationRow& row_of(std::string_view id, std::string_view point) {
  for (const ValidationRow& row : table().rows)
    if (row.id == id && contains(row.point, point)) return row;
  ADD_FAILURE() << "no row " << id << " " << point;
  return table().rows.front();
}

// The paper's figures for products of a vector, and for whole answers from prompt to last token.
TEST(ValidationTable, products_of_vectors_and_whole_answers_are_judged) {
  EXPECT_EQ(row_of("V9", "1x16K").target, 1320);
  EXPECT_EQ(row_of("V9", "1x32K").target, 2233);
  for (const auto& [point, rate] :
       std::vector<std::pair<const char*, double>>{{"2048 in, 128 out", 764.4},
                                                   {"4096 in, 128 out", 604.4},
                                                   {"2048 in, 2048 out", 2370.3},
                                                   {"4096 in, 4096 out", 2459.0}})
    EXPECT_EQ(row_of("V10", point).target, rate);
  for (const ValidationRow& row : table().rows) {
    if (row.id == "V9" || row.id == "V10") {
      EXPECT_TRUE(is_judged(row)) << row.point;
      EXPECT_EQ(row.evidence, row.id == "V9" ? Evidence::kPrediction : Evidence::kPartlyFitted)
          << row.point;
    }
  }
}

// The whole published sweep is there, with 48 fitted and 96 judged rows.
TEST(ValidationTable, all_points_of_the_meshgemm_sweep_are_there) {
  int fitted = 0, judged = 0;
  for (const ValidationRow& row : table().rows) {
    if (row.id != "V6" || row.unit != "cycles" || row.target == 0) continue;
    (is_judged(row) ? judged : fitted) += 1;
  }
  EXPECT_EQ(fitted, 48);
  EXPECT_EQ(judged, 96);
}

TEST(ValidationTable, rows_are_counted_as_what_they_are_evidence_of) {
  int met = 0, not_met = 0;
  for (const ValidationRow& row : table().rows) {
    if (!is_judged(row)) continue;
    if (contains(row.point, "median")) {
      EXPECT_EQ(row.evidence, Evidence::kMedian) << row.point;
    }
    if (row.id == "V10" || row.id == "V13" || row.id == "V14" || contains(row.point, "total") ||
        contains(row.point, "34B") || contains(row.point, "72B") || contains(row.point, "relay")) {
      EXPECT_NE(row.evidence, Evidence::kPrediction) << row.point;
    }
    if (row.evidence == Evidence::kPrediction) (row.verdict == Verdict::kMet ? met : not_met) += 1;
  }
  EXPECT_EQ(table().predictions_met, met);
  EXPECT_EQ(table().predictions_not_met, not_met);
}

TEST(ValidationTable, programs_that_were_held_are_those_of_judged_rows) {
  for (const char* name : {"wse2", "wse3"}) {
    std::set<std::string> judged;
    for (const ValidationRow& row : table().rows)
      if (is_judged(row) && row.machine == name && row.kind != "internal" && !row.program.empty())
        judged.insert(row.program);
    const std::vector<std::string> held = machine_of(name).held;
    EXPECT_EQ(judged, std::set<std::string>(held.begin(), held.end())) << name;
  }
}

std::string readme() {
  std::ifstream file(PFRT_WSE_README);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(ValidationTable, the_readme_has_the_counts) {
  const std::string text = readme();
  const int predictions = table().predictions_met + table().predictions_not_met;
  const std::string count =
      message("**", table().predictions_met, " of ", predictions, " independent predictions**");
  EXPECT_TRUE(contains(text, count)) << count;
  EXPECT_TRUE(contains(text, message(table().not_met, " judged rows are not met")))
      << table().not_met;
}

TEST(ValidationTable, no_row_is_both_fitted_and_judged) {
  std::set<std::string> fitted, judged;
  for (const ValidationRow& row : table().rows) {
    const std::string key = message(row.id, " ", row.point, " ", row.kind);
    if (row.verdict == Verdict::kFitted) fitted.insert(key);
    if (is_judged(row)) {
      EXPECT_TRUE(judged.insert(key).second) << "twice: " << key;
    }
  }
  EXPECT_FALSE(fitted.empty());
  for (const std::string& key : fitted) EXPECT_FALSE(judged.contains(key)) << key;
}

// A machine file names the rows that a number was fitted on.
TEST(ValidationTable, rows_that_numbers_were_fitted_on_are_not_judged) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> points = {
      {"V6, P = 3", {"V6", "P=3 "}},
      {"V7, 8B and 34B", {"V7", "8B", "34B"}},
      {"V12, the map form", {"V12", "map, 256 x 16"}},
      {"V12, the while form", {"V12", "while, 256 x 16"}},
      {"V12, the for and map form", {"V12", "for and map"}}};
  for (const auto& [words, row_words] : points) {
    int rows = 0;
    for (const ValidationRow& row : table().rows) {
      if (row.id != row_words[0] || row.unit == "cycles a call") continue;
      bool named = false;
      for (size_t i = 1; i < row_words.size(); ++i)
        named = named || contains(row.point, row_words[i]);
      if (!named || contains(row.point, "median")) continue;
      EXPECT_EQ(row.verdict, Verdict::kFitted) << words << ": " << text_of(row);
      ++rows;
    }
    EXPECT_GT(rows, 0) << words;
  }
  std::vector<const ValidationRow*> one_pe;
  for (const ValidationRow& row : table().rows)
    if (row.id == "V3") one_pe.push_back(&row);
  ASSERT_EQ(one_pe.size(), 6U);
  for (size_t i = 0; i < one_pe.size(); ++i)
    EXPECT_EQ(one_pe[i]->verdict, i == 0 || i == 4 ? Verdict::kFitted : Verdict::kMet) << i;
  // The list has every fitted constant, with rows that exist.
  EXPECT_GE(table().fitted.size(), 10U);
  for (const auto& [constant, on] : table().fitted) {
    EXPECT_TRUE(constant.starts_with("wse2.") || constant.starts_with("wse3.")) << constant;
    EXPECT_TRUE(on.starts_with("V")) << constant << ": " << on;
  }
}

TEST(ValidationTable, a_number_moves_the_rows_that_depend_on_it) {
  {
    SCOPED_TRACE("hop");
    // The number is so far off that rows are not met.
    const Validation changed = validated({{"hop", 40}});
    expect_moves(changed, {"V1", "V2", "V7", "V8", "V9", "V10"}, {"V3", "V11"});
    EXPECT_GT(changed.not_met, 0);
    EXPECT_NE(changed.machines, published().machines);
    for (const ValidationRow& row : changed.rows) {
      if (row.verdict != Verdict::kNotMet) continue;
      EXPECT_GT(std::fabs(row.error_percent), row.tolerance_percent) << text_of(row);
      if (row.id == "V1") {
        EXPECT_TRUE(contains(row.note, "cycles: ")) << "where they went: " << row.note;
      }
    }
  }
  {
    SCOPED_TRACE("map_call");
    expect_moves(validated({{"map_call", 9}}), {"V6", "V7", "V8", "V9", "V10"},
                 {"V1", "V2", "V3", "V4", "V11"});
  }
  {
    SCOPED_TRACE("wavelet");
    expect_moves(validated({{"wavelet", 1.5}}), {"V1", "V4", "V6", "V7", "V8"}, {"V3", "V11"});
  }
}

// The files call these numbers idle.
TEST(ValidationTable, idle_numbers_move_no_judged_row) {
  const std::vector<Change> changes = {{"turn", 33},        {"clock_hz", 2e9},
                                       {"channels", 3},     {"host_bytes_per_second", 1e9},
                                       {"colors", 30},      {"fp32_op_group_cycles", 7},
                                       {"sram_bytes", 6e4}, {"max_extent", 9000}};
  const std::set<std::string> idle(published().idle.begin(), published().idle.end());
  for (const Change& change : changes)
    for (const char* machine : {"wse2.", "wse3."})
      EXPECT_TRUE(idle.contains(machine + change.number)) << machine << change.number;
  EXPECT_FALSE(idle.contains("wse2.hop") || idle.contains("wse3.task"));
  const Validation changed = validated(changes);
  ASSERT_EQ(changed.rows.size(), published().rows.size());
  for (size_t i = 0; i < changed.rows.size(); ++i) {
    if (is_judged(published().rows[i])) {
      EXPECT_EQ(changed.rows[i].ours, published().rows[i].ours) << text_of(published().rows[i]);
    }
  }
}

TEST(ValidationCall, a_stop_is_heard_between_rows) {
  for (const int rows : {0, 1, 5, 20}) {
    int asked = 0;
    const Result<Validation> out = validate({}, [&] { return asked++ == rows; });
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), Code::kCANCELLED);
    EXPECT_EQ(asked, rows + 1);
  }
}

TEST(ValidationCall, a_change_that_no_machine_takes_is_refused) {
  for (const auto& [change, word] :
       std::vector<std::pair<Change, const char*>>{{{"hip", 1}, "'hip'"},
                                                   {{"hop", -1}, "'hop'"},
                                                   {{"hop", std::nan("")}, "'hop'"},
                                                   {{"usable_rows", 5000}, "usable"}}) {
    const Result<Validation> out = validate({change}, {});
    ASSERT_FALSE(out.ok()) << change.number;
    EXPECT_EQ(out.status().code(), Code::kINVALID_ARGUMENT);
    EXPECT_TRUE(contains(out.status().message(), word)) << out.status().message();
  }
}

TEST(ValidationTable, text_and_json_have_every_row_and_the_machines) {
  EXPECT_EQ(published().machines,
            (std::vector<std::string>{machine_of("wse2").identity(), machine_of("wse3").identity(),
                                      machine_of("wse3", true).identity()}));
  const std::string text = validation_text(published());
  EXPECT_TRUE(text.starts_with("simulated: wse2 ")) << text.substr(0, 100);
  const std::string last = message(published().met, " met, ", published().not_met, " not met, ");
  EXPECT_TRUE(contains(text, last)) << last;
  for (const ValidationRow& row : published().rows)
    EXPECT_TRUE(contains(text, row.point)) << row.point;
  const auto json = nlohmann::json::parse(validation_json(published()), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["simulated"], true);
  EXPECT_EQ(json["rows"].size(), published().rows.size());
  EXPECT_EQ(json["met"], published().met);
  EXPECT_EQ(json["not_met"], published().not_met);
  EXPECT_EQ(json["idle"].size(), published().idle.size());
  EXPECT_EQ(json["predictions_met"], published().predictions_met);
  // Each block has a naive model beside it; for the sweep, three times the steps take three times
  // as long.
  EXPECT_TRUE(contains(text, "naive (P = 3's figure times P / 3), 96 rows: median 0.83 %"));
  for (const auto& block : json["blocks"])
    if (block["id"] == "V6") {
      EXPECT_NEAR(block["baseline_median_error_percent"].get<double>(), 0.83, 0.005);
    }
  EXPECT_EQ(json["fitted"].size(), published().fitted.size());
}

}  // namespace
}  // namespace pfrt::wse::test
