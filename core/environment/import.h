// SPDX-License-Identifier: Apache-2.0
//
// Loads models: chooses the importer of the format, and gives it a view of the host. Used by the
// thread that loads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/os/file.h"
#include "core/base/os/progress.h"
#include "core/environment/environment.h"
#include "core/format/pfm.h"
#include "core/memory/tensor.h"
#include "core/model/model.h"
#include "core/options/options.h"

namespace pfrt {

// A model's bytes.
struct ModelSource {
  std::string path;  // of the file; empty when it has none, and so no folder
  std::string name;  // for messages, and for the format by its extension; may be empty
  const void* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<void> keep;
  std::shared_ptr<os::MappedFile> file;  // whose contents these are; may be null
  // Reads the files beside it when they are in no folder; may be empty.
  std::function<Result<std::shared_ptr<Buffer>>(std::string_view location, Progress& progress)>
      read_beside;

  std::string text() const { return name.empty() ? "a model in memory" : "'" + name + "'"; }
};

// An importer's view of the host during one load, and its results.
class ImportCall {
 public:
  ImportCall(const ModelSource& source, Environment& environment, Progress& progress,
             os::Confine confine)
      : source_(source), environment_(environment), progress_(progress), confine_(confine) {}

  struct Bytes {
    std::shared_ptr<void> keep;
    const void* data = nullptr;
    uint64_t size = 0;
  };

  const ModelSource& source() const { return source_; }
  Progress& progress() { return progress_; }
  Logger& logger() { return environment_.logger(); }
  // Opens a file that the model refers to.
  Result<Bytes> open_beside(std::string_view location);
  // The index of the load's entry among |names|, which are all that the file has.
  Result<size_t> choose_entry(std::vector<std::string> names);
  // Has |graph| declare |pair|, whose ports it has to have once it is whole.
  Status add_state(Graph& graph, const pfrt_state_pair& pair);

  // What one importer is given, and what it says. Another that is asked after it begins anew.
  struct Attempt {
    // Options of the load for this importer.
    std::vector<std::pair<std::string, std::string>> options;
    InfoList info;
    std::vector<std::string> warnings;
    std::vector<std::string> entries;                        // of the file; empty: it has none
    size_t entry = 0;                                        // the one that is read
    std::vector<std::pair<std::string, std::string>> pairs;  // declared inputs and outputs
    bool asked_definer = false;
    Status defined;  // what the definer has said
  };
  Attempt attempt;
  // The caller's, for a file that has weights alone.
  Options::Definer definer;
  // The entry that the caller wants; empty = any.
  std::string entry;

  std::vector<std::shared_ptr<os::FileHealth>> files;  // that were read
  std::vector<ModelFile> model_files;                  // the same, and copies
  bool reads_beside = false;                           // by ModelSource::read_beside

 private:
  const ModelSource& source_;
  Environment& environment_;
  Progress& progress_;
  const os::Confine confine_;
};

// |started| (os::monotonic_ns) is when the load began; |options| are of kind PFRT_OPTIONS_LOAD.
Result<std::shared_ptr<const Model>> load_model(Environment& environment, const ModelSource& source,
                                                const Options& options, Progress& progress,
                                                uint64_t started);
// The memory budget of a load with |options|, inside the environment's.
BudgetPtr load_budget(const Environment& environment, const Options& options);
// Loads the file at |path|.
Result<std::shared_ptr<const Model>> load_model_file(Environment& environment, std::string path,
                                                     const Options& options);
// Makes a model of a graph that was built by hand.
Result<std::shared_ptr<const Model>> model_of_graph(Environment& environment, const Graph& graph,
                                                    const Options& options);

// The share of a load's progress that reading bytes takes, where that is a stage of its own.
inline constexpr double kReadUntil = 0.5;

// The importer for files that end in |extension|: the one named after it first, so that others need
// not be opened. Null when there is none; |why| says why one that is there is not usable.
Result<std::shared_ptr<const Importer>> importer_for(PluginSource& plugins,
                                                     const std::string& extension,
                                                     std::string* why);
// "onnx" for "a/b.ONNX"; empty when there is none.
std::string extension_of(const std::string& path);

}  // namespace pfrt
