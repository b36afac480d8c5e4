// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/cache.h"

#include "capi/handle/counted.h"
#include "capi/handle/env.h"
#include "capi/handle/graph.h"
#include "capi/handle/guard.h"
#include "capi/handle/options.h"
#include "capi/handle/plugin_scope.h"
#include "capi/handle/slots.h"
#include "core/environment/import.h"

namespace pfrt::capi {
namespace {

Result<std::pair<std::string, CacheLimits>> config_from(const pfrt_cache_config* given) {
  PFRT_ASSIGN(const pfrt_cache_config config, read(given));
  std::string folder(view(config.folder));
  if (folder.empty() || folder == "off")
    return error(Code::kINVALID_ARGUMENT, "opening a cache: '", folder,
                 "' is no name of a folder; give the path of one, which is made where it is not");
  if (config.ttl_s < 0)
    return error(Code::kINVALID_ARGUMENT, "opening a cache: ttl_s is ", config.ttl_s,
                 "; give seconds, 0 for ever");
  return std::pair(std::move(folder), CacheLimits{config.max_bytes, config.max_entries,
                                                  config.ttl_s, config.copy == 0});
}

pfrt_status* open(pfrt_env* env, const pfrt_cache_config* config, pfrt_cache** out) {
  return guard([&]() -> Status {
    if (!env || !config || !out)
      return null_argument(!env ? "env" : !config ? "config" : "out_cache");
    *out = nullptr;
    PFRT_ASSIGN(const auto given, config_from(config));
    auto handle = std::make_unique<pfrt_cache>();
    handle->env = env->state;
    handle->cache = env->state->open_cache(given.first, given.second);
    *out = handle.release();
    return {};
  });
}

pfrt_status* set_default(pfrt_env* env, const pfrt_cache_config* config) {
  return guard([&]() -> Status {
    if (!env) return null_argument("env");
    if (!config) {
      env->state->set_default_cache({});
      return {};
    }
    PFRT_ASSIGN(const auto given, config_from(config));
    (void)env->state->open_cache(given.first, given.second);
    env->state->set_default_cache(given.first);
    return {};
  });
}

// Calls |fn| with the object behind a handle, and the text of |key|.
template <typename Fn>
pfrt_status* with_key(pfrt_cache* cache, pfrt_string key, Fn fn) {
  return guard([&]() -> Status {
    if (!cache) return null_argument("cache");
    if (view(key).empty()) return error(Code::kINVALID_ARGUMENT, "using a cache: the key is empty");
    return fn(*cache->cache, std::string(view(key)));
  });
}

pfrt_status* key(pfrt_env* env, pfrt_string path, const pfrt_options* options,
                 void (*fn)(void* user, pfrt_string key), void* user) {
  return guard([&]() -> Status {
    if (!env || !fn) return null_argument(env ? "fn" : "env");
    if (options && options->options.kind() != PFRT_OPTIONS_SESSION)
      return error(Code::kINVALID_ARGUMENT, "making a cache's key: the options are of kind ",
                   options_kind_name(options->options.kind()), ", not session");
    const Options defaults(PFRT_OPTIONS_SESSION);
    const Options& session = options ? options->options : defaults;
    Options load(PFRT_OPTIONS_LOAD);
    PFRT_TRY(load.set_string("cache_dir", session.get(session_option::kCacheDir)));
    PFRT_ASSIGN(const auto model, load_model_file(*env->state, std::string(view(path)), load));
    PFRT_ASSIGN(const std::string made, env->state->cache_key(model, session));
    if (!call_foreign([&] { fn(user, to_c(made)); }))
      return error(Code::kINTERNAL, "making a cache's key: the caller's function threw");
    return {};
  });
}

pfrt_status* has(pfrt_cache* cache, pfrt_string key, uint32_t* out) {
  return with_key(cache, key, [&](CompiledCache& c, const std::string& text) -> Status {
    if (!out) return null_argument("out_has");
    *out = c.has(text);
    return {};
  });
}

pfrt_status* get(pfrt_cache* cache, pfrt_string key, pfrt_graph** out) {
  return with_key(cache, key, [&](CompiledCache& c, const std::string& text) -> Status {
    if (!out) return null_argument("out_graph");
    *out = nullptr;
    const EnvironmentScope scope = EnvironmentScope::lasting(*cache->env);
    PFRT_ASSIGN(auto graph, c.graph(text));
    if (!graph) {
      const std::string path = c.model_of(text);
      if (path.empty()) return {};
      PFRT_ASSIGN(const auto model, load_model_file(*cache->env, path, Options(PFRT_OPTIONS_LOAD)));
      PFRT_ASSIGN(const Model* const loaded, model->loaded());
      graph = loaded->graph().clone();
    }
    *out = new pfrt_graph(std::move(graph));
    return {};
  });
}

pfrt_status* put(pfrt_cache* cache, pfrt_string key, const pfrt_graph* graph) {
  return with_key(cache, key, [&](CompiledCache& c, const std::string& text) -> Status {
    if (!graph) return null_argument("graph");
    Status status = c.put_graph(text, *graph->graph);
    return std::move(
        status.prepend("putting a graph into the cache '" + c.entries().folder() + "'"));
  });
}

pfrt_status* remove(pfrt_cache* cache, pfrt_string key, uint32_t* out) {
  return with_key(cache, key, [&](CompiledCache& c, const std::string& text) -> Status {
    const bool removed = c.remove(text);
    if (out) *out = removed;
    return {};
  });
}

template <typename Fn>
pfrt_status* counted(pfrt_cache* cache, uint64_t* out, Fn fn) {
  return guard([&]() -> Status {
    if (!cache) return null_argument("cache");
    const uint64_t count = fn(*cache->cache);
    if (out) *out = count;
    return {};
  });
}

pfrt_status* clear(pfrt_cache* cache, uint64_t* out) {
  return counted(cache, out, [](CompiledCache& c) { return c.clear(); });
}

pfrt_status* evict(pfrt_cache* cache, uint64_t* out) {
  return counted(cache, out, [](CompiledCache& c) { return c.entries().evict(); });
}

pfrt_status* list(pfrt_cache* cache, uint32_t check,
                  void (*fn)(void* user, const pfrt_cache_entry* entry), void* user) {
  return guard([&]() -> Status {
    if (!cache || !fn) return null_argument(cache ? "fn" : "cache");
    for (const CacheStore::Info& info : cache->cache->list(check != 0)) {
      pfrt_cache_entry entry{};
      entry.struct_size = sizeof entry;
      entry.valid = info.valid;
      entry.key = to_c(info.key);
      entry.kind = to_c(std::string_view(info.suffix).substr(1));
      entry.of = to_c(info.of);
      entry.path = to_c(info.path);
      entry.bytes = info.bytes;
      entry.created_ns = info.created_ns;
      entry.used_ns = info.used_ns;
      if (!call_foreign([&] { fn(user, &entry); }))
        return error(Code::kINTERNAL, "listing a cache: the caller's function threw");
    }
    return {};
  });
}

pfrt_status* statistics(pfrt_cache* cache, pfrt_cache_statistics* out) {
  return guard([&]() -> Status {
    if (!cache || !out) return null_argument(cache ? "out_statistics" : "cache");
    const CacheStore::Statistics s = cache->cache->entries().statistics();
    return write(out,
                 pfrt_cache_statistics{0, 0, s.hits, s.misses, s.stores, s.evictions, s.invalid});
  });
}

}  // namespace

const pfrt_cache_api kCacheApi = {
    sizeof(pfrt_cache_api),
    PFRT_ABI_VERSION,
    open,
    retain<pfrt_cache>,
    last_call<release<pfrt_cache>, pfrt_cache>,
    set_default,
    key,
    has,
    get,
    put,
    remove,
    clear,
    evict,
    list,
    statistics,
};

}  // namespace pfrt::capi
