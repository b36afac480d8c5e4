// SPDX-License-Identifier: Apache-2.0
//
// Optimisation passes and their reports. Derive from Pass to write one. The graphs that a
// PassManager with built-in passes hands over are in canonical form (the newest opset, attributes
// decoded).
#pragma once

#include <pyflame_rt/custom.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <pyflame_rt/graph.hpp>
#include <pyflame_rt/options.hpp>
#include <string>
#include <vector>

namespace pyflame_rt::opt {

// Counts of changes that passes made.
struct PassStats {
  // Nodes of the graph before that are gone.
  uint64_t nodes_removed = 0;
  // Nodes that were not there before.
  uint64_t nodes_added = 0;
  uint64_t nodes_fused = 0;  // patterns, not the nodes in them
  // Values that were folded to constants.
  uint64_t constants_folded = 0;
  // Initializers that nobody used.
  uint64_t initializers_removed = 0;
  std::map<std::string, uint64_t> rules;  // rewrites by name, and how often each was done
};

// Writes the counts as a sentence.
inline std::ostream& operator<<(std::ostream& out, const PassStats& s) {
  return out << s.nodes_removed << " nodes removed, " << s.nodes_added << " added, "
             << s.nodes_fused << " fused, " << s.constants_folded << " constants folded, "
             << s.initializers_removed << " initializers removed";
}

// Report of one pass over all its runs. Nodes of bodies count.
struct PassReport {
  // Name of the pass.
  std::string pass;
  // Number of its runs.
  uint32_t runs = 0;
  // Time of all runs.
  double milliseconds = 0;
  uint64_t nodes_before = 0, nodes_after = 0;  // before the first run and after the last
  // Whether the pass changed the graph.
  bool modified = false;
  // Counts of all runs.
  PassStats stats;
};

// Result of a run of passes.
struct PassResult {
  // Whether the graph was changed.
  bool modified = false;
  // Counts of all passes together.
  PassStats stats;
  // A sentence for each thing that a person should know.
  std::vector<std::string> warnings;
  std::vector<PassReport> reports;  // one for each pass of the manager; empty from Pass::run
};

// A rewrite of graphs. Not shared between threads.
class Pass {
 public:
  Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  virtual ~Pass() = default;

  // Name by which the pass is skipped and reported.
  virtual const char* name() const = 0;
  // A line that says what the pass does.
  virtual const char* description() const { return ""; }
  // Rewrites the graph in place, and keeps its inputs and outputs. |modified| of the result says
  // whether anything was done: edits are dropped when it is false. May throw.
  virtual PassResult run(Graph& graph) = 0;
  // Whether the pass runs at that level.
  virtual bool should_run(OptLevel level) const { return level >= OptLevel::Basic; }
  // Names of passes of the same manager that it has to follow.
  virtual std::vector<std::string> after() const { return {}; }
};

namespace detail {

using namespace pyflame_rt::detail;

inline pfrt_pass_level lowest_level(const Pass& pass) {
  for (const OptLevel level : {OptLevel::Basic, OptLevel::Extended}) {
    if (pass.should_run(level)) return static_cast<pfrt_pass_level>(level);
  }
  return PFRT_PASS_ALL;
}

// Returns |pass| as the C API takes it. The caller keeps the pass alive, or gives it away by
// |release|.
inline pfrt_custom_pass to_c(Pass& pass) {
  pfrt_custom_pass c{};
  c.struct_size = sizeof(c);
  c.abi = PFRT_ABI_VERSION;
  c.name = text(pass.name());
  c.level = lowest_level(pass);
  c.user = &pass;
  c.run = [](void* user, pfrt_pass_call* call) -> pfrt_code {
    const pfrt_sink* const sink = call->sink;
    pfrt_pass_stats* const stats = call->stats;
    try {
      Graph graph(GraphHandle::share(call->graph));
      const PassResult result = static_cast<Pass*>(user)->run(graph);
      stats->modified = result.modified ? 1 : 0;
      stats->nodes_removed = result.stats.nodes_removed;
      stats->nodes_added = result.stats.nodes_added;
      stats->nodes_fused = result.stats.nodes_fused;
      stats->constants_folded = result.stats.constants_folded;
      stats->initializers_removed = result.stats.initializers_removed;
      for (const std::string& warning : result.warnings) {
        sink->log(sink, PFRT_LOG_WARNING, text(warning));
      }
      return PFRT_CODE_OK;
    } catch (const PyFlameRTError& e) {
      return sink->fail(sink, static_cast<pfrt_code>(e.code()), PFRT_NO_INDEX, text(e.what()));
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    } catch (const std::exception& e) {
      return sink->fail(sink, PFRT_CODE_INTERNAL, PFRT_NO_INDEX, text(e.what()));
    } catch (...) {
      return sink->fail(sink, PFRT_CODE_INTERNAL, PFRT_NO_INDEX, text("an unknown exception"));
    }
  };
  return c;
}

}  // namespace detail
}  // namespace pyflame_rt::opt
