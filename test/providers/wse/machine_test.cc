// SPDX-License-Identifier: Apache-2.0
//
// Machine files: those of the library are complete, and faults in others are named.
#include "providers/wse/machine/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "test/providers/wse/values.h"

namespace pfrt::wse::test {
namespace {

// Returns wse2's file with the first |from| replaced by |to|.
std::string edited(std::string_view from, std::string_view to) {
  std::string text(machine_text("wse2"));
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// Returns the error for |text|, which is no machine.
std::string fault_of(std::string_view text, const std::vector<Change>& changes = {},
                     bool silicon = false) {
  const Result<Machine> out = parse_machine(text, silicon, changes);
  EXPECT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), Code::kINVALID_ARGUMENT) << out.status().message();
  return out.status().message();
}

std::string fault_of_change(std::string number, double value) {
  return fault_of(machine_text("wse2"), {{std::move(number), value}});
}

TEST(Machine, files_of_the_library_are_complete) {
  EXPECT_EQ(machine_names(), (std::vector<std::string_view>{"wse", "wse2", "wse3"}));
  for (const std::string_view name : machine_names())
    for (const bool silicon : {false, true}) {
      SCOPED_TRACE(name);
      const Machine machine = machine_of(name, silicon);
      EXPECT_EQ(machine.name, name);
      EXPECT_FALSE(machine.title.empty());
      EXPECT_EQ(machine.silicon, silicon && std::string_view(name) == "wse3")
          << "the only one with such numbers";
      EXPECT_GT(machine.data_bytes(), 0);
      EXPECT_GT(machine.free_colors(), 0);
      EXPECT_LE(machine.usable_pes(),
                static_cast<int64_t>(machine.fabric_columns * machine.fabric_rows));
    }
}

TEST(Machine, every_number_has_a_source) {
  for (const std::string_view name : machine_names()) {
    const Machine machine = machine_of(name, true);
    std::set<std::string> numbers;
    for (const auto& [number, value] : numbers_of(machine)) {
      EXPECT_TRUE(std::isfinite(value)) << name << " " << number;
      const auto source = machine.sources.find(number);
      ASSERT_NE(source, machine.sources.end()) << name << " " << number;
      EXPECT_FALSE(source->second.empty()) << name << " " << number;
      numbers.insert(number);
    }
    EXPECT_EQ(numbers.size(), machine.sources.size());
  }
}

bool is_held(const Machine& machine, std::string_view program) {
  return std::find(machine.held.begin(), machine.held.end(), program) != machine.held.end();
}

TEST(Machine, what_was_held_against_measurements_is_said_by_kind_of_program) {
  EXPECT_TRUE(machine_of("wse").held.empty());
  EXPECT_TRUE(is_held(machine_of("wse2"), "decode fp16"));
  EXPECT_FALSE(is_held(machine_of("wse2"), "MeshGEMM fp16"));
  EXPECT_TRUE(is_held(machine_of("wse3"), "MeshGEMM fp16"));
  EXPECT_FALSE(is_held(machine_of("wse3"), "decode fp16"));
  EXPECT_TRUE(contains(machine_of("wse").identity(), "not validated"));
  EXPECT_FALSE(contains(machine_of("wse2").identity(), "not validated"));
}

// Published figures say nothing about a machine with other numbers.
TEST(Machine, nothing_was_held_against_changed_numbers) {
  const Machine changed = machine_of("wse2", false, {{"hop", 2}});
  EXPECT_TRUE(changed.held.empty());
  EXPECT_EQ(changed.changed, std::vector<std::string>{"hop"});
  EXPECT_TRUE(machine_of("wse3", true).held.empty()) << "no figure of the machine itself is judged";
  EXPECT_FALSE(machine_of("wse2", true).held.empty()) << "the same numbers";
  const Result<Machine> edited_file =
      parse_machine(edited("\"hop\": [1,", "\"hop\": [2,"), false, {});
  ASSERT_TRUE(edited_file.ok());
  EXPECT_TRUE(edited_file.value().held.empty());
  const Result<Machine> same_file = parse_machine(machine_text("wse2"), false, {});
  ASSERT_TRUE(same_file.ok());
  EXPECT_FALSE(same_file.value().held.empty());
}

TEST(Machine, identity_has_the_name_the_hash_and_the_clock) {
  const Machine machine = machine_of("wse3", true);
  EXPECT_EQ(machine.identity(), "wse3 " + machine.hash + " (silicon), 0.875 GHz, not validated");
  EXPECT_EQ(machine.hash.size(), 16U);
  EXPECT_EQ(machine.hash.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Machine, a_name_that_there_is_not_is_answered_with_those_that_there_are) {
  const Result<Machine> out = find_machine("wse4");
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), Code::kNOT_FOUND);
  for (const char* word : {"wse4", "wse", "wse2", "wse3"})
    EXPECT_TRUE(contains(out.status().message(), word)) << out.status().message();
  EXPECT_TRUE(machine_text("wse4").empty());
}

TEST(Machine, each_number_that_is_missing_is_named) {
  for (const auto& [number, value] : numbers_of(machine_of("wse2"))) {
    std::string text(machine_text("wse2"));
    const size_t at = text.find("\"" + number + "\": [");
    ASSERT_NE(at, std::string::npos) << number;
    size_t end = text.find('\n', at) + 1;
    // The last number has no comma, so the one before it loses its own.
    const bool last = text[end - 2] != ',';
    text.erase(at, end - at);
    if (last) text.erase(text.rfind(',', at), 1);
    const std::string fault = fault_of(text);
    EXPECT_TRUE(contains(fault, "'" + number + "'")) << number << ": " << fault;
  }
}

TEST(Machine, a_number_that_is_not_known_is_named) {
  EXPECT_TRUE(contains(fault_of(edited("\"hop\"", "\"hip\"")), "'hip'"));
  EXPECT_TRUE(
      contains(fault_of(edited("\"numbers\"", "\"silicon\": {\"hap\": [1, \"\"]}, \"numbers\""), {},
                        /*silicon=*/true),
               "'hap'"));
}

TEST(Machine, a_change_that_is_not_known_is_named) {
  EXPECT_TRUE(contains(fault_of_change("hip", 1), "'hip'"));
  EXPECT_TRUE(contains(fault_of_change("", 1), "''"));
}

TEST(Machine, numbers_out_of_range_are_named) {
  EXPECT_TRUE(contains(fault_of(edited("\"hop\": [1,", "\"hop\": [-1,")), "'hop'"));
  EXPECT_TRUE(contains(fault_of(edited("\"colors\": [24,", "\"colors\": [0,")), "'colors'"));
  EXPECT_TRUE(contains(fault_of_change("wavelet", 0), "'wavelet'"));
  EXPECT_TRUE(contains(fault_of_change("hop", -0.5), "'hop'"));
  EXPECT_TRUE(contains(fault_of_change("hop", 1e16), "'hop'"));
  EXPECT_TRUE(contains(fault_of_change("fp16_fmac_group", 0), "'fp16_fmac_group'"));
  EXPECT_TRUE(contains(fault_of_change("task", std::nan("")), "'task'"));
  EXPECT_TRUE(contains(fault_of_change("task", std::numeric_limits<double>::infinity()), "'task'"));
  EXPECT_TRUE(
      contains(fault_of_change("task", -std::numeric_limits<double>::infinity()), "'task'"));
}

TEST(Machine, geometry_that_contradicts_itself_is_refused) {
  EXPECT_TRUE(contains(fault_of_change("usable_columns", 758), "usable"));
  EXPECT_TRUE(contains(fault_of_change("usable_rows", 997), "usable"));
  EXPECT_TRUE(contains(fault_of_change("fabric_rows", 2049), "2,048"));
  EXPECT_TRUE(contains(fault_of_change("program_bytes", 49152), "program_bytes"));
  EXPECT_TRUE(contains(fault_of_change("reserved_colors", 24), "reserved_colors"));
}

TEST(Machine, a_number_is_written_with_its_source) {
  for (const char* entry :
       {"1", "[1]", "[\"1\", \"\"]", "[1, 2]", "[1, \"\", 3]", "null", "{}", "[null, \"\"]", "[]"})
    EXPECT_TRUE(contains(fault_of(edited("\"hop\": [1, \"HPDC'24; SDK white paper; ETH two-phase "
                                         "reduce tells it from 2\"]",
                                         std::string("\"hop\": ") + entry)),
                         "'hop'"))
        << entry;
}

TEST(Machine, what_is_no_json_object_with_a_name_and_numbers_is_no_machine_file) {
  const std::string nested = std::string(200000, '[') + std::string(200000, ']');
  const std::string open(200000, '[');
  for (const std::string& text :
       {std::string(), std::string(" "), std::string("wse2"), std::string("[]"), std::string("{}"),
        std::string("null"), std::string("\0\xff", 2), std::string("{\"name\": \"x\"}"),
        std::string("{\"numbers\": {}}"), std::string("{\"name\": 1, \"numbers\": {}}"),
        std::string("{\"name\": \"x\", \"numbers\": []}"), nested, open,
        "{\"name\": \"x\", \"numbers\": " + nested + "}", edited("\"hop\": [1,", "\"hop\": [NaN,"),
        edited("\"hop\": [1,", "\"hop\": [Infinity,"), edited("\"hop\": [1,", "\"hop\": [1e999,")})
    EXPECT_TRUE(contains(fault_of(text), "not a machine file")) << text.substr(0, 40);
}

TEST(Machine, a_file_that_ends_early_is_no_machine_file) {
  const std::string_view text = machine_text("wse2");
  for (size_t size = 0; size + 2 < text.size(); size += 97)
    EXPECT_TRUE(contains(fault_of(text.substr(0, size)), "not a machine file")) << size;
}

TEST(Machine, deep_json_beside_the_numbers_is_left_alone) {
  const std::string nested = std::string(100000, '[') + std::string(100000, ']');
  const Result<Machine> out =
      parse_machine(edited("\"title\":", "\"more\": " + nested + ", \"title\":"), false, {});
  EXPECT_TRUE(out.ok()) << out.status().message();
}

TEST(Machine, a_change_is_taken_and_changes_the_hash) {
  const Machine plain = machine_of("wse2");
  std::set<std::string> hashes = {plain.hash, machine_of("wse3", true).hash,
                                  machine_of("wse3").hash, machine_of("wse").hash};
  EXPECT_EQ(hashes.size(), 4U);
  EXPECT_EQ(machine_of("wse2", true).hash, plain.hash) << "its file has no other numbers";
  const Machine changed = machine_of("wse2", false, {{"hop", 3}});
  EXPECT_EQ(changed.hop, 3);
  EXPECT_EQ(changed.sources.at("hop"), "changed by the caller");
  EXPECT_EQ(changed.ramp, plain.ramp);
  hashes.insert(changed.hash);
  hashes.insert(machine_of("wse2", false, {{"hop", 3.0000001}}).hash);
  hashes.insert(machine_of("wse2", false, {{"turn", 3}}).hash);
  hashes.insert(machine_of("wse2", false, {{"hop", 3}, {"turn", 3}}).hash);
  hashes.insert(machine_of("wse3", true, {{"hop", 3}}).hash);
  EXPECT_EQ(hashes.size(), 9U);
  EXPECT_EQ(machine_of("wse2", false, {{"hop", 3}}).hash, changed.hash);
}

TEST(Machine, every_number_can_be_changed_alone) {
  const auto plain = numbers_of(machine_of("wse2"));
  for (const auto& [number, value] : plain) {
    // The change stays within the geometry that machines have.
    const bool smaller = number.starts_with("usable_") || number == "program_bytes";
    const double other = smaller ? value - 1 : value + 1;
    auto expected = plain;
    for (auto& [name, is] : expected)
      if (name == number) is = other;
    EXPECT_EQ(numbers_of(machine_of("wse2", false, {{number, other}})), expected) << number;
  }
}

TEST(Machine, silicon_overrides_the_numbers_of_the_simulator) {
  const Machine simulator = machine_of("wse3"), silicon = machine_of("wse3", true);
  EXPECT_EQ(simulator.wavelet, 1);
  EXPECT_EQ(silicon.wavelet, 1.125);
  EXPECT_EQ(simulator.fp16_fmac.group_cycles, 2);
  EXPECT_EQ(silicon.fp16_fmac.group_cycles, 2.74);
  EXPECT_NE(simulator.sources.at("wavelet"), silicon.sources.at("wavelet"));
  EXPECT_EQ(simulator.ramp, silicon.ramp);
  // A change overrides both.
  EXPECT_EQ(machine_of("wse3", true, {{"wavelet", 2}}).wavelet, 2);
}

// Physical numbers of the second generation, for the machine and its vendor's simulator alike: a
// hop takes a cycle, and descriptors and divisions take the cycles of the vendor's examples.
TEST(Machine, numbers_of_wse2_are_in_their_documented_ranges) {
  for (const bool silicon : {false, true}) {
    const Machine m = machine_of("wse2", silicon);
    EXPECT_EQ(m.hop, 1);
    for (const double set_up : {m.dsd_setup, m.send_setup}) {
      EXPECT_GE(set_up, 16);
      EXPECT_LE(set_up, 21);
    }
    EXPECT_GE(m.divide, 50);
    EXPECT_LE(m.divide, 66);
  }
}

TEST(Machine, rates_count_whole_groups) {
  const Rate rate{4, 2.5};
  EXPECT_EQ(rate.cycles(0), 0);
  EXPECT_EQ(rate.cycles(-1), 0);
  EXPECT_EQ(rate.cycles(1), 2.5);
  EXPECT_EQ(rate.cycles(4), 2.5);
  EXPECT_EQ(rate.cycles(5), 5);
}

}  // namespace
}  // namespace pfrt::wse::test
