// SPDX-License-Identifier: Apache-2.0
#include "test/providers/cpu/graph.h"

#include <cstring>
#include <deque>
#include <memory>
#include <numeric>

#include "core/base/dtype.h"
#include "providers/cpu/provider.h"
#include "test/providers/cpu/attrs.h"
#include "test/providers/cpu/step_host.h"

namespace pfrt::test {
namespace {

pfrt_code report(const pfrt_sink* sink, pfrt_code code, uint32_t, pfrt_string text) {
  static_cast<std::string*>(sink->host)->assign(text.data, text.size);
  return code;
}

// The snapshot of a graph that the provider is given.
class GraphSnapshot {
 public:
  explicit GraphSnapshot(const Graph& graph) {
    for (uint32_t v = 0; v < graph.values.size(); ++v) {
      const auto told = graph.told.find(v);
      add(graph.values[v], told == graph.told.end() ? graph.values[v].dims : told->second);
    }
    for (uint32_t n = 0; n < graph.nodes.size(); ++n) add(graph.nodes[n], n);
    for (uint32_t v : graph.outputs) ++values_[v].consumer_count;
    snapshot_.struct_size = sizeof snapshot_;
    snapshot_.abi = PFRT_ABI_VERSION;
    snapshot_.node_size = sizeof(pfrt_snapshot_node);
    snapshot_.value_size = sizeof(pfrt_snapshot_value);
    snapshot_.attr_size = sizeof(pfrt_snapshot_attr);
    snapshot_.node_count = static_cast<uint32_t>(nodes_.size());
    snapshot_.value_count = static_cast<uint32_t>(values_.size());
    snapshot_.nodes = nodes_.data();
    snapshot_.values = values_.data();
  }
  GraphSnapshot(const GraphSnapshot&) = delete;
  GraphSnapshot& operator=(const GraphSnapshot&) = delete;

  const pfrt_snapshot& snapshot() const { return snapshot_; }
  const pfrt_snapshot_value& value(uint32_t v) const { return values_[v]; }
  const std::vector<char>& bytes(uint32_t v) const { return bytes_[v]; }

 private:
  void add(const Data& data, const Dims& told) {
    std::vector<char>& bytes =
        bytes_.emplace_back(static_cast<size_t>(count(data.dims)) * dtype_size(data.dtype));
    if (!data.values.empty()) store(data.dtype, data.values, bytes.data());
    const Dims& dims = dims_.emplace_back(told);
    pfrt_snapshot_value v{};
    v.dtype = data.dtype;
    v.rank = static_cast<int32_t>(dims.size());
    v.dims = dims.data();
    v.producer = PFRT_NO_INDEX;
    if (data.constant) {
      v.flags = PFRT_SNAPSHOT_CONSTANT;
      v.data = bytes.data();
      v.bytes = bytes.size();
    }
    values_.push_back(v);
  }
  void add(const GraphNode& node, uint32_t index) {
    const Attrs& attrs = attrs_.emplace_back(node.attrs);
    pfrt_snapshot_node n{};
    n.op = to_c(node.op);
    n.domain = to_c(node.domain);
    n.id = index;
    n.canonical = 1;
    n.inputs = node.inputs.data();
    n.input_count = static_cast<uint32_t>(node.inputs.size());
    n.outputs = node.outputs.data();
    n.output_count = static_cast<uint32_t>(node.outputs.size());
    n.attrs = attrs.data();
    n.attr_count = attrs.size();
    n.tail_of = node.tail_of;
    nodes_.push_back(n);
    for (uint32_t v : node.inputs)
      if (v != PFRT_NO_INDEX) ++values_[v].consumer_count;
    for (uint32_t v : node.outputs)
      if (v != PFRT_NO_INDEX) values_[v].producer = index;
  }

  std::deque<Dims> dims_;
  std::deque<std::vector<char>> bytes_;
  std::deque<Attrs> attrs_;
  std::vector<pfrt_snapshot_value> values_;
  std::vector<pfrt_snapshot_node> nodes_;
  pfrt_snapshot snapshot_{};
};

// An opened provider and everything made in it, in the order of release.
class Session {
 public:
  explicit Session(std::string& fault, const pfrt_tuning* tuning = nullptr)
      : sink_{sizeof(pfrt_sink),
              PFRT_ABI_VERSION,
              &fault,
              report,
              [](const pfrt_sink*, pfrt_log_level, pfrt_string) {},
              [](const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; },
              [](const pfrt_sink*, double) {},
              tuning} {
    (void)table.open(to_c("cpu"), nullptr, 0, &sink_, &provider);
  }
  ~Session() {
    release_program();
    if (executable != nullptr) table.release_executable(executable);
    if (provider != nullptr) table.close(provider);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool compile(const GraphSnapshot& from, const Graph& graph);
  bool specialise(const Graph& graph);
  bool pack(uint32_t constant, const GraphSnapshot& from, void* out) const;
  bool supports(const pfrt_op_query& query) const {
    return table.supports(provider, &query, &sink_) == PFRT_CODE_OK;
  }

  const pfrt_provider_table& table = cpu::provider_table();
  pfrt_provider* provider = nullptr;
  pfrt_executable* executable = nullptr;
  pfrt_program program{};
  std::vector<uint32_t> inputs;  // inputs of the region

 private:
  void release_program() {
    if (program.handle != nullptr) table.release_program(executable, &program);
    program = {};
  }
  pfrt_sink sink_;
};

bool Session::compile(const GraphSnapshot& from, const Graph& graph) {
  for (uint32_t v = 0; v < graph.values.size(); ++v)
    if (!graph.values[v].constant && from.value(v).producer == PFRT_NO_INDEX &&
        from.value(v).consumer_count > 0)
      inputs.push_back(v);
  std::vector<uint32_t> nodes(graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0u);
  pfrt_region c{};
  c.struct_size = sizeof c;
  c.abi = PFRT_ABI_VERSION;
  c.hints = graph.hints;
  c.nodes = nodes.data();
  c.node_count = static_cast<uint32_t>(nodes.size());
  c.inputs = inputs.data();
  c.input_count = static_cast<uint32_t>(inputs.size());
  c.outputs = graph.outputs.data();
  c.output_count = static_cast<uint32_t>(graph.outputs.size());
  c.snapshot = &from.snapshot();
  size_t at = 0;
  return table.compile(provider, &c, sizeof c, 1, &sink_, &executable, &at) == PFRT_CODE_OK;
}

bool Session::pack(uint32_t constant, const GraphSnapshot& from, void* out) const {
  const pfrt_packed_constant* constants = nullptr;
  size_t size = 0, count = 0;
  if (table.constants(executable, &sink_, &constants, &size, &count) != PFRT_CODE_OK ||
      constant >= count)
    return false;
  const pfrt_packed_constant& c = constants[constant];
  std::vector<const void*> sources;
  for (uint32_t i = 0; i < c.source_count; ++i) sources.push_back(from.bytes(c.sources[i]).data());
  return c.pack(c.user, sources.data(), out, &sink_) == PFRT_CODE_OK;
}

bool Session::specialise(const Graph& graph) {
  std::vector<int32_t> ranks;
  std::vector<const int64_t*> dims;
  for (const Data& data : graph.values) {
    ranks.push_back(static_cast<int32_t>(data.dims.size()));
    dims.push_back(data.dims.data());
  }
  const pfrt_shapes shapes{sizeof shapes,
                           PFRT_ABI_VERSION,
                           ranks.data(),
                           dims.data(),
                           static_cast<uint32_t>(ranks.size()),
                           0,
                           nullptr};
  release_program();
  program.struct_size = sizeof program;
  return table.specialise(executable, &shapes, &sink_, &program) == PFRT_CODE_OK;
}

// Runs the session's program for |graph|.
GraphOutcome run_program(const Session& session, const Graph& graph, uint32_t workers) {
  GraphOutcome outcome;
  const GraphSnapshot snapshot(graph);
  const pfrt_program& program = session.program;
  std::deque<Guarded> memory;
  std::vector<void*> buffers;
  for (uint32_t b = 0; b < program.buffer_count; ++b) {
    const pfrt_buffer& buffer = program.buffers[b];
    const bool unaligned = buffer.kind == PFRT_BUFFER_INITIALIZER && buffer.alignment == 1;
    // An additional byte moves such constants to an odd address.
    Guarded& own = memory.emplace_back(static_cast<size_t>(buffer.bytes) + unaligned);
    outcome.unaligned += unaligned;
    buffers.push_back(own.data());
    if (buffer.kind == PFRT_BUFFER_CONST) {
      if (!session.pack(buffer.index, snapshot, own.data())) outcome.fault = "packing failed";
      own.make_read_only();
      continue;
    }
    const bool is_input = buffer.kind == PFRT_BUFFER_IN;
    if (!is_input && buffer.kind != PFRT_BUFFER_INITIALIZER) continue;
    const std::vector<char>& from =
        snapshot.bytes(is_input ? session.inputs[buffer.index] : buffer.index);
    if (!from.empty()) std::memcpy(own.data(), from.data(), static_cast<size_t>(buffer.bytes));
    own.make_read_only();
  }
  for (uint32_t b = 0; b < program.buffer_count; ++b) {
    // An output may take the place of an input only where it was given that input's memory.
    if (program.buffers[b].may_alias == 0 || program.buffers[b].kind != PFRT_BUFFER_TEMP) continue;
    buffers[b] = buffers[program.buffers[b].may_alias - 1];
    ++outcome.aliases;
  }
  for (uint32_t b = 0; b < program.buffer_count; ++b)
    if (const pfrt_buffer& part = program.buffers[b]; part.kind == PFRT_BUFFER_PART)
      buffers[b] = static_cast<char*>(buffers[part.index]) + part.offset;
  for (uint32_t s = 0; s < program.step_count && outcome.fault.empty(); ++s) {
    const pfrt_step& step = program.steps[s];
    const StepHost host(buffers, workers, step.scratch_bytes);
    if (step.run(step.state, host.context())) outcome.fault = "run: " + host.message();
    outcome.kernels.emplace_back(view(step.kernel));
    outcome.details.emplace_back(view(step.detail));
    outcome.tunings.emplace_back(view(step.tuning));
    outcome.nodes.emplace_back(step.nodes, step.nodes + step.node_count);
    outcome.bytes += step.bytes;
  }
  outcome.outputs.resize(graph.outputs.size());
  for (uint32_t b = 0; b < program.buffer_count; ++b) {
    if (program.buffers[b].kind != PFRT_BUFFER_OUT) continue;
    const auto* from = static_cast<const char*>(buffers[b]);
    outcome.outputs[program.buffers[b].index].assign(from, from + program.buffers[b].bytes);
  }
  return outcome;
}

}  // namespace

uint32_t Graph::add(std::string op, std::vector<uint32_t> inputs, Dims dims,
                    std::vector<Attr> attrs, uint32_t tail_of) {
  const uint32_t value = add(Data{PFRT_DTYPE_FLOAT32, std::move(dims), {}});
  nodes.push_back({std::move(op), std::move(inputs), {value}, std::move(attrs), tail_of, {}});
  return value;
}

std::string Graph::text() const {
  std::string out;
  for (const GraphNode& node : nodes) {
    Case c{{}, {}, node.attrs};
    for (uint32_t v : node.inputs) c.inputs.push_back(v == PFRT_NO_INDEX ? Data{} : values[v]);
    for (uint32_t v : node.outputs) c.outputs.push_back(v == PFRT_NO_INDEX ? Data{} : values[v]);
    out += message(out.empty() ? "" : "; ", node.op, " ", c.text());
  }
  return out;
}

GraphOutcome run(const Graph& graph, uint32_t workers) {
  return run_each({&graph, 1}, workers).front();
}

std::vector<GraphOutcome> run_each(std::span<const Graph> graphs, uint32_t workers) {
  std::string fault;
  const GraphSnapshot first(graphs.front());  // the executable borrows its constants
  Session session(fault, graphs.front().tuning);
  const bool compiled = session.compile(first, graphs.front());
  std::vector<GraphOutcome> outcomes;
  for (const Graph& graph : graphs) {
    if (compiled && session.specialise(graph)) {
      outcomes.push_back(run_program(session, graph, workers));
    } else {
      outcomes.emplace_back().fault = fault.empty() ? "failed without a message" : fault;
    }
  }
  return outcomes;
}

std::string refused_epilogue(const Graph& graph, uint32_t head) {
  std::string reason;
  const GraphSnapshot snapshot(graph);
  const Session session(reason);
  std::vector<uint32_t> epilogue(graph.nodes.size() - head - 1);
  std::iota(epilogue.begin(), epilogue.end(), head + 1);
  pfrt_op_query query{};
  query.struct_size = sizeof query;
  query.abi = PFRT_ABI_VERSION;
  query.snapshot = &snapshot.snapshot();
  query.node = head;
  query.tail = epilogue.data();
  query.tail_count = static_cast<uint32_t>(epilogue.size());
  if (!session.supports(query) && reason.empty()) reason = "refused without a reason";
  return reason;
}

}  // namespace pfrt::test
