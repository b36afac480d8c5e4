// SPDX-License-Identifier: Apache-2.0
//
// Import of ONNX files with options, statistics and a result instead of an exception. Stateless;
// thread-safe.
#pragma once

#include <pyflame_rt/opt/passes.hpp>
#include <pyflame_rt/session.hpp>
#include <string>

namespace pyflame_rt {

struct ImportOptions {
  bool validate = true;
  bool infer_shapes = true;
  // Rewrites the graph as opt::optimize does at OptLevel::Basic. Sessions optimise by their own
  // level, with this or without.
  bool optimize = false;
  // As in LoadOptions.
  std::string confine = "links";
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
      LoadOptions load;
      load.validate = options.validate;
      load.infer_shapes = options.infer_shapes;
      load.confine = options.confine;
      const Model model = Model::load(path, load);
      if (model.format() != "onnx") {
        throw UnsupportedFormatError("'" + path + "' is a " + model.format() +
                                     " file, not ONNX: use load_model");
      }
      result.graph = model.graph();
      if (options.optimize) opt::optimize(result.graph, OptLevel::Basic);
      result.stats = model.stats();
      result.success = true;
    } catch (const PyFlameRTError& error) {
      result.error = error.what();
    }
    return result;
  }
};

}  // namespace pyflame_rt
