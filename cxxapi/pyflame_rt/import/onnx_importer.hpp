// SPDX-License-Identifier: Apache-2.0
//
// Import of ONNX files with options, statistics and a result instead of an exception. Stateless;
// thread-safe.
#pragma once

#include <pyflame_rt/session.hpp>
#include <string>

namespace pyflame_rt {

struct ImportOptions {
  bool validate = true;
  bool infer_shapes = true;
  // There is no graph-to-graph optimiser to apply on import: true is refused. Sessions optimise by
  // their own level.
  bool optimize = false;
};

struct ImportResult {
  bool success = false;
  Graph graph;  // empty unless |success|
  std::string error;
  ImportStats stats;
};

class ONNXImporter {
 public:
  ImportResult import_model(const std::string& path, const ImportOptions& options = {}) const {
    ImportResult result;
    try {
      if (options.optimize) {
        throw PyFlameRTError(
            "ImportOptions::optimize is not available: set it to false and choose "
            "SessionOptions::optimization_level instead",
            PFRT_CODE_UNSUPPORTED);
      }
      LoadOptions load;
      load.validate = options.validate;
      load.infer_shapes = options.infer_shapes;
      const Model model = Model::load(path, load);
      if (model.format() != "onnx") {
        throw UnsupportedFormatError("'" + path + "' is a " + model.format() +
                                     " file, not ONNX: use load_model");
      }
      result.graph = model.graph();
      result.stats = model.stats();
      result.success = true;
    } catch (const PyFlameRTError& error) {
      result.error = error.what();
    }
    return result;
  }
};

}  // namespace pyflame_rt
