// SPDX-License-Identifier: Apache-2.0
//
// Import of ONNX files with options, statistics and a result instead of an exception. Stateless;
// thread-safe.
#pragma once

#include <pyflame_rt/opt/passes.hpp>
#include <pyflame_rt/session.hpp>
#include <string>

namespace pyflame_rt {

// How to import.
struct ImportOptions {
  // Check the graph's structure.
  bool validate = true;
  // Fill in types and shapes of inner values.
  bool infer_shapes = true;
  // Rewrites the graph as opt::optimize does at OptLevel::Basic. Sessions optimise by their own
  // level, with this or without.
  bool optimize = false;
  // As in LoadOptions.
  std::string confine = "links";
};

// What became of an import.
struct ImportResult {
  // Whether |graph| is there; |error| says why not.
  bool success = false;
  Graph graph;  // empty unless |success|
  // What went wrong; empty when nothing did.
  std::string error;
  // Of the file, before |graph| was optimised.
  ImportStats stats;
};

// Imports ONNX files.
class ONNXImporter {
 public:
  // Throws nothing of the library's: failures are in the result.
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
