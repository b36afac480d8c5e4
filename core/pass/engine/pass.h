// SPDX-License-Identifier: Apache-2.0
//
// Optimisation passes: what one is, what it may ask of the rest of the runtime, and what it
// reports. Passes work on graphs in canonical form and leave them so: same inputs, same outputs in
// order and by name, same results but for the rounding of reordered arithmetic. A pass may be run
// on many graphs, one at a time.
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
  uint64_t nodes_fused = 0;  // patterns, not the nodes in them
  uint64_t constants_folded = 0, initializers_removed = 0;
  std::map<std::string, uint64_t, std::less<>> rules;  // how often each was applied
};

struct PassResult {
  bool modified = false;
  PassStats stats;
  std::vector<std::string> warnings;

  void add(const PassResult& other);
};

// One rewrite that was done: by which rule, and the value it was done at.
struct Application {
  std::string pass, rule, at;
  friend auto operator<=>(const Application&, const Application&) = default;
};

// Every rewrite asks here first and tells afterwards, so that verification can take a pass apart:
// the same pass on the same graph asks in the same order.
class Gate {
 public:
  // |at| is the name of a value of |graph|. After |limit| rewrites nothing may be done any more.
  bool may(std::string_view rule, const Graph& graph, std::string_view at) const;
  void did(std::string_view rule, const Graph& graph, std::string_view at);
  const std::vector<Application>& done() const { return done_; }

  void begin(std::string_view pass, uint64_t limit = UINT64_MAX);
  // From now on, for as long as the gate lives. Without |at| the rule is blocked everywhere in its
  // pass, without |rule| the whole pass is.
  void block(Application application) { blocked_.insert(std::move(application)); }
  bool blocks(std::string_view pass) const;

 private:
  Application application(std::string_view rule, const Graph& graph, std::string_view at) const;
  std::string pass_;
  uint64_t limit_ = UINT64_MAX;
  std::set<Application> blocked_;
  std::vector<Application> done_;
};

// What folding may still make and compute, for one graph with its bodies.
struct FoldingBudget {
  bool set = false, told = false;
  uint64_t bytes = 0;  // of constants
  double work = 0;     // operations, and bytes read and written
};

// What passes may ask of what stands above them. Members that are null are not there.
struct PassContext {
  Gate gate;
  // The outputs of a graph without inputs, computed once.
  std::function<Result<std::vector<ValuePtr>>(std::shared_ptr<const Graph>)> evaluate;
  // Empty when provider |target| ("" = the first of the session) runs |node| with |epilogue|, which
  // follow each other, as one; or why not.
  std::function<std::string(const Graph& graph, const Node& node,
                            std::span<const Node* const> epilogue, std::string_view target)>
      refuses;
  // Nanoseconds that provider |target| (as above) says |nodes| of |graph|, producers first, take
  // one after another; nullopt when it refuses one of them or there is no such provider.
  std::function<Result<std::optional<double>>(
      const Graph& graph, std::span<const Node* const> nodes, std::string_view target)>
      cost;
  // Empty when both graphs give the same results, or how they differ.
  std::function<Result<std::string>(const std::shared_ptr<const Graph>& before,
                                    const std::shared_ptr<const Graph>& after)>
      difference;
  const Progress* progress = nullptr;
  Editors* editors = nullptr;  // that passes on the same graph share
  FoldingBudget folding;
  mutable uint32_t looks = 0;

  // For loops over nodes: now and then, whether the caller wants to stop.
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
  // Whether it changes graphs through the context's editors alone, so that those may stay open.
  virtual bool keeps_editors() const { return false; }
  // |graph| may be exchanged for another.
  virtual Status run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) = 0;
};

}  // namespace pfrt
