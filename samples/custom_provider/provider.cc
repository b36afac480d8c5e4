// SPDX-License-Identifier: Apache-2.0
//
// An execution provider in one file: Add, Mul, Relu and MatMul of float32 on the CPU. It sees
// plugin.h alone and links nothing of the runtime.
//
//   cmake -S . -B build -DCMAKE_PREFIX_PATH=/where/pyflame_rt/is && cmake --build build
//   pfrt check-plugin build/libpyflamert_provider_custom.so
//   PFRT_PLUGIN_PATH=build pfrt explain model.onnx --provider CustomExecutionProvider
//       --provider CPUExecutionProvider
#include <pyflame_rt/plugin.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string_view view(pfrt_string s) {
  return s.data ? std::string_view(s.data, s.size) : std::string_view();
}
pfrt_string text(std::string_view s) { return {s.data(), s.size()}; }

// Elements of the host's arrays may be larger than those of this build: the snapshot says how far
// apart they stand.
const pfrt_snapshot_node& node_at(const pfrt_snapshot& s, uint32_t i) {
  const char* base = reinterpret_cast<const char*>(s.nodes);
  return *reinterpret_cast<const pfrt_snapshot_node*>(base + size_t{s.node_size} * i);
}
const pfrt_snapshot_value& value_at(const pfrt_snapshot& s, uint32_t i) {
  const char* base = reinterpret_cast<const char*>(s.values);
  return *reinterpret_cast<const pfrt_snapshot_value*>(base + size_t{s.value_size} * i);
}

// ---- what is supported ----

enum class Op { kAdd, kMul, kRelu, kMatMul };

// Returns null when the node can be run, else why not.
const char* refuse(const pfrt_snapshot& s, const pfrt_snapshot_node& node, Op* op) {
  const std::string_view name = view(node.op);
  if (!view(node.domain).empty()) return "only operators of the standard are known";
  if (name == "Add") {
    *op = Op::kAdd;
  } else if (name == "Mul") {
    *op = Op::kMul;
  } else if (name == "Relu") {
    *op = Op::kRelu;
  } else if (name == "MatMul") {
    *op = Op::kMatMul;
  } else {
    return "only Add, Mul, Relu and MatMul are known";
  }
  for (uint32_t i = 0; i < node.input_count; ++i) {
    const pfrt_snapshot_value& v = value_at(s, node.inputs[i]);
    if (v.dtype != PFRT_DTYPE_FLOAT32) return "only float32 is known";
    if (v.rank < 0) return "the rank must be known";
    if (*op == Op::kMatMul && v.rank != 2) return "only matrices are multiplied";
  }
  return nullptr;
}

// ---- what compile keeps: the snapshot is gone when it returns ----

struct Node {
  Op op = Op::kAdd;
  uint32_t index = 0;
  std::vector<uint32_t> inputs;  // values
  uint32_t output = 0;
};

struct Executable {
  std::vector<Node> nodes;
  std::vector<uint32_t> inputs, outputs;  // values of the region's border
  struct Constant {
    uint32_t value;
    std::vector<int64_t> dims;
  };
  std::vector<Constant> constants;  // read in place
};

// ---- a program: one step a node ----

struct Step {
  Op op = Op::kAdd;
  std::vector<uint32_t> reads;  // buffers
  uint32_t write = 0;
  std::vector<int64_t> a, b, y;  // dimensions
};

struct Program {
  std::vector<pfrt_buffer> buffers;
  std::vector<std::unique_ptr<Step>> states;
  std::vector<pfrt_step> steps;
};

uint64_t count_of(const std::vector<int64_t>& dims) {
  uint64_t count = 1;
  for (int64_t d : dims) count *= static_cast<uint64_t>(d);
  return count;
}

// Returns the index of the operand's element that broadcasting pairs with element |flat| of the
// result.
uint64_t broadcast(const std::vector<int64_t>& y, const std::vector<int64_t>& dims, uint64_t flat) {
  uint64_t index = 0, stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const auto size = static_cast<uint64_t>(y[y.size() - 1 - i]);
    const auto own = static_cast<uint64_t>(dims[dims.size() - 1 - i]);
    if (own != 1) index += flat % size * stride;
    stride *= own;
    flat /= size;
  }
  return index;
}

// Part |i| of the |parts| of a step's work, so that threads can share it.
struct Work {
  const Step* step;
  const pfrt_step_context* context;
  uint64_t parts;
};

void run_part(void* arg, uint64_t part, uint32_t) {
  const Work& work = *static_cast<const Work*>(arg);
  const Step& s = *work.step;
  const auto* a = static_cast<const float*>(work.context->buffers[s.reads.front()]);
  const auto* b = static_cast<const float*>(work.context->buffers[s.reads.back()]);
  auto* y = static_cast<float*>(work.context->buffers[s.write]);
  const uint64_t count = count_of(s.y);
  const uint64_t begin = count * part / work.parts, end = count * (part + 1) / work.parts;
  for (uint64_t i = begin; i < end; ++i) {
    if (s.op == Op::kRelu) {
      y[i] = a[i] > 0 ? a[i] : 0;
    } else if (s.op == Op::kMatMul) {
      const auto k = static_cast<uint64_t>(s.a[1]), n = static_cast<uint64_t>(s.b[1]);
      float sum = 0;
      for (uint64_t p = 0; p < k; ++p) sum += a[i / n * k + p] * b[p * n + i % n];
      y[i] = sum;
    } else {
      const float left = a[broadcast(s.y, s.a, i)], right = b[broadcast(s.y, s.b, i)];
      y[i] = s.op == Op::kAdd ? left + right : left * right;
    }
  }
}

pfrt_code run_step(void* state, const pfrt_step_context* context) {
  constexpr uint64_t kElements = 4096;  // a part; the split depends on the shapes alone
  Step* step = static_cast<Step*>(state);
  Work work{step, context, count_of(step->y) / kElements + 1};
  context->parallel(context, work.parts, run_part, &work);
  return context->stop(context);
}

// ---- the table ----

pfrt_code fail(const pfrt_sink* sink, pfrt_code code, uint32_t node, std::string_view message) {
  return sink->fail(sink, code, node, text(message));
}

// No exception may leave a function of the table.
template <typename Fn>
pfrt_code guarded(const pfrt_sink* sink, Fn fn) {
  try {
    return fn();
  } catch (...) {
    return fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX, "no memory left");
  }
}

pfrt_code open(pfrt_string device, const pfrt_key_value* options, size_t option_count,
               const pfrt_sink* sink, pfrt_provider** out) {
  static char the_device;  // there is nothing to open
  *out = nullptr;
  if (view(device) != "custom")
    return fail(sink, PFRT_CODE_NOT_FOUND, PFRT_NO_INDEX, "this provider opens 'custom' alone");
  if (option_count > 0)
    return guarded(sink, [&] {
      const std::string message =
          "this provider has no option '" + std::string(view(options[0].key)) + "': it has none";
      return fail(sink, PFRT_CODE_INVALID_ARGUMENT, PFRT_NO_INDEX, message);
    });
  *out = reinterpret_cast<pfrt_provider*>(&the_device);
  return PFRT_CODE_OK;
}

void close(pfrt_provider*) {}

pfrt_code claim(pfrt_provider*, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink*) {
  for (uint32_t n = 0; n < snapshot->node_count; ++n) {
    Op op;
    if (const char* reason = refuse(*snapshot, node_at(*snapshot, n), &op)) {
      claims->refuse(claims, n, text(reason));
    } else {
      claims->accept(claims, n, 100, 0);  // a guess; the host compares it with other providers'
    }
  }
  return PFRT_CODE_OK;
}

pfrt_code compile_one(pfrt_provider*, const pfrt_region* region, const pfrt_sink* sink,
                      pfrt_executable** out) {
  *out = nullptr;
  const pfrt_snapshot* snapshot = region->snapshot;
  return guarded(sink, [&]() -> pfrt_code {
    auto made = std::make_unique<Executable>();
    for (uint32_t i = 0; i < region->node_count; ++i) {
      const pfrt_snapshot_node& from = node_at(*snapshot, region->nodes[i]);
      Node node;
      node.index = region->nodes[i];
      if (const char* reason = refuse(*snapshot, from, &node.op))
        return fail(sink, PFRT_CODE_UNSUPPORTED_OPERATOR, node.index, reason);
      node.inputs.assign(from.inputs, from.inputs + from.input_count);
      node.output = from.outputs[0];
      for (uint32_t v : node.inputs) {
        const pfrt_snapshot_value& value = value_at(*snapshot, v);
        if (value.flags & PFRT_SNAPSHOT_CONSTANT)
          made->constants.push_back({v, {value.dims, value.dims + value.rank}});
      }
      made->nodes.push_back(std::move(node));
    }
    made->inputs.assign(region->inputs, region->inputs + region->input_count);
    made->outputs.assign(region->outputs, region->outputs + region->output_count);
    *out = reinterpret_cast<pfrt_executable*>(made.release());
    return PFRT_CODE_OK;
  });
}

void release_executable(pfrt_executable* executable) {
  delete reinterpret_cast<Executable*>(executable);
}

// All regions of a session come in one call, for devices that are divided among them; here each
// is by itself.
pfrt_code compile(pfrt_provider* provider, const pfrt_region* regions, size_t region_size,
                  size_t count, const pfrt_sink* sink, pfrt_executable** out_executables,
                  size_t* out_region) {
  return pfrt_compile_each(provider, regions, region_size, count, sink, out_executables, out_region,
                           compile_one, release_executable);
}

pfrt_code specialise(pfrt_executable* executable, const pfrt_shapes* shapes, const pfrt_sink* sink,
                     pfrt_program* out) {
  return guarded(sink, [&]() -> pfrt_code {
    const Executable& e = *reinterpret_cast<Executable*>(executable);
    auto program = std::make_unique<Program>();
    const auto dims = [&](uint32_t value) -> std::vector<int64_t> {
      for (const Executable::Constant& c : e.constants)
        if (c.value == value) return c.dims;
      return {shapes->dims[value], shapes->dims[value] + shapes->ranks[value]};
    };
    std::vector<std::pair<uint32_t, uint32_t>> buffer_of;  // value, buffer
    const auto buffer = [&](uint32_t value) {
      for (const auto& [v, b] : buffer_of)
        if (v == value) return b;
      const auto place = [value](const std::vector<uint32_t>& list) {
        return static_cast<uint32_t>(std::find(list.begin(), list.end(), value) - list.begin());
      };
      pfrt_buffer made{};
      made.bytes = count_of(dims(value)) * sizeof(float);
      made.kind = PFRT_BUFFER_TEMP;
      if (place(e.inputs) < e.inputs.size()) {
        made.kind = PFRT_BUFFER_IN;
        made.index = place(e.inputs);
      } else if (place(e.outputs) < e.outputs.size()) {
        made.kind = PFRT_BUFFER_OUT;
        made.index = place(e.outputs);
      }
      for (const Executable::Constant& c : e.constants) {
        if (c.value != value) continue;
        made.kind = PFRT_BUFFER_INITIALIZER;
        made.index = value;
      }
      program->buffers.push_back(made);
      buffer_of.emplace_back(value, static_cast<uint32_t>(program->buffers.size() - 1));
      return buffer_of.back().second;
    };
    for (const Node& node : e.nodes) {
      auto state = std::make_unique<Step>();
      state->op = node.op;
      for (uint32_t v : node.inputs) state->reads.push_back(buffer(v));
      state->write = buffer(node.output);
      state->a = dims(node.inputs.front());
      state->b = dims(node.inputs.back());
      state->y = dims(node.output);
      pfrt_step step{};
      step.run = run_step;
      step.state = state.get();
      step.reads = state->reads.data();
      step.read_count = static_cast<uint32_t>(state->reads.size());
      step.writes = &state->write;
      step.write_count = 1;
      step.nodes = &node.index;
      step.node_count = 1;
      step.kernel = text("custom");
      step.flags = PFRT_STEP_LONG;  // all of it is inside parallel()
      program->steps.push_back(step);
      program->states.push_back(std::move(state));
    }
    out->abi = PFRT_ABI_VERSION;
    out->buffer_size = sizeof(pfrt_buffer);
    out->step_size = sizeof(pfrt_step);
    out->buffer_count = static_cast<uint32_t>(program->buffers.size());
    out->step_count = static_cast<uint32_t>(program->steps.size());
    out->buffers = program->buffers.data();
    out->steps = program->steps.data();
    out->handle = program.release();
    return PFRT_CODE_OK;
  });
}

void release_program(pfrt_executable*, pfrt_program* program) {
  delete static_cast<Program*>(program->handle);
}

pfrt_provider_table make_table() {
  pfrt_provider_table t{};
  t.struct_size = sizeof t;
  t.abi = PFRT_ABI_VERSION;
  t.devices = text("custom");
  t.open = open;
  t.close = close;
  t.claim = claim;
  t.compile = compile;
  t.release_executable = release_executable;
  t.specialise = specialise;
  t.release_program = release_program;
  return t;
}

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  static const pfrt_provider_table table = make_table();
  // Member by member, since the host's struct may be an older or a newer one.
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->min_minor = 0;  // no slot of a later minor is needed
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_PROVIDER;
#if defined(__SANITIZE_ADDRESS__)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = text("CustomExecutionProvider");
  out_desc->version = text("1.0");
  out_desc->table = &table;
  // The description is filled in either way, so that the host can say what was wrong.
  return host->abi_major == PFRT_ABI_MAJOR ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}
