// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <pyflame_rt/cache/binary_cache.hpp>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/line/usage_error.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/progress.h"
#include "cxxapi/cli/print/table.h"
#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

using pyflame_rt::cache::BinaryCache;
using pyflame_rt::cache::CacheConfig;
using pyflame_rt::cache::CacheEntryInfo;
using pyflame_rt::cache::WarmupResult;

CacheConfig config_of(const CacheArgs& args) {
  CacheConfig config;
  const char* const variable = ::secure_getenv("PFRT_CACHE_DIR");
  config.cache_dir = !args.folder.empty() ? args.folder : variable != nullptr ? variable : "";
  if (config.cache_dir.empty())
    throw UsageError(
        "no cache: give its folder by --cache-dir or the environment variable PFRT_CACHE_DIR");
  return config;
}

std::string ago_text(std::chrono::system_clock::time_point time) {
  using std::chrono::duration_cast;
  const auto ago = std::chrono::system_clock::now() - time;
  const auto seconds = duration_cast<std::chrono::seconds>(ago).count();
  if (seconds < 0) return "in the future";
  if (seconds < 120) return std::to_string(seconds) + " s ago";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min ago";
  if (seconds < 172800) return std::to_string(seconds / 3600) + " h ago";
  return std::to_string(seconds / 86400) + " days ago";
}

int64_t seconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

int list_entries(const CacheArgs& args, const BinaryCache& cache) {
  const std::vector<CacheEntryInfo> entries = cache.entries(args.check);
  uint64_t bytes = 0;
  bool valid = true;
  for (const CacheEntryInfo& e : entries) {
    bytes += e.size_bytes;
    valid = valid && e.is_valid;
  }
  if (args.json) {
    Json json;
    json.object()
        .field("folder", cache.config().cache_dir)
        .field("bytes", bytes)
        .key("entries")
        .list();
    for (const CacheEntryInfo& e : entries) {
      json.object().field("key", e.key).field("kind", e.kind).field("of", e.model_path);
      json.field("path", e.cache_path).field("bytes", e.size_bytes);
      json.field("created_s", seconds_of(e.created_at))
          .field("used_s", seconds_of(e.last_accessed));
      json.field("valid", e.is_valid).end();
    }
    json.end().end().print();
    return valid ? 0 : 1;
  }
  Table table({"key", "kind", "of", "size", "made", "used", "state"});
  for (const CacheEntryInfo& e : entries)
    table.add({e.key, e.kind, e.model_path, bytes_text(e.size_bytes), ago_text(e.created_at),
               ago_text(e.last_accessed),
               !e.is_valid  ? "not usable"
               : args.check ? "whole"
                            : "usable"});
  if (!entries.empty()) table.print();
  std::printf("%zu entries, %s, in %s\n", entries.size(), bytes_text(bytes).c_str(),
              cache.config().cache_dir.c_str());
  return valid ? 0 : 1;
}

int clear_entries(const CacheArgs& args, const BinaryCache& cache) {
  const uint64_t removed = cache.clear();
  if (args.json) {
    Json json;
    json.object().field("removed", removed).end().print();
  } else {
    std::printf("%llu entries removed from %s\n", static_cast<unsigned long long>(removed),
                cache.config().cache_dir.c_str());
  }
  return 0;
}

int warm(const CacheArgs& args, const BinaryCache& cache) {
  if (args.models.empty()) throw UsageError("give the models that sessions shall start from it");
  pyflame_rt::SessionOptions options = session_options(args.session);
  std::vector<WarmupResult> results;
  {
    ProgressLine progress;
    for (const std::string& model : args.models) {
      progress.show("compiling " + model + " (" + std::to_string(results.size() + 1) + " of " +
                    std::to_string(args.models.size()) + ")");
      results.push_back(cache.warmup({model}, options).front());
    }
  }
  bool all = true;
  for (const WarmupResult& r : results) all = all && r;
  if (args.json) {
    Json json;
    json.object().field("folder", cache.config().cache_dir).key("models").list();
    for (const WarmupResult& r : results)
      json.object().field("path", r.path).field("error", r.error).end();
    json.end().end().print();
    return all ? 0 : 1;
  }
  for (const WarmupResult& r : results)
    std::printf("%s: %s\n", r.path.c_str(), r ? "in the cache" : one_line(r.error).c_str());
  return all ? 0 : 1;
}

}  // namespace

int cache_command(const CacheArgs& args) {
  const BinaryCache cache(config_of(args));
  if (args.action != "warm" && !args.models.empty())
    throw UsageError("'" + args.action + "' is of the whole cache and takes no model");
  if (args.action == "list") return list_entries(args, cache);
  return args.action == "clear" ? clear_entries(args, cache) : warm(args, cache);
}

}  // namespace cli
