// SPDX-License-Identifier: Apache-2.0
//
// The cache of compiled models in one folder: what is known of model files without reading them
// (".model"), what sessions have made of them (".compiled"), graphs that the client keeps there
// (".graph"), and what providers have measured (".tuned"). Nothing here fails a caller who only
// runs models. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/key_values.h"
#include "core/base/stop.h"
#include "core/cache/store.h"
#include "core/format/compiled.h"
#include "core/model/model.h"

namespace pfrt {

// Identifies this build of the library and no other.
const std::string& library_identity();

// A compiled model out of the cache, as long as a session uses it.
struct StoredModel {
  Compiled compiled;
  std::shared_ptr<os::FileHealth> file;  // viewed by |compiled|; null: not of the cache
  // Whether the file has changed or is gone.
  bool lost() const { return file && file->check(); }
};

class CompiledCache {
 public:
  // |former| is a cache of the same folder, whose counts of hits and misses go on here; may be
  // null.
  CompiledCache(const std::string& folder, const CacheLimits& limits, Logger* logger,
                const CompiledCache* former);

  CacheStore& entries() { return entries_; }
  const CacheStore& entries() const { return entries_; }

  // The model whose first file is |file|, as it was loaded earlier with options |load_key|; null
  // where the file has changed or is unknown. |import| loads it when it is needed.
  std::shared_ptr<Model> known_model(const ModelFile& file, std::string_view load_key,
                                     const Model::Import& import);
  // Stores what known_model finds, once the model's files have been unchanged for a while.
  void remember(const Model& model, std::string_view load_key, const RunControl& control);

  // |remake| is passed on to read_compiled.
  std::shared_ptr<const StoredModel> find(const std::string& key, const Model& model,
                                          const Remake& remake);
  // |stop| ends it early, with nothing kept.
  void put(const std::string& key, const Compiled& compiled, const Model& model, const Stop& stop);

  // Graphs under the client's own keys; null where there is none. The bytes of all constants are
  // copied.
  Result<std::shared_ptr<Graph>> graph(const std::string& key);
  Status put_graph(const std::string& key, const Graph& graph);
  bool has(const std::string& key);
  // The path of the model from which a session made the entry |key|; empty where there is no entry
  // or the file has changed.
  std::string model_of(const std::string& key);
  // Measurements on this machine of the provider with that name and Provider::lasting_identity.
  std::unique_ptr<KeyValues> tunings(const std::string& provider, const std::string& identity);

  // Entries except those of models, the latest used first; |check| as in CacheStore.
  std::vector<CacheStore::Info> list(bool check);
  // Whether there was an entry |key|.
  bool remove(const std::string& key);
  // Removes everything that can be removed, models included.
  uint64_t clear() {
    models_.clear();
    return entries_.clear() + tunings_.clear();
  }

 private:
  static const std::string kModel, kCompiled, kGraph, kTuned;
  Status store(CacheStore& to, const std::string& key, const std::string& suffix,
               const std::string& of, const std::string& head,
               const std::vector<CompiledSection>& sections, const Stop& stop);
  void say(const std::string& doing, const Status& why);

  Logger* const logger_;
  CacheStore entries_, models_, tunings_;
};

}  // namespace pfrt
