// SPDX-License-Identifier: Apache-2.0
//
// A loaded model: an immutable graph with its constants, shared by sessions. Its canonical form is
// made when a session needs it, and kept where it is not large. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/os/log.h"
#include "core/base/os/progress.h"
#include "core/exec/run/control.h"
#include "core/ir/graph.h"
#include "core/model/canonical.h"
#include "core/model/optimised_graphs.h"
#include "core/model/source_files.h"
#include "core/op/engine/operator_set.h"

namespace pfrt {

struct ModelInfo {
  std::string producer_name, producer_version, domain, description, format;
  std::string entry, entries;  // method that was loaded, and all of the file's, comma-separated
  int64_t model_version = 0;
  int64_t ir_version = 0;  // of the ONNX file it came from; 0 = of none
  uint64_t node_count = 0, initializer_count = 0, parameter_count = 0, parameter_bytes = 0;
  double import_ms = 0;
};

class Model {
 public:
  // Takes the graph: binds its bodies' captures, accepts the guide's attribute forms, checks its
  // structure. |infer_shapes| fills in inner types; where an operator is unknown that is a warning.
  // |operators| (null: none) are those beside the built-in ones. Takes |progress| to the end.
  static Result<std::shared_ptr<Model>> create(std::shared_ptr<Graph> graph, ModelInfo info,
                                               bool validate, bool infer_shapes,
                                               std::vector<std::string> warnings,
                                               Progress& progress,
                                               const OperatorSet::Ptr& operators);

  // Reads a known model when more than its signature is asked for.
  using Import = std::function<Result<std::shared_ptr<const Model>>(Progress& progress)>;
  struct Known {
    std::shared_ptr<Graph> signature;
    ModelInfo info;
    std::vector<std::string> warnings;
    std::string content;
    std::vector<ModelFile> files;  // the first is mapped
    Import import;
  };
  static std::shared_ptr<Model> known(Known known);

  // The graph or, of a model that is not read yet, a graph without nodes that has its inputs,
  // outputs and descriptions.
  const Graph& signature() const { return *graph_; }
  // This model or, where it was not read yet, the one that import_ reads at the first call. It
  // lives as long as this.
  Result<const Model*> loaded(const Progress& progress = Progress()) const;
  // The graph of a model that is read.
  const Graph& graph() const { return *graph_; }
  const ModelInfo& info() const { return info_; }

  // The files it was loaded from, its own first; none when it came from elsewhere. Set before the
  // model is shared. |load_key| identifies the options that it was loaded with.
  const std::vector<ModelFile>& files() const { return files_.all(); }
  void set_files(std::vector<ModelFile> files, std::string load_key) {
    files_.set(std::move(files), std::move(load_key));
  }
  // Identifies a model that was loaded from memory alone; set before the model is shared.
  void set_memory(const void* data, uint64_t bytes, std::string_view load_key) {
    files_.set_memory(data, bytes, load_key);
  }
  // A digest that is equal for equal bytes of its files or memory, loaded alike; empty where it has
  // none, they cannot be read, or |control| says stop. Files are read at the first call, on
  // |control|'s threads.
  std::string content(const RunControl& control) const { return files_.content(control); }
  // The mapping of file |number|.
  Result<std::shared_ptr<os::MappedFile>> mapped(size_t number) const {
    return files_.mapped(number);
  }
  bool built_in_only() const { return built_in_only_; }  // its operators
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Times at which each stage of loading began, the last being its end. Empty after the first call,
  // so that the profile of one session alone has them.
  Progress::Stages take_load_stages() const {
    return load_told_.exchange(true) ? Progress::Stages() : load_stages_;
  }
  // DATA_LOSS for ever once a mapped file was found cut short, written to or unreadable while
  // constants viewed it or were copied from it. |ask| also looks at the files that are viewed, a
  // system call each.
  Status intact(bool ask) const { return files_.intact(ask, import_ != nullptr); }
  // The graph with all nodes in the newest opset and inferred types, or the reason why not. Made
  // again only for other |operators|, and only where the model uses some.
  Result<std::shared_ptr<const Graph>> canonical(const OperatorSet::Ptr& operators,
                                                 const Progress& progress = Progress()) const;

  // The canonical graph after passes, as OptimisedGraphs::get.
  Result<std::shared_ptr<const OptimisedGraph>> optimised(
      const std::string& key, const Progress& progress,
      const std::function<Result<OptimisedGraph>()>& make) const {
    return optimised_.get(key, progress, make);
  }

 private:
  Model() = default;
  std::shared_ptr<Graph> graph_;
  ModelInfo info_;
  std::vector<std::string> warnings_;
  SourceFiles files_;
  bool built_in_only_ = true;
  bool complete_ = false;  // create() has finished
  mutable CanonicalGraph canonical_;
  mutable OptimisedGraphs optimised_;
  Import import_;                                // of a model that is not read yet
  mutable std::timed_mutex importing_;           // held while it is
  mutable std::shared_ptr<const Model> loaded_;  // once it was
  Progress::Stages load_stages_{};
  mutable std::atomic<bool> load_told_{false};
};

}  // namespace pfrt
