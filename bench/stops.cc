// SPDX-License-Identifier: Apache-2.0
//
// Measures how soon runs stop. Each step of test/capi/run/long_steps.h is given a deadline in the
// middle of its work, and the time that it takes to return after that is printed, the worst last:
// by the clock, and by the processor, whose time other programs do not lengthen. Arguments:
// [--threads N] [--deadline MS] [word in the steps' names]; without a word all of them.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/capi/run/long_steps.h"

namespace {

const pfrt_api* api = nullptr;

struct Row {
  std::string name, outcome;
  double ms, busy_ms;  // after the deadline
};

double now_ms() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(t).count();
}

// The processor time of this process.
double busy_ms() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

// Returns the code, and the message for a reader; releases the status.
pfrt_code take(pfrt_status* status, std::string* message) {
  if (!status) return PFRT_CODE_OK;
  const pfrt_code code = api->status->code(status);
  const pfrt_string text = api->status->message(status);
  message->assign(text.data, text.size);
  api->status->release(status);
  return code;
}

struct Settings {
  int64_t threads = 1;
  std::string word;
  double deadline_ms = 50;
};

// The handles that a run needs; all are released in the end.
struct Prepared {
  pfrt_graph* graph = nullptr;
  pfrt_model* model = nullptr;
  pfrt_session* session = nullptr;
  std::vector<pfrt_value*> values;

  Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared() {
    for (pfrt_value* value : values) api->value->release(value);
    api->session->release(session);
    api->model->release(model);
    api->graph->release(graph);
  }
  pfrt_status* make(pfrt_env* env, const pfrt_test::LongStep& step) {
    pfrt_status* status = graph_of(*api, step, &graph);
    if (!status) status = api->model->from_graph(env, graph, nullptr, &model);
    pfrt_session_desc desc{};
    desc.struct_size = sizeof desc;
    desc.model = model;
    if (!status) status = api->session->create(env, &desc, &session);
    for (const pfrt_test::LongInput& input : step.inputs) {
      if (input.constant || input.dtype == PFRT_DTYPE_UNSET) continue;
      values.push_back(nullptr);
      if (!status) status = value_of(*api, input, &values.back());
    }
    return status;
  }
};

Row measure(pfrt_env* env, const pfrt_test::LongStep& step, const Settings& settings) {
  Prepared prepared;
  std::string message;
  const std::string name = name_of(step);
  if (take(prepared.make(env, step), &message) != PFRT_CODE_OK)
    return {name, "not made: " + message, 0, 0};
  std::vector<pfrt_io> in(prepared.values.size()), out(static_cast<size_t>(step.outputs));
  for (size_t i = 0; i < in.size(); ++i) {
    in[i].struct_size = sizeof in[i];
    in[i].value = prepared.values[i];
  }
  for (pfrt_io& io : out) io.struct_size = sizeof io;
  pfrt_run_desc desc{};
  desc.struct_size = sizeof desc;
  desc.num_threads = settings.threads;
  desc.timeout_ms = static_cast<int64_t>(settings.deadline_ms);
  double busy_at_deadline = 0;
  const double start = now_ms();
  std::thread watch([&] {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(settings.deadline_ms));
    busy_at_deadline = busy_ms();
  });
  const pfrt_code code =
      take(api->session->run(prepared.session, in.data(), in.size(), out.data(), out.size(), &desc),
           &message);
  const double ms = now_ms() - start - settings.deadline_ms, busy_end = busy_ms();
  watch.join();
  const double busy = std::max(0.0, busy_end - busy_at_deadline);
  for (pfrt_io& io : out) api->value->release(io.value);
  if (code == PFRT_CODE_DEADLINE) return {name, "stopped", ms, busy};
  return {name, code == PFRT_CODE_OK ? "was over before" : "failed: " + message, ms, 0};
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--threads" && i + 1 < argc)
      settings.threads = std::atoll(argv[++i]);
    else if (arg == "--deadline" && i + 1 < argc)
      settings.deadline_ms = std::atof(argv[++i]);
    else
      settings.word = arg;
  }
  api = pfrt_get_api(PFRT_ABI_VERSION, nullptr);
  pfrt_env* env = nullptr;
  std::string message;
  if (!api || take(api->env->create(nullptr, &env), &message) != PFRT_CODE_OK) {
    std::fprintf(stderr, "stops: %s\n", message.c_str());
    return 1;
  }
  std::vector<Row> rows;
  for (const pfrt_test::LongStep& step : pfrt_test::long_steps()) {
    if (name_of(step).find(settings.word) == std::string::npos) continue;
    rows.push_back(measure(env, step, settings));
    std::fprintf(stderr, "%8.1f ms %8.1f ms  %s: %s\n", rows.back().ms, rows.back().busy_ms,
                 rows.back().name.c_str(), rows.back().outcome.c_str());
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.busy_ms < b.busy_ms; });
  for (const Row& row : rows)
    std::printf("%8.1f ms %8.1f ms busy  %-40s %s\n", row.ms, row.busy_ms, row.name.c_str(),
                row.outcome.c_str());
  api->env->release(env);
}
