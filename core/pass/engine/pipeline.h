// SPDX-License-Identifier: Apache-2.0
//
// Runs passes in the order that they ask for, once or until nothing changes any more. With
// PassContext::difference every pass is verified (verified.h). Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/pass/engine/config.h"
#include "core/pass/engine/pass.h"

namespace pfrt {

// Changes and time of a pass, over all its runs.
struct PassReport {
  std::string pass;
  uint32_t runs = 0;
  double ms = 0;
  uint64_t nodes_before = 0, nodes_after = 0;  // of the first and the last run
  PassResult result;
  // Applications that verification found wrong; without a place the rule everywhere, without a rule
  // the pass.
  std::vector<Application> undone;
};

class Pipeline {
 public:
  explicit Pipeline(PipelineConfig config, Logger* logger = nullptr)
      : config_(std::move(config)), logger_(logger) {}
  // The built-in passes of |config.level|.
  static Pipeline standard(PipelineConfig config, Logger* logger = nullptr);

  const PipelineConfig& config() const { return config_; }
  // Passes run in the order of registration, except that each follows those of its after(). A pass
  // replaces an earlier one of the same name. INVALID_ARGUMENT, and nothing is added, when passes
  // would follow each other in a circle.
  Status add(std::unique_ptr<Pass> pass);
  std::vector<std::string> names() const;  // in the order in which they run

  // Runs each pass of the level that is not skipped, once.
  Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result);
  // Runs the pass |name| alone, whatever its level; NOT_FOUND lists the passes there are.
  Status run_pass(std::string_view name, std::shared_ptr<Graph>& graph, PassContext& context,
                  PassResult& result);
  Status run_until_fixed_point(std::shared_ptr<Graph>& graph, PassContext& context,
                               PassResult& result);
  const std::vector<PassReport>& reports() const { return reports_; }
  void clear_reports() { reports_.clear(); }

 private:
  Status run_one(Pass& pass, std::shared_ptr<Graph>& graph, PassContext& context,
                 PassResult& result);
  Status repeat(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result);
  bool skipped(const Pass& pass) const;
  PassReport& report_of(const Pass& pass);

  PipelineConfig config_;
  Logger* logger_;
  std::vector<std::unique_ptr<Pass>> registered_;  // in the order of their registration
  std::vector<Pass*> passes_;                      // in the order in which they run
  std::vector<PassReport> reports_;
};

// Prepares a graph for writing to a file: captured values get their outer names back in bodies.
void name_captures(Graph& graph);

}  // namespace pfrt
