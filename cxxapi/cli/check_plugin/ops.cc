// SPDX-License-Identifier: Apache-2.0
//
// Tests of operators: their descriptions, infer with known and unknown inputs, and compute on small
// tensors between guard pages. An operator may refuse the types that these tests use.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "cxxapi/cli/check_plugin/ages.h"
#include "cxxapi/cli/check_plugin/cases.h"
#include "cxxapi/cli/check_plugin/kinds.h"
#include "cxxapi/cli/check_plugin/plugin_file.h"
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

uint32_t input_count(const pfrt_custom_op& op) {
  return op.min_inputs ? op.min_inputs : op.max_inputs == PFRT_ANY_NUMBER ? 1 : op.max_inputs;
}
uint32_t output_count(const pfrt_custom_op& op) { return std::max<uint32_t>(op.min_outputs, 1); }

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
    node.inputs = inputs.data();
    node.input_count = static_cast<uint32_t>(inputs.size());
    node.outputs = outputs.data();
    node.output_count = static_cast<uint32_t>(outputs.size());
  }
  std::vector<uint32_t> inputs, outputs;
  pfrt_snapshot_node node{};
};

// Returns the outputs that infer describes; none when it refuses.
std::vector<Output> infer(Trial& trial, const pfrt_custom_op& op, pfrt_dtype dtype,
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
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    pfrt_snapshot_value v{};
    v.name = {"x", 1};
    v.dtype = dtype;
    v.rank = dims ? static_cast<int32_t>(dims->size()) : -1;
    v.dims = dims ? dims->data() : nullptr;
    v.producer = PFRT_NO_INDEX;
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

struct Computed {
  bool ok = false;
  std::string text;
  std::vector<std::vector<char>> results;
};

class Compute {
 public:
  Compute(Trial& trial, const pfrt_custom_op& op, pfrt_dtype dtype,
          const std::vector<int64_t>& dims, const std::vector<Output>& inferred, Placed placed,
          uint32_t workers)
      : trial_(trial), op_(op), node_(op), placed_(placed), workers_(workers) {
    size_t count = 1;
    for (int64_t d : dims) count *= static_cast<size_t>(d);
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      std::vector<double> data;
      for (size_t k = 0; k < count; ++k) data.push_back(static_cast<double>(k % 7 + i));
      const std::vector<char> bytes = to_bytes(dtype, data);
      Guarded& memory = *memory_.emplace_back(std::make_unique<Guarded>(
          bytes.size(), "an input", kBuffer, element_bytes(dtype), placed));
      std::memcpy(memory.data(), bytes.data(), bytes.size());
      memory.allow(Guarded::Access::kRead);
      inputs_.push_back(view(dtype, dims, memory));
    }
    outputs_.resize(node_.outputs.size());
    given_.resize(outputs_.size(), nullptr);
    shapes_.resize(outputs_.size());
    for (size_t o = 0; o < outputs_.size(); ++o) {
      outputs_[o].struct_size = sizeof(pfrt_tensor);
      outputs_[o].dtype = dtype;
      if (o >= inferred.size() || !inferred[o].known()) continue;
      outputs_[o].dtype = inferred[o].dtype ? inferred[o].dtype : dtype;
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
    for (const Guarded* memory : given_)
      result.results.emplace_back(
          memory ? std::vector<char>(memory->data(), memory->data() + memory->size())
                 : std::vector<char>());
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
  bool give(uint32_t index, pfrt_dtype dtype, std::vector<int64_t> dims, void** out) {
    constexpr size_t kMost = size_t{1} << 24;
    size_t count = 1;
    for (int64_t d : dims) count *= static_cast<size_t>(std::max<int64_t>(d, 0));
    size_t size = 0;
    try {
      size = element_bytes(dtype);
    } catch (const std::logic_error&) {
      return false;
    }
    if (count > kMost) return false;
    memory_.push_back(std::make_unique<Guarded>(count * size, "an output", kBuffer, size, placed_));
    given_[index] = memory_.back().get();
    shapes_[index] = std::move(dims);
    *out = given_[index]->data();
    return true;
  }

  Trial& trial_;
  const pfrt_custom_op& op_;
  HostNode node_;
  Placed placed_;
  uint32_t workers_;
  std::vector<std::unique_ptr<Guarded>> memory_;
  std::vector<pfrt_tensor> inputs_, outputs_;
  std::vector<const Guarded*> given_;         // by output
  std::vector<std::vector<int64_t>> shapes_;  // by output
  std::string text_;
};

void check_operator(Trial& trial, const pfrt_custom_op& op) {
  const std::string name = "'" + text_of(op.name) + "'";
  const std::vector<int64_t> dims = {2, 3};
  bool computed = false;
  std::string why;
  for (pfrt_dtype dtype : {PFRT_DTYPE_FLOAT32, PFRT_DTYPE_INT64, PFRT_DTYPE_FLOAT64}) {
    std::vector<Output> inferred;
    if (op.infer) {
      (void)infer(trial, op, dtype, nullptr, Age::kNow);
      inferred = infer(trial, op, dtype, &dims, Age::kNow);
      trial.expect(inferred == infer(trial, op, dtype, &dims, Age::kNow), "claim-pure",
                   "infer of " + name + " answers otherwise when asked again");
      trial.expect(inferred == infer(trial, op, dtype, &dims, Age::kNewer), "struct-size-host",
                   "infer of " + name + " answers otherwise " + age_text(Age::kNewer));
      if (inferred.empty()) continue;
    }
    const Computed first = Compute(trial, op, dtype, dims, inferred, Placed::kAtEnd, 1).run();
    if (!first.ok) {
      why = first.text;
      continue;
    }
    computed = true;
    for (uint32_t workers : {1u, 3u}) {
      const Computed again =
          Compute(trial, op, dtype, dims, inferred, Placed::kAtStart, workers).run();
      trial.expect(again.ok && again.results == first.results, "thread-count",
                   "compute of " + name + " gave other bits with " + std::to_string(workers) +
                       " threads or at other addresses");
    }
  }
  if (!computed)
    trial.skip("compute of " + name + ": it takes no [2,3] tensors of float32, int64 or float64 (" +
               why + ")");
}

void check_ops(Trial& trial, const std::string& path) {
  const ProcessState before;
  const size_t threads = thread_count();
  PluginFile file(trial, path);
  const auto& table = *static_cast<const pfrt_ops_table*>(file.describe(trial).table);
  trial.at("operators", "its list of operators was read");
  if (!trial.expect(table.struct_size >= sizeof table, "struct-size-plugin",
                    "its table's struct_size is " + std::to_string(table.struct_size)))
    return;
  if (!trial.expect(table.count > 0 && table.count < 100000 && table.ops, "operators",
                    "it lists no operators"))
    return;
  std::set<std::string> names;
  for (size_t i = 0; i < table.count; ++i) {
    const pfrt_custom_op* op = table.ops[i];
    const std::string which = "operator " + std::to_string(i);
    if (!trial.expect(op != nullptr, "operators", which + " is NULL")) continue;
    if (!trial.expect(op->struct_size >= offsetof(pfrt_custom_op, release), "struct-size-plugin",
                      which + " has struct_size " + std::to_string(op->struct_size)))
      continue;
    bool good = trial.expect(op->name.data && op->name.size, "operators", which + " has no name");
    good &= trial.expect(op->compute != nullptr, "operators", which + " has no compute");
    good &= trial.expect(op->max_inputs == 0 || op->max_inputs >= op->min_inputs, "operators",
                         which + " takes from " + std::to_string(op->min_inputs) + " to " +
                             std::to_string(op->max_inputs) + " inputs");
    const std::string key =
        text_of(op->domain) + "::" + text_of(op->name) + "@" + std::to_string(op->since_version);
    good &= trial.expect(names.insert(key).second, "operators", "'" + key + "' is there twice");
    if (good && input_count(*op) <= 64 && output_count(*op) <= 64) check_operator(trial, *op);
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
