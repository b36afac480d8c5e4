// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/build_program.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "providers/cpu/loop/by_channel.h"
#include "providers/cpu/program/nchw16c.h"
#include "providers/cpu/program/share_memory.h"
#include "providers/cpu/program/shuffled.h"
#include "providers/cpu/program/step_kernels.h"
#include "providers/cpu/program/sub_byte.h"
#include "providers/cpu/program/tune.h"
#include "providers/cpu/program/value_buffers.h"
#include "providers/cpu/program/varying_group.h"
#include "providers/cpu/registry/empty.h"
#include "providers/cpu/registry/registry.h"

namespace pfrt::cpu {
namespace {

constexpr size_t kOperands = 16;  // no operator has more that may be absent

void add_once(std::vector<uint32_t>& list, uint32_t buffer) {
  if (buffer != PFRT_NO_INDEX && std::ranges::find(list, buffer) == list.end())
    list.push_back(buffer);
}

// "HardSwish" to "hard_swish".
std::string snake_case(std::string_view op) {
  std::string out;
  for (size_t i = 0; i < op.size(); ++i) {
    const auto c = static_cast<unsigned char>(op[i]);
    const auto before = static_cast<unsigned char>(i > 0 ? op[i - 1] : '_');
    if (std::isupper(c) && std::islower(before)) out += '_';
    out += static_cast<char>(std::tolower(c));
  }
  return out;
}

class ProgramBuilder {
 public:
  ProgramBuilder(const Executable& executable, const pfrt_shapes& shapes)
      : executable_(executable),
        snapshot_(executable.snapshot()),
        shapes_(shapes),
        values_(executable, shapes) {}

  Result<std::unique_ptr<Program>> build(const pfrt_sink& sink, uint32_t& node) {
    const bool ranged = shapes_.least != nullptr;
    if (!ranged && (executable_.tunes() || tuning_of(sink) != nullptr))
      tuner_.emplace(executable_.tunes(), &sink);
    nchw16c_ = nchw16c_values(executable_, shapes_);
    shuffles_ = find_shuffles(executable_, shapes_);
    for (size_t u = 0; u < executable_.fusion_groups().size(); ++u) {
      const FusionGroup& group = executable_.fusion_groups()[u];
      const std::vector<uint32_t> values = values_of(executable_, group);
      const std::vector<uint32_t> varied = varying(values, shapes_);
      PFRT_TRY(varied.empty() ? add_group(group, executable_.code(u), node)
                              : add_varying(u, seen_outside(executable_, group, values), varied));
    }
    node = PFRT_NO_INDEX;
    PFRT_TRY(add_copies());
    std::vector<pfrt_buffer> buffers = values_.take();
    share_memory(steps_, buffers);
    relax_alignment(steps_, buffers);
    return std::make_unique<Program>(std::move(buffers), std::move(steps_));
  }

  // Group |u| alone, at dimensions that are all those of a run. |outer|: values in buffers of
  // another program.
  Result<std::shared_ptr<const MadeSteps>> build_group(size_t u, const std::vector<Outer>& outer) {
    alone_ = true;
    nchw16c_.resize(shapes_.value_count);
    uint32_t node = PFRT_NO_INDEX;
    PFRT_TRY(add_group(executable_.fusion_groups()[u], executable_.code(u), node));
    return made_steps(std::move(steps_), values_, outer);
  }

 private:
  struct WantedEpilogue {
    const FusionGroup& group;
    const BroadcastLoop& loop;
    bool joined = false;
  };
  // Work that the step of a node should do besides the node.
  struct Wanted {
    WantedEpilogue* epilogue = nullptr;
    uint32_t pool = PFRT_NO_INDEX;  // a pooling whose output it gives instead of its own
    uint32_t norm = PFRT_NO_INDEX;  // a node that normalises rows of its output
    bool norm_joined = false;
  };

  // Parts that the step of a node is made from.
  struct NodeStep {
    SnapshotNode node;
    SnapshotNode last;  // the node, or the pooling whose output the step gives
    const KernelRow& row;
    const Packed* packed;  // null: the row reads constants as they are
  };

  Status add_group(const FusionGroup& group, const LoopCode& code, uint32_t& node) {
    const std::optional<BroadcastLoop> loop =
        code.loop ? broadcast_loop(*group.loop, code) : std::nullopt;
    size_t done = 0;
    if (group.has_head) {
      std::optional<WantedEpilogue> epilogue;
      if (loop) epilogue.emplace(WantedEpilogue{group, *loop});
      node = group.nodes.front();
      Wanted wanted;
      if (group.has_pool && pools(group)) wanted.pool = group.nodes[1];
      if (group.has_pool == (wanted.pool != PFRT_NO_INDEX)) {
        if (epilogue) wanted.epilogue = &*epilogue;
        if (group.has_norm && loop.has_value() == group.loop.has_value())
          wanted.norm = group.nodes.back();
      }
      PFRT_TRY(add_node(node, wanted));
      done = wanted.pool != PFRT_NO_INDEX ? 2 : 1;
      if (wanted.norm_joined) return {};
      if (done < group.before_loop()) {
        node = group.nodes[done++];
        PFRT_TRY(add_node(node));
      }
      if (epilogue && epilogue->joined) done = group.nodes.size() - group.has_norm;
    }
    if (loop && done < group.nodes.size() - group.has_norm) {
      add_loop(group, *loop);
      done = group.nodes.size() - group.has_norm;
    }
    for (; done < group.nodes.size(); ++done) {
      node = group.nodes[done];
      PFRT_TRY(add_node(node));
    }
    return {};
  }

  // A step for group |u|, which is made for the dimensions of each run; |varied| are those of its
  // values that vary, |outside| those that others see.
  Status add_varying(size_t u, const std::vector<uint32_t>& outside,
                     const std::vector<uint32_t>& varied) {
    const FusionGroup& group = executable_.fusion_groups()[u];
    for (const uint32_t n : group.nodes)
      if (has_weights(reader(n)))
        return error(Code::kUNSUPPORTED, cpu::describe(reader(n)),
                     ": its work with weights is divided anew for other dimensions");
    if (group.nodes.size() == 1 && renames(group.nodes[0])) return {};
    std::vector<Outer> outer;
    outer.reserve(outside.size());
    for (const uint32_t v : outside) outer.push_back({v, values_.of(v)});
    if (!kept_) kept_ = std::make_shared<KeptShapes>(shapes_);
    const auto varying = std::make_shared<VaryingStep>(
        kept_, varied, [&executable = executable_, u, outer](const pfrt_shapes& shapes) {
          return ProgramBuilder(executable, shapes).build_group(u, outer);
        });
    std::vector<const int64_t*> pointers;
    const pfrt_shapes small = kept_->with(varied, shapes_.least, pointers);
    PFRT_ASSIGN(const auto most, varying->make(shapes_));
    PFRT_ASSIGN(const auto least, varying->make(small));
    Step step;
    step.varying = [varying](const pfrt_step_context& context) { return varying->run(context); };
    describe_varying(step, *most);
    const uint64_t own = std::max(most->own_bytes, least->own_bytes);
    step.kernel.scratch_bytes = std::max(most->scratch_bytes, least->scratch_bytes);
    const uint32_t memory = own == 0 ? PFRT_NO_INDEX : values_.add_temporary(own);
    varying->set_memory(memory, own, step.kernel.scratch_bytes);
    add_once(step.writes, memory);
    for (const Outer& of : outer) {
      const bool made = std::ranges::any_of(group.nodes, [&](uint32_t n) {
        const pfrt_snapshot_node& node = snapshot_.node(n);
        return std::ranges::count(std::span(node.outputs, node.output_count), of.value) > 0;
      });
      (made ? step.outputs : step.inputs).push_back(of.buffer);
    }
    step.nodes = group.nodes;
    add_step(std::move(step));
    return {};
  }

  // Describes the step by |most|, the steps at the largest dimensions.
  static void describe_varying(Step& step, const MadeSteps& most) {
    for (const Step& made : most.steps) {
      step.name += message(step.name.empty() ? "" : ", ", made.name);
      step.flags |= made.flags;
      step.kernel.flops += made.kernel.flops;
    }
    if (step.name.empty()) step.name = "nothing";
    step.detail = "dimensions vary; work and bytes are those of the largest";
  }

  // Whether nothing but the name of the node's output is new, at all dimensions.
  bool renames(uint32_t index) {
    const SnapshotNode node = reader(index);
    const KernelRow* const row = operator_row(node);
    const auto place =
        row != nullptr && row->in_place != nullptr ? row->in_place(node) : std::optional<InPlace>();
    return place && place->which == InPlace::Which::kSame && values_.rename(node);
  }

  SnapshotNode reader(uint32_t node) const {
    return SnapshotNode(snapshot_.snapshot(), node, &shapes_, executable_.precision(node));
  }

  bool pools(const FusionGroup& group) const {
    const SnapshotNode pool = reader(group.nodes[1]);
    KernelRequest request(reader(group.nodes[0]));
    request.pool = &pool;
    return find_kernel(request, nullptr) != nullptr;
  }

  // Fills in what follows from the buffers.
  void add_step(Step step) {
    // Kernels may ask for trailing inputs that the node leaves out.
    for (auto* list : {&step.inputs, &step.outputs})
      list->resize(std::max(list->size(), kOperands), PFRT_NO_INDEX);
    for (uint32_t b : step.inputs) add_once(step.reads, b);
    for (uint32_t b : step.outputs) add_once(step.writes, b);
    if (step.kernel.alternatives) {
      if (tuner_) tuner_->tune(step, values_.list(), tuning_key(step));
      step.kernel.alternatives = nullptr;
    }
    if (step.kernel.shared_bytes > 0) {
      step.shared = values_.add_temporary(step.kernel.shared_bytes);
      add_once(step.writes, step.shared);
    }
    add_once(step.reads, step.packed);
    for (const auto* list : {&step.reads, &step.writes})
      for (uint32_t b : *list)
        if (values_.list()[b].bytes != PFRT_BYTES_UNKNOWN) step.bytes += values_.list()[b].bytes;
    steps_.push_back(std::move(step));
  }

  // A text with everything that the speed of a kernel with alternatives may depend on.
  std::string tuning_key(const Step& step) const {
    const pfrt_snapshot_node& node = snapshot_.node(step.nodes.front());
    std::string key = message(step.name, "/", static_cast<int>(step.precision));
    for (uint64_t i = 0; i < node.attr_count; ++i) {
      const pfrt_snapshot_attr& attr = node.attrs[i];
      key += message("/", attr.name, " ", attr.i, " ", attr.f, " ", attr.s);
      for (uint64_t k = 0; attr.type == PFRT_ATTR_INTS && k < attr.count; ++k)
        key += message(",", attr.ints[k]);
    }
    const auto add = [&](uint32_t value) {
      key += "/";
      if (value == PFRT_NO_INDEX) return;
      if (nchw16c_[value]) key += "nChw16c";
      if (const auto known = values_.dims(value))
        for (int64_t d : *known) key += message(",", d);
    };
    std::for_each_n(node.inputs, node.input_count, add);
    std::for_each_n(node.outputs, node.output_count, add);
    return key;
  }

  // The loop at this signature; nullopt when its outputs turn out to differ in size, or one element
  // of an operand serves too few neighbours.
  std::optional<BroadcastLoop> broadcast_loop(const LoopPlan& plan, const LoopCode& code) const {
    const int64_t count = values_.elements(plan.outputs.front());
    if (count < 0) return {};
    for (uint32_t v : plan.outputs)
      if (values_.elements(v) != count) return {};
    std::vector<BroadcastIndex> operands;
    const BroadcastLoop::Image image = image_of(plan, code);
    for (size_t i = 0; i < plan.inputs.size(); ++i) {
      const auto own = values_.dims(plan.inputs[i]);
      const std::optional<BroadcastIndex> index =
          own ? BroadcastIndex::make(with_ones(*own, plan.ones[i]),
                                     *values_.dims(plan.outputs.front()))
              : std::nullopt;
      if (!index) return {};
      operands.push_back(*index);
    }
    return BroadcastLoop::make(plan, code, operands, count,
                               image.blocks.empty() ? nullptr : &image);
  }

  // The image that |plan| runs over, if it is a loop over nChw16c; an empty one otherwise.
  BroadcastLoop::Image image_of(const LoopPlan& plan, const LoopCode& code) const {
    BroadcastLoop::Image image;
    const auto dims = values_.dims(plan.outputs.front());
    if (!nchw16c_[plan.outputs.front()] || !dims) return image;
    image.block = element_count(dims->data() + 2, dims->size() - 2) * kChannelBlock;
    for (size_t i = 0; i < plan.inputs.size(); ++i)
      image.blocks.push_back(
          code.channel_slots[i] ? values_.elements(plan.inputs[i]) / kChannelBlock : 0);
    return image;
  }

  void add_loop(const FusionGroup& group, const BroadcastLoop& loop) {
    Step step;
    step.kernel = loop_kernel(loop);
    for (uint32_t v : group.loop->inputs) step.inputs.push_back(values_.of(v));
    for (uint32_t v : group.loop->outputs) step.outputs.push_back(values_.of(v));
    step.nodes.assign(group.nodes.begin() + static_cast<ptrdiff_t>(group.before_loop()),
                      group.nodes.end() - group.has_norm);
    step.flags = PFRT_STEP_LONG;
    step.name = loop.name();
    step.aliases = loop_aliases(*group.loop);
    add_step(std::move(step));
  }

  // Whether the loop's elements differ in size from those of the head, which then has memory of the
  // step instead of the loop's output.
  bool apart(const NodeStep& of, const Wanted& wanted) const {
    if (wanted.epilogue == nullptr || !of.row.has(kEpilogue)) return false;
    const uint32_t last = wanted.epilogue->group.loop->outputs.front();
    return dtype_size(snapshot_.value(of.last.output_index(0)).dtype) !=
           dtype_size(snapshot_.value(last).dtype);
  }

  // Gives |step|, which has its buffers and whose kernel takes epilogues, this one, whose output
  // goes to buffer |to|.
  void join(Step& step, WantedEpilogue& epilogue, uint32_t to) {
    const LoopPlan& plan = *epilogue.group.loop;
    const uint32_t head =
        snapshot_.node(epilogue.group.nodes[epilogue.group.before_loop() - 1]).outputs[0];
    std::vector<uint32_t> buffers;
    for (uint32_t v : plan.inputs) {
      buffers.push_back(v == head ? step.outputs[0] : values_.of(v));
      if (v != head) add_once(step.reads, buffers.back());
    }
    buffers.push_back(to);
    add_once(step.writes, to);
    step.epilogue.emplace(epilogue.loop, std::move(buffers));
    step.nodes.assign(epilogue.group.nodes.begin(),
                      epilogue.group.nodes.end() - epilogue.group.has_norm);
    step.kernel.flops += epilogue.loop.flops();
    epilogue.joined = true;
    constexpr size_t kMostNamed = 4;
    if (step.nodes.size() > kMostNamed + 1) {
      step.name += message("+", epilogue.loop.name());
      return;
    }
    for (size_t i = 1; i < step.nodes.size(); ++i) name_node(step, step.nodes[i]);
  }

  void name_node(Step& step, uint32_t index) const {
    step.name += "+" + snake_case(view(snapshot_.node(index).op));
  }

  // Has |step|, which has its buffers, normalise rows of its output.
  void join_norm(Step& step, uint32_t index) {
    const SnapshotNode node = reader(index);
    RowNorm norm(node);
    RowNorm::Buffers at{};
    at.x = step.epilogue ? step.epilogue->buffers().back() : step.outputs[0];
    at.scale = values_.of(node.input_index(1));
    at.bias = node.has_input(2) ? values_.of(node.input_index(2)) : PFRT_NO_INDEX;
    at.y = values_.of(node.output_index(0));
    at.counters = values_.add_temporary(norm.counter_bytes());
    for (uint32_t b : {at.scale, at.bias}) add_once(step.reads, b);
    for (uint32_t b : {at.y, at.counters}) add_once(step.writes, b);
    norm.set_buffers(at);
    step.kernel.flops += norm.flops();
    step.norm = norm;
    step.nodes.push_back(index);
    name_node(step, index);
  }

  // Whether nothing but the normalisation uses |value|, so that the result may overwrite it.
  bool only_normalised(uint32_t value) const {
    return executable_.home(value).kind == PFRT_BUFFER_TEMP &&
           snapshot_.value(value).consumer_count == 1;
  }

  // The value that the step makes as output |i| of its last node.
  uint32_t output_value(const NodeStep& of, const Wanted& wanted, uint32_t i) const {
    const bool joins = wanted.epilogue != nullptr && of.row.has(kEpilogue);
    const uint32_t value =
        joins && i == 0 ? wanted.epilogue->group.loop->outputs.front() : of.last.output_index(i);
    return wanted.norm_joined && only_normalised(value) ? snapshot_.node(wanted.norm).outputs[0]
                                                        : value;
  }

  Status add_node(uint32_t index) {
    Wanted nothing;
    return add_node(index, nothing);
  }

  Status add_node(uint32_t index, Wanted& wanted) {
    const SnapshotNode node = reader(index);
    PFRT_TRY(check_inputs(node));
    const bool empty = has_empty(node);
    if (empty) wanted = {};  // the nodes that follow get steps of their own
    const KernelRow* const any_row = operator_row(node);
    const bool asks_more = wanted.epilogue != nullptr || wanted.norm != PFRT_NO_INDEX;
    if (lies_in_place(node, any_row, asks_more)) return {};
    if (is_idle(node, any_row)) {
      for (uint32_t i = 0; i < node.output_count(); ++i)
        if (node.has_output(i)) values_.of(node.output_index(i));
      return {};
    }
    std::string reason;
    const KernelRow* row = find_kernel(KernelRequest(node), &reason);
    if (row == nullptr)
      return error(Code::kUNSUPPORTED_OPERATOR, cpu::describe(node), ": ", reason);
    // An empty node takes the last row, which knows nothing of constants packed for another.
    const Packed* const packed =
        row->pack != nullptr && !empty ? executable_.packed(index) : nullptr;
    // A constant was packed before dimensions were known that may make another row the faster one.
    if (packed != nullptr && !row->has(kPackOptional)) row = packed->row;
    return add_node_step(
        {node, wanted.pool != PFRT_NO_INDEX ? reader(wanted.pool) : node, *row, packed}, wanted);
  }

  Status check_inputs(const SnapshotNode& node) const {
    for (uint32_t i = 0; i < node.input_count(); ++i)
      if (node.has_input(i) && values_.elements(node.input_index(i)) < 0)
        return error(Code::kSHAPE_MISMATCH, cpu::describe(node), ": the dimensions of input ", i,
                     " '", snapshot_.value(node.input_index(i)).name,
                     "' are not known before the run");
    return {};
  }

  Status add_node_step(const NodeStep& of, Wanted& wanted) {
    const KernelRequest request = kernel_request(of);
    Result<Kernel> kernel = of.row.make(request);
    if (!kernel.ok()) return kernel.take_status().prepend(cpu::describe(of.node));
    Step step;
    step.kernel = kernel.take();
    step.precision = of.node.precision();
    step.nodes = {of.node.index()};
    if (of.row.has(kLongStep)) step.flags = PFRT_STEP_LONG;
    step.unaligned = of.row.has(kUnaligned);
    step.name = step.kernel.name.empty() ? of.row.name : step.kernel.name;
    if (request.any_nchw16c()) step.name += "_nchw16c";
    if (step.kernel.may_alias >= 0)
      step.aliases = {{static_cast<uint32_t>(step.kernel.may_alias), 0}};
    step.inner_aliases = step.aliases.size();
    for (const auto& cache : caches(of.node)) step.aliases.push_back(cache);
    set_inputs(step, of);
    std::vector<Step> packing;
    wanted.norm_joined = wanted.norm != PFRT_NO_INDEX && of.row.has(kEpilogue);
    PFRT_TRY(set_outputs(step, of, wanted, packing));
    if (wanted.epilogue != nullptr && of.row.has(kEpilogue)) {
      join(step, *wanted.epilogue,
           apart(of, wanted) ? values_.of(output_value(of, wanted, 0)) : step.outputs[0]);
    } else if (wanted.pool != PFRT_NO_INDEX) {
      step.nodes.push_back(wanted.pool);
      name_node(step, wanted.pool);
    }
    if (wanted.norm_joined) join_norm(step, wanted.norm);
    if (step.kernel.range_of_input != nullptr) take_range(step, of.node);
    add_step(std::move(step));
    for (Step& pack : packing) add_step(std::move(pack));
    return {};
  }

  // Has the step that makes input 0 by an epilogue find its range meanwhile.
  void take_range(Step& step, const SnapshotNode& node) {
    const uint32_t x = step.inputs[0];
    const auto maker = std::find_if(steps_.rbegin(), steps_.rend(), [&](const Step& before) {
      return std::ranges::find(before.writes, x) != before.writes.end();
    });
    if (maker == steps_.rend() || !maker->epilogue || maker->norm ||
        maker->epilogue->buffers().back() != x ||
        maker->epilogue->loop().elements() != node.input_elements(0))
      return;
    step.given_range = values_.add_temporary(sizeof(FloatRange));
    maker->epilogue->give_range(step.kernel.range_of_input, step.given_range);
    add_once(maker->writes, step.given_range);
    add_once(step.reads, step.given_range);
  }

  KernelRequest kernel_request(const NodeStep& of) const {
    const SnapshotNode& node = of.node;
    KernelRequest request(node);
    request.sides = {node.has_input(0) && nchw16c_[node.input_index(0)],
                     of.last.has_output(0) && nchw16c_[of.last.output_index(0)]};
    const auto shuffle = shuffles_.groups.find(node.index());
    if (shuffle != shuffles_.groups.end()) request.shuffle_groups = shuffle->second;
    if (of.last.index() != node.index()) request.pool = &of.last;
    if (of.packed != nullptr) request.packed = &of.packed->input;
    request.prepared = executable_.prepared(node.index());
    return request;
  }

  void set_inputs(Step& step, const NodeStep& of) {
    for (uint32_t i = 0; i < of.node.input_count(); ++i) {
      const bool only_packed =
          of.packed != nullptr && step.kernel.packed_alone && of.packed->input.has(i);
      const bool reads = of.node.has_input(i) && !only_packed;
      step.inputs.push_back(reads ? input_of(of.row, of.node.input_index(i), of.node.index())
                                  : PFRT_NO_INDEX);
    }
    if (of.packed != nullptr)
      step.packed = values_.add({PFRT_BUFFER_CONST, of.packed->index}, of.packed->input.bytes);
  }

  Status set_outputs(Step& step, const NodeStep& of, const Wanted& wanted,
                     std::vector<Step>& packing) {
    for (uint32_t i = 0; i < of.last.output_count(); ++i) {
      uint32_t to = PFRT_NO_INDEX;
      if (i == 0 && apart(of, wanted)) {
        to = values_.add_temporary(values_.bytes(of.last.output_index(0)));
      } else if (of.last.has_output(i)) {
        PFRT_ASSIGN(to, output_of(of.row, output_value(of, wanted, i), of.node.index(), packing));
      }
      step.outputs.push_back(to);
    }
    return {};
  }

  bool wants_bytes(const KernelRow& row, uint32_t value) const {
    return !row.has(kSubByteAsIs) && kSubByte.has(snapshot_.value(value).dtype);
  }

  Step sub_byte_step(Kernel kernel, uint32_t from, uint32_t to, uint32_t node,
                     std::string_view name) {
    Step step;
    step.kernel = std::move(kernel);
    step.inputs = {from};
    step.outputs = {to};
    step.nodes = {node};
    step.name = name;
    return step;
  }

  // The buffer that |row| reads |value| from. Where the row wants bytes, sub-byte elements are
  // first unpacked to a buffer of their own.
  uint32_t input_of(const KernelRow& row, uint32_t value, uint32_t node) {
    if (!wants_bytes(row, value)) return values_.of(value);
    const auto known = byte_buffers_.find(value);
    if (known != byte_buffers_.end()) return known->second;
    const int64_t count = values_.elements(value);
    const uint32_t to = values_.add_temporary(static_cast<uint64_t>(count));
    add_step(sub_byte_step(unpack_sub_byte(snapshot_.value(value).dtype, count), values_.of(value),
                           to, node, "unpack"));
    byte_buffers_[value] = to;
    return to;
  }

  // The buffer that |row| writes |value| to; a step that packs its sub-byte elements goes to
  // |after|.
  Result<uint32_t> output_of(const KernelRow& row, uint32_t value, uint32_t node,
                             std::vector<Step>& after) {
    if (!wants_bytes(row, value)) return values_.of(value);
    const int64_t count = values_.elements(value);
    if (count < 0)
      return error(Code::kSHAPE_MISMATCH, row.name, ": the dimensions of a ",
                   dtype_name(snapshot_.value(value).dtype),
                   " output are not known before the run");
    const uint32_t from = values_.add_temporary(static_cast<uint64_t>(count));
    after.push_back(sub_byte_step(pack_sub_byte(snapshot_.value(value).dtype, count), from,
                                  values_.of(value), node, "pack"));
    return from;
  }

  // Whether the node needs no step: its values then lie in one another's buffers.
  bool lies_in_place(const SnapshotNode& node, const KernelRow* row, bool asks_more) {
    if (alone_) return false;
    std::optional<InPlace> place;
    if (shuffles_.transposes.contains(node.index()))
      place.emplace();  // the reader of the output does the shuffle
    else if (row != nullptr && row->in_place != nullptr)
      place = row->in_place(node);
    if (!place) return false;
    switch (place->which) {
      case InPlace::Which::kSame:
        return values_.rename(node);
      case InPlace::Which::kInInput:
        return values_.outputs_in_input(node, place->offsets);
      case InPlace::Which::kInOutput:
        return join_in_output(node, place->offsets, asks_more);
    }
    return false;
  }

  // A node from which more is asked gets a step of its own where something would have to be copied.
  bool join_in_output(const SnapshotNode& node, const std::vector<uint64_t>& offsets,
                      bool asks_more) {
    ValueBuffers::Copies copies;
    if (!values_.inputs_in_output(node, offsets, asks_more, copies)) return false;
    if (copies.from.empty()) return true;
    Step step;
    step.kernel = copy_kernel(std::move(copies.bytes));
    step.inputs = std::move(copies.from);
    step.outputs = std::move(copies.to);
    step.nodes = {node.index()};
    step.name = "concat_copy";
    add_step(std::move(step));
    return true;
  }

  // Region outputs that live elsewhere: inputs, constants, and those named twice.
  Status add_copies() {
    for (uint32_t i = 0; i < executable_.outputs().size(); ++i) {
      const uint32_t value = executable_.outputs()[i];
      const Home& home = executable_.home(value);
      if (home.kind == PFRT_BUFFER_OUT && home.index == i) continue;
      if (!cpu::varying({value}, shapes_).empty())
        return error(Code::kUNSUPPORTED, "region output ", i,
                     " is another value's copy, of dimensions that vary");
      if (values_.bytes(value) == PFRT_BYTES_UNKNOWN)
        return error(Code::kSHAPE_MISMATCH, "region output ", i,
                     " is another value's copy, of dimensions that are not known before the run");
      Step step;
      step.kernel = copy_kernel({values_.bytes(value)});
      step.inputs = {values_.of(value)};
      step.outputs = {values_.add({PFRT_BUFFER_OUT, i}, values_.bytes(value))};
      step.name = "copy";
      add_step(std::move(step));
    }
    return {};
  }

  const Executable& executable_;
  const SnapshotCopy& snapshot_;
  const pfrt_shapes& shapes_;
  ValueBuffers values_;
  std::vector<bool> nchw16c_;  // by value
  Shuffles shuffles_;
  std::unordered_map<uint32_t, uint32_t> byte_buffers_;  // buffers of a byte an element, by value
  std::deque<Step> steps_;
  std::optional<Tuner> tuner_;  // set where the session tunes
  bool alone_ = false;          // values stay in the buffers that they are in
  std::shared_ptr<const KeptShapes> kept_;
};

}  // namespace

Result<std::unique_ptr<Program>> build_program(const Executable& executable,
                                               const pfrt_shapes& shapes, const pfrt_sink& sink,
                                               uint32_t& node) {
  return ProgramBuilder(executable, shapes).build(sink, node);
}

}  // namespace pfrt::cpu
