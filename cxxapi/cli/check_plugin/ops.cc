// SPDX-License-Identifier: Apache-2.0
//
// Tests of operators: their descriptions, infer with known and unknown inputs, create_state, and
// compute on small tensors between guard pages, by several threads with one state. An operator may
// refuse the types that these tests use.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "cxxapi/cli/check_plugin/ages.h"
#include "cxxapi/cli/check_plugin/cases.h"
#include "cxxapi/cli/check_plugin/kinds.h"
#include "cxxapi/cli/check_plugin/op_description.h"
#include "cxxapi/cli/check_plugin/plugin_file.h"
#include "cxxapi/cli/check_plugin/program_run.h"
#include "pyflame_rt/custom.h"

namespace cli::check {
namespace {

struct Output {
  bool set = false;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  int32_t rank = -1;
  std::vector<int64_t> dims;
  bool known() const {
    return set && rank >= 0 &&
           std::all_of(dims.begin(), dims.end(), [](int64_t d) { return d >= 0; });
  }
  bool operator==(const Output& o) const {
    return set == o.set && dtype == o.dtype && rank == o.rank && dims == o.dims;
  }
};

// Whether tensors of the type are made here.
bool made_here(pfrt_dtype type) {
  if (type == PFRT_DTYPE_STRING) return true;
  try {
    return element_bytes(type) > 0;
  } catch (const std::logic_error&) {
    return false;
  }
}

size_t bytes_of(pfrt_dtype type) {
  return type == PFRT_DTYPE_STRING ? sizeof(pfrt_string) : element_bytes(type);
}

// A node of the operator without attributes.
struct HostNode {
  explicit HostNode(const pfrt_custom_op& op) : inputs(input_count(op)), outputs(output_count(op)) {
    for (uint32_t i = 0; i < inputs.size(); ++i) inputs[i] = i;
    for (uint32_t i = 0; i < outputs.size(); ++i)
      outputs[i] = static_cast<uint32_t>(inputs.size()) + i;
    node.name = {"n", 1};
    node.op = op.name;
    node.domain = op.domain;
    node.canonical = 1;
    node.opset = std::max(op.since_version, 1u);
    node.inputs = inputs.data();
    node.input_count = static_cast<uint32_t>(inputs.size());
    node.outputs = outputs.data();
    node.output_count = static_cast<uint32_t>(outputs.size());
  }
  std::vector<uint32_t> inputs, outputs;
  pfrt_snapshot_node node{};
};

// A value named |name|, which is no constant; |dims| may be null.
pfrt_snapshot_value value_of(const char* name, pfrt_dtype dtype, const std::vector<int64_t>* dims) {
  pfrt_snapshot_value v{};
  v.name = {name, 1};
  v.dtype = dtype;
  v.rank = dims ? static_cast<int32_t>(dims->size()) : -1;
  v.dims = dims ? dims->data() : nullptr;
  v.producer = PFRT_NO_INDEX;
  v.consumer_count = 1;
  return v;
}

// Returns the outputs that infer describes; none when it refuses.
std::vector<Output> infer(Trial& trial, const pfrt_custom_op& op, const Types& types,
                          const std::vector<int64_t>* dims, Age age) {
  struct Collector {
    std::vector<Output> outputs;
    std::string text;
    bool outside = false;
  } collector;
  const HostNode node(op);
  collector.outputs.resize(node.outputs.size());
  const size_t stride = sizeof(pfrt_snapshot_value) + (age == Age::kNewer ? kMore : 0);
  Guarded values(stride * node.inputs.size(), "the inputs", kHostStruct, 8);
  std::memset(values.data(), 0, stride * node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const pfrt_snapshot_value v = value_of("x", types[i], dims);
    std::memcpy(values.data() + i * stride, &v, sizeof v);
  }
  values.allow(Guarded::Access::kRead);
  const std::vector<pfrt_string> names(node.outputs.size(), pfrt_string{"y", 1});
  pfrt_op_infer context{};
  context.host = &collector;
  context.node = &node.node;
  context.attr_size = sizeof(pfrt_snapshot_attr);
  context.value_size = static_cast<uint32_t>(stride);
  context.input_count = node.node.input_count;
  context.output_count = node.node.output_count;
  context.inputs = reinterpret_cast<const pfrt_snapshot_value*>(values.data());
  context.output_names = names.data();
  context.set_output = [](const pfrt_op_infer* c, uint32_t index, pfrt_dtype type, int32_t rank,
                          const int64_t* shape) -> pfrt_code {
    auto& to = *static_cast<Collector*>(c->host);
    if (index >= to.outputs.size() || rank > 64 || (rank > 0 && !shape)) {
      to.outside = true;
      return PFRT_CODE_INVALID_ARGUMENT;
    }
    to.outputs[index] = {true, type, rank, {}};
    if (rank > 0) to.outputs[index].dims.assign(shape, shape + rank);
    return PFRT_CODE_OK;
  };
  context.fail = [](const pfrt_op_infer* c, pfrt_code code, pfrt_string message) {
    static_cast<Collector*>(c->host)->text = text_of(message);
    return code;
  };
  Sized<pfrt_op_infer> sized(age, context, "infer's context");
  sized.make_read_only();
  const std::string name = "'" + text_of(op.name) + "'";
  const pfrt_code code = call(trial, "struct-size-host", "infer of " + name + " ran",
                              [&] { return op.infer(op.user, sized.get()); });
  trial.expect(!collector.outside, "operators",
               "infer of " + name + " set an output or dimensions that there are not");
  if (code == PFRT_CODE_OK) return collector.outputs;
  trial.expect(!collector.text.empty(), "refusal",
               "infer of " + name + " refused without a reason");
  return {};
}

// A node's state, until release.
class State {
 public:
  State(Trial& trial, const pfrt_custom_op& op, const Types& types,
        const std::vector<int64_t>& dims)
      : trial_(trial), op_(op) {
    if (!op.create_state) return;
    const HostNode node(op);
    std::vector<pfrt_snapshot_value> inputs, outputs;
    for (const pfrt_dtype type : types) inputs.push_back(value_of("x", type, &dims));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      outputs.push_back(value_of("y", output_type(op, types, i), nullptr));
    pfrt_op_create context{};
    context.host = this;
    context.node = &node.node;
    context.attr_size = sizeof(pfrt_snapshot_attr);
    context.value_size = sizeof(pfrt_snapshot_value);
    context.input_count = node.node.input_count;
    context.output_count = node.node.output_count;
    context.inputs = inputs.data();
    context.outputs = outputs.data();
    context.stop = [](const pfrt_op_create*) -> pfrt_code { return PFRT_CODE_OK; };
    context.fail = [](const pfrt_op_create* c, pfrt_code code, pfrt_string message) {
      static_cast<State*>(c->host)->text_ = text_of(message);
      return code;
    };
    Sized<pfrt_op_create> sized(Age::kNow, context, "create_state's context");
    sized.make_read_only();
    const std::string name = "'" + text_of(op.name) + "'";
    const pfrt_code code = call(trial, "struct-size-host", "create_state of " + name + " ran",
                                [&] { return op.create_state(op.user, sized.get(), &state_); });
    ok_ = code == PFRT_CODE_OK;
    trial.expect(ok_ || !text_.empty(), "refusal",
                 "create_state of " + name + " failed with " + code_text(code) + " and no message");
    if (!ok_) state_ = nullptr;
  }
  void release() {
    if (state_ && op_.release_state)
      call(trial_, "operators", "release_state of '" + text_of(op_.name) + "' ran",
           [&] { op_.release_state(op_.user, state_); });
  }

  bool ok() const { return ok_; }
  const std::string& text() const { return text_; }
  void* get() const { return state_; }

 private:
  Trial& trial_;
  const pfrt_custom_op& op_;
  void* state_ = nullptr;
  bool ok_ = true;
  std::string text_;
};

struct Computed {
  bool ok = false;
  std::string text;
  std::vector<std::vector<char>> results;
};

class Compute {
 public:
  Compute(Trial& trial, const pfrt_custom_op& op, const Types& types,
          const std::vector<int64_t>& dims, const std::vector<Output>& inferred, void* state,
          Placed placed, uint32_t workers)
      : trial_(trial), op_(op), node_(op), state_(state), placed_(placed), workers_(workers) {
    size_t count = 1;
    for (int64_t d : dims) count *= static_cast<size_t>(d);
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const std::vector<char> bytes = input_bytes(types[i], count, i);
      Guarded& memory = *memory_.emplace_back(
          std::make_unique<Guarded>(bytes.size(), "an input", kBuffer, bytes_of(types[i]), placed));
      std::memcpy(memory.data(), bytes.data(), bytes.size());
      memory.allow(Guarded::Access::kRead);
      inputs_.push_back(view(types[i], dims, memory));
    }
    outputs_.resize(node_.outputs.size());
    given_.resize(outputs_.size(), nullptr);
    shapes_.resize(outputs_.size());
    texts_.resize(outputs_.size());
    for (size_t o = 0; o < outputs_.size(); ++o) {
      outputs_[o].struct_size = sizeof(pfrt_tensor);
      outputs_[o].dtype = output_type(op, types, o);
      if (o >= inferred.size() || !inferred[o].known()) continue;
      if (inferred[o].dtype) outputs_[o].dtype = inferred[o].dtype;
      void* data = nullptr;
      if (give(static_cast<uint32_t>(o), outputs_[o].dtype, inferred[o].dims, &data))
        outputs_[o] = view(outputs_[o].dtype, shapes_[o], *given_[o]);
    }
  }

  Computed run() {
    const std::vector<pfrt_string> in(inputs_.size(), pfrt_string{"x", 1}),
        out(outputs_.size(), pfrt_string{"y", 1});
    pfrt_op_compute context{};
    context.host = this;
    context.node = &node_.node;
    context.attr_size = sizeof(pfrt_snapshot_attr);
    context.input_count = node_.node.input_count;
    context.output_count = node_.node.output_count;
    context.inputs = inputs_.data();
    context.outputs = outputs_.data();
    context.input_names = in.data();
    context.output_names = out.data();
    context.alloc_output = [](const pfrt_op_compute* c, uint32_t index, pfrt_dtype dtype,
                              const int64_t* dims, uint32_t rank, void** out_data) -> pfrt_code {
      auto& self = *static_cast<Compute*>(c->host);
      *out_data = nullptr;
      if (index >= self.given_.size() || rank > 64 || (rank && !dims) || self.given_[index])
        return PFRT_CODE_INVALID_ARGUMENT;
      return self.give(index, dtype, {dims, dims + rank}, out_data) ? PFRT_CODE_OK
                                                                    : PFRT_CODE_DTYPE_MISMATCH;
    };
    context.parallel = [](const pfrt_op_compute* c, uint64_t n,
                          void (*fn)(void*, uint64_t, uint32_t), void* arg) {
      const uint32_t workers = static_cast<Compute*>(c->host)->workers_;
      std::vector<std::thread> others;
      const auto work = [&](uint32_t worker) {
        for (uint64_t i = worker; i < n; i += workers) fn(arg, i, worker);
      };
      for (uint32_t w = 1; w < workers; ++w) others.emplace_back(work, w);
      work(0);
      for (std::thread& other : others) other.join();
    };
    context.stop = [](const pfrt_op_compute*) -> pfrt_code { return PFRT_CODE_OK; };
    context.state = state_;
    context.set_strings = [](const pfrt_op_compute* c, uint32_t index, uint64_t first,
                             const pfrt_string* texts, uint64_t count) {
      return static_cast<Compute*>(c->host)->set(index, first, texts, count);
    };
    context.fail = [](const pfrt_op_compute* c, pfrt_code code, pfrt_string message) {
      static_cast<Compute*>(c->host)->text_ = text_of(message);
      return code;
    };
    Sized<pfrt_op_compute> sized(Age::kNow, context, "compute's context");
    sized.make_read_only();
    Computed result;
    const std::string name = "'" + text_of(op_.name) + "'";
    const pfrt_code code = call(trial_, "writes-past-buffer", "compute of " + name + " ran",
                                [&] { return op_.compute(op_.user, sized.get()); });
    result.ok = code == PFRT_CODE_OK;
    result.text = text_;
    for (const auto& memory : memory_)
      if (!memory->margins_intact())
        trial_.fail("writes-past-buffer",
                    "bytes beside " + memory->label() + " of " + name + " changed");
    trial_.keep("writes-past-buffer");
    trial_.expect(result.ok || !text_.empty(), "refusal",
                  "compute of " + name + " failed with " + code_text(code) + " and no message");
    for (size_t o = 0; o < given_.size(); ++o) {
      std::vector<char>& bytes = result.results.emplace_back();
      const Guarded* const memory = given_[o];
      if (memory && texts_[o].empty())
        bytes.assign(memory->data(), memory->data() + memory->size());
      for (const auto& [element, text] : texts_[o]) {
        const std::string line = std::to_string(element) + " " + text + "\n";
        bytes.insert(bytes.end(), line.begin(), line.end());
      }
    }
    trial_.expect(!result.ok || given_[0] != nullptr, "operators",
                  "compute of " + name + " succeeded without asking for memory for its output");
    return result;
  }

 private:
  pfrt_tensor view(pfrt_dtype dtype, const std::vector<int64_t>& dims, const Guarded& memory) {
    pfrt_tensor t{};
    t.struct_size = sizeof t;
    t.dtype = dtype;
    t.rank = static_cast<uint32_t>(dims.size());
    t.data = memory.data();
    t.bytes = memory.size();
    t.dims = dims.data();
    return t;
  }
  // |count| elements of input |i|; texts are this object's.
  std::vector<char> input_bytes(pfrt_dtype type, size_t count, size_t i) {
    if (type != PFRT_DTYPE_STRING) {
      std::vector<double> data;
      for (size_t k = 0; k < count; ++k) data.push_back(static_cast<double>(k % 7 + i));
      return to_bytes(type, data);
    }
    std::vector<char> bytes(count * sizeof(pfrt_string));
    for (size_t k = 0; k < count; ++k) {
      const std::string& text = own_.emplace_back("text " + std::to_string(k % 7 + i));
      const pfrt_string one = {text.data(), text.size()};
      std::memcpy(bytes.data() + k * sizeof one, &one, sizeof one);
    }
    return bytes;
  }
  pfrt_code set(uint32_t index, uint64_t first, const pfrt_string* texts, uint64_t count) {
    if (index >= given_.size() || !given_[index] || outputs_[index].dtype != PFRT_DTYPE_STRING ||
        (count && !texts))
      return PFRT_CODE_INVALID_ARGUMENT;
    const uint64_t elements = given_[index]->size() / sizeof(pfrt_string);
    if (first > elements || count > elements - first) return PFRT_CODE_INVALID_ARGUMENT;
    const std::lock_guard<std::mutex> lock(mutex_);
    for (uint64_t k = 0; k < count; ++k) texts_[index][first + k] = text_of(texts[k]);
    return PFRT_CODE_OK;
  }
  bool give(uint32_t index, pfrt_dtype dtype, std::vector<int64_t> dims, void** out) {
    constexpr size_t kMost = size_t{1} << 24;
    size_t count = 1;
    for (int64_t d : dims) count *= static_cast<size_t>(std::max<int64_t>(d, 0));
    if (count > kMost || !made_here(dtype)) return false;
    const size_t size = bytes_of(dtype);
    memory_.push_back(std::make_unique<Guarded>(count * size, "an output", kBuffer, size, placed_));
    if (dtype == PFRT_DTYPE_STRING) {  // written by set_strings alone
      std::memset(memory_.back()->data(), 0, count * size);
      memory_.back()->allow(Guarded::Access::kRead);
    }
    given_[index] = memory_.back().get();
    shapes_[index] = std::move(dims);
    *out = given_[index]->data();
    return true;
  }

  Trial& trial_;
  const pfrt_custom_op& op_;
  HostNode node_;
  void* state_;
  Placed placed_;
  uint32_t workers_;
  std::vector<std::unique_ptr<Guarded>> memory_;
  std::vector<pfrt_tensor> inputs_, outputs_;
  std::vector<const Guarded*> given_;         // by output
  std::vector<std::vector<int64_t>> shapes_;  // by output
  std::deque<std::string> own_;
  std::mutex mutex_;
  std::vector<std::map<uint64_t, std::string>> texts_;  // by output and element
  std::string text_;
};

// Computes on tensors of |types|, and again with other threads. False, with the reason in |why|,
// when the operator does not take them.
bool check_compute(Trial& trial, const pfrt_custom_op& op, const Types& types,
                   const std::vector<int64_t>& dims, const std::vector<Output>& inferred,
                   std::string* why) {
  State state(trial, op, types, dims);
  if (!state.ok()) {
    *why = state.text();
    return false;
  }
  const Computed first =
      Compute(trial, op, types, dims, inferred, state.get(), Placed::kAtEnd, 1).run();
  if (!first.ok) *why = first.text;
  for (uint32_t workers : {1u, 3u}) {
    if (!first.ok) break;
    const Computed again =
        Compute(trial, op, types, dims, inferred, state.get(), Placed::kAtStart, workers).run();
    trial.expect(again.ok && again.results == first.results, "thread-count",
                 "compute of '" + text_of(op.name) + "' gave other bits with " +
                     std::to_string(workers) + " threads or at other addresses");
  }
  state.release();
  return first.ok;
}

void check_operator(Trial& trial, const pfrt_custom_op& op) {
  const std::string name = "'" + text_of(op.name) + "'";
  const std::vector<int64_t> dims = {2, 3};
  bool computed = false;
  std::string why;
  std::set<Types> tried;
  for (pfrt_dtype dtype : {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_INT64, PFRT_DTYPE_FLOAT64}) {
    const Types types = input_types(op, dtype);
    if (!tried.insert(types).second || !std::all_of(types.begin(), types.end(), made_here))
      continue;
    std::vector<Output> inferred;
    if (op.infer) {
      (void)infer(trial, op, types, nullptr, Age::kNow);
      inferred = infer(trial, op, types, &dims, Age::kNow);
      trial.expect(inferred == infer(trial, op, types, &dims, Age::kNow), "claim-pure",
                   "infer of " + name + " answers otherwise when asked again");
      trial.expect(inferred == infer(trial, op, types, &dims, Age::kNewer), "struct-size-host",
                   "infer of " + name + " answers otherwise " + age_text(Age::kNewer));
      if (inferred.empty()) continue;
    }
    computed |= check_compute(trial, op, types, dims, inferred, &why);
  }
  if (!computed)
    trial.skip("compute of " + name + ": it takes no [2,3] tensors of float32, int64, float64 or " +
               "the types that it names (" + why + ")");
}

void check_ops(Trial& trial, const std::string& path) {
  const ProcessState before;
  const size_t threads = thread_count();
  PluginFile file(trial, path);
  const auto& table = *static_cast<const pfrt_ops_table*>(file.describe(trial).table);
  trial.at("operators", "its list of operators was read");
  if (!trial.expect(table.struct_size >= kLeast<pfrt_ops_table>, "struct-size-plugin",
                    "its table's struct_size is " + std::to_string(table.struct_size)))
    return;
  if (!trial.expect(table.count > 0 && table.count < 100000 && table.ops, "operators",
                    "it lists no operators"))
    return;
  std::vector<pfrt_custom_op> ops;
  for (size_t i = 0; i < table.count; ++i) {
    const std::string which = "operator " + std::to_string(i);
    const pfrt_custom_op* given = table.ops[i];
    if (!trial.expect(given != nullptr, "operators", which + " is NULL")) continue;
    if (!trial.expect(given->struct_size >= kLeast<pfrt_custom_op>, "struct-size-plugin",
                      which + " has struct_size " + std::to_string(given->struct_size)))
      continue;
    if (!trial.expect(is_zero_behind(given, given->struct_size), "unknown", which + kSetMore))
      continue;
    pfrt_custom_op op{};  // with the members that the plug-in's struct has
    std::memcpy(&op, given, std::min<size_t>(given->struct_size, sizeof op));
    trial.expect((op.flags & ~uint64_t{PFRT_OP_SERIAL | PFRT_OP_DATA_DEPENDENT}) == 0, "unknown",
                 which + " has flags " + std::to_string(op.flags));
    const std::string fault = fault_of(op);
    if (!trial.expect(fault.empty(), "operators", std::string(which).append(" ").append(fault)))
      continue;
    const bool twice = std::any_of(ops.begin(), ops.end(),
                                   [&](const pfrt_custom_op& other) { return clash(op, other); });
    ops.push_back(op);
    const std::string key =
        text_of(op.domain) + "::" + text_of(op.name) + "@" + std::to_string(op.since_version);
    if (trial.expect(!twice, "operators", "'" + key + "' is there twice") &&
        input_count(op) <= 64 && output_count(op) <= 64)
      check_operator(trial, op);
  }
  trial.expect(threads_are(threads), "starts-threads", "threads of its own run");
  const std::string changed = before.changed();
  trial.expect(changed.empty(), "process-state", changed + " is not what it was");
  trial.keep("throws");
  file.close(trial);
  trial.keep("unload");
}

}  // namespace

std::vector<NamedTrial> ops_trials(const PluginFacts& facts) {
  const std::string path = facts.path;
  return {{"operators", [path](Trial& t) { check_ops(t, path); }}};
}

}  // namespace cli::check
