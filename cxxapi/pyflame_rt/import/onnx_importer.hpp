// SPDX-License-Identifier: Apache-2.0
//
// Import of ONNX files with options, statistics and a result instead of an exception. Stateless;
// thread-safe.
#pragma once

#include <pyflame_rt/opt/passes.hpp>
#include <pyflame_rt/session.hpp>
#include <string>

namespace pyflame_rt {

// Options of an import.
struct ImportOptions {
  // Checks the graph's structure.
  bool validate = true;
  // Fills in types and shapes of inner values.
  bool infer_shapes = true;
  // Rewrites the graph as opt::optimize does at OptLevel::Basic. Sessions optimise by their own
  // level in any case.
  bool optimize = false;
  // Folders where files beside the model may be; see LoadOptions::confine.
  std::string confine = "links";
};

// Result of an import.
struct ImportResult {
  // Whether |graph| is there; else |error| says why not.
  bool success = false;
  Graph graph;  // empty unless |success|
  // Message of the failure; empty when there was none.
  std::string error;
  // Statistics of the file, before |graph| was optimised.
  ImportStats stats;
};

// Imports ONNX files.
class ONNXImporter {
 public:
  // Imports a file. Failures of the library are in the result; it throws none of them.
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
