// SPDX-License-Identifier: Apache-2.0
//
// measure() over the providers here, of which test/plugins/verbs reports what it is asked to (the
// folder is named in recovery_test.cc).
#include <gtest/gtest.h>
#include <pyflame_rt/custom.h>

#include <algorithm>
#include <map>
#include <pyflame_rt/measure.hpp>
#include <stdexcept>

namespace pfrt_test {
namespace {

TEST(CxxMeasure, returns_rows) {
  pyflame_rt::MeasureOptions options;
  options.provider = "CPUExecutionProvider";
  options.threads = 1;
  options.seconds = 0.01;
  double last = 0;
  options.progress = [&](double fraction) {
    last = fraction;
    return true;
  };
  const std::vector<pyflame_rt::Measurement> rows = pyflame_rt::measure(options);
  ASSERT_FALSE(rows.empty());
  size_t measured = 0;
  for (const pyflame_rt::Measurement& row : rows) {
    EXPECT_EQ(row.provider, "CPUExecutionProvider");
    EXPECT_LE(row.threads, 1U);
    EXPECT_EQ(row.threads == 1, row.best > 0) << row.name;
    measured += row.threads;
  }
  EXPECT_GT(measured, 0U);
  EXPECT_EQ(last, 1);
}

TEST(CxxMeasure, throws_what_the_callback_throws_and_when_it_is_stopped) {
  pyflame_rt::MeasureOptions options;
  options.seconds = 3600;
  options.progress = [](double) -> bool { throw std::out_of_range("mine"); };
  EXPECT_THROW((void)pyflame_rt::measure(options), std::out_of_range);
  options.progress = [](double) { return false; };
  try {
    (void)pyflame_rt::measure(options);
    FAIL() << "it went on";
  } catch (const pyflame_rt::PyFlameRTError& error) {
    EXPECT_EQ(error.code(), static_cast<pfrt_code>(PFRT_CODE_CANCELLED));
  }
  options.provider = "NullExecutionProvider";
  try {
    (void)pyflame_rt::measure(options);
    FAIL() << "it measured";
  } catch (const pyflame_rt::PyFlameRTError& error) {
    EXPECT_EQ(error.code(), static_cast<pfrt_code>(PFRT_CODE_UNSUPPORTED));
  }
}

TEST(CxxMeasure, asks_every_provider_that_can) {
  pyflame_rt::MeasureOptions options;
  options.threads = 1;
  options.seconds = 0.01;
  std::vector<double> fractions;
  options.progress = [&](double fraction) {
    fractions.push_back(fraction);
    return true;
  };
  std::map<std::string, std::vector<pyflame_rt::Measurement>> by_provider;
  for (const pyflame_rt::Measurement& row : pyflame_rt::measure(options))
    by_provider[row.provider].push_back(row);
  EXPECT_EQ(by_provider.size(), 2U) << "two know the verb";
  EXPECT_FALSE(by_provider["CPUExecutionProvider"].empty());
  const std::vector<pyflame_rt::Measurement>& ticks = by_provider["VerbsExecutionProvider"];
  ASSERT_EQ(ticks.size(), 1U);
  EXPECT_EQ(ticks[0].name, "ticks");
  EXPECT_EQ(ticks[0].unit, "GOP/s");
  EXPECT_EQ(ticks[0].note, "threads=1 seconds=0.01 ") << "the request";
  EXPECT_GE(ticks[0].threads, 1U);
  EXPECT_EQ(ticks[0].median, 1);
  EXPECT_EQ(ticks[0].best, 2);
  EXPECT_TRUE(std::is_sorted(fractions.begin(), fractions.end()));
  EXPECT_EQ(fractions.back(), 1);
  EXPECT_NE(std::find(fractions.begin(), fractions.end(), 0.5), fractions.end());
}

TEST(CxxMeasure, a_device_that_does_not_open_keeps_no_other_from_measuring) {
  static const pfrt_provider_table table = [] {
    pfrt_provider_table t{};
    t.struct_size = sizeof t;
    t.abi = PFRT_ABI_VERSION;
    t.devices = pyflame_rt::detail::text("away");
    t.open = [](pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink* sink,
                pfrt_provider**) -> pfrt_code {
      return sink->fail(sink, PFRT_CODE_PROVIDER, PFRT_NO_INDEX,
                        pyflame_rt::detail::text("it is away"));
    };
    t.close = [](pfrt_provider*) {};
    t.claim = [](pfrt_provider*, const pfrt_snapshot*, const pfrt_claims*,
                 const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
    t.compile = [](pfrt_provider*, const pfrt_region*, size_t, size_t, const pfrt_sink*,
                   pfrt_executable**, size_t*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
    t.release_executable = [](pfrt_executable*) {};
    t.specialise = [](pfrt_executable*, const pfrt_shapes*, const pfrt_sink*,
                      pfrt_program*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
    t.release_program = [](pfrt_executable*, pfrt_program*) {};
    t.ask = [](pfrt_provider*, const pfrt_question*, const pfrt_answer*,
               const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
    return t;
  }();
  pfrt_client_provider away{};
  away.struct_size = sizeof away;
  away.abi = PFRT_ABI_VERSION;
  away.name = pyflame_rt::detail::text("AwayExecutionProvider");
  away.features = PFRT_PROVIDER_ASK;
  away.table = &table;
  pyflame_rt::detail::check(pyflame_rt::api().env->register_provider(
      pyflame_rt::Environment::instance().handle(), &away));
  pyflame_rt::MeasureOptions options;
  options.threads = 1;
  options.seconds = 0.01;
  options.only = "read L1";
  for (const pyflame_rt::Measurement& row : pyflame_rt::measure(options))
    EXPECT_NE(row.provider, "AwayExecutionProvider");
  options.provider = "AwayExecutionProvider";
  try {
    (void)pyflame_rt::measure(options);
    FAIL() << "it measured";
  } catch (const pyflame_rt::BackendError& error) {
    EXPECT_NE(std::string(error.what()).find("it is away"), std::string::npos) << error.what();
  }
}

TEST(CxxMeasure, an_answer_of_another_form_is_an_error) {
  pyflame_rt::MeasureOptions options;
  options.provider = "verbs";
  EXPECT_EQ(pyflame_rt::measure(options).size(), 1U);
  for (const char* damage : {"no name", "no threads", "no best", "too short"}) {
    options.only = damage;
    EXPECT_THROW((void)pyflame_rt::measure(options), pyflame_rt::BackendError) << damage;
  }
  options.only = "other type";
  EXPECT_THROW((void)pyflame_rt::measure(options), pyflame_rt::DTypeMismatchError);
}

}  // namespace
}  // namespace pfrt_test
