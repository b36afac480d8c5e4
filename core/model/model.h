// SPDX-License-Identifier: Apache-2.0
//
// A loaded model: an immutable graph with its constants, shared by sessions. Its canonical form is
// made when a session needs it, and kept where it is not large. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/os/file.h"
#include "core/base/os/log.h"
#include "core/base/os/mapping_guard.h"
#include "core/base/os/progress.h"
#include "core/exec/run/control.h"
#include "core/ir/graph.h"
#include "core/op/engine/canonicalise.h"
#include "core/op/engine/operator_set.h"
#include "core/pass/engine/pipeline.h"

namespace pfrt {

struct ModelInfo {
  std::string producer_name, producer_version, domain, description, format;
  int64_t model_version = 0;
  int64_t ir_version = 0;  // of the ONNX file it came from; 0 = of none
  uint64_t node_count = 0, initializer_count = 0, parameter_count = 0, parameter_bytes = 0;
  double import_ms = 0;
};

struct StoredModel;

// A file that a model was loaded from.
struct ModelFile {
  std::string path;
  os::FileStamp stamp;
  std::shared_ptr<os::MappedFile> mapped;  // null: not opened yet
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

  struct Files {
    std::vector<std::shared_ptr<os::FileHealth>> viewed, copied;
  };

  // Reads a known model when more than its face is asked for.
  using Import = std::function<Result<std::shared_ptr<const Model>>(Progress& progress)>;
  struct Known {
    std::shared_ptr<Graph> face;
    ModelInfo info;
    std::vector<std::string> warnings;
    std::string content;
    std::vector<ModelFile> files;  // the first is mapped
    Import import;
  };
  static std::shared_ptr<Model> known(Known known);

  // The graph or, of a model that is not read yet, a graph without nodes that has its inputs,
  // outputs and descriptions.
  const Graph& face() const { return *graph_; }
  // This model or, where it was not read yet, the one that import_ reads at the first call. It
  // lives as long as this.
  Result<const Model*> whole(const Progress& progress = Progress()) const;
  // The graph of a model that is read.
  const Graph& graph() const { return *graph_; }
  const ModelInfo& info() const { return info_; }

  // The files it was loaded from, its own first; none when it came from elsewhere. Set before the
  // model is shared. |load_key| identifies the options that it was loaded with.
  const std::vector<ModelFile>& files() const { return files_of_; }
  void set_files(std::vector<ModelFile> files, std::string load_key);
  // Identifies a model that was loaded from memory alone; set before the model is shared.
  void set_memory(const void* data, uint64_t bytes, std::string_view load_key);
  // A digest that is equal for equal bytes of its files or memory, loaded alike; empty where it has
  // none, they cannot be read, or |control| says stop. Files are read at the first call, on
  // |control|'s threads.
  std::string content(const RunControl& control) const;
  Result<std::shared_ptr<os::MappedFile>> mapped(size_t number) const;
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
  Status intact(bool ask) const;
  // The graph with all nodes in the newest opset and inferred types, or the reason why not. Made
  // again only for other |operators|, and only where the model uses some.
  Result<std::shared_ptr<const Graph>> canonical(const OperatorSet::Ptr& operators,
                                                 const Progress& progress = Progress()) const;

  // The canonical graph after passes, kept while a session uses it. Sessions that ask for the same
  // key share it with its constants, and wait for whoever makes it; others go on. |key| names
  // everything it depends on.
  struct Optimised {
    std::shared_ptr<const Graph> graph;
    std::vector<PassReport> reports;
    std::shared_ptr<const StoredModel> stored = nullptr;  // its cache entry; null: none
  };
  Result<std::shared_ptr<const Optimised>> optimised(
      const std::string& key, const Progress& progress,
      const std::function<Result<Optimised>()>& make) const;

 private:
  Model() = default;
  std::shared_ptr<Graph> graph_;
  ModelInfo info_;
  std::vector<std::string> warnings_;
  Files files_;
  mutable std::timed_mutex mutex_;  // held while the canonical graph is made
  mutable std::shared_ptr<const Graph> canonical_;
  mutable Status canonical_status_;
  mutable std::string contradicted_;  // a warning about declared types; empty = all fit
  mutable bool canonical_tried_ = false;
  mutable OperatorSet::Ptr canonical_for_;
  bool built_in_only_ = true;
  bool loaded_ = false;  // create() has finished
  mutable std::vector<ModelFile> files_of_;
  std::string load_key_;
  Import import_;                               // of a model that is not read yet
  mutable std::timed_mutex importing_;          // held while it is
  mutable std::shared_ptr<const Model> whole_;  // once it was
  mutable std::timed_mutex files_mutex_;        // guards files_of_ once shared, and:
  Result<std::string> content_of_files(const RunControl& control) const;
  mutable std::string content_;
  mutable bool content_tried_ = false;
  Progress::Stages load_stages_{};
  mutable std::atomic<bool> load_told_{false};
  struct OptimisedSlot {
    std::timed_mutex making;  // held while passes run
    std::weak_ptr<const Optimised> value;
  };
  mutable std::mutex optimised_mutex_;
  mutable std::map<std::string, std::shared_ptr<OptimisedSlot>> optimised_;
};

// A graph built by hand has the newest opset of each domain unless it says otherwise.
void default_opsets(Graph& graph);

// Gives symbols to dimensions of inputs without a name, so that dimensions that follow from one are
// known to be equal.
void number_dims(Graph& graph);

// |graph| in canonical form, with |operators| beside the built-in ones.
Result<std::shared_ptr<const Graph>> make_canonical(std::shared_ptr<Graph> graph,
                                                    const OperatorSet::Ptr& operators,
                                                    const Progress* progress = nullptr,
                                                    Contradicted* contradicted = nullptr);

// Types of inner values, found on a canonical copy and written back by name.
Status infer_types(Graph& graph);

// Finds everything that is wrong with the graph: its structure, operators the library does not
// know, arity, attribute types, contradicting types and shapes. VALIDATION with a child for each
// fault.
Status validate_all(Graph& graph);

}  // namespace pfrt
