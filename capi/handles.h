// SPDX-License-Identifier: Apache-2.0
//
// The translation between C handles and the runtime's objects: what each handle holds, how statuses
// cross, how sized structs are read and written. Only capi includes this.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capi/alive.h"
#include "core/base/foreign.h"
#include "core/base/os/floating_point.h"
#include "core/base/os/fork.h"
#include "core/base/os/log.h"
#include "core/ir/graph.h"
#include "core/memory/pool.h"
#include "core/session/environment.h"
#include "core/session/model.h"
#include "core/session/options.h"
#include "core/session/session.h"
#include "core/session/state.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {
struct Plugin;
}

namespace pfrt::capi {

class LoadedPlugins;

class Counted {
 public:
  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  bool shared() const { return refs_.load(std::memory_order_acquire) > 1; }
  bool drop() { return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  std::atomic<uint32_t> refs_{1};
  [[no_unique_address]] Alive alive_;
};

template <typename Handle>
void retain(Handle* handle) {
  if (handle) handle->retain();
}

template <typename Handle>
void release(Handle* handle) {
  if (!handle || !handle->drop()) return;
  const Inside inside;
  const os::ForkScope scope;
  delete handle;
}

// Null on success; the immortal out-of-memory status when even the error cannot be allocated.
pfrt_status* to_status(Status status) noexcept;
pfrt_status* out_of_memory() noexcept;
pfrt_status* unexpected(const char* what) noexcept;
// The Status behind a handle, for host callbacks that got one from the tables; consumes it.
Status from_status(pfrt_status* status);

// Runs |fn| (returning Status) as the body of an ABI function: nothing it throws crosses, and the
// caller's floating-point environment is set aside.
template <typename Fn>
pfrt_status* guard(Fn&& fn) noexcept {
  const Inside inside;
  const os::ForkScope scope;
  const FloatingPointScope floating_point;
  try {
    return to_status(fn());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& e) {
    return unexpected(e.what());
  } catch (...) {  // of a client's function
    return unexpected("it is no std::exception");
  }
}

// A copy of a sized struct, fields the caller does not know being zero.
template <typename T>
T read(const T* from) {
  T out{};
  if (!from) return out;
  std::memcpy(&out, from, std::min<size_t>(from->struct_size, sizeof(T)));
  return out;
}

// Fills a sized struct of the caller's, as far as the caller knows it.
template <typename T>
void write(T* to, T from) {
  const uint32_t size = to->struct_size;
  from.struct_size = size;
  std::memcpy(static_cast<void*>(to), &from, std::min<size_t>(size, sizeof(T)));
}

// While it lives, memory that is borrowed on this thread belongs to a plug-in, whose library then
// stays loaded until the memory is released: a value may outlive the environment.
class PluginScope {
 public:
  explicit PluginScope(std::shared_ptr<void> library) : library_(std::move(library)) {
    innermost() = this;
  }
  ~PluginScope() { innermost() = outer_; }
  PluginScope(const PluginScope&) = delete;
  PluginScope& operator=(const PluginScope&) = delete;
  static std::shared_ptr<void> current() { return innermost() ? innermost()->library_ : nullptr; }

 private:
  // A plain pointer: registering a thread's destructor would end the process without memory.
  static PluginScope*& innermost() {
    thread_local PluginScope* scope = nullptr;
    return scope;
  }
  std::shared_ptr<void> library_;
  PluginScope* outer_ = innermost();
};

// The promise to call |release| once, whatever becomes of the call it was given to. Empty without
// one.
inline std::shared_ptr<void> release_later(pfrt_release_fn release_fn, void* user, void* data) {
  if (!release_fn) return nullptr;
  return std::shared_ptr<void>(user, [release_fn, data, library = PluginScope::current()](void* u) {
    call_foreign([&] { release_fn(u, data); });
  });
}

inline Status null_argument(const char* name) {
  return error(Code::kINVALID_ARGUMENT, "argument '", name, "' is NULL");
}

// Entries of the environment's table that services have to themselves (service.cc).
pfrt_status* service_start(pfrt_env* env, pfrt_string name, const pfrt_key_value* options,
                           size_t option_count, pfrt_service** out);
void service_stop(pfrt_service* service);
pfrt_string service_address(const pfrt_service* service);
// As above, for measuring (measure.cc).
pfrt_status* measure(pfrt_env* env, pfrt_string provider, const pfrt_measure_request* request);
// As above, for asking (ask.cc).
pfrt_status* ask(pfrt_env* env, const pfrt_ask_desc* desc, pfrt_reply** out);
void release_reply(pfrt_reply* reply);
pfrt_string reply_text(const pfrt_reply* reply);
size_t reply_count(const pfrt_reply* reply);
pfrt_status* reply_at(const pfrt_reply* reply, size_t index, pfrt_string* out_name,
                      pfrt_value** out_value);

// What getters of a graph or session hand out views of.
struct InfoStorage {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<std::string> names;
  std::vector<pfrt_string> name_views;
};
pfrt_value_info make_value_info(const PortInfo& port, InfoStorage& storage);
// The type that a value info describes; dimension names become symbols.
Result<Type> type_from(const pfrt_value_info& info, SymbolTable& symbols);

// Refuses dimensions that cannot be read: too many, or none at |dims|.
Status check_dims(std::string_view doing, const int64_t* dims, uint64_t rank);
// Refuses a tensor on a device where its bytes are to be read.
Status need_host(const Value& value, std::string_view doing);
// Refuses a view that says what this version does not know; its offset goes into |data|.
Status settle_view(pfrt_tensor& view);
Result<Tensor> tensor_from(pfrt_tensor view, bool borrow, std::function<void()> release);
pfrt_tensor view_of(const Tensor& tensor);

}  // namespace pfrt::capi

struct pfrt_status {
  pfrt::Status status;
  std::vector<std::unique_ptr<pfrt_status>> children;
  bool immortal = false;
  [[no_unique_address]] pfrt::capi::Alive alive;
};

namespace pfrt::capi {
// Who sees what a run was asked for besides the model's outputs; |fn| null = nobody.
struct Observer {
  pfrt_observe_fn fn = nullptr;
  void* user = nullptr;
};
}  // namespace pfrt::capi

struct pfrt_options : pfrt::capi::Counted {
  explicit pfrt_options(pfrt_options_kind kind) : options(kind) {}
  pfrt::Options options;
  std::shared_ptr<pfrt::State> state;  // of runs; may be null
  pfrt::capi::Observer observer;       // of runs
};

struct pfrt_env : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> state;
  std::shared_ptr<pfrt::Executor> executor;     // of the option of that name; null: the pool
  pfrt::capi::LoadedPlugins* loaded = nullptr;  // the state's
  std::mutex mutex;                             // guards what listings hand out
  std::vector<std::shared_ptr<const pfrt::Plugin>> plugins;
  struct KernelList {
    std::string provider;
    std::shared_ptr<pfrt::Provider> opened;
    std::vector<pfrt_kernel_info> rows;
  };
  std::vector<std::unique_ptr<KernelList>> kernels;
  struct OptionList {
    std::string provider;
    std::deque<std::string> keys;  // with prefix; rows point here
    std::vector<pfrt_option_info> rows;
  };
  std::vector<std::unique_ptr<OptionList>> options;
};

struct pfrt_value : pfrt::capi::Counted {
  explicit pfrt_value(pfrt::ValuePtr v) : value(std::move(v)) {}
  ~pfrt_value();
  // A handle for a part of this value that lives as long as this one.
  pfrt_value* child(const pfrt::ValuePtr& part);

  pfrt::ValuePtr value;
  std::mutex mutex;
  std::unordered_map<const pfrt::Value*, pfrt_value*> children;
  pfrt_value* sparse_values = nullptr;  // parts of a sparse tensor, made on demand
  pfrt_value* sparse_indices = nullptr;
};

struct pfrt_graph : pfrt::capi::Counted {
  explicit pfrt_graph(std::shared_ptr<pfrt::Graph> g) : graph(std::move(g)) {}
  ~pfrt_graph();
  // Counts the graph's revision up and drops what getters handed out.
  void edited();
  // Drops it when the graph was edited through another handle.
  void refresh();
  // The handle of a constant that leaves the graph goes.
  void drop_value(const pfrt::Value* value);

  std::shared_ptr<pfrt::Graph> graph;
  uint64_t revision = 0;  // of the graph that the storage below is about
  struct NodeStorage {
    std::vector<pfrt_string> inputs, outputs;
    std::vector<pfrt_attr> attrs;
    std::deque<std::vector<pfrt_string>> strings;
    std::deque<std::vector<pfrt_value*>> values;
    std::deque<std::vector<pfrt_graph*>> graphs;
  };
  std::unordered_map<uint32_t, std::unique_ptr<NodeStorage>> nodes;
  std::unordered_map<uint32_t, std::unique_ptr<pfrt::capi::InfoStorage>> infos;
  std::unordered_map<const pfrt::Value*, pfrt_value*> values;
  std::unordered_map<const pfrt::Graph*, pfrt_graph*> bodies;
  std::vector<uint32_t> order, users;
  std::vector<pfrt::NodeId> ids;  // of live nodes, made on first use
  std::vector<pfrt::ValueId> initializers;
  bool listed = false;
  std::unordered_map<std::string, size_t> metadata;  // where each key stands in the graph's list
};

struct pfrt_model : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  std::shared_ptr<const pfrt::Model> model;
};

struct pfrt_session : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  pfrt_model* model_handle = nullptr;
  std::shared_ptr<pfrt::Session> session;
  std::vector<std::unique_ptr<pfrt::capi::InfoStorage>> storage;
  std::vector<pfrt_value_info> inputs, outputs;
  std::vector<std::optional<uint64_t>> output_bytes;  // of those whose dimensions are numbers
  ~pfrt_session() { pfrt::capi::release(model_handle); }
};

struct pfrt_state : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  std::shared_ptr<pfrt::State> state;
};

struct pfrt_cache : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  std::shared_ptr<pfrt::CompiledCache> cache;
};

struct pfrt_memory_pool : pfrt::capi::Counted {
  explicit pfrt_memory_pool(std::shared_ptr<pfrt::MemoryPool> p) : pool(std::move(p)) {}
  std::shared_ptr<pfrt::MemoryPool> pool;
  bool global = false;
};

struct pfrt_report {
  [[no_unique_address]] pfrt::capi::Alive alive;
  std::vector<pfrt::StepReport> rows;
  std::vector<pfrt::CounterReport> counters;
  std::vector<std::string> notes;
};

namespace pfrt::capi {
// Entries of the environment's table that have a file of their own.
pfrt_status* provider_option_count(pfrt_env* env, pfrt_string provider, size_t* out);
pfrt_status* provider_option_at(pfrt_env* env, pfrt_string provider, size_t index,
                                pfrt_option_info* out);

pfrt_status* create_on(pfrt_session* session, pfrt_string provider, pfrt_dtype dtype,
                       const int64_t* dims, size_t rank, pfrt_value** out);
pfrt_status* copy_value(const pfrt_value* from, pfrt_value* to);
// Slots that have files of their own.
pfrt_status* register_operator(pfrt_env* env, const pfrt_custom_op* op);
pfrt_status* unregister_operator(pfrt_env* env, pfrt_string domain, pfrt_string name);
pfrt_status* custom_operator_count(pfrt_env* env, size_t* out_count);
pfrt_status* custom_operator_at(pfrt_env* env, size_t index, pfrt_operator_info* out_info);
pfrt_status* register_provider(pfrt_env* env, const pfrt_client_provider* provider);
pfrt_status* register_pass(pfrt_env* env, const pfrt_custom_pass* pass);
// Calls the client's release once, whatever becomes of the call that took the struct.
template <typename T>
std::shared_ptr<const T> taken(const T* given) {
  return std::shared_ptr<const T>(new T(read(given)), [](const T* all) {
    if (all->release) call_foreign([&] { all->release(all->user); });
    delete all;
  });
}

// The client's functions as an allocator; its release is called whatever becomes of this.
Result<AllocatorPtr> allocator_of(const pfrt_allocator* client);
pfrt_status* set_allocator(pfrt_env* env, const pfrt_allocator* allocator);
// Of the plug-in of kind executor whose file's name has |word|; |logger| outlives the call.
Result<std::shared_ptr<Executor>> plugin_executor(LoadedPlugins& plugins, std::string_view word,
                                                  Logger& logger);
pfrt_status* set_executor(pfrt_env* env, const pfrt_executor* executor);
pfrt_status* set_memory_planner(pfrt_env* env, const pfrt_memory_planner* planner);
pfrt_status* set_thread_hooks(pfrt_env* env, const pfrt_thread_hooks* hooks);

extern const pfrt_status_api kStatusApi;
extern const pfrt_options_api kOptionsApi;
extern const pfrt_env_api kEnvApi;
extern const pfrt_value_api kValueApi;
extern const pfrt_graph_api kGraphApi;
extern const pfrt_model_api kModelApi;
extern const pfrt_session_api kSessionApi;
extern const pfrt_report_api kReportApi;
extern const pfrt_optimizer_api kOptimizerApi;
extern const pfrt_pattern_api kPatternApi;
extern const pfrt_state_api kStateApi;
extern const pfrt_cache_api kCacheApi;
extern const pfrt_memory_api kMemoryApi;
extern const pfrt_api kApi;
}  // namespace pfrt::capi
