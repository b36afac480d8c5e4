// SPDX-License-Identifier: Apache-2.0
//
// Optimisation passes: their interface, their services from the rest of the runtime, and their
// reports. Passes work on graphs in canonical form and leave them so: same inputs, same outputs in
// order and by name, same results except for the rounding of reordered arithmetic. A pass may be
// run on many graphs, one at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/os/log.h"
#include "core/base/os/progress.h"
#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

class Editors;

enum class OptLevel { kNone, kBasic, kExtended, kAll };

struct PassStats {
  uint64_t nodes_removed = 0, nodes_added = 0;
  uint64_t nodes_fused = 0;  // patterns, not their nodes
  uint64_t constants_folded = 0, initializers_removed = 0;
  std::map<std::string, uint64_t, std::less<>> rules;  // by rule: how often it was applied
};

struct PassResult {
  bool modified = false;
  PassStats stats;
  std::vector<std::string> warnings;

  void add(const PassResult& other);
};

// A rewrite that was done: its rule, and the value it was done at.
struct Application {
  std::string pass, rule, at;
  friend auto operator<=>(const Application&, const Application&) = default;
};

// Every rewrite asks here first and reports afterwards, so that verification can try rewrites
// separately: the same pass on the same graph asks in the same order.
class Gate {
 public:
  // |at| is the name of a value of |graph|. After |limit| rewrites nothing more may be done.
  bool may(std::string_view rule, const Graph& graph, std::string_view at) const;
  void did(std::string_view rule, const Graph& graph, std::string_view at);
  const std::vector<Application>& done() const { return done_; }

  void begin(std::string_view pass, uint64_t limit = UINT64_MAX);
  // Blocks applications from now on, while the gate lives. Without |at| the rule is blocked
  // everywhere in its pass, without |rule| the whole pass is.
  void block(Application application) { blocked_.insert(std::move(application)); }
  bool blocks(std::string_view pass) const;

 private:
  Application application(std::string_view rule, const Graph& graph, std::string_view at) const;
  std::string pass_;
  uint64_t limit_ = UINT64_MAX;
  std::set<Application> blocked_;
  std::vector<Application> done_;
};

// The rest of what folding may make and compute, for one graph with its bodies.
struct FoldingBudget {
  bool set = false, told = false;
  uint64_t bytes = 0;  // of constants
  double work = 0;     // operations, and bytes read and written
};

// Services of the layers above for passes. Null members are not available.
struct PassContext {
  Gate gate;
  // Computes the outputs of a graph without inputs, once.
  std::function<Result<std::vector<ValuePtr>>(std::shared_ptr<const Graph>)> evaluate;
  // Empty when provider |target| ("" = the first of the session) runs |node| and its consecutive
  // |epilogue| as one step; else the reason why not.
  std::function<std::string(const Graph& graph, const Node& node,
                            std::span<const Node* const> epilogue, std::string_view target)>
      refuses;
  // Why a question to a provider was stopped, where one was: answers since then mean nothing.
  std::function<Status()> stopped;
  // Nanoseconds that |nodes| of |graph|, in topological order, take one after another according to
  // provider |target| (as above); nullopt when it refuses one of them or there is no such provider.
  std::function<Result<std::optional<double>>(
      const Graph& graph, std::span<const Node* const> nodes, std::string_view target)>
      cost;
  // Empty when both graphs give the same results, or the difference.
  std::function<Result<std::string>(const std::shared_ptr<const Graph>& before,
                                    const std::shared_ptr<const Graph>& after)>
      difference;
  const Progress* progress = nullptr;
  // Whether the graph is for a session alone, and may grow where it is run sooner for it; else it
  // is for a file.
  bool in_session = false;
  Editors* editors = nullptr;  // shared by passes on the same graph
  FoldingBudget folding;
  mutable uint32_t looks = 0;

  // For loops over nodes: sometimes checks whether the caller wants to stop.
  Status look() const {
    constexpr uint32_t kInterval = 64;
    return progress && ++looks % kInterval == 0 ? progress->stop() : Status();
  }
};

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view description() const = 0;
  virtual OptLevel level() const = 0;  // the lowest at which it runs
  // Names of the passes that it follows, where they run too.
  virtual std::span<const std::string_view> after() const { return {}; }
  // Whether it changes graphs only through the context's editors, so that these may stay open.
  virtual bool keeps_editors() const { return false; }
  // |graph| may be exchanged for another.
  virtual Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) = 0;
};

}  // namespace pfrt
