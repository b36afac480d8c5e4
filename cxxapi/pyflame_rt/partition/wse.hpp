// SPDX-License-Identifier: Apache-2.0
//
// Graphs on wafer-scale chips, as the wafer-scale provider places them on its simulator. No such
// device is needed, and nothing is computed. Thread-safe but for the graph.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <locale>
#include <map>
#include <mutex>
#include <pyflame_rt/ask.hpp>
#include <pyflame_rt/graph.hpp>
#include <pyflame_rt/opt/passes.hpp>
#include <pyflame_rt/session.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt::partition {

// Wafer-scale chips in a grid, and the links between neighbours.
struct WSEChipConfig {
  int num_chips = 1;  // expected by partition_for_multi_chip; 1 = not set
  // Columns and rows of the grid.
  std::vector<int64_t> topology = {1, 1};
  double inter_chip_bandwidth = 0;  // of a link, in bytes per second; 0 = the machine's default
  double inter_chip_latency = 0;    // of a link, in nanoseconds; 0 = unknown, taken as 0
  uint64_t chip_memory_bytes = 0;   // usable bytes of a chip; 0 = all that the machine has

  // Number of chips, columns times rows. Throws InvalidArgumentError unless the topology is two
  // positive numbers.
  int64_t total_chips() const;
};

// Placement on one chip.
struct WSEPartition {
  int64_t chip = 0;                // its number, row by row from 0
  std::vector<std::string> nodes;  // names of its nodes, in the order in which they run
  int64_t memory_bytes = 0;        // memory of the chip that they take
  int64_t cycles = 0;              // simulated cycles of all of them one after another
  double compute_time_us = 0;      // the same in microseconds
};

// Placement of a graph's nodes on chips, and simulated times of a run. Nodes without a name of
// their own, or with one that another has, go by the name of their first output.
struct WSEPlan {
  std::string machine;                               // the device, "wse2"
  std::vector<WSEPartition> partitions;              // one for each chip that is used, by number
  std::map<std::string, int64_t> node_to_partition;  // number of each node's chip
  // Nodes that the wafer does not take: the CPU runs them, and their time is not in the plan.
  std::vector<std::string> unplaced;
  int64_t total_comm_bytes = 0;  // bytes that a run sends between chips
  double load_imbalance = 0;     // cycles of the busiest chip over the mean of those used, less 1
  double total_latency_us = 0;   // time from the first stage to the last
  double pipeline_interval_us = 0;  // between two results of a stream of runs
  // Whether the weights do not fit on the chips at once, so that one chip works and they come from
  // the host.
  bool streaming = false;
  bool simulated = true;  // true: no device was used
  std::string text;       // the plan as a table
  std::string drawing;    // result of svg()

  // Drawing of the chips as SVG, with each stage in its place; empty when nothing lies on them.
  const std::string& svg() const noexcept { return drawing; }
};

namespace detail {

using namespace pyflame_rt::detail;

constexpr const char* kWafer = "WSEExecutionProvider";

inline std::string topology_text(const WSEChipConfig& config) {
  std::string out;
  for (const int64_t size : config.topology)
    out += (out.empty() ? "" : ", ") + std::to_string(size);
  return "[" + out + "]";
}

// Writes a number as the provider's options take it, in any locale.
inline std::string number(const char* name, const char* unit, double value) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out.precision(17);
  out << value;
  if (!(value >= 0) || std::isinf(value))
    throw InvalidArgumentError(std::string(name) + " of wafer-scale chips is " + out.str() +
                               "; give " + unit + ", a number of 0 or more (0 = the default)");
  return out.str();
}

// Options of the provider, by their keys without "provider.wse.".
inline std::map<std::string, std::string> options_of(const WSEChipConfig& config) {
  (void)config.total_chips();  // throws where there is no such grid
  return {{"chips", std::to_string(config.topology[0]) + "x" + std::to_string(config.topology[1])},
          {"timing_only", "true"},
          {"inter_chip_bandwidth",
           number("inter_chip_bandwidth", "bytes a second", config.inter_chip_bandwidth)},
          {"inter_chip_latency",
           number("inter_chip_latency", "nanoseconds", config.inter_chip_latency)},
          {"chip_memory_bytes", std::to_string(config.chip_memory_bytes)}};
}

inline void need_machine(const std::string& machine, const std::string& doing) {
  for (const ProviderInfo& provider : Environment::instance().providers()) {
    if (provider.name != kWafer) continue;
    if (!provider.available) {
      std::string why = doing;
      why.append(" for '").append(machine).append("': ").append(kWafer);
      throw NotFoundError(why.append(" cannot be used: ").append(provider.reason));
    }
    std::string words = ",";
    words.append(provider.devices).append(",");
    std::string word = ",";
    word.append(machine).append(",");
    if (machine.empty() || words.find(word) == std::string::npos) {
      std::string why = doing;
      why.append(": there is no wafer-scale machine '").append(machine);
      throw InvalidArgumentError(why.append("'; there are ").append(provider.devices));
    }
    return;
  }
  throw NotFoundError(doing + " for '" + machine + "': there is no " + kWafer +
                      "; put libpyflamert_provider_wse.so into a folder of PFRT_PLUGIN_PATH");
}

// Gives each node a name of its own; returns the names of all that compute something, in order.
inline std::vector<std::string> name_nodes(Graph& graph) {
  const std::vector<std::shared_ptr<Node>> nodes = graph.topological_sort();
  std::set<std::string> taken, seen;
  for (const auto& node : nodes) taken.insert(node->name());
  std::vector<std::string> names;
  for (const auto& node : nodes) {
    std::string name = node->name();
    if (name.empty() || seen.count(name) != 0) {
      const auto& outputs = node->outputs();
      const auto output = std::find_if(outputs.begin(), outputs.end(),
                                       [](const std::string& value) { return !value.empty(); });
      name = output == outputs.end() ? node->op_type() : *output;
      while (taken.count(name) != 0) name += "_";
      node->set_name(name);
      taken.insert(name);
    }
    seen.insert(name);
    if (node->op_type() != "Constant" || !node->domain().empty()) names.push_back(name);
  }
  return names;
}

inline const Tensor& tensor_of(const Answer& answer, const char* name) {
  for (const auto& [key, tensor] : answer.tensors)
    if (key == name) return tensor;
  throw PyFlameRTError(std::string("reading the plan of ") + kWafer + ": its answer has no '" +
                       name + "'; its version is another than this header's");
}
template <typename T>
T first_of(const Answer& answer, const char* name) {
  return tensor_of(answer, name).data_ptr<T>()[0];
}

// Makes the plan from the provider's answer about a graph with these nodes.
inline WSEPlan plan_from(const Answer& answer, const std::vector<std::string>& node_names) {
  const std::vector<std::string> names = tensor_of(answer, "name").strings();
  const auto* chip = tensor_of(answer, "chip").data_ptr<int64_t>();
  const auto* stage = tensor_of(answer, "stage").data_ptr<int64_t>();
  const auto* cycles = tensor_of(answer, "cycles").data_ptr<int64_t>();
  const auto* stage_bytes = tensor_of(answer, "stage_bytes").data_ptr<int64_t>();
  const double us_a_cycle = 1e6 / first_of<double>(answer, "clock_hz");
  WSEPlan plan;
  plan.text = answer.text;
  plan.streaming = first_of<int64_t>(answer, "streaming") != 0;
  plan.total_latency_us = first_of<double>(answer, "run_cycles") * us_a_cycle;
  plan.pipeline_interval_us = first_of<double>(answer, "result_cycles") * us_a_cycle;
  plan.total_comm_bytes = static_cast<int64_t>(first_of<double>(answer, "comm_bytes"));
  std::map<int64_t, WSEPartition> by_chip;
  std::map<int64_t, int64_t> chip_of_stage;
  for (size_t i = 0; i < names.size(); ++i) {
    WSEPartition& one = by_chip[chip[i]];
    one.chip = chip[i];
    one.nodes.push_back(names[i]);
    one.cycles += cycles[i];
    plan.node_to_partition[names[i]] = chip[i];
    chip_of_stage[stage[i]] = chip[i];
  }
  // Stages lie side by side, or one after another in the same place.
  for (const auto& [number, of] : chip_of_stage) {
    const int64_t taken = stage_bytes[number];
    int64_t& memory = by_chip[of].memory_bytes;
    memory = plan.streaming ? std::max(memory, taken) : memory + taken;
  }
  double most = 0, all = 0;
  for (auto& [number, one] : by_chip) {
    const auto load = static_cast<double>(one.cycles);
    one.compute_time_us = load * us_a_cycle;
    most = std::max(most, load);
    all += load;
    plan.partitions.push_back(std::move(one));
  }
  if (all > 0) plan.load_imbalance = most * static_cast<double>(plan.partitions.size()) / all - 1;
  for (const std::string& name : node_names)
    if (plan.node_to_partition.count(name) == 0) plan.unplaced.push_back(name);
  return plan;
}

// Guards the device's one plan, which is that of the last session made, from making the session
// until the device has answered.
inline std::mutex& plan_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace detail

inline int64_t WSEChipConfig::total_chips() const {
  const bool two = topology.size() == 2 && topology[0] > 0 && topology[1] > 0;
  if (!two || topology[0] > std::numeric_limits<int64_t>::max() / topology[1])
    throw InvalidArgumentError("topology of wafer-scale chips is " + detail::topology_text(*this) +
                               "; give two positive whole numbers, columns and rows, as {2, 2}");
  return topology[0] * topology[1];
}

namespace wse {

// Places the nodes of |graph| on chips of |machine|, "wse2" or "wse3", and simulates a run. Each
// product begins a stage with the nodes that follow it; stages lie side by side, in the order in
// which they run, first on one chip and then on the next. Dimensions that the graph leaves open
// count 128, or 1 where they come first. Throws InvalidArgumentError for a wrong config or machine,
// and NotFoundError without the wafer-scale provider.
inline WSEPlan partition_for_wse(const Graph& graph, const WSEChipConfig& config = {},
                                 const std::string& machine = "wse2") {
  detail::need_machine(machine, "partitioning a graph");
  Question question;
  question.provider = "wse";
  question.verb = "plan";
  question.request = "text";
  question.device = machine;
  question.options = detail::options_of(config);
  SessionOptions options;
  options.device = machine;
  options.optimization_level = OptLevel::None;
  for (const auto& [key, value] : question.options) options.extra["provider.wse." + key] = value;
  Graph part = graph.clone();
  const std::vector<std::string> names = detail::name_nodes(part);
  const std::lock_guard<std::mutex> lock(detail::plan_mutex());
  const InferenceSession session(part, options);
  WSEPlan plan;
  const std::vector<ExplainStep> steps = session.explain().steps;
  if (std::any_of(steps.begin(), steps.end(),
                  [](const ExplainStep& step) { return step.provider == detail::kWafer; })) {
    plan = detail::plan_from(Environment::instance().ask(question), names);
    question.request = "svg";
    plan.drawing = Environment::instance().ask(question).text;
  } else {
    plan.unplaced = names;
    plan.text = "simulated " + machine + ": it takes no node of the graph\n";
  }
  plan.machine = machine;
  return plan;
}

// Calls partition_for_wse, after a check of |config.num_chips| against the topology where it is
// more than 1: InvalidArgumentError names both numbers when they differ.
inline WSEPlan partition_for_multi_chip(const Graph& graph, const WSEChipConfig& config,
                                        const std::string& machine = "wse2") {
  if (config.num_chips < 1)
    throw InvalidArgumentError("num_chips of wafer-scale chips is " +
                               std::to_string(config.num_chips) + "; give a number of 1 or more");
  const int64_t chips = config.total_chips();
  if (config.num_chips > 1 && config.num_chips != chips)
    throw InvalidArgumentError("num_chips is " + std::to_string(config.num_chips) +
                               ", but topology " + detail::topology_text(config) + " has " +
                               std::to_string(chips) +
                               " chips; make them equal, or leave num_chips at 1");
  return partition_for_wse(graph, config, machine);
}

// Returns a graph that computes the same as |graph|, with products of one input joined where
// |machine| takes less time for that: MatMuls with constant matrices, as those for queries, keys
// and values, or up and gate, become one with the matrices side by side, and a Split. Results
// differ at most in the rounding of sums. Throws what partition_for_wse throws.
inline Graph optimize_for_wse_dataflow(const Graph& graph, const std::string& machine = "wse2") {
  detail::need_machine(machine, "optimising a graph");
  opt::DataflowConfig config;
  config.target_backend = detail::kWafer;
  config.device = machine;
  Graph made = graph.clone();
  (void)opt::DataflowPass(config).run(made);
  return made;
}

}  // namespace wse
}  // namespace pyflame_rt::partition
