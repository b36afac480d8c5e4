// SPDX-License-Identifier: Apache-2.0
//
// The files of a model: what identifies their contents, and whether they are still as they were.
// Thread-safe once the model is shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/os/file.h"
#include "core/base/os/mapping_guard.h"
#include "core/exec/run/control.h"
#include "core/ir/graph.h"

namespace pfrt {

// A file that a model was loaded from.
struct ModelFile {
  std::string path;
  os::FileStamp stamp;
  std::shared_ptr<os::MappedFile> mapped;  // null: not opened yet
};

class SourceFiles {
 public:
  // The files it was loaded from, its own first; none when it came from elsewhere. Set before the
  // model is shared. |load_key| identifies the options that it was loaded with.
  const std::vector<ModelFile>& all() const { return files_; }
  void set(std::vector<ModelFile> files, std::string load_key);
  // Sets files whose content is known.
  void set_known(std::vector<ModelFile> files, std::string content);
  // Identifies a model that was loaded from memory alone.
  void set_memory(const void* data, uint64_t bytes, std::string_view load_key);
  // Notes the mapped files that constants of |graph| and its bodies view, or are copied from.
  void collect(const Graph& graph);

  // Serves Model::content.
  std::string content(const RunControl& control) const;
  // The mapping of file |number|, which is opened at the first call.
  Result<std::shared_ptr<os::MappedFile>> mapped(size_t number) const;
  // Serves Model::intact; |listed| also looks at the files that are mapped themselves.
  Status intact(bool ask, bool listed) const;

 private:
  Result<std::string> read_content(const RunControl& control) const;

  std::vector<std::shared_ptr<os::FileHealth>> viewed_, copied_;
  std::string load_key_;
  mutable std::timed_mutex mutex_;  // guards the following once the model is shared
  mutable std::vector<ModelFile> files_;
  mutable std::string content_;
  mutable bool content_tried_ = false;
};

}  // namespace pfrt
