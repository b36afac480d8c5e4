// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/env.h"

#include "capi/handle/counted.h"
#include "capi/handle/guard.h"
#include "capi/handle/options.h"
#include "capi/handle/report.h"
#include "capi/handle/slots.h"
#include "capi/plugin/plugins.h"
#include "core/base/os/path.h"
#include "core/base/os/variable.h"
#include "core/op/defs/common/notes.h"
#include "core/op/engine/operator_def.h"

namespace pfrt::capi {
namespace {

void split_path(std::string_view list, const char* named_by, std::vector<PluginFolder>& out) {
  while (!list.empty()) {
    const size_t colon = list.find(':');
    if (colon != 0) out.push_back({std::string(list.substr(0, colon)), named_by});
    list = colon == std::string_view::npos ? std::string_view() : list.substr(colon + 1);
  }
}

// Adds the folders of plug-ins beside this library, which may have been opened by a link in another
// folder. Those beside the file that the link leads to come first: they were installed with it, and
// have its version.
void add_own_folders(std::vector<PluginFolder>& out) {
  const std::string path = os::path_of_code(reinterpret_cast<const void*>(&pfrt_get_api));
  const std::string given = os::folder_of(path);
  const auto file = os::resolved(path);
  const std::string own = file ? os::folder_of(*file) : given;
  out.push_back({own + "/pyflame_rt/plugins", ""});
  if (own != given && own != os::resolved(given))
    out.push_back({given + "/pyflame_rt/plugins", ""});
}

std::vector<PluginFolder> plugin_folders(const Options& o) {
  std::vector<PluginFolder> folders;
  split_path(o.get(env_option::kPluginPath), "the option 'plugin_path'", folders);
  split_path(os::variable("PFRT_PLUGIN_PATH"), "PFRT_PLUGIN_PATH", folders);
  add_own_folders(folders);
  return folders;
}

pfrt_status* create(const pfrt_options* options, pfrt_env** out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_env");
    *out = nullptr;
    if (options && options->options.kind() != PFRT_OPTIONS_ENV)
      return error(Code::kINVALID_ARGUMENT, "creating an environment: the options are of kind ",
                   options_kind_name(options->options.kind()), ", not environment");
    const Options defaults(PFRT_OPTIONS_ENV);
    const Options& o = options ? options->options : defaults;
    auto env = std::make_unique<pfrt_env>();
    env->state = Environment::create(o, [&](Logger& logger) {
      auto plugins = std::make_unique<LoadedPlugins>(plugin_folders(o), logger);
      env->loaded = plugins.get();
      return plugins;
    });
    if (const std::string word = o.get(env_option::kExecutor); word != "pool") {
      PFRT_ASSIGN(env->executor, plugin_executor(*env->loaded, word, env->state->logger()));
      env->state->replace([&](Replacements& own) { own.executor = env->executor; });
    }
    *out = env.release();
    return {};
  });
}

pfrt_status* set_logger(pfrt_env* env, pfrt_log_fn fn, void* user) {
  return guard([&]() -> Status {
    if (!env) return null_argument("env");
    env->state->logger().set_sink(fn, user);
    return {};
  });
}

pfrt_status* refresh_plugins(pfrt_env* env) {
  return guard([&]() -> Status {
    if (!env) return null_argument("env");
    std::lock_guard lock(env->mutex);
    env->loaded->loader().rescan();
    env->plugins = env->loaded->loader().open_all("");
    return {};
  });
}

const std::vector<std::shared_ptr<const Plugin>>& plugins(pfrt_env* env) {
  if (env->plugins.empty()) env->plugins = env->loaded->loader().open_all("");
  return env->plugins;
}

std::vector<const Plugin*> providers(pfrt_env* env) {
  std::vector<const Plugin*> out;
  for (const auto& p : plugins(env))
    if (p->kind == "provider") out.push_back(p.get());
  return out;
}

size_t plugin_count(pfrt_env* env) {
  if (!env) return 0;
  const os::ForkScope scope;
  std::lock_guard lock(env->mutex);
  return plugins(env).size();
}

pfrt_plugin_info info_of(const Plugin& p) {
  pfrt_plugin_info info{};
  info.loaded = p.table ? 1 : 0;
  info.kind = to_c(p.kind);
  info.name = to_c(p.name.empty() ? p.short_name : p.name);
  info.path = to_c(p.path);
  info.version = to_c(p.version);
  info.reason = to_c(p.reason);
  info.abi_major = p.abi_major;
  info.abi_minor = p.abi_minor;
  return info;
}

pfrt_status* plugin_at(pfrt_env* env, size_t index, pfrt_plugin_info* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_info" : "env");
    std::lock_guard lock(env->mutex);
    const auto& all = plugins(env);
    if (index >= all.size())
      return error(Code::kINVALID_ARGUMENT, "plug-in ", index, " of ", all.size());
    return write(out, info_of(*all[index]));
  });
}

pfrt_status* open_plugin(pfrt_env* env, pfrt_string path, pfrt_plugin_info* out) {
  return guard([&]() -> Status {
    if (!env) return null_argument("env");
    if (path.size && !path.data) return null_argument("path");
    std::lock_guard lock(env->mutex);
    PFRT_ASSIGN(const auto opened, env->loaded->loader().open_file(std::string(view(path))));
    env->plugins = env->loaded->loader().open_all("");
    if (opened->kind == "ops") PFRT_TRY(env->state->registry().open_operators());
    return out ? write(out, info_of(*opened)) : Status();
  });
}

size_t provider_count(pfrt_env* env) {
  if (!env) return 0;
  const os::ForkScope scope;
  std::lock_guard lock(env->mutex);
  return providers(env).size() + env->state->registry().providers().size();
}

pfrt_status* provider_at(pfrt_env* env, size_t index, pfrt_provider_info* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_info" : "env");
    std::lock_guard lock(env->mutex);
    const auto all = providers(env);
    const auto registered = env->state->registry().providers();
    if (index >= all.size() + registered.size())
      return error(Code::kINVALID_ARGUMENT, "provider ", index, " of ",
                   all.size() + registered.size());
    pfrt_provider_info info{};
    if (index >= all.size()) {
      // The registration keeps the name.
      const ProviderSource& source = *registered[index - all.size()];
      info.available = 1;
      info.name = to_c(source.name);
      info.devices = source.table->devices;
      return write(out, info);
    }
    const Plugin& p = *all[index];
    info.available = p.table ? 1 : 0;
    info.name = to_c(p.name.empty() ? p.short_name : p.name);
    if (p.table) info.devices = p.provider()->devices;
    info.path = to_c(p.path);
    info.reason = to_c(p.reason);
    return write(out, info);
  });
}

// The kernel table of a provider, read once from its first device.
Result<pfrt_env::KernelList*> kernel_list(pfrt_env* env, std::string_view name) {
  for (const auto& list : env->kernels)
    if (list->provider == name) return list.get();
  PFRT_ASSIGN(const ProviderSource source, env->state->provider_source(name));
  auto list = std::make_unique<pfrt_env::KernelList>();
  list->provider = name;
  if (source.features & PFRT_PROVIDER_KERNELS) {
    PFRT_ASSIGN(list->opened, env->state->open_device(source, {}));
    const size_t count = source.table->kernel_count(list->opened->handle());
    for (size_t i = 0; i < count; ++i) {
      pfrt_kernel_info info{};
      info.struct_size = sizeof info;
      const pfrt_code code = source.table->kernel_at(list->opened->handle(), i, &info);
      if (code != PFRT_CODE_OK)
        return error(static_cast<Code>(code), "listing kernels of ", name, ": row ", i, " failed");
      list->rows.push_back(info);
    }
  }
  env->kernels.push_back(std::move(list));
  return env->kernels.back().get();
}

pfrt_status* kernel_count(pfrt_env* env, pfrt_string provider, size_t* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_count" : "env");
    *out = 0;
    std::lock_guard lock(env->mutex);
    PFRT_ASSIGN(const pfrt_env::KernelList* list, kernel_list(env, view(provider)));
    *out = list->rows.size();
    return {};
  });
}

pfrt_status* kernel_at(pfrt_env* env, pfrt_string provider, size_t index, pfrt_kernel_info* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_info" : "env");
    std::lock_guard lock(env->mutex);
    PFRT_ASSIGN(const pfrt_env::KernelList* list, kernel_list(env, view(provider)));
    if (index >= list->rows.size())
      return error(Code::kINVALID_ARGUMENT, "kernel ", index, " of ", list->rows.size());
    return write(out, list->rows[index]);
  });
}

// The operators that models may have, in family order.
const std::vector<const OperatorDef*>& listed_operators() {
  static const std::vector<const OperatorDef*> listed = [] {
    std::vector<const OperatorDef*> out;
    for (const auto& family : operators())
      for (const OperatorDef& def : family)
        if ((def.flags & kOpRefused) == 0 && !def.domain.starts_with("pyflame_rt."))
          out.push_back(&def);
    return out;
  }();
  return listed;
}

size_t operator_count() {
  try {
    return listed_operators().size();
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

pfrt_status* operator_at(size_t index, pfrt_operator_info* out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_info");
    const auto& listed = listed_operators();
    if (index >= listed.size())
      return error(Code::kINVALID_ARGUMENT, "operator ", index, " of ", listed.size());
    const OperatorDef& def = *listed[index];
    pfrt_operator_info info{};
    info.since = static_cast<uint32_t>(def.since);
    info.until = static_cast<uint32_t>(def.until);
    info.op = to_c(def.name);
    info.domain = to_c(def.domain);
    info.runs_in = to_c(def.flags & kOpHost ? "host" : "provider");
    info.note = to_c(operator_note(def.domain, def.name));
    return write(out, info);
  });
}

pfrt_status* trim(pfrt_env* env, uint64_t* out) {
  return guard([&]() -> Status {
    if (!env) return null_argument("env");
    const uint64_t bytes = env->state->trim();
    if (out) *out = bytes;
    return {};
  });
}

}  // namespace

const pfrt_env_api kEnvApi = {
    sizeof(pfrt_env_api),
    PFRT_ABI_VERSION,
    create,
    retain<pfrt_env>,
    last_call<release<pfrt_env>, pfrt_env>,
    set_logger,
    refresh_plugins,
    plugin_count,
    plugin_at,
    provider_count,
    provider_at,
    kernel_count,
    kernel_at,
    operator_count,
    operator_at,
    provider_option_count,
    provider_option_at,
    service_option_count,
    service_option_at,
    service_check,
    service_start,
    last_call<service_stop, pfrt_service>,
    service_address,
    service_ask,
    register_operator,
    unregister_operator,
    custom_operator_count,
    custom_operator_at,
    register_provider,
    register_pass,
    set_allocator,
    set_executor,
    set_thread_hooks,
    ask,
    last_call<release_reply, pfrt_reply>,
    reply_text,
    reply_count,
    reply_at,
    trim,
    set_memory_planner,
    importer_option_count,
    importer_option_at,
    open_plugin,
};

}  // namespace pfrt::capi
