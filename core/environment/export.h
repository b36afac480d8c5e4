// SPDX-License-Identifier: Apache-2.0
//
// Saving models. Files appear whole or not at all. Used by the thread that saves.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/os/atomic_file.h"
#include "core/base/os/progress.h"
#include "core/environment/environment.h"
#include "core/format/pfm.h"
#include "core/model/model.h"

namespace pfrt {

// An exporter's view of the host during one save.
class ExportCall {
 public:
  ExportCall(const std::string& path, InfoList info, Logger& logger, Progress& progress)
      : path_(path), info_(std::move(info)), logger_(logger), progress_(progress) {}

  const std::string& path() const { return path_; }
  const InfoList& info() const { return info_; }
  Logger& logger() { return logger_; }
  Progress& progress() { return progress_; }
  // Adds a file in the folder of the model's and returns its number. The model's own is 0.
  Result<uint32_t> add_file(const std::string& path);
  Status write(uint32_t file, const void* data, uint64_t size);
  // Puts all files in their places, the model's own last because it refers to the others.
  Status commit();

 private:
  const std::string& path_;
  const InfoList info_;
  Logger& logger_;
  Progress& progress_;
  std::vector<std::unique_ptr<os::AtomicFile>> files_;
};

// Chooses the format by the extension of |path|. Constants keep their bytes; DATA_LOSS leaves the
// old file in place.
Status save_model(Environment& environment, const Model& model, const std::string& path,
                  Progress& progress);

}  // namespace pfrt
