// SPDX-License-Identifier: Apache-2.0
//
// Execution of graphs by the program's own code. A registered backend is a provider: sessions that
// name it give it the parts of their graph that it supports; the rest goes to the next provider in
// the list.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <pyflame_rt/graph.hpp>
#include <pyflame_rt/op_call.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pyflame_rt {

// An execution provider written in the program: derive from it and register it.
class Backend {
 public:
  virtual ~Backend() = default;

  // Name that sessions use: "MyExecutionProvider".
  virtual const std::string& name() const = 0;
  // Whether the backend runs an operator of ONNX's domain, as of the newest opset. Called from any
  // thread.
  virtual bool supports_op(const std::string& op_type) const = 0;
  // Operators for lists to show; sessions ask supports_op.
  virtual std::vector<std::string> get_supported_ops() const = 0;
  // Returns the values |output_names| (empty: the graph's outputs) in that order. The graph holds
  // only supported operators, with its constants as initializers; tensors of |input_feed| live
  // during the call. Sessions call it from one thread at a time for each backend. An exception
  // fails the run.
  virtual std::vector<Tensor> execute(const Graph& graph,
                                      const std::unordered_map<std::string, Tensor>& input_feed,
                                      const std::vector<std::string>& output_names = {}) = 0;
};

// Backends by name. Registering works in static initialisers. Thread-safe.
class BackendRegistry {
 public:
  static BackendRegistry& instance() {
    static BackendRegistry* const registry = new BackendRegistry;
    return *registry;
  }
  BackendRegistry(const BackendRegistry&) = delete;
  BackendRegistry& operator=(const BackendRegistry&) = delete;

  // Registers a backend for SessionOptions::providers. It is kept until the process ends. Throws
  // InputError when the name is taken.
  void register_backend(std::shared_ptr<Backend> backend);
  // Returns null when there is no backend of that name.
  std::shared_ptr<Backend> get(const std::string& name) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = backends_.find(name);
    return it == backends_.end() ? nullptr : it->second->backend;
  }
  // Whether a backend of that name is registered.
  bool has(const std::string& name) const { return get(name) != nullptr; }
  // Names of all backends, sorted.
  std::vector<std::string> list() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> names;
    names.reserve(backends_.size());
    for (const auto& [name, entry] : backends_) names.push_back(name);
    return names;
  }

 private:
  BackendRegistry() = default;
  struct Entry {
    std::shared_ptr<Backend> backend;
    std::string name;
    std::mutex mutex;  // guards execute
    pfrt_provider_table table{};
  };
  class Executable;
  class Program;
  static void fill_table(Entry& entry);
  static const pfrt_snapshot_value& value(const pfrt_snapshot& snapshot, uint32_t index) {
    return *reinterpret_cast<const pfrt_snapshot_value*>(
        reinterpret_cast<const char*>(snapshot.values) + size_t{index} * snapshot.value_size);
  }
  static bool takes_texts(const pfrt_snapshot& snapshot, const pfrt_snapshot_node& node) {
    const auto is_text = [&](const uint32_t* list, uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) {
        if (list[i] == PFRT_NO_INDEX) continue;
        const pfrt_snapshot_value& v = value(snapshot, list[i]);
        if (v.dtype == PFRT_DTYPE_STRING || (v.flags & PFRT_SNAPSHOT_NOT_TENSOR) != 0) return true;
      }
      return false;
    };
    return is_text(node.inputs, node.input_count) || is_text(node.outputs, node.output_count);
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Entry>> backends_;
};

// A region, held as a graph.
class BackendRegistry::Executable {
 public:
  Executable(Entry& entry, const pfrt_snapshot& snapshot, const pfrt_region& region)
      : entry_(entry), graph_(entry.name) {
    for (uint32_t i = 0; i < region.input_count; ++i) {
      const pfrt_snapshot_value& v = value(snapshot, region.inputs[i]);
      graph_.add_input(info_of(v));
      inputs_.push_back({region.inputs[i], detail::str(v.name), dtype_from_c(v.dtype)});
    }
    for (uint32_t i = 0; i < region.output_count; ++i) {
      const pfrt_snapshot_value& v = value(snapshot, region.outputs[i]);
      graph_.add_output(info_of(v));
      outputs_.push_back({region.outputs[i], detail::str(v.name), dtype_from_c(v.dtype)});
    }
    std::map<uint32_t, bool> constants;
    for (uint32_t i = 0; i < region.node_count; ++i) {
      const auto& c = *reinterpret_cast<const pfrt_snapshot_node*>(
          reinterpret_cast<const char*>(snapshot.nodes) +
          size_t{region.nodes[i]} * snapshot.node_size);
      std::vector<std::string> inputs, outputs;
      for (uint32_t k = 0; k < c.input_count; ++k) {
        const uint32_t index = c.inputs[k];
        inputs.push_back(index == PFRT_NO_INDEX ? "" : detail::str(value(snapshot, index).name));
        if (index == PFRT_NO_INDEX || !constants.emplace(index, true).second) continue;
        const pfrt_snapshot_value& v = value(snapshot, index);
        if ((v.flags & PFRT_SNAPSHOT_CONSTANT) == 0) continue;
        // Data of constants lives as long as the executable.
        pfrt_tensor tensor{};
        tensor.dtype = v.dtype;
        tensor.rank = static_cast<uint32_t>(v.rank);
        tensor.dims = v.dims;
        tensor.data = const_cast<void*>(v.data);
        graph_.add_initializer(inputs.back(), detail::tensor_from_c(tensor));
      }
      for (uint32_t k = 0; k < c.output_count; ++k)
        outputs.push_back(
            c.outputs[k] == PFRT_NO_INDEX ? "" : detail::str(value(snapshot, c.outputs[k]).name));
      graph_.append(std::make_shared<Node>(detail::node_from_snapshot(
          c, snapshot.attr_size, std::move(inputs), std::move(outputs))));
      nodes_.push_back(region.nodes[i]);
    }
    for (const Port& output : outputs_) output_names_.push_back(output.name);
  }

 private:
  friend class Program;
  struct Port {
    uint32_t index;
    std::string name;
    DType dtype;
  };
  static TensorInfo info_of(const pfrt_snapshot_value& v) {
    TensorInfo info(detail::str(v.name), {}, dtype_from_c(v.dtype));
    info.unranked = v.rank < 0;
    for (int32_t d = 0; d < v.rank; ++d)
      info.shape.push_back(v.dims[d] < 0 ? std::nullopt : std::optional<int64_t>(v.dims[d]));
    return info;
  }

  Entry& entry_;
  Graph graph_;
  std::vector<Port> inputs_, outputs_;
  std::vector<std::string> output_names_;
  std::vector<uint32_t> nodes_;
};

// A program of one step, which runs the whole region.
class BackendRegistry::Program {
 public:
  Program(Executable& executable, const pfrt_shapes& shapes) : executable_(executable) {
    const auto add = [&](const Executable::Port& port, pfrt_buffer_kind kind, uint32_t index,
                         std::vector<uint32_t>& used) {
      Shaped& made = shaped_.emplace_back();
      made.known = shapes.ranks[port.index] >= 0;
      if (made.known && shapes.ranks[port.index] > 0)
        made.dims.assign(shapes.dims[port.index],
                         shapes.dims[port.index] + shapes.ranks[port.index]);
      pfrt_buffer buffer{};
      buffer.kind = kind;
      buffer.index = index;
      const auto count = static_cast<uint64_t>(made.known ? detail::count_of(made.dims) : 0);
      buffer.bytes =
          made.known ? (count * dtype_bits(port.dtype) + 7) / 8 : uint64_t{PFRT_BYTES_UNKNOWN};
      used.push_back(static_cast<uint32_t>(buffers_.size()));
      buffers_.push_back(buffer);
    };
    for (uint32_t i = 0; i < executable.inputs_.size(); ++i)
      add(executable.inputs_[i], PFRT_BUFFER_IN, i, reads_);
    for (uint32_t i = 0; i < executable.outputs_.size(); ++i)
      add(executable.outputs_[i], PFRT_BUFFER_OUT, i, writes_);
    step_.run = [](void* state, const pfrt_step_context* context) {
      return detail::no_exceptions([&] { return static_cast<Program*>(state)->run(*context); },
                                   [&](pfrt_code code, std::string_view what) {
                                     const std::string text =
                                         "backend '" +
                                         static_cast<Program*>(state)->executable_.entry_.name +
                                         "': " + std::string(what);
                                     return context->fail(context, code, detail::text(text));
                                   });
    };
    step_.state = this;
    step_.reads = reads_.data();
    step_.writes = writes_.data();
    step_.read_count = static_cast<uint32_t>(reads_.size());
    step_.write_count = static_cast<uint32_t>(writes_.size());
    step_.nodes = executable.nodes_.data();
    step_.node_count = static_cast<uint32_t>(executable.nodes_.size());
    step_.kernel = detail::text(executable.entry_.name);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void fill(pfrt_program* out) {
    out->buffer_size = sizeof(pfrt_buffer);
    out->step_size = sizeof(pfrt_step);
    out->buffer_count = static_cast<uint32_t>(buffers_.size());
    out->step_count = 1;
    out->buffers = buffers_.data();
    out->steps = &step_;
    out->handle = this;
  }

 private:
  struct Shaped {
    bool known = false;
    std::vector<int64_t> dims;
  };

  pfrt_code run(const pfrt_step_context& context) {
    std::unordered_map<std::string, Tensor> feed;
    for (size_t i = 0; i < reads_.size(); ++i) {
      const Executable::Port& port = executable_.inputs_[i];
      void* data = context.buffers[reads_[i]];
      feed[port.name] = data == nullptr ? Tensor(shaped_[i].dims, port.dtype)
                                        : Tensor::wrap(data, shaped_[i].dims, port.dtype);
    }
    std::vector<Tensor> results;
    {
      const std::lock_guard<std::mutex> lock(executable_.entry_.mutex);
      results =
          executable_.entry_.backend->execute(executable_.graph_, feed, executable_.output_names_);
    }
    if (results.size() != writes_.size())
      throw PyFlameRTError("execute returned " + std::to_string(results.size()) +
                               " tensors, expected " + std::to_string(writes_.size()),
                           PFRT_CODE_PROVIDER);
    for (size_t i = 0; i < writes_.size(); ++i) {
      const Executable::Port& port = executable_.outputs_[i];
      const Shaped& shaped = shaped_[reads_.size() + i];
      const Tensor& result = results[i];
      if (!result.is_valid() || result.dtype() != port.dtype)
        throw DTypeMismatchError("'" + port.name + "' is " + dtype_name(result.dtype()) +
                                 ", expected " + dtype_name(port.dtype));
      if (shaped.known && shaped.dims != result.shape())
        throw ShapeMismatchError("'" + port.name + "' has shape " +
                                 detail::shape_text(result.shape()) + ", expected " +
                                 detail::shape_text(shaped.dims));
      void* to = context.buffers[writes_[i]];
      if (!shaped.known) {
        const pfrt_code code = context.alloc_output(&context, writes_[i], result.shape().data(),
                                                    static_cast<uint32_t>(result.ndim()), &to);
        if (code != PFRT_CODE_OK) return code;
      }
      if (result.size_bytes() != 0) std::memcpy(to, result.data(), result.size_bytes());
    }
    return PFRT_CODE_OK;
  }

  Executable& executable_;
  std::deque<Shaped> shaped_;  // inputs, then outputs
  std::vector<pfrt_buffer> buffers_;
  std::vector<uint32_t> reads_, writes_;
  pfrt_step step_{};
};

inline void BackendRegistry::fill_table(Entry& entry) {
  static constexpr auto kFail = [](const pfrt_sink* sink) {
    return [sink](pfrt_code code, std::string_view message) {
      return sink->fail(sink, code, PFRT_NO_INDEX, detail::text(message));
    };
  };
  pfrt_provider_table& table = entry.table;
  table.struct_size = sizeof(table);
  table.abi = PFRT_ABI_VERSION;
  table.devices = detail::text(entry.name);
  table.close = [](pfrt_provider*) {};
  table.claim = [](pfrt_provider* provider, const pfrt_snapshot* snapshot,
                   const pfrt_claims* claims, const pfrt_sink* sink) {
    const auto& self = *reinterpret_cast<Entry*>(provider);
    return detail::no_exceptions(
        [&]() -> pfrt_code {
          for (uint32_t n = 0; n < snapshot->node_count; ++n) {
            const auto& node = *reinterpret_cast<const pfrt_snapshot_node*>(
                reinterpret_cast<const char*>(snapshot->nodes) + size_t{n} * snapshot->node_size);
            if (takes_texts(*snapshot, node)) {
              claims->refuse(claims, n, detail::text("backends compute tensors of numbers"));
            } else if (node.domain.size == 0 && self.backend->supports_op(detail::str(node.op))) {
              claims->accept(claims, n, 0, 0);
            } else {
              claims->refuse(claims, n, detail::text("supports_op says no"));
            }
          }
          return PFRT_CODE_OK;
        },
        kFail(sink));
  };
  static constexpr auto kCompile = [](pfrt_provider* provider, const pfrt_region* region,
                                      const pfrt_sink* sink, pfrt_executable** out) {
    return detail::no_exceptions(
        [&]() -> pfrt_code {
          *out = reinterpret_cast<pfrt_executable*>(
              new Executable(*reinterpret_cast<Entry*>(provider), *region->snapshot, *region));
          return PFRT_CODE_OK;
        },
        kFail(sink));
  };
  static constexpr auto kRelease = [](pfrt_executable* executable) {
    delete reinterpret_cast<Executable*>(executable);
  };
  table.compile = [](pfrt_provider* provider, const pfrt_region* regions, size_t region_size,
                     size_t count, const pfrt_sink* sink, pfrt_executable** out_executables,
                     size_t* out_region) {
    return pfrt_compile_each(provider, regions, region_size, count, sink, out_executables,
                             out_region, kCompile, kRelease);
  };
  table.release_executable = kRelease;
  table.specialise = [](pfrt_executable* executable, const pfrt_shapes* shapes,
                        const pfrt_sink* sink, pfrt_program* out) {
    return detail::no_exceptions(
        [&]() -> pfrt_code {
          (new Program(*reinterpret_cast<Executable*>(executable), *shapes))->fill(out);
          return PFRT_CODE_OK;
        },
        kFail(sink));
  };
  table.release_program = [](pfrt_executable*, pfrt_program* program) {
    delete static_cast<Program*>(program->handle);
  };
}

inline void BackendRegistry::register_backend(std::shared_ptr<Backend> backend) {
  if (!backend || backend->name().empty())
    throw InvalidArgumentError("register_backend: it needs a backend with a name");
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string name = backend->name();
  if (backends_.count(name) != 0)
    throw InvalidArgumentError("register_backend: the name '" + name +
                               "' is taken by another registered backend");
  auto entry = std::make_unique<Entry>();
  entry->backend = std::move(backend);
  entry->name = name;
  fill_table(*entry);
  detail::Registrations::instance().add([raw = entry.get()](pfrt_env* env) {
    pfrt_client_provider c{};
    c.struct_size = sizeof(c);
    c.abi = PFRT_ABI_VERSION;
    c.name = detail::text(raw->name);
    c.table = &raw->table;
    c.open = [](void* user, pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
                pfrt_provider** out) -> pfrt_code {
      *out = static_cast<pfrt_provider*>(user);
      return PFRT_CODE_OK;
    };
    c.user = raw;
    detail::check(api().env->register_provider(env, &c));
  });
  backends_[name] = std::move(entry);
}

}  // namespace pyflame_rt
