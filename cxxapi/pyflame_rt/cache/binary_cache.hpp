// SPDX-License-Identifier: Apache-2.0
//
// Compiled models kept in a folder: sessions with SessionOptions::cache_dir (or the environment
// variable PFRT_CACHE_DIR) start from it without reading, optimising and packing their model again,
// and processes share what is packed. A BinaryCache looks after such a folder, fills it ahead, and
// keeps graphs of the client's there. Files that are torn, damaged, too old or another machine's
// are not used and made again. Thread-safe, also between processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <pyflame_rt/opt/passes.hpp>
#include <pyflame_rt/session.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt::cache {

// Settings of a cache.
struct CacheConfig {
  std::string cache_dir = ".pyflame_cache";     // made with the first entry
  uint64_t max_size_bytes = uint64_t{1} << 30;  // of all entries; 0 = no limit
  uint64_t max_entries = 100;                   // 0 = no limit
  // Age after which an entry is not used any more; 0 = never.
  std::chrono::seconds ttl = std::chrono::hours(24);
  bool use_mmap = true;  // entries are mapped, so that processes share them; else each reads a copy
};

// An entry of a cache.
struct CacheEntryInfo {
  // Key that CacheKey computed, or that put was given.
  std::string key;
  // "compiled": a model as a session compiled it; "graph": one given to put; "tuned": measurements
  // on a machine.
  std::string kind;
  std::string model_path;  // or the graph's name, or a summary of the measurements
  std::string cache_path;  // the entry's file
  // Size of the file.
  uint64_t size_bytes = 0;
  // Times of making and of last use; the latter to a second.
  std::chrono::system_clock::time_point created_at, last_accessed;
  bool is_valid = false;  // whole and not too old
};

// Counts of a cache's use by this process.
struct CacheStats {
  // Entries that were found, not found, added, removed for the limits, and not usable.
  uint64_t hits = 0, misses = 0, stores = 0, evictions = 0, invalid = 0;
  // Share of hits among all lookups; 0 when there were none.
  double hit_rate() const noexcept {
    const uint64_t all = hits + misses;
    return all == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(all);
  }
};

// Result of warmup() for one model.
struct WarmupResult {
  // Path of the model, as given.
  std::string path;
  std::string error;  // empty = the model is in the cache
  // Whether the model is in the cache.
  explicit operator bool() const noexcept { return error.empty(); }
};

namespace detail {

using namespace pyflame_rt::detail;

inline pfrt_cache_config config_of(const CacheConfig& config) {
  pfrt_cache_config c{};
  c.struct_size = sizeof(c);
  c.copy = config.use_mmap ? 0 : 1;
  c.folder = text(config.cache_dir);
  c.max_bytes = config.max_size_bytes;
  c.max_entries = config.max_entries;
  c.ttl_s = config.ttl.count();
  return c;
}

inline std::chrono::system_clock::time_point time_of(int64_t ns) {
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::nanoseconds(ns)));
}

}  // namespace detail

// Keys of models as sessions compile them.
struct CacheKey {
  // Returns the key of the entry for a session of the model at |path| with |options|. It differs
  // for other bytes, options, providers or processors. Throws what making the session throws, and
  // UnsupportedError for sessions that are not cached, such as those with the client's passes.
  static std::string compute(const std::string& path, const SessionOptions& options = {}) {
    std::string key;
    const auto take = [](void* user, pfrt_string text) {
      static_cast<std::string*>(user)->assign(text.data, text.size);
    };
    detail::check(api().cache->key(Environment::instance().handle(), detail::text(path),
                                   pyflame_rt::detail::to_c(options, nullptr).get(), take, &key));
    return key;
  }
};

// A cache in a folder. Copies are the same cache.
class BinaryCache {
 public:
  // Throws InvalidArgumentError for a folder without a name or a time to live below 0.
  explicit BinaryCache(CacheConfig config = {}) : config_(std::move(config)) {
    const pfrt_cache_config c = detail::config_of(config_);
    detail::check(api().cache->open(Environment::instance().handle(), &c, cache_.out()));
  }

  // Settings as given.
  const CacheConfig& config() const noexcept { return config_; }
  // Enables or disables this object. A disabled one finds and stores nothing; sessions ignore this.
  void set_enabled(bool enabled) noexcept { enabled_ = enabled; }
  // Whether the object is enabled, as it is at first.
  bool is_enabled() const noexcept { return enabled_; }

  // Whether there is a usable entry of that key.
  bool has(const std::string& key) const {
    uint32_t there = 0;
    if (enabled_) detail::check(api().cache->has(cache_.get(), detail::text(key), &there));
    return there != 0;
  }
  // Returns the graph that was given to put, or that of the model that a session has compiled; null
  // where there is none.
  std::shared_ptr<Graph> get(const std::string& key) const {
    GraphHandle graph;
    if (enabled_) detail::check(api().cache->get(cache_.get(), detail::text(key), graph.out()));
    return graph ? std::make_shared<Graph>(std::move(graph)) : nullptr;
  }
  // Stores a copy of |graph| with its constants. Throws PyFlameRTError where it cannot be written.
  void put(const std::string& key, const Graph& graph) const {
    if (enabled_) detail::check(api().cache->put(cache_.get(), detail::text(key), graph.handle()));
  }
  // Returns the graph of the key of |path| and |options|. Where there is none, calls |compile| and
  // stores its result, a Graph or a pointer to one.
  template <class Compile>
  std::shared_ptr<Graph> get_or_compile(const std::string& path, const SessionOptions& options,
                                        Compile&& compile) const {
    const std::string key = CacheKey::compute(path, options);
    if (std::shared_ptr<Graph> there = get(key)) return there;
    std::shared_ptr<Graph> made = pointer(compile());
    if (made != nullptr) put(key, *made);
    return made;
  }
  // Makes a session of each model, so that others start from the cache. A model that fails does not
  // stop the rest.
  std::vector<WarmupResult> warmup(const std::vector<std::string>& paths,
                                   SessionOptions options = {}) const {
    std::vector<WarmupResult> out;
    if (!enabled_) return out;
    options.cache_dir = config_.cache_dir;
    for (const std::string& path : paths) {
      out.push_back({path, {}});
      try {
        (void)InferenceSession(path, options);
        if (!has(CacheKey::compute(path, options)))
          out.back().error =
              "the session was made, but its entry could not be kept; the log says "
              "why";
      } catch (const std::exception& fault) {
        out.back().error = fault.what();
      }
    }
    return out;
  }

  // Removes an entry; returns whether there was one.
  bool remove(const std::string& key) const {
    uint32_t removed = 0;
    detail::check(api().cache->remove(cache_.get(), detail::text(key), &removed));
    return removed != 0;
  }
  // Removes all entries; returns their number.
  uint64_t clear() const {
    uint64_t removed = 0;
    detail::check(api().cache->clear(cache_.get(), &removed));
    return removed;
  }
  // Removes entries that are too old or beyond the limits, as adding an entry does; returns their
  // number.
  uint64_t evict_if_needed() const {
    uint64_t removed = 0;
    detail::check(api().cache->evict(cache_.get(), &removed));
    return removed;
  }
  // All entries, those used last first. With |check| their files are read as a whole for is_valid;
  // otherwise only the files' heads are.
  std::vector<CacheEntryInfo> entries(bool check = false) const {
    std::vector<CacheEntryInfo> out;
    const auto take = [](void* user, const pfrt_cache_entry* entry) {
      CacheEntryInfo info;
      info.key = detail::str(entry->key);
      info.kind = detail::str(entry->kind);
      info.model_path = detail::str(entry->of);
      info.cache_path = detail::str(entry->path);
      info.size_bytes = entry->bytes;
      info.created_at = detail::time_of(entry->created_ns);
      info.last_accessed = detail::time_of(entry->used_ns);
      info.is_valid = entry->valid != 0;
      static_cast<std::vector<CacheEntryInfo>*>(user)->push_back(std::move(info));
    };
    detail::check(api().cache->list(cache_.get(), check ? 1 : 0, take, &out));
    return out;
  }
  // Keys of all entries.
  std::vector<std::string> list_entries() const {
    std::vector<std::string> out;
    for (CacheEntryInfo& info : entries()) out.push_back(std::move(info.key));
    return out;
  }
  // Returns the entry of that key, whose file is read as a whole; nothing where there is none.
  std::optional<CacheEntryInfo> get_info(const std::string& key) const {
    for (CacheEntryInfo& info : entries(true))
      if (info.key == key) return std::move(info);
    return std::nullopt;
  }
  // Number of entries of all kinds.
  size_t entry_count() const { return entries().size(); }
  // Bytes of all entries.
  uint64_t total_size() const {
    uint64_t bytes = 0;
    for (const CacheEntryInfo& info : entries()) bytes += info.size_bytes;
    return bytes;
  }
  // Whether all entries are whole.
  bool validate() const {
    for (const CacheEntryInfo& info : entries(true))
      if (!info.is_valid) return false;
    return true;
  }
  // Counts of the cache's use, including the process's sessions that use the folder.
  CacheStats get_stats() const {
    pfrt_cache_statistics c{};
    c.struct_size = sizeof(c);
    detail::check(api().cache->statistics(cache_.get(), &c));
    return {c.hits, c.misses, c.stores, c.evictions, c.invalid};
  }

 private:
  static std::shared_ptr<Graph> pointer(Graph graph) {
    return std::make_shared<Graph>(std::move(graph));
  }
  static std::shared_ptr<Graph> pointer(std::shared_ptr<Graph> graph) { return graph; }
  static std::shared_ptr<Graph> pointer(std::unique_ptr<Graph> graph) { return graph; }

  CacheConfig config_;
  bool enabled_ = true;
  pyflame_rt::detail::Handle<pfrt_cache> cache_;
};

namespace detail {

struct GlobalCache {
  std::mutex mutex;
  std::shared_ptr<BinaryCache> cache;
  static GlobalCache& instance() {
    static GlobalCache the_cache;
    return the_cache;
  }
};

}  // namespace detail

// Makes a cache that global_cache() returns and that all sessions without cache_dir use from now
// on.
inline void set_global_cache_config(const CacheConfig& config) {
  auto made = std::make_shared<BinaryCache>(config);
  const pfrt_cache_config c = detail::config_of(config);
  auto& global = detail::GlobalCache::instance();
  const std::lock_guard<std::mutex> lock(global.mutex);
  detail::check(api().cache->set_default(Environment::instance().handle(), &c));
  global.cache = std::move(made);
}

// Returns the cache of set_global_cache_config, or one with the defaults where that was not called.
inline BinaryCache& global_cache() {
  auto& global = detail::GlobalCache::instance();
  {
    const std::lock_guard<std::mutex> lock(global.mutex);
    if (global.cache != nullptr) return *global.cache;
  }
  set_global_cache_config({});
  return *global.cache;
}

}  // namespace pyflame_rt::cache

namespace pyflame_rt {

// Options of compile_model.
struct CompileOptions {
  std::string cache_dir;       // keeps the result there for the next time; empty = nowhere
  int optimization_level = 2;  // 0 none, 1 basic, 2 extended, 3 all
  bool dynamic_batch = false;  // the first dimension of each input may vary
  // Shapes of inputs by name, in place of the model's; -1 = may vary.
  std::map<std::string, std::vector<int64_t>> input_shapes;
};

namespace detail {

inline void reshape_inputs(Graph& graph, const CompileOptions& options) {
  auto missing = options.input_shapes;
  const std::vector<TensorInfo> inputs = graph.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    TensorInfo info = inputs[i];
    bool changed = false;
    if (const auto given = missing.extract(info.name)) {
      const std::vector<int64_t>& dims = given.mapped();
      if (!info.unranked && dims.size() != info.shape.size()) {
        throw ShapeMismatchError("compile_model: input '" + info.name + "' has shape " +
                                 shape_to_string(info.shape) + ", its input_shapes have " +
                                 std::to_string(dims.size()) + " dimensions");
      }
      info.shape.clear();
      for (const int64_t dim : dims)
        info.shape.push_back(dim < 0 ? std::nullopt : std::optional<int64_t>(dim));
      info.unranked = false;
      info.dim_names.clear();
      changed = true;
    }
    if (options.dynamic_batch && !info.shape.empty()) {
      info.shape[0] = std::nullopt;
      info.dim_names.assign(info.shape.size(), "");
      info.dim_names[0] = "batch";
      changed = true;
    }
    if (changed) graph.replace_input(i, info);
  }
  if (!missing.empty())
    throw InputError("compile_model: input_shapes name '" + missing.begin()->first +
                     "', which is no input of the model");
}

}  // namespace detail

// Returns the optimised graph of a model file, from the cache where it is there. Throws InputError
// for an unknown input, ShapeMismatchError for a shape of another rank, InvalidArgumentError for an
// unknown level, and otherwise what Model::load throws.
inline std::shared_ptr<Graph> compile_model(const std::string& path,
                                            const CompileOptions& options = {}) {
  if (options.optimization_level < 0 || options.optimization_level > 3)
    throw InvalidArgumentError("compile_model: optimization_level " +
                               std::to_string(options.optimization_level) +
                               " is none; give 0 (none) to 3 (all)");
  const auto level = static_cast<OptLevel>(options.optimization_level);
  const auto compile = [&] {
    auto graph = std::make_shared<Graph>(load_model(path));
    detail::reshape_inputs(*graph, options);
    opt::optimize(*graph, level);
    return graph;
  };
  if (options.cache_dir.empty()) return compile();
  cache::CacheConfig config;
  config.cache_dir = options.cache_dir;
  SessionOptions session;
  session.optimization_level = level;
  std::string key = "compile_model/" + cache::CacheKey::compute(path, session);
  if (options.dynamic_batch) key += "/dynamic";
  for (const auto& [name, dims] : options.input_shapes)
    key += "/" + name + "=" + detail::shape_text(dims);
  const cache::BinaryCache kept(config);
  if (std::shared_ptr<Graph> there = kept.get(key)) return there;
  std::shared_ptr<Graph> made = compile();
  kept.put(key, *made);
  return made;
}

}  // namespace pyflame_rt
