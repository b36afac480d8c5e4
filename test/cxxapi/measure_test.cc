// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace pfrt_test
