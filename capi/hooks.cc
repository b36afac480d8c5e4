// SPDX-License-Identifier: Apache-2.0
#include "capi/hooks.h"

#include <algorithm>

#include "capi/handles.h"
#include "capi/sink.h"
#include "core/ir/verify.h"
#include "core/op/engine/lookup.h"
#include "core/pass/pipeline.h"
#include "core/plan/client_operator.h"

namespace pfrt::capi {
namespace {

// Calls |release_fn| when the last reference goes, and only then lets go of |library|.
std::shared_ptr<void> lifetime(void (*release_fn)(void*), void* user,
                               std::shared_ptr<void> library = nullptr) {
  return std::shared_ptr<void>(user, [release_fn, library = std::move(library)](void* u) {
    if (release_fn) release_fn(u);
  });
}

Status check_abi(std::string_view what, uint32_t abi) {
  if (abi == 0 || abi >> 16 == PFRT_ABI_MAJOR) return {};
  return error(Code::kINVALID_ARGUMENT, "registering ", what, ": it was built for ABI ", abi >> 16,
               ".", abi & 0xffffu, ", this library implements ", PFRT_ABI_MAJOR, ".",
               PFRT_ABI_MINOR);
}

Status check_name(std::string_view what, pfrt_string name) {
  const std::string text(view(name));
  if (text.find('\0') == std::string::npos) return {};
  return error(Code::kINVALID_ARGUMENT, "registering ", what, " '", text.c_str(),
               "...': the name has a NUL character in it");
}

// |op| in |set|; nothing is changed on failure.
Result<OperatorSet::Ptr> extended(const OperatorSet::Ptr& set, const pfrt_custom_op& op,
                                  const std::string& origin, std::shared_ptr<void> keep) {
  PFRT_TRY(check_abi("an operator", op.abi));
  PFRT_TRY(check_name("operator", op.name));
  PFRT_TRY(check_name("an operator of domain", op.domain));
  PFRT_ASSIGN(auto made, ClientOperator::create(op, origin, std::move(keep)));
  return OperatorSet::with(set, std::move(made));
}

}  // namespace

Result<std::shared_ptr<const ClientPass>> client_pass(const pfrt_custom_pass& given,
                                                      std::shared_ptr<void> keep, Logger& logger,
                                                      std::string_view doing) {
  PFRT_TRY(check_abi("a pass", given.abi));
  PFRT_TRY(check_name("pass", given.name));
  auto made = std::make_shared<ClientPass>();
  made->name = view(given.name);
  if (made->name.empty() || (!given.run && !given.rewrite) || given.level > PFRT_PASS_ALL)
    return error(Code::kINVALID_ARGUMENT, doing, " pass '", made->name,
                 "': it needs a name, a function, and a level from 1 to ", PFRT_PASS_ALL, ", not ",
                 given.level);
  made->level = static_cast<int>(std::max<uint32_t>(given.level, PFRT_PASS_BASIC));
  // Whoever runs it holds the environment's state for as long.
  made->run = [given, keep = std::move(keep), log = &logger](
                  const Graph& graph, PassResult& result) -> Result<std::shared_ptr<Graph>> {
    const std::unique_ptr<pfrt_graph, decltype(&release<pfrt_graph>)> handle(
        new pfrt_graph(graph.clone()), &release<pfrt_graph>);
    name_captures(*handle->graph);
    WarningSink sink(*log, result.warnings);
    pfrt_pass_call one{};
    one.struct_size = sizeof one;
    one.abi = PFRT_ABI_VERSION;
    one.api = &kApi;
    one.graph = handle.get();
    one.sink = sink.get();
    one.stats.struct_size = sizeof one.stats;
    const pfrt_pass_stats& stats = one.stats;
    uint32_t changed = 0;
    pfrt_code code = PFRT_CODE_OK;
    try {
      code = given.rewrite ? given.rewrite(given.user, &one)
                           : given.run(given.user, handle.get(), sink.get(), &changed);
    } catch (const std::bad_alloc&) {
      code = PFRT_CODE_OUT_OF_MEMORY;
    } catch (...) {
      return error(Code::kPROVIDER, "it threw an exception");
    }
    PFRT_TRY(sink.status(code, "rewriting the graph"));
    if (!changed && !stats.modified) return std::shared_ptr<Graph>();
    result.modified = true;
    result.stats.nodes_removed = stats.nodes_removed;
    result.stats.nodes_added = stats.nodes_added;
    result.stats.nodes_fused = stats.nodes_fused;
    result.stats.constants_folded = stats.constants_folded;
    result.stats.initializers_removed = stats.initializers_removed;
    // A copy: the pass may have kept the handle.
    return handle->graph->clone();
  };
  return std::shared_ptr<const ClientPass>(std::move(made));
}

OperatorSet::Ptr Hooks::operators() const {
  std::lock_guard lock(mutex_);
  return operators_;
}

Status Hooks::add_operator(const pfrt_custom_op& op, std::shared_ptr<void> keep) {
  OperatorSet::Ptr before;  // goes when the mutex is free again
  std::lock_guard lock(mutex_);
  PFRT_ASSIGN(auto after, extended(operators_, op, "the client", std::move(keep)));
  before = std::exchange(operators_, std::move(after));
  return {};
}

Status Hooks::remove_operator(std::string_view domain, std::string_view name) {
  OperatorSet::Ptr before;
  std::lock_guard lock(mutex_);
  const CustomOperator* found = operators_ ? operators_->find(domain, name) : nullptr;
  if (!found)
    return error(Code::kNOT_FOUND, "unregistering operator '", domain.empty() ? "ai.onnx" : domain,
                 ".", name, "': no operator of that name is registered");
  before = std::exchange(operators_, OperatorSet::without(operators_, *found));
  return {};
}

Status Hooks::open_plugins(PluginLoader& loader) {
  const auto plugins = loader.open_all("ops");
  OperatorSet::Ptr before;
  std::lock_guard lock(mutex_);
  for (const auto& plugin : plugins) {
    if (!plugin->table || opened_.count(plugin->path)) continue;
    const auto& table = *static_cast<const pfrt_ops_table*>(plugin->table);
    OperatorSet::Ptr set = operators_;
    for (size_t i = 0; i < table.count; ++i) {
      if (!table.ops[i])
        return error(Code::kPLUGIN, "opening plug-in '", plugin->path, "': operator ", i,
                     " of its table is NULL");
      const pfrt_custom_op op = read(table.ops[i]);
      PFRT_ASSIGN(set, extended(set, op, "plug-in '" + plugin->path + "'",
                                lifetime(op.release, op.user, plugin->library)));
    }
    opened_.insert(plugin->path);
    if (!before) before = operators_;
    operators_ = std::move(set);
  }
  return {};
}

Status Hooks::open_pass_plugins(PluginLoader& loader, Logger& logger) {
  const auto plugins = loader.open_all("pass");
  std::lock_guard lock(mutex_);
  for (const auto& plugin : plugins) {
    if (!plugin->table || opened_.count(plugin->path)) continue;
    const auto& table = *static_cast<const pfrt_pass_table*>(plugin->table);
    std::vector<std::shared_ptr<const ClientPass>> all = passes_;
    for (size_t i = 0; i < table.count; ++i) {
      const auto fault = [&](const auto&... parts) {
        return error(Code::kPLUGIN, "opening plug-in '", plugin->path, "': pass ", i, parts...);
      };
      if (!table.passes[i]) return fault(" of its table is NULL");
      const pfrt_custom_pass given = read(table.passes[i]);
      auto made = client_pass(given, lifetime(given.release, given.user, plugin->library), logger,
                              "taking");
      if (!made.ok()) return made.take_status().prepend("plug-in '" + plugin->path + "'");
      if (std::ranges::any_of(all, [&](const auto& p) { return p->name == (*made)->name; }))
        return fault(" '", (*made)->name, "' has the name of another");
      all.push_back(made.take());
    }
    opened_.insert(plugin->path);
    passes_ = std::move(all);
  }
  return {};
}

Status Hooks::add_provider(ProviderSource source, PluginLoader& loader) {
  const auto plugin = loader.find("provider", source.name);
  std::lock_guard lock(mutex_);
  const bool registered = std::any_of(providers_.begin(), providers_.end(),
                                      [&](const auto& p) { return p->name == source.name; });
  if (registered || plugin.ok())
    return error(Code::kINVALID_ARGUMENT, "registering provider '", source.name,
                 "' of the client: that name is taken by ",
                 registered ? "a provider that the client registered before"
                            : "plug-in '" + plugin.value()->path + "'");
  providers_.push_back(std::make_shared<const ProviderSource>(std::move(source)));
  return {};
}

std::vector<std::shared_ptr<const ProviderSource>> Hooks::providers() const {
  std::lock_guard lock(mutex_);
  return providers_;
}

Status Hooks::add_pass(std::shared_ptr<const ClientPass> pass, std::string_view after) {
  std::lock_guard lock(mutex_);
  const auto named = [&](std::string_view name) {
    return std::find_if(passes_.begin(), passes_.end(),
                        [&](const auto& p) { return p->name == name; });
  };
  if (named(pass->name) != passes_.end())
    return error(Code::kINVALID_ARGUMENT, "registering pass '", pass->name,
                 "': a pass of that name is registered");
  auto place = passes_.end();
  if (!after.empty()) {
    place = named(after);
    if (place == passes_.end())
      return error(Code::kNOT_FOUND, "registering pass '", pass->name, "' after '", after,
                   "': no pass of that name is registered");
    ++place;
  }
  passes_.insert(place, std::move(pass));
  return {};
}

std::vector<std::shared_ptr<const ClientPass>> Hooks::passes() const {
  std::lock_guard lock(mutex_);
  return passes_;
}

Result<OperatorSet::Ptr> operators_for(EnvState& env, const Graph& graph) {
  const OperatorSet::Ptr set = env.hooks.operators();
  const bool unknown = any_node(graph, [&](const Node& node) {
    return !is_built_in(node.domain, node.op) && !(set && set->find(node.domain, node.op));
  });
  if (!unknown) return set;
  PFRT_TRY(env.hooks.open_plugins(*env.loader));
  return env.hooks.operators();
}

pfrt_status* register_operator(pfrt_env* env, const pfrt_custom_op* op) {
  // Every failure releases, when no lock is held any more.
  std::shared_ptr<void> keep;
  return guard([&]() -> Status {
    if (!op) return null_argument("op");
    const pfrt_custom_op given = read(op);
    keep = lifetime(given.release, given.user);
    if (!env) return null_argument("env");
    return env->state->hooks.add_operator(given, keep);
  });
}

pfrt_status* unregister_operator(pfrt_env* env, pfrt_string domain, pfrt_string name) {
  return guard([&]() -> Status {
    if (!env) return null_argument("env");
    return env->state->hooks.remove_operator(view(domain), view(name));
  });
}

pfrt_status* custom_operator_count(pfrt_env* env, size_t* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_count" : "env");
    *out = 0;
    PFRT_TRY(env->state->hooks.open_plugins(*env->state->loader));
    if (const auto set = env->state->hooks.operators()) *out = set->all().size();
    return {};
  });
}

pfrt_status* custom_operator_at(pfrt_env* env, size_t index, pfrt_operator_info* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_info" : "env");
    const auto set = env->state->hooks.operators();
    const size_t count = set ? set->all().size() : 0;
    if (index >= count)
      return error(Code::kINVALID_ARGUMENT, "registered operator ", index, " of ", count);
    const OperatorDef& row = set->all()[index]->row();
    pfrt_operator_info info{};
    info.since = static_cast<uint32_t>(row.since);
    info.op = to_c(row.name);
    info.domain = to_c(row.domain);
    info.runs_in = to_c("host");
    write(out, info);
    return {};
  });
}

pfrt_status* register_provider(pfrt_env* env, const pfrt_client_provider* provider) {
  std::shared_ptr<void> keep;
  return guard([&]() -> Status {
    if (!provider) return null_argument("provider");
    const pfrt_client_provider given = read(provider);
    keep = lifetime(given.release, given.user);
    if (!env) return null_argument("env");
    PFRT_TRY(check_abi("a provider", given.abi));
    PFRT_TRY(check_name("provider", given.name));
    ProviderSource source;
    source.name = view(given.name);
    if (source.name.empty() || !given.table)
      return error(Code::kINVALID_ARGUMENT, "registering provider '", source.name, "': it has no ",
                   given.table ? "name" : "table");
    const std::string fault = provider_table_fault(*given.table, given.features, given.open);
    if (!fault.empty())
      return error(Code::kINVALID_ARGUMENT, "registering provider '", source.name, "': ", fault);
    const std::string_view devices = view(given.table->devices);
    source.device = devices.substr(0, devices.find(','));
    source.table = given.table;
    source.features = given.features;
    source.open = given.open;
    source.user = given.user;
    source.library = keep;
    return env->state->hooks.add_provider(std::move(source), *env->state->loader);
  });
}

pfrt_status* register_pass(pfrt_env* env, const pfrt_custom_pass* pass) {
  std::shared_ptr<void> keep;
  return guard([&]() -> Status {
    if (!pass) return null_argument("pass");
    const pfrt_custom_pass given = read(pass);
    keep = lifetime(given.release, given.user);
    if (!env) return null_argument("env");
    PFRT_ASSIGN(auto made, client_pass(given, keep, env->state->logger, "registering"));
    return env->state->hooks.add_pass(std::move(made), view(given.after));
  });
}

}  // namespace pfrt::capi
