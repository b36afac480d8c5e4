// SPDX-License-Identifier: Apache-2.0
//
// The validation table: what was published is met, and rows depend on the numbers of the machines.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "providers/wse/published/validate.h"
#include "test/providers/wse/values.h"

namespace pfrt::wse::test {
namespace {

Validation validated(const std::vector<Change>& changes = {}) {
  Result<Validation> out = validate(changes, {});
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? out.take() : Validation();
}

const Validation& table() {
  static const Validation kTable = validated();
  return kTable;
}

bool is_judged(const ValidationRow& row) {
  return row.verdict == Verdict::kMet || row.verdict == Verdict::kNotMet;
}

std::string text_of(const ValidationRow& row) {
  return message(row.id, " ", row.point, ": published ", row.target, ", ours ", row.ours);
}

// Rows of the ids |moved| are others in |changed|, and none of those in |unmoved|.
void expect_moves(const Validation& changed, const std::vector<std::string>& moved,
                  const std::vector<std::string>& unmoved) {
  ASSERT_EQ(changed.rows.size(), table().rows.size());
  std::set<std::string> ids;
  for (size_t i = 0; i < changed.rows.size(); ++i) {
    const ValidationRow &is = changed.rows[i], &was = table().rows[i];
    EXPECT_EQ(is.id, was.id);
    EXPECT_EQ(is.point, was.point);
    if (is.ours != was.ours) ids.insert(is.id);
  }
  for (const std::string& id : moved) EXPECT_TRUE(ids.contains(id)) << id;
  for (const std::string& id : unmoved) EXPECT_FALSE(ids.contains(id)) << id;
}

TEST(ValidationTable, no_row_is_not_met_and_every_judged_row_is_within_its_tolerance) {
  EXPECT_EQ(table().not_met, 0);
  int judged = 0;
  for (const ValidationRow& row : table().rows) {
    EXPECT_NE(row.verdict, Verdict::kNotMet) << text_of(row) << "; " << row.note;
    EXPECT_TRUE(std::isfinite(row.ours) && std::isfinite(row.error_percent)) << text_of(row);
    if (!is_judged(row)) {
      EXPECT_EQ(row.tolerance_percent, 0) << text_of(row);
      continue;
    }
    ++judged;
    const double error = row.target == 0 ? row.ours : 100 * (row.ours / row.target - 1);
    EXPECT_NEAR(row.error_percent, error, 1e-9) << text_of(row);
    EXPECT_LE(std::fabs(error), row.tolerance_percent) << text_of(row);
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
  EXPECT_EQ(ids, (std::set<std::string>{"V1", "V2", "V3", "V4", "V6", "V7", "V8", "V11", "V12",
                                        "V13", "V14"}));
  int compared = 0;
  for (const ValidationRow& row : table().rows) {
    if (row.id != "V13") continue;
    EXPECT_EQ(row.note, "values equal") << row.point;
    ++compared;
  }
  EXPECT_EQ(compared, 9);
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

// Rows that a machine file's number says it was fitted on.
TEST(ValidationTable, rows_that_numbers_were_fitted_on_are_not_judged) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> points = {
      {"V6, P = 3", {"V6", "P=3 "}},
      {"V7, 8B and 34B", {"V7", "8B", "34B"}},
      {"V12, the map form", {"V12", "map, 256 x 16"}},
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
  // Every constant that says so is in the list, with rows that there are.
  EXPECT_GE(table().fitted.size(), 10U);
  for (const auto& [constant, on] : table().fitted) {
    EXPECT_TRUE(constant.starts_with("wse2.") || constant.starts_with("wse3.")) << constant;
    EXPECT_TRUE(on.starts_with("V")) << constant << ": " << on;
  }
}

TEST(ValidationTable, a_number_moves_the_rows_that_depend_on_it) {
  {
    SCOPED_TRACE("hop");
    // So far off that rows are not met.
    const Validation changed = validated({{"hop", 40}});
    expect_moves(changed, {"V1", "V2", "V7", "V8", "V13"}, {"V3", "V11"});
    EXPECT_GT(changed.not_met, 0);
    EXPECT_NE(changed.machines, table().machines);
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
    expect_moves(validated({{"map_call", 9}}), {"V6", "V7", "V8"}, {"V1", "V2", "V3", "V4", "V11"});
  }
  {
    SCOPED_TRACE("wavelet");
    expect_moves(validated({{"wavelet", 1.5}}), {"V1", "V4", "V6", "V7", "V8"}, {"V3", "V11"});
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
  EXPECT_EQ(table().machines,
            (std::vector<std::string>{
                machine_of("wse2").identity(), machine_of("wse2", true).identity(),
                machine_of("wse3").identity(), machine_of("wse3", true).identity()}));
  const std::string text = validation_text(table());
  EXPECT_TRUE(text.starts_with("simulated: wse2 ")) << text.substr(0, 100);
  const std::string last = message(table().met, " met, 0 not met, ");
  EXPECT_TRUE(contains(text, last)) << last;
  for (const ValidationRow& row : table().rows) EXPECT_TRUE(contains(text, row.point)) << row.point;
  const auto json = nlohmann::json::parse(validation_json(table()), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["simulated"], true);
  EXPECT_EQ(json["rows"].size(), table().rows.size());
  EXPECT_EQ(json["met"], table().met);
  EXPECT_EQ(json["not_met"], 0);
  EXPECT_EQ(json["fitted"].size(), table().fitted.size());
}

}  // namespace
}  // namespace pfrt::wse::test
