// SPDX-License-Identifier: Apache-2.0
//
// Add, Mul, Neg, Abs and Sigmoid of float32 for the tests' own providers, a step for each node.
// Written against the plug-in header alone, as a stranger's provider would be.
#pragma once

#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "pyflame_rt/plugin.h"

namespace elementwise {

struct Op {
  std::string_view name;
  uint32_t inputs;
  float (*of)(float a, float b);
};

inline constexpr Op kOps[] = {
    {"Add", 2, [](float a, float b) { return a + b; }},
    {"Mul", 2, [](float a, float b) { return a * b; }},
    {"Neg", 1, [](float a, float) { return -a; }},
    {"Abs", 1, [](float a, float) { return std::fabs(a); }},
    {"Sigmoid", 1, [](float a, float) { return 1 / (1 + std::exp(-a)); }},
};

inline pfrt_string text(std::string_view s) { return {s.data(), s.size()}; }

inline const Op* find(const pfrt_snapshot& snapshot, uint32_t index) {
  const pfrt_snapshot_node& node = snapshot.nodes[index];
  const std::string_view name = node.op.size ? std::string_view(node.op.data, node.op.size) : "";
  for (const Op& op : kOps)
    if (op.name == name && node.domain.size == 0 && node.input_count == op.inputs &&
        snapshot.values[node.outputs[0]].dtype == PFRT_DTYPE_FLOAT32)
      return &op;
  return nullptr;
}

// A node with its operands' sizes. A smaller operand is repeated, like one that lacks leading
// dimensions.
struct Step {
  const Op* op = nullptr;
  uint32_t node = 0;
  std::vector<uint32_t> reads;
  uint32_t write = 0;
  std::vector<uint64_t> counts;  // elements of the reads, then of the write
  void* owner = nullptr;         // the provider's own

  void compute(void* const* buffers) const {
    const auto* a = static_cast<const float*>(buffers[reads[0]]);
    const auto* b = static_cast<const float*>(buffers[reads.back()]);
    auto* out = static_cast<float*>(buffers[write]);
    for (uint64_t i = 0; i < counts.back(); ++i)
      out[i] = op->of(a[i % counts[0]], b[i % counts[reads.size() - 1]]);
  }
};

struct Program {
  std::vector<pfrt_buffer> buffers;
  std::vector<Step> states;
  std::vector<pfrt_step> steps;
};

// A region as compile keeps it.
class Region {
 public:
  explicit Region(const pfrt_region& region)
      : inputs_(region.inputs, region.inputs + region.input_count),
        outputs_(region.outputs, region.outputs + region.output_count) {
    const pfrt_snapshot& snapshot = *region.snapshot;
    for (uint32_t i = 0; i < region.node_count; ++i) {
      const uint32_t n = region.nodes[i];
      const pfrt_snapshot_node& node = snapshot.nodes[n];
      nodes_.push_back(
          {n, find(snapshot, n), {node.inputs, node.inputs + node.input_count}, node.outputs[0]});
      for (uint32_t in : nodes_.back().inputs)
        if (snapshot.values[in].flags & PFRT_SNAPSHOT_CONSTANT) constants_.insert(in);
    }
  }
  const std::set<uint32_t>& constants() const { return constants_; }

  // All buffers are to be in |memory|; with |late| the steps allocate the outputs.
  std::unique_ptr<Program> specialise(const pfrt_shapes& shapes, pfrt_memory_kind memory,
                                      pfrt_code (*run)(void*, const pfrt_step_context*),
                                      void* owner, bool late = false) const {
    auto program = std::make_unique<Program>();
    std::map<uint32_t, uint32_t> home;
    const auto count = [&](uint32_t value) {
      uint64_t n = 1;
      for (int32_t d = 0; d < shapes.ranks[value]; ++d)
        n *= static_cast<uint64_t>(shapes.dims[value][d]);
      return n;
    };
    const auto place = [&](uint32_t value, pfrt_buffer_kind kind, uint32_t index) {
      if (home.count(value)) return;
      home[value] = static_cast<uint32_t>(program->buffers.size());
      pfrt_buffer buffer{};
      buffer.kind = kind;
      buffer.index = index;
      const bool allocated = late && kind == PFRT_BUFFER_OUT;
      buffer.bytes = allocated ? PFRT_BYTES_UNKNOWN : count(value) * sizeof(float);
      buffer.memory = memory;
      program->buffers.push_back(buffer);
    };
    for (uint32_t i = 0; i < inputs_.size(); ++i) place(inputs_[i], PFRT_BUFFER_IN, i);
    for (uint32_t i = 0; i < outputs_.size(); ++i) place(outputs_[i], PFRT_BUFFER_OUT, i);
    for (uint32_t value : constants_) place(value, PFRT_BUFFER_INITIALIZER, value);
    for (const Node& node : nodes_) place(node.output, PFRT_BUFFER_TEMP, 0);
    for (const Node& node : nodes_) {
      Step step;
      step.op = node.op;
      step.node = node.index;
      step.owner = owner;
      for (uint32_t in : node.inputs) {
        step.reads.push_back(home[in]);
        step.counts.push_back(count(in));
      }
      step.write = home[node.output];
      step.counts.push_back(count(node.output));
      // The host makes it in place where it can.
      if (step.counts[0] == step.counts.back())
        program->buffers[step.write].may_alias = step.reads[0] + 1;
      program->states.push_back(std::move(step));
    }
    for (Step& state : program->states) {
      pfrt_step step{};
      step.run = run;
      step.state = &state;
      step.reads = state.reads.data();
      step.read_count = static_cast<uint32_t>(state.reads.size());
      step.writes = &state.write;
      step.write_count = 1;
      step.nodes = &state.node;
      step.node_count = 1;
      step.kernel = text(state.op->name);
      program->steps.push_back(step);
    }
    return program;
  }

 private:
  struct Node {
    uint32_t index;
    const Op* op;
    std::vector<uint32_t> inputs;
    uint32_t output;
  };
  std::vector<Node> nodes_;
  std::vector<uint32_t> inputs_, outputs_;
  std::set<uint32_t> constants_;
};

inline void fill(Program* from, pfrt_program* out) {
  out->buffer_size = sizeof(pfrt_buffer);
  out->step_size = sizeof(pfrt_step);
  out->buffer_count = static_cast<uint32_t>(from->buffers.size());
  out->step_count = static_cast<uint32_t>(from->steps.size());
  out->buffers = from->buffers.data();
  out->steps = from->steps.data();
  out->handle = from;
}

// The parts of a description that every test provider shares.
inline pfrt_code describe(const pfrt_host_info* host, pfrt_plugin_desc* out, std::string_view name,
                          uint64_t features, const pfrt_provider_table* table) {
  out->abi = PFRT_ABI_VERSION;
  out->abi_major = PFRT_ABI_MAJOR;
  out->max_minor = PFRT_ABI_MINOR;
  out->kind = PFRT_PLUGIN_PROVIDER;
#if defined(PFRT_SANITIZE_ADDRESS)
  out->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out->features = features;
  out->name = text(name);
  out->version = text("1.0");
  out->table = table;
  return host->abi_major == PFRT_ABI_MAJOR ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}

}  // namespace elementwise
