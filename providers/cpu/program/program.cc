// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/program/program.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <new>
#include <optional>
#include <unordered_map>

#include "providers/cpu/program/nchw16c.h"
#include "providers/cpu/program/shuffled.h"
#include "providers/cpu/program/sub_byte.h"
#include "providers/cpu/program/tune.h"
#include "providers/cpu/registry/empty.h"
#include "providers/cpu/registry/registry.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kLoopBlock = 16 * 1024;   // elements
constexpr size_t kOperands = 16;            // no operator has more that may be absent
constexpr int64_t kCopyBlock = 256 * 1024;  // bytes

void add_once(std::vector<uint32_t>& list, uint32_t buffer) {
  if (buffer != PFRT_NO_INDEX && std::ranges::find(list, buffer) == list.end())
    list.push_back(buffer);
}

// Copies each input to the output of its position.
Kernel copy_kernel(std::vector<uint64_t> bytes) {
  Kernel kernel;
  kernel.run = [bytes = std::move(bytes)](const Run& run) {
    for (uint32_t i = 0; i < bytes.size(); ++i)
      run.blocks(static_cast<int64_t>(bytes[i]), kCopyBlock, [&](int64_t begin, int64_t end) {
        std::memcpy(run.output<char>(i) + begin, run.input<char>(i) + begin,
                    static_cast<size_t>(end - begin));
      });
    return run.stop();
  };
  return kernel;
}

Kernel loop_kernel(BroadcastLoop loop) {
  Kernel kernel;
  kernel.flops = loop.flops();
  kernel.width =
      static_cast<uint32_t>(std::min<int64_t>(loop.elements() / kLoopBlock + 1, UINT32_MAX));
  kernel.run = [loop = std::move(loop)](const Run& run) {
    std::array<const void*, LoopPlan::kMostPointers> bases;
    for (uint32_t i = 0; i < loop.inputs(); ++i) bases[i] = run.input(i);
    for (uint32_t i = 0; i < loop.outputs(); ++i) bases[loop.inputs() + i] = run.output(i);
    run.blocks(loop.elements(), kLoopBlock,
               [&](int64_t begin, int64_t end) { loop.run(bases.data(), begin, end); });
    return run.stop();
  };
  return kernel;
}

// Pairs of an input and an output that may share memory: the loop has read the input's vector
// before it stores the output's, and elements have the same size.
std::vector<std::pair<uint32_t, uint32_t>> loop_aliases(const LoopPlan& plan) {
  std::vector<std::pair<uint32_t, uint32_t>> out;
  const std::vector<Operation>& operations = plan.expression.operations();
  for (uint32_t o = 0; o < plan.outputs.size(); ++o) {
    const Stored& stored = plan.expression.outputs()[o];
    const Term first = std::min(stored.term, stored.high);
    for (uint32_t at = 0; at <= first; ++at) {
      const bool wide = at + 1 < operations.size() && operations[at + 1].prim == Prim::kInputHigh;
      const bool is_read = operations[at].prim == Prim::kInput && at + wide <= first;
      if (is_read && dtype_size(operations[at].type) == dtype_size(stored.type))
        out.emplace_back(operations[at].slot, o);
    }
  }
  return out;
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

}  // namespace

class ProgramBuilder {
 public:
  ProgramBuilder(const Executable& executable, const pfrt_shapes& shapes)
      : executable_(executable),
        snapshot_(executable.snapshot()),
        shapes_(shapes),
        buffer_of_(snapshot_.snapshot().value_count, PFRT_NO_INDEX),
        program_(new Program) {
    if (executable.tunes()) tuner_.emplace();
  }

  Result<std::unique_ptr<Program>> build(uint32_t& node) {
    nchw16c_ = nchw16c_values(executable_, shapes_);
    shuffles_ = find_shuffles(executable_, shapes_);
    for (size_t u = 0; u < executable_.fusion_groups().size(); ++u)
      PFRT_TRY(add_group(executable_.fusion_groups()[u], executable_.code(u), node));
    node = PFRT_NO_INDEX;
    PFRT_TRY(add_copies());
    flatten_sub_buffers();
    share_memory();
    relax_alignment();
    fill_table();
    return std::move(program_);
  }

 private:
  struct WantedEpilogue {
    const FusionGroup& group;
    const BroadcastLoop& loop;
    bool joined = false;
  };
  // What the step of a node should do besides.
  struct Wanted {
    WantedEpilogue* epilogue = nullptr;
    uint32_t pool = PFRT_NO_INDEX;  // a pooling whose output it gives instead of its own
    uint32_t norm = PFRT_NO_INDEX;  // a node that normalises rows of its output
    bool norm_joined = false;
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

  SnapshotNode reader(uint32_t node) const {
    return SnapshotNode(snapshot_.snapshot(), node, &shapes_, executable_.precision(node));
  }

  bool pools(const FusionGroup& group) const {
    const SnapshotNode pool = reader(group.nodes[1]);
    KernelRequest request(reader(group.nodes[0]));
    request.pool = &pool;
    return find_kernel(request, nullptr) != nullptr;
  }

  // What the signature says of a value; nullopt when only the run can tell.
  std::optional<std::span<const int64_t>> dims(uint32_t value) const {
    if (value < shapes_.value_count && shapes_.ranks[value] >= 0)
      return std::span(shapes_.dims[value], static_cast<size_t>(shapes_.ranks[value]));
    const pfrt_snapshot_value& v = snapshot_.value(value);
    if ((v.flags & PFRT_SNAPSHOT_CONSTANT) == 0 || v.rank < 0) return std::nullopt;
    return std::span(v.dims, static_cast<size_t>(v.rank));
  }

  // -1 when unknown.
  int64_t elements(uint32_t value) const {
    const auto known = dims(value);
    return known ? element_count(known->data(), known->size()) : -1;
  }

  uint64_t bytes(uint32_t value) const {
    return tensor_bytes(snapshot_.value(value).dtype, elements(value));  // UINT64_MAX when unknown
  }

  uint32_t add_buffer(const Home& home, uint64_t size) {
    pfrt_buffer buffer{};
    buffer.kind = home.kind;
    buffer.index = home.index;
    buffer.bytes = size;
    program_->buffers_.push_back(buffer);
    return static_cast<uint32_t>(program_->buffers_.size() - 1);
  }

  uint32_t buffer(uint32_t value) {
    if (value == PFRT_NO_INDEX) return value;
    if (buffer_of_[value] == PFRT_NO_INDEX)
      buffer_of_[value] = add_buffer(executable_.home(value), bytes(value));
    return buffer_of_[value];
  }

  uint64_t buffer_bytes(uint32_t index) const { return program_->buffers_[index].bytes; }

  // Fills in what follows from the buffers.
  void add_step(Step step) {
    // Kernels may ask for trailing inputs that the node leaves out.
    for (auto* list : {&step.inputs, &step.outputs})
      list->resize(std::max(list->size(), kOperands), PFRT_NO_INDEX);
    for (uint32_t b : step.inputs) add_once(step.reads, b);
    for (uint32_t b : step.outputs) add_once(step.writes, b);
    if (step.kernel.alternatives) {
      if (tuner_) tuner_->tune(step, program_->buffers_, tuning_key(step));
      step.kernel.alternatives = nullptr;
    }
    if (step.kernel.shared_bytes > 0) {
      step.shared = add_buffer({PFRT_BUFFER_TEMP, 0}, step.kernel.shared_bytes);
      add_once(step.writes, step.shared);
    }
    add_once(step.reads, step.packed);
    for (const auto* list : {&step.reads, &step.writes})
      for (uint32_t b : *list)
        if (buffer_bytes(b) != PFRT_BYTES_UNKNOWN) step.bytes += buffer_bytes(b);
    program_->steps_.push_back(std::move(step));
  }

  // What the speed of a kernel with alternatives may depend on.
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
      if (const auto known = dims(value))
        for (int64_t d : *known) key += message(",", d);
    };
    std::for_each_n(node.inputs, node.input_count, add);
    std::for_each_n(node.outputs, node.output_count, add);
    return key;
  }

  // The loop at this signature; nullopt when its outputs turn out to differ in size, or one element
  // of an operand serves too few neighbours.
  std::optional<BroadcastLoop> broadcast_loop(const LoopPlan& plan, const LoopCode& code) const {
    const int64_t count = elements(plan.outputs.front());
    if (count < 0) return {};
    for (uint32_t v : plan.outputs)
      if (elements(v) != count) return {};
    std::vector<BroadcastIndex> operands;
    for (uint32_t v : plan.inputs) {
      const auto own = dims(v);
      const std::optional<BroadcastIndex> index =
          own ? BroadcastIndex::make(*own, *dims(plan.outputs.front())) : std::nullopt;
      if (!index) return {};
      operands.push_back(*index);
    }
    return BroadcastLoop::make(plan, code, operands, count);
  }

  void add_loop(const FusionGroup& group, const BroadcastLoop& loop) {
    Step step;
    step.kernel = loop_kernel(loop);
    for (uint32_t v : group.loop->inputs) step.inputs.push_back(buffer(v));
    for (uint32_t v : group.loop->outputs) step.outputs.push_back(buffer(v));
    step.nodes.assign(group.nodes.begin() + static_cast<ptrdiff_t>(group.before_loop()),
                      group.nodes.end() - group.has_norm);
    step.flags = PFRT_STEP_LONG;
    step.name = loop.name();
    step.aliases = loop_aliases(*group.loop);
    add_step(std::move(step));
  }

  // Gives |step|, which has its buffers and whose kernel takes epilogues, this one.
  void join(Step& step, WantedEpilogue& epilogue) {
    const LoopPlan& plan = *epilogue.group.loop;
    const uint32_t head =
        snapshot_.node(epilogue.group.nodes[epilogue.group.before_loop() - 1]).outputs[0];
    std::vector<uint32_t> buffers;
    for (uint32_t v : plan.inputs) {
      buffers.push_back(v == head ? step.outputs[0] : buffer(v));
      if (v != head) add_once(step.reads, buffers.back());
    }
    buffers.push_back(step.outputs[0]);
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
    at.x = step.outputs[0];
    at.scale = buffer(node.input_index(1));
    at.bias = node.has_input(2) ? buffer(node.input_index(2)) : PFRT_NO_INDEX;
    at.y = buffer(node.output_index(0));
    at.counters = add_buffer({PFRT_BUFFER_TEMP, 0}, norm.counter_bytes());
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

  Status add_node(uint32_t index) {
    Wanted nothing;
    return add_node(index, nothing);
  }

  Status add_node(uint32_t index, Wanted& wanted) {
    const SnapshotNode node = reader(index);
    for (uint32_t i = 0; i < node.input_count(); ++i)
      if (node.has_input(i) && elements(node.input_index(i)) < 0)
        return error(Code::kSHAPE_MISMATCH, cpu::describe(node), ": the dimensions of input ", i,
                     " '", snapshot_.value(node.input_index(i)).name,
                     "' are not known before the run");
    const bool empty = has_empty(node);
    if (empty) wanted = {};  // the nodes that follow get steps of their own
    WantedEpilogue* const epilogue = wanted.epilogue;
    const uint32_t pool = wanted.pool;
    const KernelRow* const any_row = operator_row(node);
    if (lies_in_place(node, any_row, epilogue != nullptr || wanted.norm != PFRT_NO_INDEX))
      return {};
    if (is_idle(node, any_row)) {
      for (uint32_t i = 0; i < node.output_count(); ++i)
        if (node.has_output(i)) buffer(node.output_index(i));
      return {};
    }
    std::string reason;
    const KernelRow* const row = find_kernel(KernelRequest(node), &reason);
    if (row == nullptr)
      return error(Code::kUNSUPPORTED_OPERATOR, cpu::describe(node), ": ", reason);
    const bool pooled = pool != PFRT_NO_INDEX;
    const SnapshotNode last = reader(pooled ? pool : index);
    // An empty node takes the last row, which knows nothing of constants packed for another.
    const bool packs = row->pack != nullptr && !empty;
    const Packed* const packed = packs ? executable_.packed(index) : nullptr;
    KernelRequest request(node);
    request.sides = {node.has_input(0) && nchw16c_[node.input_index(0)],
                     last.has_output(0) && nchw16c_[last.output_index(0)]};
    if (const auto shuffle = shuffles_.groups.find(index); shuffle != shuffles_.groups.end())
      request.shuffle_groups = shuffle->second;
    if (pooled) request.pool = &last;
    if (packed != nullptr) request.packed = &packed->input;
    request.prepared = executable_.prepared(index);
    Result<Kernel> kernel = row->make(request);
    if (!kernel.ok()) return kernel.take_status().prepend(cpu::describe(node));
    Step step;
    step.kernel = kernel.take();
    step.precision = node.precision();
    step.nodes = {index};
    for (uint32_t i = 0; i < node.input_count(); ++i) {
      const bool reads = node.has_input(i) && !(packed != nullptr && step.kernel.packed_alone &&
                                                i == packed->input.input);
      step.inputs.push_back(reads ? input_of(*row, node.input_index(i), index) : PFRT_NO_INDEX);
    }
    if (packed != nullptr)
      step.packed = add_buffer({PFRT_BUFFER_CONST, packed->index}, packed->input.bytes);
    const bool joins = epilogue != nullptr && row->has(kEpilogue);
    wanted.norm_joined = wanted.norm != PFRT_NO_INDEX && row->has(kEpilogue);
    std::vector<Step> packing;
    for (uint32_t i = 0; i < last.output_count(); ++i) {
      if (!last.has_output(i)) {
        step.outputs.push_back(PFRT_NO_INDEX);
        continue;
      }
      uint32_t value =
          joins && i == 0 ? epilogue->group.loop->outputs.front() : last.output_index(i);
      if (wanted.norm_joined && only_normalised(value))
        value = snapshot_.node(wanted.norm).outputs[0];
      PFRT_ASSIGN(const uint32_t to, output_of(*row, value, index, packing));
      step.outputs.push_back(to);
    }
    if (row->has(kLongStep)) step.flags = PFRT_STEP_LONG;
    step.unaligned = row->has(kUnaligned);
    step.name = step.kernel.name.empty() ? row->name : step.kernel.name;
    if (request.any_nchw16c()) step.name += "_nchw16c";
    if (step.kernel.may_alias >= 0)
      step.aliases = {{static_cast<uint32_t>(step.kernel.may_alias), 0}};
    if (joins) {
      join(step, *epilogue);
    } else if (pooled) {
      step.nodes.push_back(pool);
      name_node(step, pool);
    }
    if (wanted.norm_joined) join_norm(step, wanted.norm);
    add_step(std::move(step));
    for (Step& pack : packing) add_step(std::move(pack));
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
    if (!wants_bytes(row, value)) return buffer(value);
    const auto known = byte_buffers_.find(value);
    if (known != byte_buffers_.end()) return known->second;
    const int64_t count = elements(value);
    const uint32_t to = add_buffer({PFRT_BUFFER_TEMP, 0}, static_cast<uint64_t>(count));
    add_step(sub_byte_step(unpack_sub_byte(snapshot_.value(value).dtype, count), buffer(value), to,
                           node, "unpack"));
    byte_buffers_[value] = to;
    return to;
  }

  // The buffer that |row| writes |value| to; a step that packs its sub-byte elements goes to
  // |after|.
  Result<uint32_t> output_of(const KernelRow& row, uint32_t value, uint32_t node,
                             std::vector<Step>& after) {
    if (!wants_bytes(row, value)) return buffer(value);
    const int64_t count = elements(value);
    if (count < 0)
      return error(Code::kSHAPE_MISMATCH, row.name, ": the dimensions of a ",
                   dtype_name(snapshot_.value(value).dtype),
                   " output are not known before the run");
    const uint32_t from = add_buffer({PFRT_BUFFER_TEMP, 0}, static_cast<uint64_t>(count));
    after.push_back(sub_byte_step(pack_sub_byte(snapshot_.value(value).dtype, count), from,
                                  buffer(value), node, "pack"));
    return from;
  }

  // Whether the node needs no step: its values then lie in one another's buffers.
  bool lies_in_place(const SnapshotNode& node, const KernelRow* row, bool has_epilogue) {
    std::optional<InPlace> place;
    if (shuffles_.transposes.contains(node.index()))
      place.emplace();  // the reader of the output does the shuffle
    else if (row != nullptr && row->in_place != nullptr)
      place = row->in_place(node);
    if (!place) return false;
    switch (place->which) {
      case InPlace::Which::kSame:
        return rename(node);
      case InPlace::Which::kInInput:
        return outputs_in_input(node, place->offsets);
      case InPlace::Which::kInOutput:
        return inputs_in_output(node, place->offsets, has_epilogue);
    }
    return false;
  }

  // Lets the output live in the input's buffer, where nothing but the name changes.
  bool rename(const SnapshotNode& node) {
    if (!node.has_input(0) || !node.has_output(0)) return false;
    const uint32_t from = node.input_index(0), to = node.output_index(0);
    if (executable_.home(to).kind != PFRT_BUFFER_TEMP || bytes(from) != bytes(to) ||
        bytes(to) == PFRT_BYTES_UNKNOWN || snapshot_.value(from).dtype != snapshot_.value(to).dtype)
      return false;
    buffer_of_[to] = buffer(from);
    return true;
  }

  bool is_sub_buffer(uint32_t buffer) const {
    return program_->buffers_[buffer].kind == PFRT_BUFFER_PART;
  }

  void make_sub_buffer(uint32_t buffer, uint32_t whole, uint64_t offset) {
    pfrt_buffer& sub_buffer = program_->buffers_[buffer];
    sub_buffer.kind = PFRT_BUFFER_PART;
    sub_buffer.index = whole;
    sub_buffer.offset = offset;
  }

  // Lets the outputs live in the input's buffer.
  bool outputs_in_input(const SnapshotNode& node, const std::vector<uint64_t>& offsets) {
    if (bytes(node.input_index(0)) == PFRT_BYTES_UNKNOWN) return false;
    for (uint32_t i = 0; i < node.output_count(); ++i)
      if (node.has_output(i) && executable_.home(node.output_index(i)).kind != PFRT_BUFFER_TEMP)
        return false;
    const uint32_t whole = buffer(node.input_index(0));
    for (uint32_t i = 0; i < node.output_count(); ++i)
      if (node.has_output(i)) make_sub_buffer(buffer(node.output_index(i)), whole, offsets[i]);
    return true;
  }

  // Lets the inputs live in the output's buffer from the start; those that cannot are copied there.
  // A node with an epilogue gets its own step where something would have to be copied.
  bool inputs_in_output(const SnapshotNode& node, const std::vector<uint64_t>& offsets,
                        bool has_epilogue) {
    if (bytes(node.output_index(0)) == PFRT_BYTES_UNKNOWN) return false;
    for (uint32_t i = 0; has_epilogue && i < node.input_count(); ++i)
      if (executable_.home(node.input_index(i)).kind != PFRT_BUFFER_TEMP) return false;
    Step copies;
    std::vector<uint64_t> sizes;
    const uint32_t whole = buffer(node.output_index(0));
    for (uint32_t i = 0; i < node.input_count(); ++i) {
      const uint32_t from = buffer(node.input_index(i));
      if (program_->buffers_[from].kind == PFRT_BUFFER_TEMP) {
        make_sub_buffer(from, whole, offsets[i]);
        continue;
      }
      sizes.push_back(bytes(node.input_index(i)));
      copies.inputs.push_back(from);
      copies.outputs.push_back(add_buffer({PFRT_BUFFER_TEMP, 0}, sizes.back()));
      make_sub_buffer(copies.outputs.back(), whole, offsets[i]);
    }
    if (sizes.empty()) return true;
    copies.kernel = copy_kernel(std::move(sizes));
    copies.nodes = {node.index()};
    copies.name = "concat_copy";
    add_step(std::move(copies));
    return true;
  }

  // A sub-buffer of a sub-buffer becomes one of the buffer that holds both.
  void flatten_sub_buffers() {
    std::vector<pfrt_buffer>& buffers = program_->buffers_;
    for (uint32_t b = 0; b < buffers.size(); ++b) {
      while (is_sub_buffer(b) && is_sub_buffer(buffers[b].index)) {
        buffers[b].offset += buffers[buffers[b].index].offset;
        buffers[b].index = buffers[buffers[b].index].index;
      }
    }
  }

  // Region outputs that live elsewhere: inputs, constants, and those named twice.
  Status add_copies() {
    for (uint32_t i = 0; i < executable_.outputs().size(); ++i) {
      const uint32_t value = executable_.outputs()[i];
      const Home& home = executable_.home(value);
      if (home.kind == PFRT_BUFFER_OUT && home.index == i) continue;
      if (bytes(value) == PFRT_BYTES_UNKNOWN)
        return error(Code::kSHAPE_MISMATCH, "region output ", i,
                     " is another value's copy, of dimensions that are not known before the run");
      Step step;
      step.kernel = copy_kernel({bytes(value)});
      step.inputs = {buffer(value)};
      step.outputs = {add_buffer({PFRT_BUFFER_OUT, i}, bytes(value))};
      step.name = "copy";
      add_step(std::move(step));
    }
    return {};
  }

  // Says which temporaries may take the memory of one that dies in the same step.
  void share_memory() {
    std::vector<pfrt_buffer>& buffers = program_->buffers_;
    std::vector<bool> has_sub_buffers(buffers.size());
    for (const pfrt_buffer& b : buffers)
      if (b.kind == PFRT_BUFFER_PART) has_sub_buffers[b.index] = true;
    std::vector<size_t> last_use(buffers.size());
    for (size_t s = 0; s < program_->steps_.size(); ++s) {
      for (uint32_t b : program_->steps_[s].reads) last_use[b] = s;
      for (uint32_t b : program_->steps_[s].writes) last_use[b] = s;
    }
    for (size_t s = 0; s < program_->steps_.size(); ++s) {
      const Step& step = program_->steps_[s];
      std::vector<uint32_t> taken;
      for (const auto& [input, output] : step.aliases) {
        if (input >= step.inputs.size()) continue;
        const uint32_t from = step.inputs[input], to = step.outputs[output];
        if (from == PFRT_NO_INDEX || to == PFRT_NO_INDEX || buffers[to].may_alias != 0) continue;
        if (has_sub_buffers[from] || has_sub_buffers[to]) continue;
        const bool dies = buffers[from].kind == PFRT_BUFFER_TEMP && last_use[from] == s;
        const bool fits = buffers[to].kind == PFRT_BUFFER_TEMP && from != to &&
                          buffers[from].bytes == buffers[to].bytes;
        // The epilogue reads its operands after the kernel has written.
        const bool of_epilogue =
            step.epilogue &&
            std::ranges::find(step.epilogue->buffers(), from) != step.epilogue->buffers().end();
        const bool once = !of_epilogue && std::ranges::count(step.inputs, from) == 1 &&
                          std::ranges::find(taken, from) == taken.end();
        if (!dies || !fits || !once) continue;
        buffers[to].may_alias = from + 1;
        taken.push_back(from);
      }
    }
  }

  // Says which constants no step needs aligned, such as tables of embeddings: the host need not
  // copy those from a file, and a run reads few of their rows.
  void relax_alignment() {
    std::vector<pfrt_buffer>& buffers = program_->buffers_;
    std::vector<bool> aligned(buffers.size());
    for (const pfrt_buffer& b : buffers)
      if (b.kind == PFRT_BUFFER_PART) aligned[b.index] = true;
    for (const Step& step : program_->steps_) {
      const uint32_t any = step.unaligned ? step.inputs[0] : PFRT_NO_INDEX;
      for (const uint32_t b : step.reads)
        if (b != any || std::ranges::count(step.inputs, b) > 1) aligned[b] = true;
      if (step.epilogue)
        for (const uint32_t b : step.epilogue->buffers())
          if (b != PFRT_NO_INDEX) aligned[b] = true;
    }
    for (size_t b = 0; b < buffers.size(); ++b)
      if (buffers[b].kind == PFRT_BUFFER_INITIALIZER && !aligned[b]) buffers[b].alignment = 1;
  }

  // A step that takes no longer than waking another thread runs on one.
  static uint32_t width_of(const Step& step) {
    constexpr double kLeastShared = 5e3;  // nanoseconds, as estimated
    const bool little =
        step.kernel.flops > 0 && estimate_ns(step.kernel.flops, step.bytes) < kLeastShared;
    return little ? 1 : step.kernel.width;
  }

  void fill_table() {
    for (Step& step : program_->steps_) {
      pfrt_step out{};
      out.run = run_step;
      out.state = &step;
      out.reads = step.reads.data();
      out.writes = step.writes.data();
      out.read_count = static_cast<uint32_t>(step.reads.size());
      out.write_count = static_cast<uint32_t>(step.writes.size());
      out.nodes = step.nodes.data();
      out.node_count = static_cast<uint32_t>(step.nodes.size());
      out.width = width_of(step);
      out.scratch_bytes = step.kernel.scratch_bytes;
      out.est_ns = estimate_ns(step.kernel.flops, step.bytes);
      out.flops = step.kernel.flops > 0 ? static_cast<uint64_t>(step.kernel.flops) : 0;
      out.bytes = step.bytes;
      out.flags = step.flags;
      out.kernel = to_c(step.name);
      out.detail = to_c(step.detail);
      program_->table_.push_back(out);
    }
  }

  const Executable& executable_;
  const SnapshotCopy& snapshot_;
  const pfrt_shapes& shapes_;
  std::vector<uint32_t> buffer_of_;  // by value
  std::vector<bool> nchw16c_;        // by value
  Shuffles shuffles_;
  std::unordered_map<uint32_t, uint32_t> byte_buffers_;  // buffers of a byte an element, by value
  std::unique_ptr<Program> program_;
  std::optional<Tuner> tuner_;  // while the executable was compiled with the hint
};

Result<std::unique_ptr<Program>> Program::make(const Executable& executable,
                                               const pfrt_shapes& shapes, uint32_t& node) {
  return ProgramBuilder(executable, shapes).build(node);
}

void Program::describe(pfrt_program& out) const {
  out.abi = PFRT_ABI_VERSION;
  out.buffer_size = sizeof(pfrt_buffer);
  out.step_size = sizeof(pfrt_step);
  out.buffer_count = static_cast<uint32_t>(buffers_.size());
  out.step_count = static_cast<uint32_t>(table_.size());
  out.buffers = buffers_.data();
  out.steps = table_.data();
}

}  // namespace pfrt::cpu
