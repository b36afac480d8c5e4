// SPDX-License-Identifier: Apache-2.0
//
// env->measure: the providers that it asks, and the data that reaches them and comes back.
#include <cmath>
#include <stdexcept>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"

namespace pfrt_test {
namespace {

// A client's provider that reports made-up numbers.
struct Meter {
  uint32_t threads = 0;
  double seconds = 0;
  int asked = 0;
  bool throws = false;
};

pfrt_code measure_meter(pfrt_provider* provider, const pfrt_measure_request* request,
                        const pfrt_sink* sink) {
  Meter& meter = *reinterpret_cast<Meter*>(provider);
  ++meter.asked;
  meter.threads = request->threads;
  meter.seconds = request->seconds;
  if (meter.throws) throw std::runtime_error("out of order");
  for (const double fraction : {0.5, 1.0})
    if (request->progress)
      if (const pfrt_code code = request->progress(request->user, fraction)) return code;
  if (meter.seconds == 7) return sink->fail(sink, PFRT_CODE_PROVIDER, 0, str("seven is too long"));
  pfrt_measurement m{};
  m.struct_size = sizeof m;
  m.threads = 1;
  m.name = str("ticks");
  m.unit = str("GOP/s");
  m.note = str("by hand");
  m.median = 1;
  m.best = 2;
  request->report(request->user, &m);
  return PFRT_CODE_OK;
}

const pfrt_provider_table kTable = [] {
  pfrt_provider_table t{};
  t.struct_size = sizeof t;
  t.abi = PFRT_ABI_VERSION;
  t.devices = str("meter");
  t.close = [](pfrt_provider*) {};
  t.claim = [](pfrt_provider*, const pfrt_snapshot*, const pfrt_claims*,
               const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
  t.compile = [](pfrt_provider*, const pfrt_region*, size_t, size_t, const pfrt_sink*,
                 pfrt_executable**, size_t*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
  t.release_executable = [](pfrt_executable*) {};
  t.specialise = [](pfrt_executable*, const pfrt_shapes*, const pfrt_sink*,
                    pfrt_program*) -> pfrt_code { return PFRT_CODE_UNSUPPORTED; };
  t.release_program = [](pfrt_executable*, pfrt_program*) {};
  t.measure = measure_meter;
  return t;
}();

Failure add(pfrt_env* env, Meter& meter, const char* name,
            pfrt_provider_features features = PFRT_PROVIDER_MEASURE,
            const pfrt_provider_table* table = &kTable) {
  pfrt_client_provider c{};
  c.struct_size = sizeof c;
  c.abi = PFRT_ABI_VERSION;
  c.name = str(name);
  c.features = features;
  c.table = table;
  c.open = [](void* user, pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
              pfrt_provider** out) -> pfrt_code {
    *out = static_cast<pfrt_provider*>(user);
    return PFRT_CODE_OK;
  };
  c.user = &meter;
  return take(api().env->register_provider(env, &c));
}

struct Heard {
  std::vector<std::string> rows;
  std::vector<double> fractions;
  size_t stop_at = SIZE_MAX;
};

pfrt_measure_request request_for(Heard& heard) {
  pfrt_measure_request request{};
  request.struct_size = sizeof request;
  request.user = &heard;
  request.report = [](void* user, const pfrt_measurement* m) {
    static_cast<Heard*>(user)->rows.push_back(
        text(m->provider) + "/" + text(m->name) + "/" + text(m->unit) + "/" + text(m->note) + "/" +
        std::to_string(m->threads) + (m->median == 1 && m->best == 2 ? "" : "?"));
  };
  request.progress = [](void* user, double fraction) -> pfrt_code {
    Heard& self = *static_cast<Heard*>(user);
    self.fractions.push_back(fraction);
    return self.fractions.size() > self.stop_at ? PFRT_CODE_CANCELLED : PFRT_CODE_OK;
  };
  return request;
}

TEST(Measure, names_the_provider_and_fills_in_what_is_unset) {
  Meter meter;
  const auto env = make_env({{"threads", "1"}});
  ASSERT_TRUE(add(env.get(), meter, "MeterExecutionProvider").ok());
  Heard heard;
  pfrt_measure_request request = request_for(heard);
  ASSERT_TRUE(ok(api().env->measure(env.get(), str("MeterExecutionProvider"), &request)));
  EXPECT_EQ(heard.rows, std::vector<std::string>{"MeterExecutionProvider/ticks/GOP/s/by hand/1"});
  EXPECT_EQ(heard.fractions, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(meter.seconds, 10);
  EXPECT_EQ(meter.threads, 1u) << "as the environment says";

  request.threads = 3;
  request.seconds = 2;
  request.progress = nullptr;
  ASSERT_TRUE(ok(api().env->measure(env.get(), str("MeterExecutionProvider"), &request)));
  EXPECT_EQ(meter.threads, 3u);
  EXPECT_EQ(meter.seconds, 2);
}

TEST(Measure, asks_every_provider_that_can) {
  Meter first, second, third;
  const auto env = make_env();
  ASSERT_TRUE(add(env.get(), first, "FirstExecutionProvider").ok());
  ASSERT_TRUE(add(env.get(), second, "SecondExecutionProvider").ok());
  ASSERT_TRUE(add(env.get(), third, "ThirdExecutionProvider", 0).ok());
  Heard heard;
  pfrt_measure_request request = request_for(heard);
  request.seconds = 0.01;
  ASSERT_TRUE(ok(api().env->measure(env.get(), {}, &request)));
  EXPECT_EQ(first.asked, 1);
  EXPECT_EQ(second.asked, 1);
  EXPECT_EQ(third.asked, 0);
  EXPECT_TRUE(std::is_sorted(heard.fractions.begin(), heard.fractions.end()));
  EXPECT_EQ(heard.fractions.back(), 1);
  bool cpu = false;
  for (const std::string& row : heard.rows)
    cpu |= row.rfind("CPUExecutionProvider/read L1/", 0) == 0;
  EXPECT_TRUE(cpu) << "the CPU's own measures too";
}

TEST(Measure, fails_with_the_reason) {
  Meter meter;
  const auto env = make_env();
  ASSERT_TRUE(add(env.get(), meter, "MeterExecutionProvider").ok());
  const auto measure = [&](const char* name, const pfrt_measure_request& request) {
    return api().env->measure(env.get(), str(name), &request);
  };
  Heard heard;
  const pfrt_measure_request good = request_for(heard);
  EXPECT_TRUE(fails(measure("NullExecutionProvider", good), PFRT_CODE_UNSUPPORTED,
                    {"NullExecutionProvider", "does not measure"}));
  EXPECT_TRUE(fails(measure("NoneExecutionProvider", good), PFRT_CODE_NOT_FOUND,
                    {"NoneExecutionProvider"}));
  EXPECT_TRUE(fails(api().env->measure(nullptr, {}, &good), PFRT_CODE_INVALID_ARGUMENT, {"'env'"}));
  EXPECT_TRUE(
      fails(api().env->measure(env.get(), {}, nullptr), PFRT_CODE_INVALID_ARGUMENT, {"'request'"}));
  pfrt_measure_request bad = good;
  bad.report = nullptr;
  EXPECT_TRUE(
      fails(measure("MeterExecutionProvider", bad), PFRT_CODE_INVALID_ARGUMENT, {"report"}));
  for (const double seconds : {-1.0, 3601.0, std::nan("")}) {
    bad = good;
    bad.seconds = seconds;
    EXPECT_TRUE(
        fails(measure("MeterExecutionProvider", bad), PFRT_CODE_INVALID_ARGUMENT, {"seconds"}));
  }
  EXPECT_EQ(meter.asked, 0);

  bad = good;
  bad.seconds = 7;
  EXPECT_TRUE(fails(measure("MeterExecutionProvider", bad), PFRT_CODE_PROVIDER,
                    {"measuring MeterExecutionProvider", "seven is too long"}));
  meter.throws = true;
  EXPECT_TRUE(fails(measure("MeterExecutionProvider", good), PFRT_CODE_PLUGIN, {"exception"}));
  meter.throws = false;
  heard = {};
  heard.stop_at = 1;
  EXPECT_TRUE(fails(measure("MeterExecutionProvider", good), PFRT_CODE_CANCELLED,
                    {"MeterExecutionProvider"}));
  EXPECT_EQ(heard.fractions.size(), 2u);
  EXPECT_TRUE(heard.rows.empty());
}

TEST(Measure, is_refused_without_its_function) {
  Meter meter;
  pfrt_provider_table without = kTable;
  without.measure = nullptr;
  const auto env = make_env();
  EXPECT_TRUE(
      fails(add(env.get(), meter, "MeterExecutionProvider", PFRT_PROVIDER_MEASURE, &without),
            PFRT_CODE_INVALID_ARGUMENT, {"'measure'"}));
  pfrt_provider_table older = kTable;
  older.struct_size = offsetof(pfrt_provider_table, measure);
  EXPECT_TRUE(fails(add(env.get(), meter, "MeterExecutionProvider", PFRT_PROVIDER_MEASURE, &older),
                    PFRT_CODE_INVALID_ARGUMENT, {"'measure'"}));
}

}  // namespace
}  // namespace pfrt_test
