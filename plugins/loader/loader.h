// SPDX-License-Identifier: Apache-2.0
//
// Finds plug-ins by file name, opens them when first needed, and negotiates the ABI version with
// each. A plug-in that was opened once keeps its outcome (a table or a reason) until rescan.
// Whoever uses a table holds the plug-in's library, so that it stays loaded; the loader itself
// holds it too. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/os/library.h"
#include "core/base/os/log.h"
#include "core/base/status.h"
#include "pyflame_rt/custom.h"

namespace pfrt {

// A file of the right name in the search path.
struct Plugin {
  std::string kind, short_name, path;  // "provider", "cpu", ".../libpyflamert_provider_cpu.so"
  bool opened = false;
  std::string reason;  // why it was rejected
  std::string name, version;
  uint32_t abi_major = 0, abi_minor = 0;  // it was built with
  uint64_t features = 0;
  const void* table = nullptr;  // null until accepted
  std::shared_ptr<os::Library> library;

  const pfrt_provider_table* provider() const {
    return static_cast<const pfrt_provider_table*>(table);
  }
  const pfrt_importer_table* importer() const {
    return static_cast<const pfrt_importer_table*>(table);
  }
  const pfrt_service_table* service() const {
    return static_cast<const pfrt_service_table*>(table);
  }
  const pfrt_executor_table* executor() const {
    return static_cast<const pfrt_executor_table*>(table);
  }
};

// Names the function that a provider's table lacks, in a sentence; empty when it has all.
// |own_open|: open is not the table's.
std::string provider_table_fault(const pfrt_provider_table& table, uint64_t features,
                                 bool own_open = false);

// Bits among |features| that have no meaning in this version for a plug-in of |kind|.
uint64_t unknown_features(pfrt_plugin_kind kind, uint64_t features);

// A folder that is searched for plug-ins, and the variable that names it, "PFRT_PLUGIN_PATH".
// |named_by| is empty for the default folders, which need not exist.
struct PluginFolder {
  std::string path, named_by;
};

class PluginLoader {
 public:
  // |folders| are in search order; the first file of a name wins.
  PluginLoader(std::vector<PluginFolder> folders, Logger* logger);

  // The folders as a sentence has them, with what is wrong with each.
  std::string searched() const;
  // Forgets rejected and unopened files and looks again; opened ones stay.
  void rescan();
  // Files of a kind, unopened ones included; |kind| empty = all.
  std::vector<std::shared_ptr<const Plugin>> list(std::string_view kind);
  // Opens every file of a kind.
  std::vector<std::shared_ptr<const Plugin>> open_all(std::string_view kind);
  // Finds a plug-in by the name that it gives itself, "CPUExecutionProvider", or by one that stands
  // for it (see provider_name.h); the file named after it is tried first. NOT_FOUND lists what is
  // there.
  Result<std::shared_ptr<const Plugin>> find(std::string_view kind, std::string_view name);
  // Opens a plug-in by the name in its file name ("onnx"); null when there is no such file.
  Result<std::shared_ptr<const Plugin>> open_short(std::string_view kind,
                                                   std::string_view short_name);
  // Opens the plug-in of a file, wherever it lies, which is listed from then on. NOT_FOUND where
  // there is none, PLUGIN where it is not usable or another of its kind and name is open.
  Result<std::shared_ptr<const Plugin>> open_file(const std::string& path);

 private:
  class Turn;
  struct Line {
    pfrt_log_level level;
    std::string text;
  };
  // Puts a line into the log at the end of the turn.
  template <typename... Parts>
  void say(pfrt_log_level level, const Parts&... parts) {
    if (logger_ && logger_->wants(level)) lines_.push_back({level, message(parts...)});
  }
  void scan();
  void warn_of_folders();
  void open(Plugin& plugin);
  // Why |desc| is not accepted, or empty.
  std::string refuse(const Plugin& plugin, const pfrt_plugin_desc& desc) const;
  std::vector<PluginFolder> folders_;
  Logger* logger_;
  std::mutex mutex_;
  bool warned_ = false;      // of folders, since the last scan
  std::vector<Line> lines_;  // of this turn
  std::vector<std::shared_ptr<Plugin>> plugins_;
};

}  // namespace pfrt
