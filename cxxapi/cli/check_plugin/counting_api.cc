// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/counting_api.h"

#include <stdexcept>

namespace cli::check {
namespace {

const pfrt_api& real() {
  static const pfrt_api* const api = pfrt_get_api(PFRT_ABI_VERSION, nullptr);
  if (!api) throw std::runtime_error("the library does not have this version of the ABI");
  return *api;
}

CountingApi* current = nullptr;

}  // namespace

// The functions of the tables, which have no place for a user pointer.
struct Account {
  template <typename Handle>
  static pfrt_status* made(pfrt_status* status, Handle** out, const char* kind) {
    if (!status && out && *out) current->take(*out, kind);
    return status;
  }

  static void retain_value(pfrt_value* v) {
    if (v) current->take(v, "value");
    real().value->retain(v);
  }
  static void release_value(pfrt_value* v) {
    if (v && !current->give(v, "value")) return;
    real().value->release(v);
  }
  static pfrt_status* create_tensor(pfrt_dtype dtype, const int64_t* dims, size_t rank,
                                    pfrt_value** out) {
    return made(real().value->create_tensor(dtype, dims, rank, out), out, "value");
  }
  static pfrt_status* wrap_tensor(const pfrt_tensor* tensor, pfrt_release_fn release, void* user,
                                  pfrt_value** out) {
    return made(real().value->wrap_tensor(tensor, release, user, out), out, "value");
  }
  static pfrt_status* create_sequence(pfrt_dtype dtype, pfrt_value* const* elements, size_t count,
                                      pfrt_value** out) {
    return made(real().value->create_sequence(dtype, elements, count, out), out, "value");
  }
  static pfrt_status* create_optional(pfrt_value* element, pfrt_value** out) {
    return made(real().value->create_optional(element, out), out, "value");
  }
  static pfrt_status* create_map(pfrt_value* keys, pfrt_value* values, pfrt_value** out) {
    return made(real().value->create_map(keys, values, out), out, "value");
  }
  static pfrt_status* create_sparse(pfrt_value* values, pfrt_value* indices, const int64_t* dims,
                                    size_t rank, pfrt_value** out) {
    return made(real().value->create_sparse(values, indices, dims, rank, out), out, "value");
  }

  static void retain_graph(pfrt_graph* g) {
    if (g) current->take(g, "graph");
    real().graph->retain(g);
  }
  static void release_graph(pfrt_graph* g) {
    if (g && !current->give(g, "graph")) return;
    real().graph->release(g);
  }
  static pfrt_status* create_graph(pfrt_string name, pfrt_graph** out) {
    return made(real().graph->create(name, out), out, "graph");
  }
  static pfrt_status* create_subgraph(pfrt_graph* outer, pfrt_string name, pfrt_graph** out) {
    return made(real().graph->create_subgraph(outer, name, out), out, "graph");
  }

  static void retain_model(pfrt_model* m) {
    if (m) current->take(m, "model");
    real().model->retain(m);
  }
  static void release_model(pfrt_model* m) {
    if (m && !current->give(m, "model")) return;
    real().model->release(m);
  }
  static pfrt_status* load_file(pfrt_env* env, pfrt_string path, const pfrt_options* options,
                                pfrt_model** out) {
    return made(real().model->load_file(env, path, options, out), out, "model");
  }
  static pfrt_status* load_memory(pfrt_env* env, const void* data, size_t size,
                                  pfrt_memory_mode mode, pfrt_release_fn release, void* user,
                                  const pfrt_options* options, pfrt_model** out) {
    return made(real().model->load_memory(env, data, size, mode, release, user, options, out), out,
                "model");
  }
  static pfrt_status* from_graph(pfrt_env* env, const pfrt_graph* graph,
                                 const pfrt_options* options, pfrt_model** out) {
    return made(real().model->from_graph(env, graph, options, out), out, "model");
  }

  static pfrt_status* create_session(pfrt_env* env, const pfrt_session_desc* desc,
                                     pfrt_session** out) {
    return made(real().session->create(env, desc, out), out, "session");
  }
  static void retain_session(pfrt_session* s) {
    if (s) current->take(s, "session");
    real().session->retain(s);
  }
  static void release_session(pfrt_session* s) {
    if (s && !current->give(s, "session")) return;
    real().session->release(s);
  }
};

CountingApi::CountingApi()
    : api_(real()),
      value_(*api_.value),
      graph_(*api_.graph),
      model_(*api_.model),
      session_(*api_.session) {
  current = this;
  value_.retain = Account::retain_value;
  value_.release = Account::release_value;
  value_.create_tensor = Account::create_tensor;
  value_.wrap_tensor = Account::wrap_tensor;
  value_.create_sequence = Account::create_sequence;
  value_.create_optional = Account::create_optional;
  value_.create_map = Account::create_map;
  value_.create_sparse = Account::create_sparse;
  graph_.retain = Account::retain_graph;
  graph_.release = Account::release_graph;
  graph_.create = Account::create_graph;
  graph_.create_subgraph = Account::create_subgraph;
  model_.retain = Account::retain_model;
  model_.release = Account::release_model;
  model_.load_file = Account::load_file;
  model_.load_memory = Account::load_memory;
  model_.from_graph = Account::from_graph;
  session_.retain = Account::retain_session;
  session_.release = Account::release_session;
  session_.create = Account::create_session;
  api_.value = &value_;
  api_.graph = &graph_;
  api_.model = &model_;
  api_.session = &session_;
}

CountingApi::~CountingApi() { current = nullptr; }

void CountingApi::take(const void* handle, const char* kind) {
  const std::lock_guard lock(mutex_);
  Entry& entry = held_[handle];
  ++entry.count;
  entry.kind = kind;
}

bool CountingApi::give(const void* handle, const char* kind) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(handle);
  if (found == held_.end()) {
    if (excess_.empty())
      excess_ = std::string("it released a ") + kind + " more often than it took it";
    return false;
  }
  if (--found->second.count == 0) held_.erase(found);
  return true;
}

void CountingApi::expect_nothing_left(Trial& trial) {
  const std::lock_guard lock(mutex_);
  trial.expect(excess_.empty(), "double-release", excess_);
  std::map<std::string, size_t> kinds;
  for (const auto& [handle, entry] : held_) ++kinds[entry.kind];
  std::string left;
  for (const auto& [kind, count] : kinds)
    left +=
        (left.empty() ? "" : ", ") + std::to_string(count) + " " + kind + (count == 1 ? "" : "s");
  trial.expect(held_.empty(), "unload-with-values",
               left + " that it made or retained is alive when it is unloaded");
}

}  // namespace cli::check
