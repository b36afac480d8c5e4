// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <set>
#include <string>

namespace pfrt_test {
namespace {

struct Checked {
  int code = -1;
  std::string output;
  std::set<std::string> broken;  // names of rules
  size_t kept = 0;
};

Checked check(const std::string& arguments) {
  Checked out;
  const std::string command =
      std::string(PFRT_TOOL) + " check-plugin --json " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return out;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.output.append(buffer, n);
  const int status = pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const std::string rule = "\"rule\":\"", verdict = "\",\"passed\":";
  for (size_t at = 0; (at = out.output.find(rule, at)) != std::string::npos;) {
    at += rule.size();
    const size_t end = out.output.find('"', at);
    const bool passed = out.output.compare(end + verdict.size(), 4, "true") == 0;
    if (passed) ++out.kept;
    if (!passed) out.broken.insert(out.output.substr(at, end - at));
  }
  return out;
}

struct Planted {
  const char* file;
  std::set<std::string> broken;
  const char* part;  // text of the finding
};

std::string short_name(const std::string& file) {
  const std::string name = file.substr(file.rfind("libpyflamert_") + 13);
  return name.substr(0, name.size() - 3);
}
void PrintTo(const Planted& planted, std::ostream* out) { *out << short_name(planted.file); }

class CheckPlugin : public testing::TestWithParam<Planted> {};

TEST_P(CheckPlugin, names_the_rule_that_a_planted_one_breaks) {
#if defined(PFRT_SANITIZE_THREAD)
  GTEST_SKIP() << "ThreadSanitizer starts a thread of its own and takes what is released twice";
#endif
  const Planted& planted = GetParam();
  const Checked checked = check(planted.file);
  EXPECT_EQ(checked.code, 1) << checked.output;
  EXPECT_EQ(checked.broken, planted.broken) << checked.output;
  EXPECT_NE(checked.output.find(planted.part), std::string::npos) << checked.output;
  EXPECT_NE(checked.output.find("\"fix\":\""), std::string::npos) << checked.output;
}

#define PFRT_BAD(name) PFRT_BAD_PLUGINS "/libpyflamert_provider_" name ".so"
#define PFRT_ALONE(name) PFRT_BROKEN_PLUGINS "/alone/libpyflamert_" name ".so"
#define PFRT_BROKEN(name) PFRT_BROKEN_PLUGINS "/libpyflamert_" name ".so"
#define PFRT_NEWER(name, kind) PFRT_BROKEN_PLUGINS "/" name "/libpyflamert_" kind "_" name ".so"
INSTANTIATE_TEST_SUITE_P(
    Planted, CheckPlugin,
    testing::Values(
        Planted{PFRT_BAD("missing_feature"), {"feature-function"}, "'kernel_count'"},
        Planted{PFRT_BAD("missing_runs"), {"feature-function"}, "'run_begin'"},
        Planted{PFRT_BAD("missing_function"), {"required-function"}, "'compile'"},
        Planted{PFRT_BAD("short_table"), {"struct-size-plugin"}, "'specialise'"},
        Planted{PFRT_BAD("other_major"), {"major"}, "it serves ABI 3."},
        Planted{PFRT_BAD("newer_minor"), {"minor"}, "it serves ABI 2."},
        Planted{PFRT_BAD("no_symbol"), {"query-symbol"}, "no such symbol"},
        Planted{PFRT_BAD("no_table"), {"query"}, "no table"},
        Planted{PFRT_BROKEN("provider_lying_name"), {"query"}, "no name"},
        Planted{PFRT_BROKEN("provider_lying_devices"), {"query"}, "names no device"},
        Planted{PFRT_BAD("other_kind"), {"kind"}, "(import)"},
        Planted{PFRT_BAD_PLUGINS "/libpyflamert_transport_words.so", {"kind"}, "knows provider, "},
        Planted{PFRT_BAD("other_sanitizer"), {"sanitizer"}, "it says sanitizer"},
        Planted{PFRT_BAD("failing_query"), {"query"}, "internal error"},
        Planted{PFRT_BAD("no_library"), {"opens"}, "no_library.so"},
        Planted{PFRT_BROKEN("provider_short_steps"), {"struct-size-plugin"}, "step_size 8"},
        Planted{PFRT_BAD("unknown_feature"), {"unknown"}, "it sets features"},
        Planted{PFRT_BAD("reserved_word"), {"unknown"}, "reserved word"},
        Planted{PFRT_NEWER("newer_steps", "provider"), {"unknown"}, "newer minor"},
        Planted{PFRT_NEWER("newer_op", "ops"), {"unknown"}, "newer minor"},
        Planted{PFRT_ALONE("provider_ignores_host_size"), {"struct-size-host"}, "it wrote byte"},
        Planted{PFRT_ALONE("provider_ends_at_load"), {"opens"}, "exited with 0"},
        Planted{PFRT_ALONE("provider_ends_in_query"), {"query"}, "exited with 0"},
        Planted{PFRT_ALONE("provider_ends_in_open"), {"refusal"}, "exited with 0"},
        Planted{PFRT_ALONE("provider_hangs_in_query"), {"query"}, "no result after 10 s"},
        Planted{PFRT_BROKEN("provider_plain_arrays"), {"struct-size-host"}, "newer host"},
        Planted{PFRT_BROKEN("provider_double_release"), {"double-release"}, "was released"},
        Planted{PFRT_BROKEN("provider_throws"), {"throws"}, "claim threw this"},
        Planted{PFRT_BROKEN("provider_wrong_claim"), {"wrong-claim"}, "it accepted Sub"},
        Planted{PFRT_BROKEN("provider_writes_past"), {"writes-past-buffer"}, "output"},
        Planted{PFRT_BROKEN("provider_never_stops"), {"long-without-stop"}, "neither stop()"},
        Planted{PFRT_BROKEN("provider_impure_claim"), {"claim-pure"}, "two claims"},
        Planted{PFRT_BROKEN("provider_silent"), {"refusal"}, "an unknown device"},
        Planted{PFRT_BROKEN("provider_undeclared"), {"writes-undeclared"}, "it read byte 0"},
        Planted{PFRT_BROKEN("provider_rounds_up"), {"process-state"}, "control word"},
        Planted{PFRT_BROKEN("provider_reads_past"), {"reads-past-buffer"}, "it read byte"},
        Planted{PFRT_BROKEN("provider_new_fingerprint"), {"fingerprint"}, "opened again"},
        Planted{PFRT_BROKEN("provider_odd_fingerprint"), {"fingerprint"}, "not UTF-8"},
        Planted{PFRT_BROKEN("provider_knows_all_verbs"), {"ask-unknown-verb"}, "returned ok"},
        Planted{PFRT_BROKEN("provider_nameless_counter"), {"report"}, "has no name"},
        Planted{PFRT_BROKEN("provider_counts_early"), {"report"}, "has not run"},
        Planted{PFRT_BROKEN("provider_counts_step_7"), {"report"}, "is of step 7 of 1"},
        Planted{PFRT_BROKEN("provider_late_copy"), {"device-memory"}, "an input that was copied"},
        Planted{PFRT_BROKEN("provider_goes_on"), {"device-stop"}, "an output of a run"},
        Planted{PFRT_BROKEN("provider_one_run"), {"device-runs"}, "other bits"},
        Planted{PFRT_BROKEN("provider_one_size"), {"range"}, "for element"},
        Planted{PFRT_BROKEN("provider_odd_group"), {"group"}, "a group of nodes"},
        Planted{PFRT_BROKEN("provider_silent_word"), {"device-word"}, "device 'moon'"},
        Planted{PFRT_BROKEN("provider_writes_to_lent"), {"read-only-arguments"}, "nodes"},
        Planted{PFRT_BROKEN("provider_starts_threads"), {"starts-threads"}, "1 threads run"},
        Planted{PFRT_BROKEN("provider_answers_twice"), {"claim-complete"}, "answered 2 times"},
        Planted{PFRT_BROKEN("provider_names_node_7"), {"program"}, "names nodes 7 of 1"},
        Planted{PFRT_BROKEN("provider_counts_threads"), {"thread-count"}, "with 3 threads"},
        Planted{PFRT_BROKEN("provider_crashes_unloaded"), {"unload"}, "while being unloaded"},
        Planted{PFRT_BROKEN("import_beyond_100"), {"probe"}, "probe answered 101"},
        Planted{PFRT_BROKEN("import_takes_junk"), {"damaged-file"}, "bytes of junk"},
        Planted{PFRT_BROKEN("import_saves_nothing"), {"round-trip"}, "0 inputs"},
        Planted{PFRT_BROKEN("service_starts_once"), {"service"}, "started again"},
        Planted{PFRT_BROKEN("service_odd_default"), {"options"}, "none of its choices"},
        Planted{PFRT_BROKEN("service_strict_check"), {"check"}, "takes no options at all"},
        Planted{PFRT_BROKEN("service_answers_all"), {"ask-unknown-verb"}, "returned ok"},
        Planted{PFRT_BROKEN("service_nameless_event"), {"event"}, "without a name"},
        Planted{PFRT_BROKEN("service_renames_stop"), {"start-stop"}, "internal error"},
        Planted{PFRT_BROKEN("service_falls_back"), {"progress"}, "after 0.5"},
        Planted{PFRT_BROKEN("executor_leaves_out"), {"executor"}, "call 299 of 300"},
        Planted{PFRT_BROKEN("executor_has_no_loop"), {"required-function"}, "no loop"},
        Planted{PFRT_BROKEN("import_live_tensor"), {"unload-with-values"}, "1 value"},
        Planted{PFRT_BROKEN("import_releases_file_twice"), {"double-release"}, "the model's file"},
        Planted{PFRT_BROKEN("ops_same_op_twice"), {"operators"}, "there twice"},
        Planted{PFRT_BROKEN("ops_op_writes_past"), {"writes-past-buffer"}, "an output"},
        Planted{PFRT_BROKEN("ops_op_uses_state_up"), {"thread-count"}, "other bits"},
        Planted{PFRT_BROKEN("ops_op_writes_strings"), {"writes-undeclared"}, "an output"}),
    [](const testing::TestParamInfo<Planted>& test) { return short_name(test.param.file); });

#if !defined(PFRT_SANITIZE_ADDRESS) && !defined(PFRT_SANITIZE_THREAD)  // their heaps are their own
INSTANTIATE_TEST_SUITE_P(PlantedLeak, CheckPlugin,
                         testing::Values(Planted{
                             PFRT_BROKEN("provider_leaks"), {"leaks"}, "rounds of everything"}));
#endif

class CheckGoodPlugin : public testing::TestWithParam<const char*> {};

TEST_P(CheckGoodPlugin, passes) {
#if defined(PFRT_SANITIZE_THREAD)
  GTEST_SKIP() << "ThreadSanitizer starts a thread of its own and takes what is released twice";
#endif
  const Checked checked = check(GetParam());
  EXPECT_EQ(checked.code, 0) << checked.output;
  EXPECT_EQ(checked.broken, std::set<std::string>()) << checked.output;
  EXPECT_GE(checked.kept, 15u) << checked.output;
}

INSTANTIATE_TEST_SUITE_P(Project, CheckGoodPlugin,
                         testing::Values(PFRT_OWN_PLUGINS "/libpyflamert_provider_cpu.so",
                                         PFRT_OWN_PLUGINS "/libpyflamert_provider_null.so",
                                         PFRT_OWN_PLUGINS "/libpyflamert_import_onnx.so",
                                         PFRT_BAD_PLUGINS "/libpyflamert_provider_refuses_open.so",
                                         PFRT_BROKEN_PLUGINS "/libpyflamert_provider_good_add.so",
                                         PFRT_BROKEN_PLUGINS "/libpyflamert_provider_good_queue.so",
                                         PFRT_CHIP_PLUGINS "/libpyflamert_provider_chip.so",
                                         PFRT_BROKEN_PLUGINS "/libpyflamert_ops_good_op.so",
                                         PFRT_BROKEN_PLUGINS "/libpyflamert_import_lends_memory.so",
                                         PFRT_OPS_PLUGINS "/clamp/libpyflamert_ops_clamp.so",
                                         PFRT_BROKEN_PLUGINS
                                         "/libpyflamert_executor_good_serial.so",
                                         PFRT_AGES "/now/libpyflamert_provider_custom.so",
                                         PFRT_AGES "/newer/libpyflamert_provider_custom.so",
                                         PFRT_BROKEN_PLUGINS "/libpyflamert_service_idle.so",
                                         PFRT_ATTENDANT_PLUGINS
                                         "/libpyflamert_service_attendant.so",
                                         PFRT_SAMPLE_PLUGINS "/libpyflamert_service_heartbeat.so"));

#if defined(PFRT_TBB)
INSTANTIATE_TEST_SUITE_P(OneTbb, CheckGoodPlugin,
                         testing::Values(PFRT_OWN_PLUGINS "/libpyflamert_executor_tbb.so"));
#endif

struct Whole {
  const char* file;
  std::set<std::string> kept;  // rules that it keeps, beside those for every provider
};
void PrintTo(const Whole& whole, std::ostream* out) { *out << short_name(whole.file); }

class CheckWholePlugin : public testing::TestWithParam<Whole> {};

TEST_P(CheckWholePlugin, passes_with_nothing_left_out) {
#if defined(PFRT_SANITIZE_THREAD)
  GTEST_SKIP() << "ThreadSanitizer starts a thread of its own and takes what is released twice";
#endif
  const Checked checked = check(GetParam().file);
  EXPECT_EQ(checked.code, 0) << checked.output;
  EXPECT_NE(checked.output.find("\"not_tested\":[]"), std::string::npos) << checked.output;
  std::set<std::string> kept = {"wrong-claim", "program", "device-word", "leaks", "unload"};
  kept.insert(GetParam().kept.begin(), GetParam().kept.end());
  for (const std::string& rule : kept)
    EXPECT_NE(checked.output.find("\"rule\":\"" + rule + "\",\"passed\":true"), std::string::npos)
        << rule << " in " << checked.output;
}

INSTANTIATE_TEST_SUITE_P(
    Project, CheckWholePlugin,
    testing::Values(Whole{PFRT_CHIP_PLUGINS "/libpyflamert_provider_chip.so",
                          {"device-memory", "device-runs", "device-stop", "range", "report",
                           "ask-unknown-verb", "fingerprint"}},
                    Whole{PFRT_OWN_PLUGINS "/libpyflamert_provider_cpu.so",
                          {"range", "feature-function", "writes-past-buffer", "thread-count"}},
                    Whole{PFRT_OWN_PLUGINS "/libpyflamert_provider_wse.so",
                          {"device-memory", "device-runs", "report", "ask-unknown-verb",
                           "fingerprint", "refusal"}}),
    [](const testing::TestParamInfo<Whole>& test) { return short_name(test.param.file); });

TEST(CheckPluginUsage, a_file_that_is_not_there_is_bad_usage) {
  const Checked checked = check("/nowhere/libpyflamert_provider_x.so");
  EXPECT_EQ(checked.code, 2);
  EXPECT_NE(checked.output.find("'/nowhere/libpyflamert_provider_x.so' is not a file"),
            std::string::npos)
      << checked.output;
  EXPECT_EQ(check("").code, 2);
}

}  // namespace
}  // namespace pfrt_test
