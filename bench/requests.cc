// SPDX-License-Identifier: Apache-2.0
//
// Many clients of one model, through a batcher and through the peer with a plain loop of batches.
// Arguments:
//
//   requests MODEL [--peer LIBRARY] [--seconds S] [--length L] [--threads T] [--clients 1,2,4,...]
//
// LIBRARY is ONNX Runtime's; L is the size of dimensions without a number, but for the batch. For
// each number of clients, each of which sends a row, waits for its result and sends the next:
//   best       the rate of one caller with batches of up to so many rows, nothing around
//   ours       rows a second through the batcher, and its share of best
//   peer       the same by the peer: a thread takes what waits, up to 32 rows, and runs it
// Both sides take turns. Then an open load: requests come at random (Poisson), at 70 % of the best
// rate; |ideal| is a queue without any costs that runs what waits whenever a run is over, with the
// same times of batches and the same arrivals.
#include <dlfcn.h>
#include <pyflame_rt/pyflame_rt.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kMostRows = 32;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "requests: %s\n", what.c_str());
  std::_Exit(1);
}
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
pfrt_string str(std::string_view text) { return {text.data(), text.size()}; }

struct Settings {
  std::string model, peer;
  double seconds = 1;
  int64_t length = 32, threads = 2;
  std::vector<int> clients{1, 2, 4, 8, 16, 32, 64};
};

// An input of the model, for one row.
struct Port {
  std::string name;
  pfrt_dtype dtype;
  std::vector<int64_t> dims;  // the first is the batch
  size_t bytes = 0;           // of a row
};

// A row's bytes, by input.
using Row = std::vector<std::vector<char>>;

Row row_of(const std::vector<Port>& ports, uint32_t seed) {
  std::mt19937 random(seed);
  Row out;
  for (const Port& port : ports) {
    std::vector<char>& bytes = out.emplace_back(port.bytes);
    if (port.dtype == PFRT_DTYPE_FLOAT32) {
      for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        const float x = std::uniform_real_distribution<float>(-1, 1)(random);
        std::memcpy(bytes.data() + i, &x, 4);
      }
    } else if (port.dtype == PFRT_DTYPE_INT64) {
      for (size_t i = 0; i + 8 <= bytes.size(); i += 8) bytes[i] = static_cast<char>(random() % 2);
    }
  }
  return out;
}

// Something that runs batches.
class Model {
 public:
  virtual ~Model() = default;
  // |inputs| has |rows| rows of each input, one after another.
  virtual void run(const std::vector<std::vector<char>>& inputs, int64_t rows) = 0;
};

// ---- ours ----

class Ours : public Model {
 public:
  explicit Ours(const Settings& settings) {
    check(api->env->create(nullptr, &env_));
    check(api->model->load_file(env_, str(settings.model), nullptr, &model_));
    pfrt_options* options = nullptr;
    check(api->options->create(PFRT_OPTIONS_SESSION, &options));
    check(api->options->set_int(options, str("num_threads"), settings.threads));
    pfrt_session_desc desc{};
    desc.struct_size = sizeof desc;
    desc.model = model_;
    desc.options = options;
    check(api->session->create(env_, &desc, &session));
    for (size_t i = 0; i < api->session->input_count(session); ++i) {
      pfrt_value_info info{};
      info.struct_size = sizeof info;
      check(api->session->input_at(session, i, &info));
      Port& port = ports.emplace_back();
      port.name = std::string(info.name.data, info.name.size);
      port.dtype = info.dtype;
      port.dims.assign(info.dims, info.dims + info.rank);
      port.bytes = info.dtype == PFRT_DTYPE_INT64 ? 8 : 4;
      for (size_t d = 1; d < port.dims.size(); ++d) {
        if (port.dims[d] < 0) port.dims[d] = settings.length;
        port.bytes *= static_cast<size_t>(port.dims[d]);
      }
    }
    outputs_ = api->session->output_count(session);
  }
  void check(pfrt_status* status) const {
    if (!status) return;
    const pfrt_string text = api->status->message(status);
    fail(std::string(text.data, text.size));
  }
  std::vector<pfrt_io> ios(const std::vector<std::vector<char>>& inputs, int64_t rows,
                           std::vector<std::vector<int64_t>>& dims) const {
    std::vector<pfrt_io> out(ports.size());
    dims.resize(ports.size());
    for (size_t i = 0; i < ports.size(); ++i) {
      dims[i] = ports[i].dims;
      dims[i][0] = rows;
      out[i].struct_size = sizeof out[i];
      pfrt_tensor& t = out[i].tensor;
      t.struct_size = sizeof t;
      t.dtype = ports[i].dtype;
      t.rank = static_cast<uint32_t>(dims[i].size());
      t.dims = dims[i].data();
      t.data = const_cast<char*>(inputs[i].data());
      t.bytes = inputs[i].size();
    }
    return out;
  }
  void run(const std::vector<std::vector<char>>& inputs, int64_t rows) override {
    std::vector<std::vector<int64_t>> dims;
    const std::vector<pfrt_io> in = ios(inputs, rows, dims);
    std::vector<pfrt_io> out(outputs_);
    for (pfrt_io& each : out) {
      each.struct_size = sizeof each;
      each.tensor.struct_size = sizeof each.tensor;
    }
    check(api->session->run(session, in.data(), in.size(), out.data(), out.size(), nullptr));
    for (pfrt_io& each : out) api->value->release(each.value);
  }
  size_t outputs() const { return outputs_; }

  const pfrt_api* const api = pfrt_get_api(PFRT_ABI_VERSION, nullptr);
  pfrt_session* session = nullptr;
  std::vector<Port> ports;

 private:
  pfrt_env* env_ = nullptr;
  pfrt_model* model_ = nullptr;
  size_t outputs_ = 0;
};

// ---- the peer, by slots of its table (cxxapi/cli/peer.cc has more of them) ----

class Peer : public Model {
 public:
  Peer(const Settings& settings, const std::vector<Port>& ports) : ports_(ports) {
    void* const handle = ::dlopen(settings.peer.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const base = handle ? ::dlsym(handle, "OrtGetApiBase") : nullptr;
    if (!base) fail("cannot open " + settings.peer);
    struct Base {
      void* const* (*get_api)(uint32_t version);
    };
    table_ = reinterpret_cast<const Base* (*)()>(base)()->get_api(20);
    if (!table_) fail("the peer is too old");
    void *env = nullptr, *options = nullptr, *allocator = nullptr;
    call(3, 3, "requests", &env);
    call(10, &options);
    call(24, options, static_cast<int>(settings.threads));
    call(23, options, 99);
    call(7, static_cast<const void*>(env), settings.model.c_str(),
         static_cast<const void*>(options), &session_);
    call(69, 1, 0, &memory_);
    call(78, &allocator);
    for (const Port& port : ports_) names_.push_back(port.name.c_str());
    size_t count = 0;
    call(31, static_cast<const void*>(session_), &count);
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      call(37, static_cast<const void*>(session_), i, allocator, &name);
      output_names_.push_back(name);
    }
  }
  void run(const std::vector<std::vector<char>>& inputs, int64_t rows) override {
    std::vector<void*> values, outputs(output_names_.size());
    for (size_t i = 0; i < ports_.size(); ++i) {
      std::vector<int64_t> dims = ports_[i].dims;
      dims[0] = rows;
      void* value = nullptr;
      call(49, static_cast<const void*>(memory_), const_cast<char*>(inputs[i].data()),
           inputs[i].size(), static_cast<const int64_t*>(dims.data()), dims.size(),
           static_cast<int>(ports_[i].dtype), &value);
      values.push_back(value);
    }
    call(9, session_, static_cast<const void*>(nullptr), names_.data(), values.data(),
         values.size(), output_names_.data(), output_names_.size(), outputs.data());
    for (void* value : values) release(value);
    for (void* value : outputs) release(value);
  }

 private:
  template <class... Args>
  void call(size_t slot, Args... args) {
    void* const status = reinterpret_cast<void* (*)(Args...)>(table_[slot])(args...);
    if (status) fail(reinterpret_cast<const char* (*)(const void*)>(table_[2])(status));
  }
  void release(void* value) { reinterpret_cast<void (*)(void*)>(table_[96])(value); }

  const std::vector<Port> ports_;
  void* const* table_ = nullptr;
  void *session_ = nullptr, *memory_ = nullptr;
  std::vector<const char*> names_, output_names_;
};

// A program writes this around a library without batches: a queue, and a thread that takes what
// waits.
class PlainLoop {
 public:
  PlainLoop(Model& model, const std::vector<Port>& ports) : model_(model), ports_(ports) {
    thread_ = std::thread([this] { work(); });
  }
  ~PlainLoop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    came_.notify_one();
    thread_.join();
  }
  void infer(const Row& row) {
    Waiting own{&row, false};
    std::unique_lock lock(mutex_);
    queue_.push_back(&own);
    came_.notify_one();
    done_.wait(lock, [&] { return own.done; });
  }

 private:
  struct Waiting {
    const Row* row;
    bool done;
  };
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      came_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (stopping_) return;
      std::vector<Waiting*> batch;
      while (!queue_.empty() && batch.size() < kMostRows) {
        batch.push_back(queue_.front());
        queue_.pop_front();
      }
      lock.unlock();
      std::vector<std::vector<char>> inputs(ports_.size());
      for (size_t i = 0; i < inputs.size(); ++i)
        for (const Waiting* one : batch)
          inputs[i].insert(inputs[i].end(), (*one->row)[i].begin(), (*one->row)[i].end());
      model_.run(inputs, static_cast<int64_t>(batch.size()));
      lock.lock();
      for (Waiting* one : batch) one->done = true;
      done_.notify_all();
    }
  }

  Model& model_;
  const std::vector<Port> ports_;
  std::mutex mutex_;
  std::condition_variable came_, done_;
  std::deque<Waiting*> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

// ---- loads ----

// Rows a second of |clients| threads that call |infer| again and again.
double closed_load(int clients, double seconds, const std::vector<Row>& rows,
                   const std::function<void(const Row&)>& infer) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> done{0};
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (int c = 0; c < clients; ++c)
    threads.emplace_back([&, c] {
      uint64_t own = 0;
      for (; !stop.load(std::memory_order_relaxed); ++own)
        infer(rows[static_cast<size_t>(c) % rows.size()]);
      done += own;
    });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(done) / seconds_since(start);
}

// Seconds of a run of |rows| rows: the median of many.
double time_of(Model& model, const std::vector<Row>& all, int64_t rows, double seconds) {
  std::vector<std::vector<char>> inputs(all[0].size());
  for (size_t i = 0; i < inputs.size(); ++i)
    for (int64_t r = 0; r < rows; ++r) {
      const auto& bytes = all[static_cast<size_t>(r) % all.size()][i];
      inputs[i].insert(inputs[i].end(), bytes.begin(), bytes.end());
    }
  for (int i = 0; i < 3; ++i) model.run(inputs, rows);
  std::vector<double> times;
  for (const auto start = Clock::now(); seconds_since(start) < seconds || times.size() < 5;) {
    const auto before = Clock::now();
    model.run(inputs, rows);
    times.push_back(seconds_since(before));
  }
  std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(part * static_cast<double>(values.size())))];
}

// The waits of an ideal queue: whenever a run is over, what waits is run, in sizes that |times|
// (seconds by rows) has.
std::vector<double> ideal(const std::vector<double>& arrivals, const std::vector<double>& times) {
  std::vector<double> waits;
  double free = 0;
  for (size_t next = 0; next < arrivals.size();) {
    const double begin = std::max(free, arrivals[next]);
    size_t last = next;
    while (last < arrivals.size() && arrivals[last] <= begin && last - next < kMostRows) ++last;
    free = begin + times[last - next];
    for (; next < last; ++next) waits.push_back(free - arrivals[next]);
  }
  return waits;
}

struct Open {
  std::atomic<uint64_t> left{0};
  std::vector<double> latencies;
  const pfrt_api* api;
  std::mutex mutex;

  static void answer(void* user, pfrt_response* response) {
    auto& self = *static_cast<Open*>(user);
    self.api->status->release(response->status);
    for (size_t i = 0; i < response->output_count; ++i)
      self.api->value->release(response->outputs[i]);
    {
      const std::lock_guard lock(self.mutex);
      self.latencies.push_back(static_cast<double>(response->latency_ns) / 1e9);
    }
    --self.left;
  }
};

std::vector<double> arrivals_of(double rate, double seconds) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> gap(rate);
  std::vector<double> out;
  for (double at = gap(random); at < seconds; at += gap(random)) out.push_back(at);
  return out;
}

std::vector<double> open_load(Ours& ours, pfrt_batcher* batcher, const std::vector<Row>& rows,
                              const std::vector<double>& arrivals) {
  Open open;
  open.api = ours.api;
  open.latencies.reserve(arrivals.size());
  open.left = arrivals.size();
  std::vector<std::vector<std::vector<int64_t>>> dims(rows.size());
  std::vector<std::vector<pfrt_io>> ios;
  for (size_t i = 0; i < rows.size(); ++i) ios.push_back(ours.ios(rows[i], 1, dims[i]));
  const auto start = Clock::now();
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const auto at = start + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(arrivals[i]));
    std::this_thread::sleep_until(at);
    const auto& in = ios[i % ios.size()];
    ours.check(ours.api->batcher->submit(batcher, in.data(), in.size(), nullptr, &Open::answer,
                                         &open, nullptr));
  }
  while (open.left != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::move(open.latencies);
}

Settings settings_of(int argc, char** argv) {
  Settings out;
  if (argc < 2) fail("requests MODEL [--peer LIBRARY] [--seconds S] [--length L] [--threads T]");
  out.model = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--peer") {
      out.peer = value;
    } else if (name == "--seconds") {
      out.seconds = std::atof(value.c_str());
    } else if (name == "--length") {
      out.length = std::atoll(value.c_str());
    } else if (name == "--threads") {
      out.threads = std::atoll(value.c_str());
    } else if (name == "--clients") {
      out.clients.clear();
      for (const char* at = value.c_str(); *at;) {
        char* end = nullptr;
        out.clients.push_back(static_cast<int>(std::strtol(at, &end, 10)));
        at = *end ? end + 1 : end;
      }
    } else {
      fail("there is no option " + name);
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = settings_of(argc, argv);
  Ours ours(settings);
  std::unique_ptr<Peer> peer;
  if (!settings.peer.empty()) peer = std::make_unique<Peer>(settings, ours.ports);
  std::vector<Row> rows;
  for (uint32_t i = 0; i < 64; ++i) rows.push_back(row_of(ours.ports, i));

  std::vector<double> times(kMostRows + 1);  // by rows
  for (int64_t n = 1; n <= kMostRows; n *= 2)
    times[static_cast<size_t>(n)] = time_of(ours, rows, n, 0.2);
  for (int64_t n = 1; n <= kMostRows; ++n) {
    int64_t above = 1;
    while (above < n) above *= 2;
    times[static_cast<size_t>(n)] = times[static_cast<size_t>(above)];
  }
  std::printf("rows of a batch   us a row\n");
  for (int64_t n = 1; n <= kMostRows; n *= 2)
    std::printf("%15ld %10.1f\n", static_cast<long>(n),
                times[static_cast<size_t>(n)] / static_cast<double>(n) * 1e6);

  std::printf("\nclients       best       ours  of best  rows a run%s\n",
              peer ? "       peer  ours/peer" : "");
  double most = 0;
  for (const int clients : settings.clients) {
    double best = 0;
    for (int64_t n = 1; n <= std::min<int64_t>(clients, kMostRows); n *= 2)
      best = std::max(best, static_cast<double>(n) / times[static_cast<size_t>(n)]);
    most = std::max(most, best);
    pfrt_batcher* batcher = nullptr;
    ours.check(ours.api->batcher->create(ours.session, nullptr, &batcher));
    ours.check(ours.api->batcher->start(batcher));
    const auto infer = [&](const Row& row) {
      std::vector<std::vector<int64_t>> dims;
      const std::vector<pfrt_io> in = ours.ios(row, 1, dims);
      std::vector<pfrt_value*> out(ours.outputs());
      ours.check(ours.api->batcher->infer(batcher, in.data(), in.size(), nullptr, out.data(),
                                          out.size(), nullptr));
      for (pfrt_value* value : out) ours.api->value->release(value);
    };
    std::unique_ptr<PlainLoop> loop;
    if (peer) loop = std::make_unique<PlainLoop>(*peer, ours.ports);
    closed_load(clients, 0.2, rows, infer);
    if (peer) closed_load(clients, 0.2, rows, [&](const Row& row) { loop->infer(row); });
    ours.check(ours.api->batcher->reset_statistics(batcher));
    std::vector<double> own, others;
    for (int round = 0; round < 5; ++round) {
      own.push_back(closed_load(clients, settings.seconds / 5, rows, infer));
      if (peer)
        others.push_back(closed_load(clients, settings.seconds / 5, rows,
                                     [&](const Row& row) { loop->infer(row); }));
    }
    pfrt_batcher_statistics s{};
    s.struct_size = sizeof s;
    ours.check(ours.api->batcher->statistics(batcher, &s));
    const double rate = quantile(own, 0.5);
    std::printf(
        "%7d %10.0f %10.0f %8.2f %11.1f", clients, best, rate, rate / best,
        static_cast<double>(s.rows) / static_cast<double>(std::max<uint64_t>(s.batches, 1)));
    if (peer) std::printf(" %10.0f %10.2f", quantile(others, 0.5), rate / quantile(others, 0.5));
    std::printf("\n");
    std::fflush(stdout);
    if (s.unshared.size)
      fail("the model mixes rows: " + std::string(s.unshared.data, s.unshared.size));
    ours.api->batcher->release(batcher);
  }

  pfrt_options* wide = nullptr;  // so that a machine which is slow for a moment refuses nothing
  ours.check(ours.api->options->create(PFRT_OPTIONS_BATCHER, &wide));
  ours.check(ours.api->options->set_int(wide, str("queue_capacity"), 1'000'000));
  ours.check(ours.api->options->set_int(wide, str("queue_timeout_ms"), 0));
  pfrt_batcher* batcher = nullptr;
  ours.check(ours.api->batcher->create(ours.session, wide, &batcher));
  ours.check(ours.api->batcher->start(batcher));
  (void)open_load(ours, batcher, rows, arrivals_of(0.7 * most, 0.3));
  const std::vector<double> arrivals = arrivals_of(0.7 * most, 3 * settings.seconds);
  const std::vector<double> waits = open_load(ours, batcher, rows, arrivals);
  const std::vector<double> least = ideal(arrivals, times);
  std::printf(
      "\nopen load of %.0f rows a second: p50 %.0f us (ideal %.0f), p99 %.0f us (ideal %.0f, "
      "%.2f times)\n",
      0.7 * most, quantile(waits, 0.5) * 1e6, quantile(least, 0.5) * 1e6,
      quantile(waits, 0.99) * 1e6, quantile(least, 0.99) * 1e6,
      quantile(waits, 0.99) / quantile(least, 0.99));
  ours.api->batcher->release(batcher);
  return 0;
}
