// SPDX-License-Identifier: Apache-2.0
//
// Options of a session for the wafer: each is read, and an error gives the option's name and the
// values that it takes.
#include "providers/wse/program/options.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/providers/wse/values.h"

namespace pfrt::wse::test {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Result<Settings> settings_of(const Pairs& options, std::string_view device = "wse2") {
  std::vector<pfrt_key_value> given;
  for (const auto& [key, value] : options) given.push_back({to_c(key), to_c(value)});
  return read_settings(device, given.data(), given.size());
}

Settings good(const Pairs& options, std::string_view device = "wse2") {
  Result<Settings> out = settings_of(options, device);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? out.take() : Settings();
}

// Expects an error with the option's name, the value and |takes|.
void expect_wrong(const std::string& key, const std::string& value, std::string_view takes) {
  const Result<Settings> out = settings_of({{key, value}});
  ASSERT_FALSE(out.ok()) << key << "=" << value;
  const std::string& text = out.status().message();
  EXPECT_EQ(out.status().code(), Code::kINVALID_ARGUMENT) << text;
  EXPECT_TRUE(contains(text, key) && contains(text, value) && contains(text, takes)) << text;
}

// A file that is removed with this object.
class MachineFile {
 public:
  MachineFile(const std::string& name, std::string_view text)
      : path_(std::filesystem::path(testing::TempDir()) / message("wse_", ::getpid(), "_", name)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~MachineFile() {
    std::error_code gone;
    std::filesystem::remove(path_, gone);
  }
  MachineFile(const MachineFile&) = delete;
  MachineFile& operator=(const MachineFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(WaferOptions, nothing_given_is_the_whole_of_one_wafer) {
  const Settings settings = good({});
  const Target& t = settings.target;
  EXPECT_EQ(t.machine.name, "wse2");
  EXPECT_FALSE(t.machine.silicon);
  EXPECT_EQ(t.machine.hash, machine_of("wse2").hash);
  EXPECT_EQ(t.arithmetic, Arithmetic::kFp16);
  EXPECT_EQ(t.fabric.x, 0);
  EXPECT_EQ(t.fabric.y, 0);
  EXPECT_EQ(t.fabric.columns, 750);
  EXPECT_EQ(t.fabric.rows, 994);
  EXPECT_EQ(t.chips.count(), 1);
  EXPECT_EQ(t.chips.bytes_per_second, 150e9);
  EXPECT_EQ(t.chips.latency_seconds, 0);
  EXPECT_FALSE(t.chips.latency_given);
  EXPECT_EQ(t.chips.memory_bytes, 0);
  EXPECT_EQ(t.execution, Execution::kAuto);
  EXPECT_FALSE(settings.timing_only);
  EXPECT_TRUE(contains(settings.text, "simulated wse2 " + t.machine.hash)) << settings.text;
}

TEST(WaferOptions, empty_values_and_listed_defaults_are_the_defaults) {
  const std::string plain = good({}).text;
  Pairs empty, listed;
  for (const pfrt_option_info& option : option_list()) {
    empty.emplace_back(view(option.key), "");
    listed.emplace_back(view(option.key), view(option.default_value));
  }
  EXPECT_EQ(good(empty).text, plain);
  EXPECT_EQ(good(listed).text, plain);
}

TEST(WaferOptions, each_device_is_its_own_machine) {
  for (const char* device : {"wse", "wse2", "wse3"}) {
    const Settings settings = good({}, device);
    EXPECT_EQ(settings.target.machine.name, device);
    EXPECT_EQ(settings.target.fabric.columns,
              static_cast<int64_t>(machine_of(device).usable_columns));
  }
  const Result<Settings> out = settings_of({}, "wse9");
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), Code::kNOT_FOUND);
  EXPECT_TRUE(contains(out.status().message(), "wse9"));
}

TEST(WaferOptions, every_option_is_read) {
  EXPECT_EQ(good({{"arithmetic", "fp16"}}).target.arithmetic, Arithmetic::kFp16);
  EXPECT_EQ(good({{"arithmetic", "bf16"}}).target.arithmetic, Arithmetic::kBf16);
  EXPECT_EQ(good({{"arithmetic", "fp32"}}).target.arithmetic, Arithmetic::kFp32);
  EXPECT_EQ(good({{"arithmetic", "f32_fast"}}).target.arithmetic, Arithmetic::kFp32Fast);
  const Rect fabric = good({{"fabric", "100x37"}}).target.fabric;
  EXPECT_EQ(fabric.columns, 100);
  EXPECT_EQ(fabric.rows, 37);
  EXPECT_EQ(good({{"clock", "1.1e9"}}).target.machine.clock_hz, 1.1e9);
  EXPECT_TRUE(good({{"timing_only", "true"}}).timing_only);
  EXPECT_TRUE(good({{"timing_only", "1"}}).timing_only);
  EXPECT_FALSE(good({{"timing_only", "0"}}).timing_only);
  const Chips chips = good({{"chips", "3x2"},
                            {"inter_chip_bandwidth", "1e11"},
                            {"inter_chip_latency", "250"},
                            {"chip_memory_bytes", "1000000"}})
                          .target.chips;
  EXPECT_EQ(chips.columns, 3);
  EXPECT_EQ(chips.rows, 2);
  EXPECT_EQ(chips.bytes_per_second, 1e11);
  EXPECT_DOUBLE_EQ(chips.latency_seconds, 250e-9);
  EXPECT_TRUE(chips.latency_given);
  EXPECT_EQ(chips.memory_bytes, 1000000);
  EXPECT_EQ(good({{"execution", "auto"}}).target.execution, Execution::kAuto);
  EXPECT_EQ(good({{"execution", "pipelined"}}).target.execution, Execution::kPipelined);
  EXPECT_EQ(good({{"execution", "streaming"}}).target.execution, Execution::kStreaming);
  EXPECT_EQ(good({{"silicon", "true"}}, "wse3").target.machine.wavelet, 1.125);
}

TEST(WaferOptions, the_list_has_every_option_with_its_choices) {
  std::set<std::string_view> keys;
  for (const pfrt_option_info& option : option_list()) {
    keys.insert(view(option.key));
    EXPECT_FALSE(view(option.doc).empty()) << view(option.key);
    std::string_view choices = view(option.choices);
    while (!choices.empty()) {
      const size_t end = std::min(choices.find(' '), choices.size());
      good({{std::string(view(option.key)), std::string(choices.substr(0, end))}});
      choices.remove_prefix(std::min(end + 1, choices.size()));
    }
  }
  EXPECT_EQ(keys, (std::set<std::string_view>{"arithmetic", "fabric", "clock", "timing_only",
                                              "chips", "inter_chip_bandwidth", "inter_chip_latency",
                                              "chip_memory_bytes", "execution", "silicon",
                                              "machine_file"}));
}

TEST(WaferOptions, wrong_values_are_said_with_the_option_and_what_it_takes) {
  for (const char* value : {"fp8", "FP16", "fp16 ", "float"})
    expect_wrong("arithmetic", value, "fp16, bf16, fp32 or f32_fast");
  for (const char* value : {"750", "x", "750x", "x994", "0x5", "5x0", "-3x4", "3x4x5", "3 x 4",
                            " 3x4", "3x4 ", "3X4", "3.5x4", "99999999999999999999x1"})
    expect_wrong("fabric", value, "750x994");
  for (const char* value : {"751x1", "1x995"}) expect_wrong("fabric", value, "750x994 PEs at most");
  for (const char* key :
       {"clock", "inter_chip_bandwidth", "inter_chip_latency", "chip_memory_bytes"})
    for (const char* value : {"-1", "fast", "1e", "1 ", " 1", "nan", "inf", "1e99", "0x10", "1,5"})
      expect_wrong(key, value, "a number of 0 or more");
  for (const char* key : {"timing_only", "silicon"})
    for (const char* value : {"yes", "TRUE", "2", "on"}) expect_wrong(key, value, "true or false");
  for (const char* value : {"1", "2x", "0x1", "65x64", "-1x-1", "2x2x2"})
    expect_wrong("chips", value, "2x2, 4,096 wafers at most");
  for (const char* value : {"fast", "Auto", "stream"})
    expect_wrong("execution", value, "auto, pipelined or streaming");
}

TEST(WaferOptions, whole_numbers_are_asked_for_where_the_list_says_so) {
  expect_wrong("chip_memory_bytes", "1.5", "number");
}

TEST(WaferOptions, clocks_out_of_range_name_the_option) {
  for (const char* value : {"0.5", "1e17"}) {
    const Result<Settings> out = settings_of({{"clock", value}});
    ASSERT_FALSE(out.ok()) << value;
    EXPECT_EQ(out.status().code(), Code::kINVALID_ARGUMENT);
    EXPECT_TRUE(contains(out.status().message(), "clock")) << out.status().message();
  }
}

TEST(WaferOptions, an_option_that_there_is_not_is_answered_with_those_that_there_are) {
  for (const char* key : {"fabrics", "", "Fabric"}) {
    const Result<Settings> out = settings_of({{"fabric", "3x4"}, {key, "1"}});
    ASSERT_FALSE(out.ok()) << key;
    EXPECT_EQ(out.status().code(), Code::kINVALID_ARGUMENT);
    EXPECT_TRUE(contains(out.status().message(), message("no option '", key, "'")))
        << out.status().message();
    EXPECT_TRUE(contains(out.status().message(), "machine_file")) << out.status().message();
  }
}

TEST(WaferOptions, the_last_of_two_is_taken) {
  EXPECT_EQ(good({{"fabric", "3x4"}, {"fabric", "5x6"}}).target.fabric.columns, 5);
}

TEST(WaferOptions, a_pipe_is_no_machine_file) {
  const std::string path = ::testing::TempDir() + "pfrt_pipe_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Result<Settings> out = settings_of({{"machine_file", path.c_str()}});
  ::unlink(path.c_str());
  ASSERT_FALSE(out.ok());
  EXPECT_TRUE(contains(out.status().message(), "it is a pipe")) << out.status().message();
}

TEST(WaferOptions, a_machine_file_takes_the_place_of_the_device) {
  std::string text(machine_text("wse3"));
  text.replace(text.find("\"hop\": [2,"), 10, "\"hop\": [7,");
  const MachineFile file("other.json", text);
  const Settings settings = good({{"machine_file", file.path()}});
  EXPECT_EQ(settings.target.machine.name, "wse3");
  EXPECT_EQ(settings.target.machine.hop, 7);
  EXPECT_EQ(settings.target.fabric.columns, 755);
  EXPECT_NE(settings.target.machine.hash, machine_of("wse3").hash);
  const Settings more =
      good({{"machine_file", file.path()}, {"clock", "2e9"}, {"silicon", "true"}});
  EXPECT_EQ(more.target.machine.clock_hz, 2e9);
  EXPECT_EQ(more.target.machine.wavelet, 1.125);
}

TEST(WaferOptions, a_machine_file_that_is_not_there_or_wrong_is_named) {
  const std::string missing = testing::TempDir() + "/no/such.json";
  const Result<Settings> none = settings_of({{"machine_file", missing}});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().code(), Code::kNOT_FOUND);
  EXPECT_TRUE(contains(none.status().message(), missing)) << none.status().message();
  std::string lacking(machine_text("wse2"));
  lacking.replace(lacking.find("\"hop\""), 5, "\"hip\"");
  for (const auto& [text, word] : std::vector<std::pair<std::string, const char*>>{
           {"", "not a machine file"}, {"[]", "not a machine file"}, {lacking, "'hip'"}}) {
    const MachineFile file("wrong.json", text);
    const Result<Settings> out = settings_of({{"machine_file", file.path()}});
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), Code::kINVALID_ARGUMENT);
    EXPECT_TRUE(contains(out.status().message(), file.path()) &&
                contains(out.status().message(), word))
        << out.status().message();
  }
}

// A folder opens like a file, but cannot be read.
TEST(WaferOptions, a_folder_is_no_machine_file) {
  const Result<Settings> folder = settings_of({{"machine_file", testing::TempDir()}});
  ASSERT_FALSE(folder.ok());
  EXPECT_TRUE(contains(folder.status().message(), testing::TempDir())) << folder.status().message();
}

TEST(WaferOptions, the_fingerprint_has_all_that_answers_depend_on) {
  std::set<std::string> texts = {good({}).text};
  const Pairs each = {{"arithmetic", "bf16"},
                      {"fabric", "749x994"},
                      {"fabric", "750x993"},
                      {"clock", "850000001"},
                      {"timing_only", "true"},
                      {"chips", "1x2"},
                      {"chips", "2x1"},
                      {"inter_chip_bandwidth", "150000000001"},
                      {"inter_chip_latency", "1"},
                      {"chip_memory_bytes", "123456789"},
                      {"execution", "streaming"},
                      {"execution", "pipelined"}};
  for (const auto& option : each)
    EXPECT_TRUE(texts.insert(good({option}).text).second) << option.first;
  EXPECT_TRUE(texts.insert(good({}, "wse3").text).second);
  EXPECT_TRUE(texts.insert(good({{"silicon", "true"}}, "wse3").text).second);
}

TEST(WaferOptions, silicon_is_refused_where_nothing_was_measured_on_it) {
  expect_wrong("silicon", "true", "'wse2' no numbers measured");
  good({{"silicon", "false"}});
  const MachineFile file("simulated.json", machine_text("wse2"));
  const Result<Settings> out = settings_of({{"machine_file", file.path()}, {"silicon", "1"}});
  ASSERT_FALSE(out.ok());
  EXPECT_TRUE(contains(out.status().message(), "machine_file with")) << out.status().message();
}

TEST(WaferOptions, sizes_are_two_numbers_with_an_x) {
  int64_t columns = 0, rows = 0;
  EXPECT_TRUE(read_sizes("1x65535", &columns, &rows));
  EXPECT_EQ(columns, 1);
  EXPECT_EQ(rows, 65535);
  for (const char* text : {"", "x", "1x", "x1", "1x65536", "0x1", "1x1 ", "+1x1", "1x1x1"})
    EXPECT_FALSE(read_sizes(text, &columns, &rows)) << text;
}

}  // namespace
}  // namespace pfrt::wse::test
