// SPDX-License-Identifier: Apache-2.0
//
// A host built on oneTBB that runs its own parallel_for and sessions: how much of both gets done
// with executor=tbb and with the library's own threads, in turns in one process. Prints medians
// over rounds and their ratios; arguments: [ROUNDS [SECONDS]].
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "pyflame_rt/pyflame_rt.h"

namespace {

const pfrt_api* api = nullptr;

pfrt_string str(std::string_view text) { return {text.data(), text.size()}; }

void check(pfrt_status* status) {
  if (!status) return;
  const pfrt_string text = api->status->message(status);
  std::fprintf(stderr, "tbb_host: %.*s\n", static_cast<int>(text.size), text.data);
  std::exit(1);
}

double now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(t).count();
}

// ---- the session: |layers| products with Relu between them, x float32[rows, 512] ----

constexpr int64_t kWidth = 512;

pfrt_tensor tensor(const float* data, const int64_t* dims) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = PFRT_DTYPE_FLOAT32;
  t.rank = 2;
  t.dims = dims;
  t.data = const_cast<float*>(data);
  t.bytes = static_cast<uint64_t>(dims[0] * dims[1]) * sizeof(float);
  return t;
}

void add_node(pfrt_graph* graph, std::string_view op, const std::vector<pfrt_string>& inputs,
              std::string_view name) {
  const pfrt_string output = str(name);
  pfrt_node node{};
  node.struct_size = sizeof node;
  node.op = str(op);
  node.inputs = inputs.data();
  node.input_count = inputs.size();
  node.outputs = &output;
  node.output_count = 1;
  check(api->graph->add_node(graph, &node, nullptr));
}

class Session {
 public:
  Session(const char* executor, int layers, int64_t rows)
      : dims_{rows, kWidth}, x_(static_cast<size_t>(rows * kWidth), 0.5f) {
    pfrt_options* options = nullptr;
    check(api->options->create(PFRT_OPTIONS_ENV, &options));
    check(api->options->set_string(options, str("executor"), str(executor)));
    check(api->env->create(options, &env_));
    api->options->release(options);
    pfrt_graph* graph = nullptr;
    check(api->graph->create(str("layers"), &graph));
    pfrt_value_info port{};
    port.struct_size = sizeof port;
    port.kind = PFRT_VALUE_TENSOR;
    port.dtype = PFRT_DTYPE_FLOAT32;
    port.rank = 2;
    port.dims = dims_;
    port.name = str("x");
    check(api->graph->add_input(graph, &port));
    const std::vector<float> weights(kWidth * kWidth, 1.0f / kWidth);
    const int64_t square[] = {kWidth, kWidth};
    const pfrt_tensor w = tensor(weights.data(), square);
    check(api->graph->add_initializer(graph, str("w"), &w, 0, nullptr, nullptr));
    std::string last = "x";
    for (int i = 0; i < layers; ++i) {
      const std::string product = "p" + std::to_string(i), next = "r" + std::to_string(i);
      add_node(graph, "MatMul", {str(last), str("w")}, product);
      add_node(graph, "Relu", {str(product)}, next);
      last = next;
    }
    port.name = str(last);
    check(api->graph->add_output(graph, &port));
    pfrt_session_desc desc{};
    desc.struct_size = sizeof desc;
    check(api->model->from_graph(env_, graph, nullptr, &desc.model));
    check(api->session->create(env_, &desc, &session_));
    api->model->release(desc.model);
    api->graph->release(graph);
    run();
  }
  ~Session() {
    api->session->release(session_);
    api->env->release(env_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // On the calling thread, with outputs of the run's own, so that many may be under way.
  void run() const {
    pfrt_io in{}, out{};
    in.struct_size = out.struct_size = sizeof in;
    in.tensor = tensor(x_.data(), dims_);
    check(api->session->run(session_, &in, 1, &out, 1, nullptr));
    api->value->release(out.value);
  }

 private:
  const int64_t dims_[2];
  const std::vector<float> x_;
  pfrt_env* env_ = nullptr;
  pfrt_session* session_ = nullptr;
};

// ---- the host's own work ----

std::atomic<float> sink{0};

// Some 100 us of arithmetic.
void piece(int seed) {
  float a = static_cast<float>(seed % 7) + 0.5f;
  for (int i = 0; i < 10'000; ++i) a = std::sqrt(a * 1.01f + 1.0f);
  sink.store(a, std::memory_order_relaxed);
}

constexpr int kPieces = 64;

void host_loop() {
  tbb::parallel_for(
      tbb::blocked_range<int>(0, kPieces, 1),
      [](const auto& range) {
        for (int i = range.begin(); i < range.end(); ++i) piece(i);
      },
      tbb::simple_partitioner());
}

// ---- what is measured: things done a second ----

template <typename Work>
double per_second(double seconds, const Work& work) {
  int done = 0;
  const double start = now();
  for (; now() - start < seconds; ++done) work();
  return done / (now() - start);
}

struct Both {
  double runs, loops;
};

// Runs the session again and again on a thread, while another has the host's loops.
Both beside(const Session& session, double seconds) {
  Both both{};
  std::thread other([&] { both.runs = per_second(seconds, [&] { session.run(); }); });
  both.loops = per_second(seconds, host_loop);
  other.join();
  return both;
}

// Each task of a loop of the host's does a piece of its work and runs the session.
double in_tasks(const Session& session, double seconds) {
  return kPieces * per_second(seconds, [&] {
           tbb::parallel_for(
               tbb::blocked_range<int>(0, kPieces, 1),
               [&](const auto& range) {
                 for (int i = range.begin(); i < range.end(); ++i) {
                   piece(i);
                   session.run();
                 }
               },
               tbb::simple_partitioner());
         });
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A figure of each executor, round by round.
struct Row {
  const char* what;
  std::vector<double> pool, tbb;

  void print() const {
    std::vector<double> ratios;
    for (size_t i = 0; i < pool.size(); ++i) ratios.push_back(tbb[i] / pool[i]);
    std::sort(ratios.begin(), ratios.end());
    std::printf("%-52s %9.1f %9.1f %6.2f  %.2f to %.2f\n", what, median(pool), median(tbb),
                ratios[ratios.size() / 2], ratios[ratios.size() / 4],
                ratios[ratios.size() * 3 / 4]);
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  if (rounds < 1 || seconds <= 0) {
    std::fprintf(stderr, "usage: tbb_host [ROUNDS [SECONDS]]\n");
    return 2;
  }
  api = pfrt_get_api(PFRT_ABI_VERSION, nullptr);
  if (!api) {
    std::fprintf(stderr, "tbb_host: the library is of another version\n");
    return 1;
  }
  constexpr int kLarge = 128, kSmall = 8;
  const Session pool("pool", 8, kLarge), onetbb("tbb", 8, kLarge);
  const Session small_pool("pool", 8, kSmall), small_tbb("tbb", 8, kSmall);
  Row alone{"runs alone, 128 rows", {}, {}}, small{"runs alone, 8 rows", {}, {}};
  Row runs{"runs beside the host's loops", {}, {}}, loops{"the host's loops beside runs", {}, {}};
  Row total{"both, in seconds' work a second", {}, {}},
      tasks{"the host's tasks, each with a run", {}, {}};
  Row small_tasks{"the same, runs of 8 rows", {}, {}};
  for (int round = 0; round < rounds; ++round) {
    // Counts the work of a second, for both.
    const double loops_alone = per_second(seconds / 2, host_loop);
    const double runs_alone = per_second(seconds / 2, [&] { pool.run(); });
    for (const bool first : {true, false}) {
      const bool is_tbb = (round % 2 == 0) != first;  // who begins changes from round to round
      const auto& [large_one, small_one] =
          is_tbb ? std::tie(onetbb, small_tbb) : std::tie(pool, small_pool);
      const auto add = [is_tbb](Row& row, double value) {
        (is_tbb ? row.tbb : row.pool).push_back(value);
      };
      add(alone, per_second(seconds / 2, [&] { large_one.run(); }));
      add(small, per_second(seconds / 2, [&] { small_one.run(); }));
      const Both both = beside(large_one, seconds);
      add(runs, both.runs);
      add(loops, both.loops);
      add(total, both.runs / runs_alone + both.loops / loops_alone);
      add(tasks, in_tasks(large_one, seconds));
      add(small_tasks, in_tasks(small_one, seconds));
    }
  }
  std::printf("%d threads of oneTBB; a second; medians of %d rounds\n",
              tbb::this_task_arena::max_concurrency(), rounds);
  std::printf("%-52s %9s %9s %6s  quartiles\n", "", "pool", "tbb", "ratio");
  for (const Row* row : {&alone, &small, &runs, &loops, &total, &tasks, &small_tasks}) row->print();
  return 0;
}
