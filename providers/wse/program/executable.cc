// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/program/executable.h"

#include <map>
#include <new>

#include "providers/wse/program/product_step.h"

namespace pfrt::wse {
namespace {

// Runs fn for 0 ... n-1 on the host's threads; an exception of one becomes |failed|.
class OnThreads {
 public:
  explicit OnThreads(const pfrt_step_context& context) : context_(context) {}
  bool operator()(int64_t n, const std::function<void(int64_t)>& fn) {
    fn_ = &fn;
    context_.parallel(
        &context_, static_cast<uint64_t>(n),
        [](void* self, uint64_t i, uint32_t) { static_cast<OnThreads*>(self)->call(i); }, this);
    return !failed_ && context_.stop(&context_) == PFRT_CODE_OK;
  }
  bool failed() const { return failed_; }

 private:
  void call(uint64_t i) noexcept {
    try {
      (*fn_)(static_cast<int64_t>(i));
    } catch (...) {
      failed_ = true;  // memory is all that can lack
    }
  }
  const pfrt_step_context& context_;
  const std::function<void(int64_t)>* fn_ = nullptr;
  std::atomic<bool> failed_{false};
};

pfrt_code fail(const pfrt_step_context& context, pfrt_code code, const std::string& why) {
  return context.fail(&context, code, to_c(why));
}

std::vector<Tensor> with_data(const std::vector<Tensor>& tensors,
                              const std::vector<uint32_t>& buffers,
                              const pfrt_step_context& context) {
  std::vector<Tensor> out = tensors;
  for (size_t i = 0; i < out.size(); ++i)
    if (buffers[i] != PFRT_NO_INDEX) out[i].data = static_cast<char*>(context.buffers[buffers[i]]);
  return out;
}

pfrt_code run_values(Step& step, const pfrt_step_context& context) {
  const std::vector<Tensor> in = with_data(step.in, step.in_buffers, context);
  const std::vector<Tensor> out = with_data(step.out, step.out_buffers, context);
  const Arithmetic arithmetic = step.executable->device.settings.target.arithmetic;
  const Call call{step.node, in, out, arithmetic, step.mapping.spread(step.layer)};
  if (!step.layer.is_product()) {
    std::string why;
    return step.layer.row->run(call, &why) ? pfrt_code{PFRT_CODE_OK}
                                           : fail(context, PFRT_CODE_INPUT, why);
  }
  OnThreads parallel(context);
  if (run_product(call, step.mapping, std::ref(parallel))) return pfrt_code{PFRT_CODE_OK};
  if (parallel.failed())
    return fail(context, PFRT_CODE_OUT_OF_MEMORY, "the simulated wafer ran out of host memory");
  return context.stop(&context);
}

pfrt_code run(void* state, const pfrt_step_context* context) {
  Step& step = *static_cast<Step*>(state);
  if (step.executable->device.settings.timing_only)
    return fail(*context, PFRT_CODE_INVALID_ARGUMENT,
                "the wafer was opened with timing_only, which counts cycles and computes no "
                "values: leave the option out to run, or ask for the plan");
  try {
    const pfrt_code code = run_values(step, *context);
    if (code == PFRT_CODE_OK) step.ran = true;
    return code;
  } catch (const std::bad_alloc&) {
    return fail(*context, PFRT_CODE_OUT_OF_MEMORY, "the simulated wafer ran out of host memory");
  } catch (...) {
    return fail(*context, PFRT_CODE_INTERNAL, "an exception in the wafer-scale provider");
  }
}

// Elements of a value at |shapes|; -1 where its rank or a dimension is not known, or it is too
// large.
int64_t elements_of(const Executable& executable, const pfrt_shapes& shapes, uint32_t value) {
  if (value < shapes.value_count && shapes.ranks[value] >= 0)
    return element_count(shapes.dims[value], static_cast<size_t>(shapes.ranks[value]));
  const pfrt_snapshot_value& v = executable.copy.value(value);
  const bool constant = (v.flags & PFRT_SNAPSHOT_CONSTANT) != 0;
  return constant && v.rank >= 0 ? element_count(v.dims, static_cast<size_t>(v.rank)) : -1;
}

// All that follows takes ranks and dimensions as known, which those of a branch's result, or what
// contents decide, need not be. *failed is the node whose value it is.
Status check_known(const Executable& executable, const pfrt_shapes& shapes, uint32_t* failed) {
  const auto check = [&](uint32_t value, std::string_view what) -> Status {
    if (elements_of(executable, shapes, value) >= 0) return {};
    return error(Code::kUNSUPPORTED, "the wafer places tensors of known dimensions; those of ",
                 what, " '", view(executable.copy.value(value).name),
                 "' are not known before the run, or are too large");
  };
  for (const uint32_t index : executable.nodes) {
    *failed = index;
    const SnapshotNode node(executable.copy.snapshot(), index);
    for (uint32_t i = 0; i < node.input_count(); ++i)
      if (node.has_input(i)) PFRT_TRY(check(node.input_index(i), "the input"));
    for (uint32_t i = 0; i < node.output_count(); ++i)
      if (node.has_output(i)) PFRT_TRY(check(node.output_index(i), "the output"));
  }
  *failed = PFRT_NO_INDEX;
  for (const uint32_t value : executable.inputs) PFRT_TRY(check(value, "the region's input"));
  for (const uint32_t value : executable.outputs) PFRT_TRY(check(value, "the region's output"));
  return {};
}

// The buffers of a region's values, and which is whose.
class Buffers {
 public:
  Buffers(const Executable& executable, const pfrt_shapes& shapes, std::vector<pfrt_buffer>& out)
      : executable_(executable), shapes_(shapes), out_(out) {
    for (uint32_t i = 0; i < executable.inputs.size(); ++i)
      add(executable.inputs[i], PFRT_BUFFER_IN, i);
    for (uint32_t i = 0; i < executable.outputs.size(); ++i)
      add(executable.outputs[i], PFRT_BUFFER_OUT, i);
  }
  uint32_t of(uint32_t value) {
    const auto found = home_.find(value);
    if (found != home_.end()) return found->second;
    const bool constant = (executable_.copy.value(value).flags & PFRT_SNAPSHOT_CONSTANT) != 0;
    return add(value, constant ? PFRT_BUFFER_INITIALIZER : PFRT_BUFFER_TEMP, constant ? value : 0);
  }

 private:
  uint32_t add(uint32_t value, pfrt_buffer_kind kind, uint32_t index) {
    const auto [at, fresh] = home_.emplace(value, static_cast<uint32_t>(out_.size()));
    if (!fresh) return at->second;
    const pfrt_snapshot_value& v = executable_.copy.value(value);
    pfrt_buffer buffer{};
    buffer.kind = kind;
    buffer.index = index;
    // Weights that nothing is computed with stay where the host has them.
    const bool idle = kind == PFRT_BUFFER_INITIALIZER && executable_.device.settings.timing_only;
    buffer.memory = idle ? PFRT_MEMORY_HOST : PFRT_MEMORY_DEVICE;
    const int64_t count = elements_of(executable_, shapes_, value);
    buffer.bytes = count < 0 ? PFRT_BYTES_UNKNOWN : tensor_bytes(v.dtype, count);
    out_.push_back(buffer);
    return at->second;
  }

  const Executable& executable_;
  const pfrt_shapes& shapes_;
  std::vector<pfrt_buffer>& out_;
  std::map<uint32_t, uint32_t> home_;
};

void connect(Step& step, Buffers& buffers) {
  const SnapshotNode& node = step.node;
  for (uint32_t i = 0; i < node.input_count(); ++i) {
    step.in_buffers.push_back(node.has_input(i) ? buffers.of(node.input_index(i)) : PFRT_NO_INDEX);
    if (node.has_input(i)) step.reads.push_back(step.in_buffers.back());
  }
  for (uint32_t i = 0; i < node.output_count(); ++i) {
    step.out_buffers.push_back(node.has_output(i) ? buffers.of(node.output_index(i))
                                                  : PFRT_NO_INDEX);
    if (node.has_output(i)) step.writes.push_back(step.out_buffers.back());
  }
}

pfrt_step row_of(Step& step) {
  const Machine& machine = step.executable->device.settings.target.machine;
  pfrt_step row{};
  row.run = run;
  row.state = &step;
  row.reads = step.reads.data();
  row.read_count = static_cast<uint32_t>(step.reads.size());
  row.writes = step.writes.data();
  row.write_count = static_cast<uint32_t>(step.writes.size());
  row.nodes = &step.layer.node;
  row.node_count = 1;
  row.est_ns = step.mapping.cycles / machine.clock_hz * 1e9;
  row.flops = static_cast<uint64_t>(2 * step.layer.macs());
  row.kernel = to_c(step.kernel);
  row.detail = to_c(step.detail);
  row.flags = PFRT_STEP_LONG;
  return row;
}

// Why the layer's memory is too much for the rectangle that it has; empty when it is not.
std::string crowded(const Executable& executable, const Layer& layer, const Mapping& mapping) {
  const Target& target = executable.device.settings.target;
  if (mapping.bytes() <= target.machine.data_bytes()) return {};
  int64_t fits = 0;
  const int64_t most = std::min(target.fabric.columns, target.fabric.rows);
  for (int64_t side = mapping.side; side <= most && fits == 0; side += 16)
    if (map_layer(target.machine, target.arithmetic, layer, side).bytes() <=
        target.machine.data_bytes())
      fits = side;
  return does_not_fit(target, layer, mapping, fits);
}

}  // namespace

Executable::Executable(Device& owner, const pfrt_region& region,
                       std::shared_ptr<DevicePlan> shared_plan, uint32_t first)
    : device(owner),
      plan(std::move(shared_plan)),
      first_layer(first),
      nodes(region.nodes, region.nodes + region.node_count),
      inputs(region.inputs, region.inputs + region.input_count),
      outputs(region.outputs, region.outputs + region.output_count),
      copy(*region.snapshot, nodes, inputs) {}

Step::Step(const Executable& owner, uint32_t index, const pfrt_shapes& shapes)
    : executable(&owner), node(owner.copy.snapshot(), index) {
  const SnapshotNode sized(owner.copy.snapshot(), index, &shapes);
  layer = layer_of(sized, kTypicalDim);
  const auto tensor = [](pfrt_dtype dtype, std::span<const int64_t> dims) {
    return Tensor{dtype, Dims(dims.begin(), dims.end()), nullptr};
  };
  for (uint32_t i = 0; i < node.input_count(); ++i)
    in.push_back(node.has_input(i) ? tensor(node.input_dtype(i), sized.input_dims(i)) : Tensor{});
  for (uint32_t i = 0; i < node.output_count(); ++i)
    out.push_back(node.has_output(i) ? tensor(node.output_dtype(i), sized.output_dims(i))
                                     : Tensor{});
}

Result<std::unique_ptr<Program>> make_program(const Executable& executable,
                                              const pfrt_shapes& shapes, uint32_t* failed) {
  const Target& target = executable.device.settings.target;
  PFRT_TRY(check_known(executable, shapes, failed));
  auto program = std::make_unique<Program>();
  Buffers buffers(executable, shapes, program->buffers);
  for (uint32_t i = 0; i < executable.nodes.size(); ++i) {
    const uint32_t layer = executable.first_layer + i;
    *failed = executable.nodes[i];
    Step& step = program->steps.emplace_back(executable, *failed, shapes);
    step.mapping =
        map_layer(target.machine, target.arithmetic, step.layer, executable.plan->side_of(layer));
    // If only cycles are asked for, the run is refused: another provider would give values instead.
    if (const std::string why = crowded(executable, step.layer, step.mapping); !why.empty())
      return error(
          executable.device.settings.timing_only ? Code::kINVALID_ARGUMENT : Code::kUNSUPPORTED,
          why);
    connect(step, buffers);
    for (const pfrt_buffer& buffer : program->buffers)
      if (buffer.bytes == PFRT_BYTES_UNKNOWN)
        return error(Code::kUNSUPPORTED, "a tensor of this size has no place on the wafer");
    executable.plan->update(layer, step.layer, step.mapping);
    step.kernel = message("wse_", step.layer.is_product() ? name_of(step.mapping.algorithm)
                                                          : std::string_view(step.layer.op));
    step.detail = message("simulated: ", step.mapping.side, "x", step.mapping.side, " PEs, ",
                          whole(step.mapping.cycles), " cycles, ", step.mapping.bytes(), " B a PE");
  }
  for (Step& step : program->steps) program->rows.push_back(row_of(step));
  return program;
}

}  // namespace pfrt::wse
