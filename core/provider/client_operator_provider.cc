// SPDX-License-Identifier: Apache-2.0
//
// Handles: a pfrt_provider is a Registered, which its source keeps. Unlike a plug-in's, an
// executable here reads the snapshot it was compiled from: a compiled graph keeps its snapshot
// longer than its executables.
#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <new>

#include "core/provider/client_operator.h"
#include "core/provider/client_operator_state.h"

namespace pfrt {
namespace {

constexpr std::string_view kName = "RegisteredOperators";

struct Registered {
  std::shared_ptr<const OperatorSet> set;
  uint64_t max_pixels;
};

const Registered& of(pfrt_provider* provider) {
  return *reinterpret_cast<const Registered*>(provider);
}

NodeTypes types_of(const pfrt_snapshot& snapshot, const pfrt_snapshot_node& node) {
  NodeTypes out;
  const auto list = [&](const uint32_t* values, uint32_t count, auto& to) {
    while (count && values[count - 1] == PFRT_NO_INDEX) --count;
    for (uint32_t i = 0; i < count; ++i)
      to.push_back(values[i] == PFRT_NO_INDEX ? std::nullopt
                                              : std::optional(snapshot.values[values[i]].dtype));
  };
  list(node.inputs, node.input_count, out.inputs);
  list(node.outputs, node.output_count, out.outputs);
  return out;
}

OperatorChoice choose(const OperatorSet& set, const pfrt_snapshot& snapshot,
                      const pfrt_snapshot_node& node) {
  return set.choose(view(node.domain), view(node.op), node.opset, types_of(snapshot, node));
}

std::string label_of(const pfrt_snapshot& snapshot, const pfrt_snapshot_node& node) {
  if (node.name.size) return message(view(node.op), " '", view(node.name), "'");
  for (uint32_t i = 0; i < node.output_count; ++i)
    if (node.outputs[i] != PFRT_NO_INDEX)
      return message(view(node.op), " producing '", view(snapshot.values[node.outputs[i]].name),
                     "'");
  return std::string(view(node.op));
}

struct Executable {
  uint64_t max_pixels;
  const pfrt_snapshot& snapshot;
  std::vector<uint32_t> nodes, inputs, outputs;
  std::vector<OperatorState> states;  // by position in |nodes|
};

constexpr uint32_t kNoBuffer = UINT32_MAX;
constexpr int64_t kNoDims[1] = {0};

// A tensor of a step without its bytes, which differ from run to run.
struct Port {
  pfrt_tensor tensor{};
  pfrt_string name{};
  uint32_t buffer = kNoBuffer;
  bool late = false;  // an output whose dimensions the run decides
};

struct Step {
  const OperatorState* state = nullptr;
  const pfrt_snapshot_node* node = nullptr;
  std::string label, kernel;
  std::vector<Port> inputs, outputs;
  std::vector<pfrt_string> input_names, output_names;
  std::vector<uint32_t> reads, writes;
  uint32_t index = 0;  // of the node
  uint64_t max_pixels = 0;
};

// A call of a compute callback.
class Call {
 public:
  Call(const Step& step, const pfrt_step_context& host) : step_(step), host_(host) {
    for (const Port& port : step.inputs) inputs_.push_back(tensor(port));
    for (const Port& port : step.outputs) outputs_.push_back(tensor(port));
    given_.resize(outputs_.size(), 0);
    context_.struct_size = sizeof context_;
    context_.abi = PFRT_ABI_VERSION;
    context_.host = this;
    context_.node = step.node;
    context_.attr_size = sizeof(pfrt_snapshot_attr);
    context_.input_count = static_cast<uint32_t>(inputs_.size());
    context_.output_count = static_cast<uint32_t>(outputs_.size());
    context_.inputs = inputs_.data();
    context_.outputs = outputs_.data();
    context_.input_names = step.input_names.data();
    context_.output_names = step.output_names.data();
    context_.alloc_output = [](const pfrt_op_compute* c, uint32_t index, pfrt_dtype dtype,
                               const int64_t* dims, uint32_t rank, void** out) -> pfrt_code {
      if (!out) return PFRT_CODE_INVALID_ARGUMENT;
      *out = nullptr;
      Call& self = of(c);
      try {
        const Status status = self.allocate(index, dtype, dims, rank, out);
        return status.ok()
                   ? static_cast<pfrt_code>(PFRT_CODE_OK)
                   : c->fail(c, static_cast<pfrt_code>(status.code()), to_c(status.message()));
      } catch (const std::bad_alloc&) {
        return PFRT_CODE_OUT_OF_MEMORY;
      }
    };
    context_.parallel = [](const pfrt_op_compute* c, uint64_t n,
                           void (*fn)(void*, uint64_t, uint32_t), void* arg) {
      const pfrt_step_context& host_context = of(c).host_;
      host_context.parallel(&host_context, n, fn, arg);
    };
    context_.stop = [](const pfrt_op_compute* c) { return of(c).host_.stop(&of(c).host_); };
    context_.fail = [](const pfrt_op_compute* c, pfrt_code code, pfrt_string text) {
      return of(c).fail(code, view(text));
    };
    context_.max_pixels = step.max_pixels;
    context_.state = step.state->get();
    context_.set_strings = [](const pfrt_op_compute* c, uint32_t index, uint64_t first,
                              const pfrt_string* texts, uint64_t count) {
      return of(c).set_strings(index, first, texts, count);
    };
  }

  pfrt_code run() {
    const pfrt_code code = step_.state->op().compute(context_);
    if (code == PFRT_CODE_CANCELLED || code == PFRT_CODE_DEADLINE) return code;
    if (code != PFRT_CODE_OK)
      return fail(code,
                  message("its compute callback failed: ", code_text(static_cast<Code>(code))));
    for (size_t i = 0; i < given_.size(); ++i)
      if (step_.outputs[i].late && !given_[i])
        return fail(PFRT_CODE_PROVIDER, message("its compute callback did not allocate output ", i,
                                                " ('", view(step_.outputs[i].name), "')"));
    return PFRT_CODE_OK;
  }

 private:
  static Call& of(const pfrt_op_compute* c) { return *static_cast<Call*>(c->host); }

  pfrt_tensor tensor(const Port& port) const {
    pfrt_tensor out = port.tensor;
    if (port.buffer != kNoBuffer && !port.late) out.data = host_.buffers[port.buffer];
    return out;
  }

  // The host keeps the first message.
  pfrt_code fail(pfrt_code code, std::string_view text) const {
    try {
      const std::string full = message(step_.label, ": ", text);
      return host_.fail(&host_, code, to_c(full));
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    }
  }

  Status allocate(uint32_t index, pfrt_dtype dtype, const int64_t* dims, uint32_t rank,
                  void** out) {
    if (index >= outputs_.size() || (rank && !dims))
      return error(Code::kINVALID_ARGUMENT, "its compute callback asked for output ", index, " of ",
                   outputs_.size(), " with rank ", rank);
    const Port& port = step_.outputs[index];
    if (port.buffer == kNoBuffer) return {};
    if (dtype != port.tensor.dtype)
      return error(Code::kDTYPE_MISMATCH, "its compute callback gives output ", index, " ('",
                   view(port.name), "') as ", dtype_name(dtype), ", it was to be ",
                   dtype_name(port.tensor.dtype));
    if (port.late) {
      if (given_[index])
        return error(Code::kINVALID_ARGUMENT, "its compute callback asked twice for output ",
                     index);
      const uint64_t bytes = tensor_bytes(dtype, element_count(dims, rank));
      if (bytes == UINT64_MAX)
        return error(Code::kSHAPE_MISMATCH, "its compute callback asked for output ", index,
                     " of dimensions ", text_of(dims, rank));
      const pfrt_code code = host_.alloc_output(&host_, port.buffer, dims, rank, out);
      if (code != PFRT_CODE_OK)
        return error(static_cast<Code>(code), "output ", index, " of ", bytes,
                     " bytes could not be allocated");
      given_[index] = 1;
      return {};
    }
    if (rank != port.tensor.rank || !std::equal(dims, dims + rank, port.tensor.dims))
      return error(Code::kSHAPE_MISMATCH, "its compute callback gives output ", index, " ('",
                   view(port.name), "') dimensions ", text_of(dims, rank),
                   ", its shape callback said ", text_of(port.tensor.dims, port.tensor.rank));
    *out = outputs_[index].data;
    return {};
  }

  pfrt_code set_strings(uint32_t index, uint64_t first, const pfrt_string* texts, uint64_t count) {
    const bool there = index < outputs_.size();
    if (there && step_.outputs[index].buffer == kNoBuffer) return PFRT_CODE_OK;
    pfrt_code code = PFRT_CODE_INVALID_ARGUMENT;
    if (there) code = host_.set_strings(&host_, step_.outputs[index].buffer, first, texts, count);
    if (code == PFRT_CODE_OK || code == PFRT_CODE_OUT_OF_MEMORY) return code;
    try {
      return fail(code, message("its compute callback set ", count, " texts from ", first,
                                " on of output ", index, ", which ", why_no_texts(index)));
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    }
  }

  std::string why_no_texts(uint32_t index) const {
    if (index >= outputs_.size()) return message("is not there: it has ", outputs_.size());
    const Port& port = step_.outputs[index];
    if (port.tensor.dtype != PFRT_DTYPE_STRING)
      return message("is of ", dtype_name(port.tensor.dtype));
    if (port.late && !given_[index]) return "has no memory yet: call alloc_output first";
    return "has fewer elements, or no texts were given";
  }

  static std::string text_of(const int64_t* dims, uint32_t rank) {
    std::string text = "[";
    for (uint32_t i = 0; i < rank; ++i) text += (i ? "," : "") + std::to_string(dims[i]);
    return text + "]";
  }

  const Step& step_;
  const pfrt_step_context& host_;
  pfrt_op_compute context_{};
  std::vector<pfrt_tensor> inputs_, outputs_;
  std::vector<char> given_;  // by output: whether it was allocated
};

pfrt_code run_step(void* state, const pfrt_step_context* context) {
  try {
    return Call(*static_cast<const Step*>(state), *context).run();
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
}

// A region's steps for one set of dimensions.
class Program {
 public:
  Program(const Executable& executable, const pfrt_shapes& shapes)
      : executable_(executable), shapes_(shapes) {}

  Status build() {
    for (uint32_t i = 0; i < executable_.inputs.size(); ++i)
      add(executable_.inputs[i], PFRT_BUFFER_IN, i, 0);
    for (size_t i = 0; i < executable_.nodes.size(); ++i)
      PFRT_TRY(add_node(executable_.nodes[i], executable_.states[i]));
    for (Step& step : steps_) {
      pfrt_step out{};
      out.run = run_step;
      out.state = &step;
      out.reads = step.reads.data();
      out.read_count = static_cast<uint32_t>(step.reads.size());
      out.writes = step.writes.data();
      out.write_count = static_cast<uint32_t>(step.writes.size());
      out.nodes = &step.index;
      out.node_count = 1;
      for (const Port& port : step.outputs) out.bytes += port.late ? 0 : port.tensor.bytes;
      for (const Port& port : step.inputs) out.bytes += port.tensor.bytes;
      out.kernel = to_c(step.kernel);
      list_.push_back(out);
    }
    return {};
  }

  void fill(pfrt_program* out) {
    out->buffer_size = sizeof(pfrt_buffer);
    out->step_size = sizeof(pfrt_step);
    out->buffer_count = static_cast<uint32_t>(buffers_.size());
    out->step_count = static_cast<uint32_t>(list_.size());
    out->buffers = buffers_.data();
    out->steps = list_.data();
    out->handle = this;
  }

 private:
  const pfrt_snapshot_value& value(uint32_t v) const { return executable_.snapshot.values[v]; }

  uint32_t add(uint32_t v, pfrt_buffer_kind kind, uint32_t index, uint64_t bytes) {
    pfrt_buffer buffer{};
    buffer.kind = kind;
    buffer.index = index;
    buffer.bytes = bytes;
    buffers_.push_back(buffer);
    buffer_of_[v] = static_cast<uint32_t>(buffers_.size() - 1);
    return buffer_of_[v];
  }

  // Type, dimensions and bytes where they are known.
  bool describe(uint32_t v, pfrt_tensor* out) {
    out->struct_size = sizeof *out;
    out->dtype = value(v).dtype;
    const int32_t rank = shapes_.ranks[v];
    if (rank < 0) return false;
    out->rank = static_cast<uint32_t>(rank);
    dims_.emplace_back(shapes_.dims[v], shapes_.dims[v] + rank);
    out->dims = rank ? dims_.back().data() : kNoDims;
    out->bytes = tensor_bytes(out->dtype, element_count(out->dims, out->rank));
    return true;
  }

  Status add_node(uint32_t n, const OperatorState& state) {
    const pfrt_snapshot& snapshot = executable_.snapshot;
    Step& step = steps_.emplace_back();
    step.index = n;
    step.max_pixels = executable_.max_pixels;
    step.node = &snapshot.nodes[n];
    step.state = &state;
    step.label = label_of(snapshot, *step.node);
    step.kernel = message("registered_", view(step.node->op));
    const auto fault = [&](const auto&... parts) {
      return error(Code::kPROVIDER, step.label, ": ", parts...);
    };
    for (uint32_t i = 0; i < step.node->input_count; ++i) {
      Port& port = step.inputs.emplace_back();
      port.tensor.struct_size = sizeof port.tensor;
      const uint32_t v = step.node->inputs[i];
      if (v != PFRT_NO_INDEX) {
        port.name = value(v).name;
        if (!describe(v, &port.tensor)) return fault("dimensions of input ", i, " are not known");
        if (port.tensor.bytes == UINT64_MAX)
          return error(Code::kINVALID_MODEL, step.label, ": the element type of input ", i, ", '",
                       view(port.name), "', is not known; declare it in the model");
        const auto known = buffer_of_.find(v);
        if (known == buffer_of_.end() && !(value(v).flags & PFRT_SNAPSHOT_CONSTANT))
          return fault("input ", i, " is not produced");
        port.buffer =
            known != buffer_of_.end() ? known->second : add(v, PFRT_BUFFER_INITIALIZER, v, 0);
        step.reads.push_back(port.buffer);
      }
      step.input_names.push_back(port.name);
    }
    for (uint32_t i = 0; i < step.node->output_count; ++i) {
      Port& port = step.outputs.emplace_back();
      port.tensor.struct_size = sizeof port.tensor;
      const uint32_t v = step.node->outputs[i];
      if (v != PFRT_NO_INDEX && value(v).consumer_count > 0) {
        port.name = value(v).name;
        port.late = !describe(v, &port.tensor);
        const auto& outputs = executable_.outputs;
        const auto outside = std::find(outputs.begin(), outputs.end(), v);
        if (port.tensor.dtype == PFRT_DTYPE_STRING && outside == outputs.end())
          return fault("output ", i, " holds strings and does not leave its region");
        if (port.late && outside == outputs.end())
          return fault("dimensions of output ", i, " are not known where the next node needs them");
        const uint64_t bytes = port.late ? PFRT_BYTES_UNKNOWN : port.tensor.bytes;
        port.buffer =
            outside == outputs.end()
                ? add(v, PFRT_BUFFER_TEMP, 0, bytes)
                : add(v, PFRT_BUFFER_OUT, static_cast<uint32_t>(outside - outputs.begin()), bytes);
        step.writes.push_back(port.buffer);
      }
      step.output_names.push_back(port.name);
    }
    return {};
  }

  const Executable& executable_;
  const pfrt_shapes& shapes_;  // while it is built
  std::map<uint32_t, uint32_t> buffer_of_;
  std::deque<Dims> dims_;
  std::deque<Step> steps_;
  std::vector<pfrt_buffer> buffers_;
  std::vector<pfrt_step> list_;
};

// A sentence on a node for which types that are not known decide among operators.
std::string unsure(const OperatorSet& set, const pfrt_snapshot& snapshot,
                   const pfrt_snapshot_node& node) {
  std::string open, there;
  const auto add = [&](const char* what, const uint32_t* values, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      if (values[i] != PFRT_NO_INDEX && snapshot.values[values[i]].dtype == PFRT_DTYPE_UNSET)
        open += message(open.empty() ? "" : ", ", what, " ", i, " ('",
                        view(snapshot.values[values[i]].name), "')");
  };
  add("input", node.inputs, node.input_count);
  add("output", node.outputs, node.output_count);
  for (const CustomOperator* op : set.versions(view(node.domain), view(node.op), node.opset))
    there += message(there.empty() ? "'" : ", '", op->types_text(), "'");
  return message("the element type of ", open, " is not known and decides among operators for ",
                 there, "; let the graph declare it");
}

// A sentence on an output whose type nobody knows; empty when there is none.
std::string untyped(const pfrt_snapshot& snapshot, const pfrt_snapshot_node& node) {
  for (uint32_t o = 0; o < node.output_count; ++o) {
    if (node.outputs[o] == PFRT_NO_INDEX) continue;
    const pfrt_snapshot_value& value = snapshot.values[node.outputs[o]];
    if (value.consumer_count == 0 || value.dtype != PFRT_DTYPE_UNSET) continue;
    return message("the element type of output ", o, " ('", view(value.name),
                   "') is not known; let the graph declare it, or give the operator a shape "
                   "callback or output_types");
  }
  return {};
}

// ---- the table ----

pfrt_code open(void* user, pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
               pfrt_provider** out) {
  *out = static_cast<pfrt_provider*>(user);
  return PFRT_CODE_OK;
}

void close(pfrt_provider*) {}

pfrt_code claim(pfrt_provider* provider, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink*) {
  for (uint32_t n = 0; n < snapshot->node_count; ++n) {
    if (choose(*of(provider).set, *snapshot, snapshot->nodes[n]).op) {
      claims->accept(claims, n, 0, 0);
    } else {
      claims->refuse(claims, n, to_c(""));  // it is not expected to run other operators
    }
  }
  return PFRT_CODE_OK;
}

pfrt_code make_executable(pfrt_provider* provider, const pfrt_region* region, const pfrt_sink* sink,
                          pfrt_executable** out) {
  const pfrt_snapshot* snapshot = region->snapshot;
  auto made = std::make_unique<Executable>(
      Executable{of(provider).max_pixels,
                 *snapshot,
                 {region->nodes, region->nodes + region->node_count},
                 {region->inputs, region->inputs + region->input_count},
                 {region->outputs, region->outputs + region->output_count},
                 {}});
  made->states.reserve(region->node_count);
  const OperatorSet& set = *of(provider).set;
  for (uint32_t i = 0; i < region->node_count; ++i) {
    const pfrt_snapshot_node& node = snapshot->nodes[region->nodes[i]];
    const OperatorChoice choice = choose(set, *snapshot, node);
    const std::string fault =
        !choice.op || !choice.sure ? unsure(set, *snapshot, node) : untyped(*snapshot, node);
    if (!fault.empty())
      return sink->fail(sink, PFRT_CODE_UNSUPPORTED_OPERATOR, region->nodes[i], to_c(fault));
    // Sets that reach a session hold ClientOperators only.
    auto state = OperatorState::create(static_cast<const ClientOperator&>(*choice.op), *snapshot,
                                       region->nodes[i], label_of(*snapshot, node), *sink);
    // The error is the session's: without a node, it does not send the node to another provider.
    if (!state.ok())
      return sink->fail(sink, static_cast<pfrt_code>(state.status().code()), PFRT_NO_INDEX,
                        to_c(state.status().message()));
    made->states.push_back(state.take());
  }
  *out = reinterpret_cast<pfrt_executable*>(made.release());
  return PFRT_CODE_OK;
}

// The executables made before this one would be lost where it threw.
pfrt_code compile_one(pfrt_provider* provider, const pfrt_region* region, const pfrt_sink* sink,
                      pfrt_executable** out) noexcept {
  try {
    return make_executable(provider, region, sink, out);
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (...) {
    return PFRT_CODE_INTERNAL;
  }
}

void release_executable(pfrt_executable* executable) {
  delete reinterpret_cast<Executable*>(executable);
}

pfrt_code compile(pfrt_provider* provider, const pfrt_region* regions, size_t region_size,
                  size_t count, const pfrt_sink* sink, pfrt_executable** out_executables,
                  size_t* out_region) {
  return pfrt_compile_each(provider, regions, region_size, count, sink, out_executables, out_region,
                           compile_one, release_executable);
}

pfrt_code specialise(pfrt_executable* executable, const pfrt_shapes* shapes, const pfrt_sink* sink,
                     pfrt_program* out) {
  auto made = std::make_unique<Program>(*reinterpret_cast<Executable*>(executable), *shapes);
  if (const Status status = made->build(); !status.ok())
    return sink->fail(sink, static_cast<pfrt_code>(status.code()), PFRT_NO_INDEX,
                      to_c(status.message()));
  made.release()->fill(out);
  return PFRT_CODE_OK;
}

void release_program(pfrt_executable*, pfrt_program* program) {
  delete static_cast<Program*>(program->handle);
}

constexpr pfrt_provider_table make_table() {
  pfrt_provider_table table{};
  table.struct_size = sizeof table;
  table.abi = PFRT_ABI_VERSION;
  table.devices = {"host", 4};
  table.close = close;
  table.claim = claim;
  table.compile = compile;
  table.release_executable = release_executable;
  table.specialise = specialise;
  table.release_program = release_program;
  return table;
}
constexpr pfrt_provider_table kTable = make_table();

}  // namespace

Status add_client_operators(const std::shared_ptr<const OperatorSet>& set, Logger* logger,
                            std::vector<Candidate>& candidates, uint64_t max_pixels) {
  if (!set) return {};
  auto registered = std::make_shared<Registered>(Registered{set, max_pixels});
  ProviderSource source;
  source.name = kName;
  source.device = "host";
  source.table = &kTable;
  source.open = open;
  source.user = registered.get();
  source.library = std::move(registered);
  PFRT_ASSIGN(auto opened, Provider::open(source, logger));
  candidates.push_back({source.name, std::move(opened), {}});
  return {};
}

}  // namespace pfrt
