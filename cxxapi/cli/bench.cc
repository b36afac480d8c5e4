// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/machine/machine.h"
#include "cxxapi/cli/machine/process.h"
#include "cxxapi/cli/peer.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/progress.h"
#include "cxxapi/cli/print/table.h"
#include "cxxapi/cli/print/text.h"
#include "cxxapi/cli/tensors/elements.h"
#include "cxxapi/cli/tensors/feed.h"
#include "cxxapi/cli/tensors/sizes.h"

namespace cli {
namespace {

using Clock = std::chrono::steady_clock;
using pyflame_rt::DType;
using pyflame_rt::InferenceSession;
using pyflame_rt::NodeArg;
using pyflame_rt::Tensor;

constexpr auto kBlock = std::chrono::milliseconds(100);
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr auto kChildTimeout = std::chrono::minutes(15);
constexpr int kInterrupted = 130;  // shells report this for a program that Ctrl-C ended
constexpr auto kWarmUp = std::chrono::milliseconds(200);

using Inputs = std::vector<std::pair<std::string, Tensor>>;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// An input that both sides are fed, described so that a child without a session can make it.
struct InputSpec {
  std::string name;
  DType dtype = DType::Undefined;
  std::vector<int64_t> shape;
  std::string origin;  // "random", "zeros" or a file
};

// The inputs of |feed|, in the order of the session's.
Inputs tensors_of(const Feed& feed, const std::vector<NodeArg>& args) {
  Inputs inputs;
  for (const NodeArg& arg : args) {
    const auto found = feed.find(arg.name);
    if (found == feed.end()) continue;
    if (!found->second.is_tensor())
      throw UsageError("input '" + arg.name + "' is " + arg.type() + ": only tensors are benched");
    inputs.emplace_back(arg.name, found->second.tensor());
  }
  return inputs;
}

std::vector<InputSpec> describe_inputs(const Inputs& inputs, const Feeder& feeder) {
  std::vector<InputSpec> specs;
  specs.reserve(inputs.size());
  for (const auto& [name, tensor] : inputs)
    specs.push_back({name, tensor.dtype(), tensor.shape(), feeder.origins().at(name)});
  return specs;
}

Inputs make_inputs(const std::vector<InputSpec>& specs) {
  std::vector<NodeArg> args;
  std::vector<std::string> sources;
  for (const InputSpec& spec : specs) {
    NodeArg arg;
    arg.name = spec.name;
    arg.dtype = spec.dtype;
    arg.kind = pyflame_rt::ValueKind::Tensor;
    arg.shape.assign(spec.shape.begin(), spec.shape.end());
    args.push_back(std::move(arg));
    sources.push_back(spec.name + "=" + spec.origin);
  }
  return tensors_of(Feeder(args, sources, {}).feed({}), args);
}

// Our side, driven as a user of the C API who binds buffers once would do it.
class Ours {
 public:
  Ours(const std::string& model, const SessionArgs& args)
      : start_(Clock::now()),
        session_(model, session_options(args)),
        load_seconds_(seconds_since(start_)) {}

  const InferenceSession& session() const { return session_; }
  double load_seconds() const { return load_seconds_; }
  void bind(Inputs inputs) {
    kept_ = std::move(inputs);
    inputs_.assign(session_.get_inputs().size(), empty_io());
    outputs_.assign(session_.get_outputs().size(), empty_io());
    for (const auto& [name, tensor] : kept_) {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (session_.get_inputs()[i].name == name) inputs_[i].value = tensor.handle();
      }
    }
  }
  void run(const pyflame_rt::RunOptions* options = nullptr) {
    results_.clear();
    const pfrt_run_desc desc = options == nullptr ? pfrt_run_desc{} : options->desc();
    pyflame_rt::detail::check(pyflame_rt::api().session->run(
        session_.handle(), inputs_.data(), inputs_.size(), outputs_.data(), outputs_.size(),
        options == nullptr ? nullptr : &desc));
    for (pfrt_io& output : outputs_) {
      results_.push_back(pyflame_rt::detail::Handle<pfrt_value>::adopt(output.value));
      output.value = nullptr;
    }
  }
  // Outputs of the last run; an invalid tensor where an output is not a tensor.
  std::vector<Tensor> outputs() const {
    std::vector<Tensor> out;
    for (const auto& handle : results_) {
      const auto value = pyflame_rt::Value::from_handle(handle);
      out.push_back(value.is_tensor() ? value.tensor() : Tensor());
    }
    return out;
  }

 private:
  static pfrt_io empty_io() {
    pfrt_io io{};
    io.struct_size = sizeof(io);
    io.tensor.struct_size = sizeof(io.tensor);
    return io;
  }
  Clock::time_point start_;
  InferenceSession session_;
  double load_seconds_;
  Inputs kept_;
  std::vector<pfrt_io> inputs_, outputs_;
  std::vector<pyflame_rt::detail::Handle<pfrt_value>> results_;
};

// ---- measurements in a child process

struct Load {
  double seconds = 0, first_run_seconds = 0;
  uint64_t peak_bytes = 0;
};

// Results of a child process.
struct Child {
  Load load;
  std::vector<InputSpec> specs;
  std::vector<std::string> outputs;
  std::string assumed;  // sizes of dimensions, for people
};

// Fields end with a zero byte, which no name contains.
std::string pack(const Child& about) {
  std::string out;
  const auto put = [&out](const std::string& field) { out += field + '\0'; };
  put(std::to_string(about.load.seconds));
  put(std::to_string(about.load.first_run_seconds));
  put(std::to_string(about.load.peak_bytes));
  put(about.assumed);
  put(std::to_string(about.specs.size()));
  for (const InputSpec& spec : about.specs) {
    put(spec.name);
    put(std::to_string(static_cast<int>(spec.dtype)));
    put(std::to_string(spec.shape.size()));
    for (const int64_t dim : spec.shape) put(std::to_string(dim));
    put(spec.origin);
  }
  for (const std::string& name : about.outputs) put(name);
  return out;
}

Child unpack(const std::string& text) {
  size_t at = 0;
  const auto get = [&]() -> std::string {
    const size_t end = text.find('\0', at);
    if (end == std::string::npos) throw std::runtime_error("the child's answer is cut short");
    std::string field = text.substr(at, end - at);
    at = end + 1;
    return field;
  };
  Child out;
  out.load.seconds = std::stod(get());
  out.load.first_run_seconds = std::stod(get());
  out.load.peak_bytes = std::stoull(get());
  out.assumed = get();
  out.specs.resize(std::stoull(get()));
  for (InputSpec& spec : out.specs) {
    spec.name = get();
    spec.dtype = static_cast<DType>(std::stoi(get()));
    spec.shape.resize(std::stoull(get()));
    for (int64_t& dim : spec.shape) dim = std::stoll(get());
    spec.origin = get();
  }
  while (at < text.size()) out.outputs.push_back(get());
  return out;
}

Child in_child(const char* side, const std::function<std::string()>& work) {
  const ChildResult result = run_in_child(work, kChildTimeout);
  if (!result.ok) throw UsageError(std::string(side) + ": " + result.reason);
  return unpack(result.output);
}

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return seconds_since(start);
}

std::string measure_ours(const BenchArgs& args, const Dims& dims) {
  Ours ours(args.model, args.session);
  const std::vector<NodeArg>& inputs = ours.session().get_inputs();
  const Feeder feeder(inputs, args.inputs, dims);
  double first_run = 0;
  Inputs fed;
  const auto run = [&](const Feed& feed, const pyflame_rt::RunOptions* options) {
    fed = tensors_of(feed, inputs);
    ours.bind(fed);
    first_run = seconds_of([&] { ours.run(options); });
  };
  const Dims assumed = fit_sizes(feeder, run);
  Child about{{ours.load_seconds(), first_run, peak_memory()},
              describe_inputs(fed, feeder),
              {},
              assumed.empty() ? "" : assumed_text(assumed)};
  for (const NodeArg& output : ours.session().get_outputs()) about.outputs.push_back(output.name);
  return pack(about);
}

std::string measure_peer(const BenchArgs& args, const Child& about) {
  Peer peer(args.peer, args.model, args.session.threads);
  peer.bind(make_inputs(about.specs), about.outputs);
  const double first_run = seconds_of([&peer] { peer.run(); });
  return pack({{peer.load_seconds(), first_run, peak_memory()}, {}, {}, {}});
}

// ---- latency

struct Side {
  std::function<void()> run;
  std::vector<double> seconds;
  double total = 0;
};

void warm_up(Side* side) {
  const auto start = Clock::now();
  do {
    side->run();
  } while (Clock::now() - start < kWarmUp && !Interrupt::requested());
}

void run_block(Side* side) {
  std::this_thread::sleep_for(kPause);
  const auto start = Clock::now();
  auto before = start;
  do {
    side->run();
    const auto after = Clock::now();
    side->seconds.push_back(std::chrono::duration<double>(after - before).count());
    before = after;
  } while (before - start < kBlock && !Interrupt::requested());
  side->total += std::chrono::duration<double>(before - start).count();
}

// Runs the sides in turns, until each has run for |seconds| or Ctrl-C; they take turns to begin.
void interleave(std::vector<Side>* sides, double seconds, ProgressLine* line) {
  for (Side& side : *sides) warm_up(&side);
  for (size_t round = 0;; ++round) {
    double least = seconds;
    for (const Side& side : *sides) least = std::min(least, side.total);
    if (least >= seconds) return;
    for (size_t i = 0; i < sides->size(); ++i) {
      // The first side has its first block in any case, so that there is something to print.
      if (Interrupt::requested() && round + i > 0) return;
      run_block(&(*sides)[(i + round) % sides->size()]);
    }
    line->show("measuring: " + number_text(least) + " s of " + number_text(seconds) +
               " s a side; Ctrl-C ends it and prints what is measured");
  }
}

double quantile(std::vector<double>* sorted, double q) {
  const auto at = static_cast<size_t>(std::lround(q * static_cast<double>(sorted->size() - 1)));
  return (*sorted)[at];
}

struct Latency {
  double median = 0, p99 = 0;
  size_t runs = 0;  // 0 = not measured because of an interruption
};

Latency latency_of(Side* side) {
  if (side->seconds.empty()) return {};
  std::sort(side->seconds.begin(), side->seconds.end());
  return {quantile(&side->seconds, 0.5), quantile(&side->seconds, 0.99), side->seconds.size()};
}

// ---- agreement

struct Agreement {
  double max = 0, rms = 0;  // of the output that agrees least
  std::vector<std::string> notes;
};

void compare_output(const std::string& name, const Tensor& ours, const Tensor& peer,
                    Agreement* out) {
  if (!ours.is_valid() || !peer.is_valid()) {
    out->notes.push_back("output '" + name + "' is not a tensor of numbers and was not compared");
    return;
  }
  if (ours.shape() != peer.shape() || ours.dtype() != peer.dtype()) {
    out->notes.push_back("output '" + name + "' is " + dtype_name(ours.dtype()) +
                         shape_text(ours.shape()) + ", the peer's " + dtype_name(peer.dtype()) +
                         shape_text(peer.shape()));
    return;
  }
  double max_error = 0, max_value = 0, sum_error = 0, sum_value = 0;
  int64_t unlike = 0;
  for (int64_t i = 0; i < peer.num_elements(); ++i) {
    const double a = number_at(ours, i);
    const double b = number_at(peer, i);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      unlike += (std::isnan(a) && std::isnan(b)) || a == b ? 0 : 1;
      continue;
    }
    max_error = std::max(max_error, std::fabs(a - b));
    max_value = std::max(max_value, std::fabs(b));
    sum_error += (a - b) * (a - b);
    sum_value += b * b;
  }
  if (unlike != 0) {
    out->notes.push_back("output '" + name + "': " + std::to_string(unlike) +
                         " elements are finite on one side only");
  }
  if (max_error == 0) return;
  out->max = std::max(out->max, max_value == 0 ? HUGE_VAL : max_error / max_value);
  out->rms = std::max(out->rms, sum_value == 0 ? HUGE_VAL : std::sqrt(sum_error / sum_value));
}

// ---- report

struct Result {
  Machine machine;
  int threads = 0;
  std::string peer_version;
  Load our_load, peer_load;
  Latency ours, peer;
  Agreement agreement;
  std::vector<InputSpec> inputs;
  std::string assumed;  // sizes of dimensions
  bool interrupted = false;

  bool with_peer() const { return !peer_version.empty() && peer.runs != 0; }
};

void write_side(const char* name, const Latency& latency, const Load& load, Json* json) {
  json->key(name).object().field("median_s", latency.median).field("p99_s", latency.p99);
  json->field("runs", latency.runs)
      .field("load_s", load.seconds)
      .field("first_run_s", load.first_run_seconds)
      .field("peak_bytes", load.peak_bytes)
      .end();
}

void print_json(const Result& r) {
  Json json;
  json.object()
      .field("cpu", r.machine.cpu)
      .field("isa", isa_text(r.machine))
      .field("threads", r.threads);
  write_side("ours", r.ours, r.our_load, &json);
  if (r.with_peer()) {
    write_side("peer", r.peer, r.peer_load, &json);
    json.field("peer_version", r.peer_version).field("ratio", r.peer.median / r.ours.median);
    json.field("max_relative_difference", r.agreement.max);
    json.field("rms_relative_difference", r.agreement.rms);
  }
  json.key("inputs").object();
  for (const InputSpec& input : r.inputs) {
    json.key(input.name).object().field("dtype", dtype_name(input.dtype)).key("shape").list();
    for (const int64_t dim : input.shape) json.value(dim);
    json.end().field("origin", input.origin).end();
  }
  json.end().key("notes").list();
  for (const std::string& note : r.agreement.notes) json.value(note);
  json.end().field("interrupted", r.interrupted).end().print();
}

void print_text(const Result& r) {
  std::printf("cpu      %s\nisa      %s\nthreads  %d\n", r.machine.cpu.c_str(),
              isa_text(r.machine).c_str(), r.threads);
  for (const InputSpec& input : r.inputs) {
    std::printf("input    %s: %s%s, %s\n", input.name.c_str(), dtype_name(input.dtype),
                shape_text(input.shape).c_str(), input.origin.c_str());
  }
  if (!r.assumed.empty()) std::printf("sizes    %s\n", r.assumed.c_str());
  Table table({"", "median", "p99", "runs", "load", "first run", "peak memory"});
  const auto add = [&table](const std::string& name, const Latency& latency, const Load& load) {
    table.add({name, time_text(latency.median), time_text(latency.p99),
               std::to_string(latency.runs), time_text(load.seconds),
               time_text(load.first_run_seconds), bytes_text(load.peak_bytes)});
  };
  add("ours", r.ours, r.our_load);
  if (r.with_peer()) add("peer " + r.peer_version, r.peer, r.peer_load);
  table.print();
  if (r.with_peer()) {
    std::printf("ratio    %.3f (peer/ours, medians)\n", r.peer.median / r.ours.median);
    std::printf(
        "differ   max %.2e of the largest value, RMS %.2e of the RMS value (worst output)\n",
        r.agreement.max, r.agreement.rms);
  }
  if (r.interrupted) std::printf("note     interrupted: these are the runs up to then\n");
  for (const std::string& note : r.agreement.notes) std::printf("note     %s\n", note.c_str());
}

}  // namespace

int bench_command(const BenchArgs& given) {
  if (!(given.seconds > 0)) throw UsageError("--seconds must be more than 0");
  BenchArgs args = given;
  Result result;
  result.machine = read_machine();
  if (args.session.threads == 0) args.session.threads = default_threads(result.machine);
  result.threads = args.session.threads;
  const Dims dims = parse_dims(args.dims);
  const bool with_peer = !args.peer.empty();

  ProgressLine line;
  line.show("loading and a first run");
  // Children first: they must not inherit what a session of this process loads.
  const Child about = in_child("ours", [&] { return measure_ours(args, dims); });
  result.our_load = about.load;
  result.inputs = about.specs;
  result.assumed = about.assumed;
  if (with_peer) {
    line.show("loading and a first run of the peer");
    result.peer_load = in_child("peer", [&] { return measure_peer(args, about); }).load;
  }

  std::vector<Side> sides;
  Ours ours(args.model, args.session);
  ours.bind(make_inputs(about.specs));
  sides.push_back({[&ours] { ours.run(); }, {}, 0});
  std::unique_ptr<Peer> peer;
  if (with_peer) {
    peer = std::make_unique<Peer>(args.peer, args.model, args.session.threads);
    peer->bind(make_inputs(about.specs), about.outputs);
    result.peer_version = peer->version();
    sides.push_back({[&peer] { peer->run(); }, {}, 0});
  }
  line.show("warming up");
  const Interrupt interrupt;
  interleave(&sides, args.seconds, &line);
  line.clear();
  result.interrupted = Interrupt::requested();
  result.ours = latency_of(&sides[0]);
  if (with_peer) {
    result.peer = latency_of(&sides[1]);
    const std::vector<Tensor> a = ours.outputs();
    const std::vector<Tensor> b = peer->outputs();
    for (size_t i = 0; i < a.size(); ++i)
      compare_output(about.outputs[i], a[i], b[i], &result.agreement);
  }
  if (args.json) {
    print_json(result);
  } else {
    print_text(result);
  }
  return result.interrupted ? kInterrupted : 0;
}

}  // namespace cli
