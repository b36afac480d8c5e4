// SPDX-License-Identifier: Apache-2.0
//
// Passes outside of a session, as OPTIMIZER options configure them.
#pragma once

#include <memory>
#include <unordered_map>

#include "core/op/engine/operator_set.h"
#include "core/options/options.h"
#include "core/pass/engine/pipeline.h"

namespace pfrt {

PipelineConfig pipeline_config(const Options& options);
// A built-in pass by its name; null for others.
std::unique_ptr<Pass> built_in_pass(std::string_view name, const Options& options);
// Names of the passes of the levels, in the order in which they run.
std::span<const std::string_view> built_in_passes();
// Names of the passes of no level, which run where they are added by name.
std::span<const std::string_view> passes_by_name();
// Fails with INVALID_ARGUMENT, which lists the built-in passes, where one of |names| is none.
Status check_pass_names(const std::vector<std::string>& names, std::string_view doing);
OptLevel level_of(std::string_view word);
std::string_view level_word(OptLevel level);

// A copy of |graph| in canonical form, the constants of its inputs put aside. Unless |names_tie|,
// dimensions of inputs that have one name get symbols of their own: a run may give them other
// sizes.
struct Prepared {
  std::shared_ptr<Graph> graph;
  std::vector<std::pair<ValueId, ValuePtr>> set_aside;
  std::unordered_map<uint32_t, Dim> untied;  // named dimensions, by the symbol in their place
};
Result<Prepared> prepare_graph(const Graph& graph, const OperatorSet::Ptr& operators,
                               bool canonical, bool names_tie, const Progress& progress);
// Brings a graph that a client has edited back into the form that passes work on.
Status settle_edits(Graph& graph, bool canonical, const Progress* progress = nullptr);
// Puts back what was set aside, and leaves a graph that may be edited and saved.
void finish_graph(Prepared& prepared);

}  // namespace pfrt
