// SPDX-License-Identifier: Apache-2.0
//
// Measures the machine in so short a time that the figures mean little. The report has the right
// form, and uses only instructions that it may use.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "core/base/os/cpu.h"
#include "core/base/status.h"
#include "providers/cpu/isa/amx.h"
#include "providers/cpu/isa/caches.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/provider.h"

namespace pfrt::test {
namespace {

struct Row {
  std::string unit, note;
  double median, best;
};

struct Measured {
  pfrt_code code = PFRT_CODE_OK;
  std::string message;
  std::map<std::pair<std::string, uint32_t>, Row> rows;  // by name and threads
  size_t reports = 0;
  double fraction = 0;
  int calls = 0, stop_at = -1;  // of stop

  const Row* row(const std::string& name, uint32_t threads) const {
    const auto found = rows.find({name, threads});
    return found == rows.end() ? nullptr : &found->second;
  }
};

// Takes the vectors of an answer, whose rows read() puts together.
struct Vectors {
  std::map<std::string, std::vector<std::string>> texts;
  std::map<std::string, std::vector<int64_t>> wholes;
  std::map<std::string, std::vector<double>> numbers;
  std::string text;

  static void take(const pfrt_answer* answer, pfrt_string name, const pfrt_tensor* tensor) {
    auto& self = *static_cast<Vectors*>(answer->host);
    const std::string key(view(name));
    ASSERT_EQ(tensor->rank, 1u) << key;
    const auto count = static_cast<size_t>(tensor->dims[0]);
    if (tensor->dtype == PFRT_DTYPE_STRING) {
      const auto* from = static_cast<const pfrt_string*>(tensor->data);
      for (size_t i = 0; i < count; ++i) self.texts[key].emplace_back(view(from[i]));
    } else if (tensor->dtype == PFRT_DTYPE_INT64) {
      const auto* from = static_cast<const int64_t*>(tensor->data);
      self.wholes[key].assign(from, from + count);
    } else {
      ASSERT_EQ(tensor->dtype, uint32_t{PFRT_DTYPE_FLOAT64}) << key;
      const auto* from = static_cast<const double*>(tensor->data);
      self.numbers[key].assign(from, from + count);
    }
  }
  void read(Measured& out) {
    const std::vector<std::string>& names = texts["name"];
    out.reports = names.size();
    for (const auto& column : {texts["unit"], texts["note"]})
      ASSERT_EQ(column.size(), names.size());
    ASSERT_EQ(wholes["threads"].size(), names.size());
    for (const auto& column : {numbers["median"], numbers["best"]})
      ASSERT_EQ(column.size(), names.size());
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_NE(text.find(names[i]), std::string::npos) << text;
      out.rows[{names[i], static_cast<uint32_t>(wholes["threads"][i])}] = {
          texts["unit"][i], texts["note"][i], numbers["median"][i], numbers["best"][i]};
    }
  }
};

void ask(std::string_view verb, std::string_view request, Measured& out, uint32_t threads = 1) {
  pfrt_question question{};
  question.struct_size = sizeof question;
  question.abi = PFRT_ABI_VERSION;
  question.verb = to_c(verb);
  question.request = to_c(request);
  question.tensor_size = sizeof(pfrt_tensor);
  question.threads = threads;
  Vectors vectors;
  pfrt_answer answer{};
  answer.struct_size = sizeof answer;
  answer.host = &vectors;
  answer.text = [](const pfrt_answer* a, pfrt_string text) {
    static_cast<Vectors*>(a->host)->text += view(text);
  };
  answer.tensor = Vectors::take;
  pfrt_sink sink{};
  sink.struct_size = sizeof sink;
  sink.host = &out;
  sink.fail = [](const pfrt_sink* s, pfrt_code code, uint32_t, pfrt_string text) {
    static_cast<Measured*>(s->host)->message = view(text);
    return code;
  };
  sink.progress = [](const pfrt_sink* s, double fraction) {
    auto& self = *static_cast<Measured*>(s->host);
    EXPECT_GT(fraction, self.fraction);
    self.fraction = fraction;
  };
  sink.stop = [](const pfrt_sink* s) -> pfrt_code {
    auto& self = *static_cast<Measured*>(s->host);
    return self.calls++ == self.stop_at ? PFRT_CODE_CANCELLED : PFRT_CODE_OK;
  };
  out.code = cpu::provider_table().ask(nullptr, &question, &answer, &sink);
  vectors.read(out);
}

void measure(uint32_t threads, double seconds, Measured& out, const char* only = "") {
  std::ostringstream request;
  request << "threads=" << threads << " seconds=" << seconds;
  if (*only != '\0') request << " only=" << only;
  ask("measure", request.str(), out);
}

uint32_t some_threads() { return os::allowed_processors().size() > 1 ? 2 : 1; }

class MeasureIsa : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const char* cap = std::getenv("PFRT_ISA")) before_ = cap;
    const cpu::Isa wanted = cpu::isa_from_name(GetParam()).value();
    if (wanted > cpu::isa()) GTEST_SKIP() << "needs " << GetParam();
    setenv("PFRT_ISA", GetParam(), 1);
  }
  void TearDown() override {
    if (before_.empty()) {
      unsetenv("PFRT_ISA");
    } else {
      setenv("PFRT_ISA", before_.c_str(), 1);
    }
  }

 private:
  std::string before_;
};

// The lowest instruction set that gives each figure.
constexpr std::pair<const char*, cpu::Isa> kNames[] = {
    {"fp32 fma", cpu::Isa::kAvx2},
    {"bf16 dot", cpu::Isa::kAvx512Bf16},
    {"int8 dot", cpu::Isa::kAvx2},
    {"bf16 tiles, operands in L1", cpu::Isa::kAmx},
    {"bf16 tiles, operands in L2", cpu::Isa::kAmx},
    {"int8 tiles, operands in L1", cpu::Isa::kAmx},
    {"int8 tiles, operands in L2", cpu::Isa::kAmx},
    {"read L1", cpu::Isa::kGeneric},
    {"read L2", cpu::Isa::kGeneric},
    {"read L3", cpu::Isa::kGeneric},
    {"read memory", cpu::Isa::kGeneric},
    {"tile loads L1", cpu::Isa::kAmx},
    {"tile loads L2", cpu::Isa::kAmx},
    {"tile loads L3", cpu::Isa::kAmx},
    {"tile loads memory", cpu::Isa::kAmx},
};

TEST_P(MeasureIsa, reports_each_name_once_or_why_not) {
  const uint32_t threads = some_threads();
  Measured measured;
  measure(threads, 0.02, measured);
  ASSERT_EQ(measured.code, PFRT_CODE_OK) << measured.message;
  EXPECT_EQ(measured.reports, measured.rows.size()) << "something is reported twice";
  EXPECT_EQ(measured.fraction, 1);
  std::set<std::string> names;
  for (const auto& [key, row] : measured.rows) {
    const auto& [name, count] = key;
    names.insert(name);
    EXPECT_FALSE(row.note.empty()) << name;
    EXPECT_TRUE(row.unit == "GFLOP/s" || row.unit == "GOP/s" || row.unit == "GB/s") << row.unit;
    if (count == 0) continue;
    EXPECT_TRUE(count == 1 || count == threads) << name << " on " << count;
    EXPECT_TRUE(std::isfinite(row.best)) << name;
    EXPECT_GT(row.median, 0) << name;
    EXPECT_LE(row.median, row.best) << name;
  }
  EXPECT_EQ(names.size(), std::size(kNames));
  const size_t levels = cpu::data_caches().size();
  for (const auto& [name, level] : kNames) {
    const bool tiles = level == cpu::Isa::kAmx;
    if (cpu::isa() < level || (tiles && !cpu::amx_usable())) {
      const Row* row = measured.row(name, 0);
      ASSERT_NE(row, nullptr) << name << " was measured without its instructions";
      EXPECT_NE(row->note.find(cpu::isa() < level ? "usable is " + std::string(GetParam())
                                                  : "the system refuses"),
                std::string::npos)
          << name << ": " << row->note;
    } else if (levels >= 2 && !std::string_view(name).ends_with("L3") &&
               !std::string_view(name).ends_with("memory")) {
      EXPECT_NE(measured.row(name, 1), nullptr) << name;
      EXPECT_NE(measured.row(name, threads), nullptr) << name;
    }
  }
  const char* width = cpu::isa() >= cpu::Isa::kAvx512 ? "zmm"
                      : cpu::isa() >= cpu::Isa::kAvx2 ? "ymm"
                                                      : "xmm";
  for (const char* name : {"fp32 fma", "read L1"}) {
    const Row* row = measured.row(name, 1);
    if (row == nullptr) continue;
    EXPECT_NE(row->note.find(width), std::string::npos) << name << ": " << row->note;
  }
}
INSTANTIATE_TEST_SUITE_P(Levels, MeasureIsa,
                         testing::Values("generic", "avx2", "avx_vnni", "avx512", "avx512_vnni",
                                         "avx512_bf16", "amx"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Measure, one_thread_alone_is_reported_once) {
  Measured measured;
  measure(1, 0.01, measured);
  ASSERT_EQ(measured.code, PFRT_CODE_OK) << measured.message;
  EXPECT_EQ(measured.reports, std::size(kNames));
}

TEST(Measure, measures_what_is_asked_for_alone) {
  Measured measured;
  measure(1, 0.01, measured, "read L");
  ASSERT_EQ(measured.code, PFRT_CODE_OK) << measured.message;
  EXPECT_EQ(measured.reports, 3u);
  for (const auto& [key, row] : measured.rows) EXPECT_EQ(key.first.rfind("read L", 0), 0u);
  Measured nothing;
  measure(1, 0.01, nothing, "fp64");
  EXPECT_EQ(nothing.code, PFRT_CODE_NOT_FOUND);
  EXPECT_NE(nothing.message.find("'fp64'"), std::string::npos) << nothing.message;
}

TEST(Measure, stops_when_it_is_told_to) {
  Measured measured;
  measured.stop_at = 2;
  measure(some_threads(), 3600, measured);
  EXPECT_EQ(measured.code, PFRT_CODE_CANCELLED);
  EXPECT_EQ(measured.calls, 3);
  EXPECT_EQ(measured.reports, 0u);
}

TEST(Measure, leaves_the_callers_thread_where_it_may_run) {
  const std::vector<uint32_t> before = os::allowed_processors();
  Measured measured;
  measured.stop_at = 0;
  measure(some_threads(), 0.01, measured);
  EXPECT_EQ(os::allowed_processors(), before);
}

TEST(Measure, refuses_what_it_cannot_do) {
  const auto count = static_cast<uint32_t>(os::allowed_processors().size());
  const std::pair<uint32_t, double> wrong[] = {
      {count + 1, 1}, {0, 1}, {1, -1}, {1, 1e300}, {1, std::nan("")}, {UINT32_MAX, 1}};
  for (const auto& [threads, seconds] : wrong) {
    Measured measured;
    measure(threads, seconds, measured);
    EXPECT_EQ(measured.code, PFRT_CODE_INVALID_ARGUMENT) << threads << ", " << seconds;
    EXPECT_NE(measured.message.find(std::to_string(threads) + " threads"), std::string::npos)
        << measured.message;
    EXPECT_EQ(measured.reports, 0u);
  }
}

TEST(Measure, takes_the_threads_of_the_question_and_words_in_any_order) {
  Measured measured;
  ask("measure", "  seconds=0.01\nonly=read L1", measured, some_threads());
  ASSERT_EQ(measured.code, PFRT_CODE_OK) << measured.message;
  const Row* alone = measured.row("read L1", 1);
  EXPECT_EQ(alone != nullptr, measured.row("read L1", some_threads()) != nullptr);
  Measured fewer;
  ask("measure", "seconds=0.01 threads=1 only=read L1", fewer, some_threads());
  ASSERT_EQ(fewer.code, PFRT_CODE_OK) << fewer.message;
  EXPECT_EQ(fewer.reports, 1u);
}

TEST(Measure, tells_the_names_in_no_time) {
  Measured measured;
  measure(some_threads(), 0, measured);
  ASSERT_EQ(measured.code, PFRT_CODE_OK) << measured.message;
  EXPECT_EQ(measured.reports, std::size(kNames));
  EXPECT_EQ(measured.calls, 0);
  for (const auto& [name, level] : kNames) {
    const Row* row = measured.row(name, 0);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_FALSE(row->note.empty()) << name;
    EXPECT_EQ(row->best, 0) << name;
  }
}

TEST(Measure, says_what_a_request_may_have) {
  for (const char* request : {"threads", "threads=", "threads=x", "threads=-1", "seconds=1s",
                              "colour=red", "seconds=1,threads=1", "threads=4294967296"}) {
    Measured measured;
    ask("measure", request, measured);
    EXPECT_EQ(measured.code, PFRT_CODE_INVALID_ARGUMENT) << request;
    EXPECT_NE(measured.message.find("'" + std::string(request) + "'"), std::string::npos)
        << measured.message;
    EXPECT_NE(measured.message.find("threads=NUMBER"), std::string::npos) << measured.message;
  }
  Measured other;
  ask("weigh", "", other);
  EXPECT_EQ(other.code, PFRT_CODE_UNSUPPORTED);
  EXPECT_NE(other.message.find("'weigh'"), std::string::npos) << other.message;
  EXPECT_NE(other.message.find("measure"), std::string::npos) << other.message;
}

// Does not return. A signal stack that is too small makes the system refuse tiles.
void measure_with_a_small_signal_stack() {
  static char memory[8192];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  if (sigaltstack(&stack, nullptr) != 0) std::_Exit(2);
  Measured measured;
  measure(1, 0.01, measured, "tile loads L1");
  const Row* row = measured.row("tile loads L1", 0);
  const bool told = row != nullptr && row->note.find("the system refuses") != std::string::npos;
  std::_Exit(measured.code == PFRT_CODE_OK && told ? 0 : 1);
}

TEST(Measure, says_that_tiles_are_refused) {
  if (cpu::isa() < cpu::Isa::kAmx) GTEST_SKIP() << "needs amx";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has not asked for tiles yet
  EXPECT_EXIT(measure_with_a_small_signal_stack(), testing::ExitedWithCode(0), "");
}

TEST(Caches, grow_from_level_to_level) {
  const std::vector<cpu::Cache> caches = cpu::data_caches();
  for (size_t i = 0; i < caches.size(); ++i) {
    EXPECT_GE(caches[i].bytes, i == 0 ? 4096 : 1) << i;
    EXPECT_GE(caches[i].sharing, 1u) << i;
  }
}

}  // namespace
}  // namespace pfrt::test
