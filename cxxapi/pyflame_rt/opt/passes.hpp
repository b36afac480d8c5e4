// SPDX-License-Identifier: Apache-2.0
//
// The built-in optimisation passes, their configuration, and the manager that runs passes over a
// graph. Nothing here is thread-safe beyond what Graph is.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <pyflame_rt/opt/pass.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt::opt {

// Options of ConstantFoldingPass.
struct ConstantFoldingConfig {
  uint64_t max_tensor_bytes = 16 * 1024 * 1024;  // larger results are not folded
  bool fold_shape_ops = true;                    // Shape, Gather of a shape, and the like
  bool fold_expensive_ops = false;               // products and convolutions too
  std::vector<std::string> exclude_ops;          // never folded
};

// Further removals by DeadCodeEliminationPass, besides nodes that no output depends on.
struct DCEConfig {
  // Initializers that nobody uses.
  bool remove_initializers = true;
  // Identity nodes.
  bool remove_identity = true;
  // Dropout nodes, which do nothing in inference.
  bool remove_dropout = true;
};

// Limits of CSEPass.
struct CSEConfig {
  bool check_attributes = true;     // false: nodes that have attributes are left alone
  uint64_t max_comparisons = 1000;  // for each node
};

// Fusions that OperatorFusionPass does.
struct FusionConfig {
  // Fuses BatchNormalization into Conv.
  bool fuse_conv_bn = true;
  // Fuses an activation into the Conv before it.
  bool fuse_conv_bn_activation = true;
  // Fuses MatMul and Add to Gemm.
  bool fuse_matmul_add = true;
  // Fuses an activation into the elementwise operator before it.
  bool fuse_elementwise_activation = true;
  bool check_backend_support = true;   // fuses only operators that the target backend runs as one
  std::string target_backend = "cpu";  // a device word or a provider's name
};

// Layout of images in memory.
enum class Layout : int32_t { NCHW = 0, NHWC = 1, NC4HW4 = 2 };

// Options of LayoutOptimizationPass.
struct LayoutConfig {
  // Layout of convolutions.
  Layout conv_layout = Layout::NCHW;
  // Inserts transposes where layouts meet.
  bool insert_transposes = true;
  // Moves layouts along operators that work in any.
  bool propagate_layout = true;
  // A device word or a provider's name.
  std::string target_backend = "cpu";
};

// Target of DataflowPass.
struct DataflowConfig {
  std::string target_backend;  // a provider's name; empty = the first of the optimizer's
  std::string device;          // word of one of that provider's devices; empty = the first
};

// Options of a PassManager.
struct PassManagerConfig {
  // Passes of this level and below run.
  OptLevel opt_level = OptLevel::Extended;
  int max_iterations = 10;  // of run_until_fixed_point
  bool verbose = false;     // logs the changes of each pass
  // Checks the graph after each pass.
  bool validate_after_pass = false;
  bool verify = false;  // compares results around each pass; undoes a pass that changes them
  std::vector<std::string> skip_passes;      // by name
  std::map<std::string, std::string> extra;  // further keys of the optimizer's schema, as text
  // Called with the progress of each run; none = nobody hears. A run that it stops leaves the graph
  // as it was.
  Progress progress;
};

namespace detail {

using OptimizerHandle = std::unique_ptr<pfrt_optimizer, void (*)(pfrt_optimizer*)>;
using Setter = pyflame_rt::detail::OptionSetter;

inline void set(Setter& c, const ConstantFoldingConfig& config) {
  c.set("constant_folding.max_tensor_bytes", static_cast<int64_t>(config.max_tensor_bytes));
  c.set("constant_folding.fold_shape_ops", config.fold_shape_ops);
  c.set("constant_folding.fold_expensive_ops", config.fold_expensive_ops);
  c.set("constant_folding.exclude_ops", config.exclude_ops);
}
inline void set(Setter& c, const DCEConfig& config) {
  c.set("dce.remove_initializers", config.remove_initializers);
  c.set("dce.remove_identity", config.remove_identity);
  c.set("dce.remove_dropout", config.remove_dropout);
}
inline void set(Setter& c, const CSEConfig& config) {
  c.set("cse.check_attributes", config.check_attributes);
  c.set("cse.max_comparisons", static_cast<int64_t>(config.max_comparisons));
}
inline void set(Setter& c, const FusionConfig& config) {
  c.set("fusion.fuse_conv_bn", config.fuse_conv_bn);
  c.set("fusion.fuse_conv_bn_activation", config.fuse_conv_bn_activation);
  c.set("fusion.fuse_matmul_add", config.fuse_matmul_add);
  c.set("fusion.fuse_elementwise_activation", config.fuse_elementwise_activation);
  c.set("fusion.check_backend_support", config.check_backend_support);
  c.set("fusion.target_backend", config.target_backend);
}
inline void set(Setter& c, const LayoutConfig& config) {
  static constexpr const char* kWords[] = {"nchw", "nhwc", "nc4hw4"};
  c.set("layout.conv_layout", std::string(kWords[static_cast<size_t>(config.conv_layout) % 3]));
  c.set("layout.insert_transposes", config.insert_transposes);
  c.set("layout.propagate_layout", config.propagate_layout);
  c.set("layout.target_backend", config.target_backend);
}
inline void set(Setter& c, const DataflowConfig& config) {
  c.set("dataflow.target_backend", config.target_backend);
  c.set("dataflow.device", config.device);
}
inline void set(Setter& c, const PassManagerConfig& config) {
  static constexpr const char* kLevels[] = {"none", "basic", "extended", "all"};
  const auto level = static_cast<size_t>(config.opt_level);
  c.set("level", level < 4 ? std::string(kLevels[level]) : std::to_string(level));
  c.set("max_iterations", int64_t{config.max_iterations});
  c.set("verbose", config.verbose);
  c.set("validate_after_pass", config.validate_after_pass);
  c.set("verify", std::string(config.verify ? "on" : "off"));
  c.set("skip_passes", config.skip_passes);
  for (const auto& [key, value] : config.extra) c.set_text(key, value);
}

inline PassStats stats_from_c(const pfrt_pass_stats& c) {
  return {c.nodes_removed,    c.nodes_added,          c.nodes_fused,
          c.constants_folded, c.initializers_removed, {}};
}

// Reads a result and releases it.
inline PassResult take_result(PFRT_OWN pfrt_optimization* handle) {
  const std::unique_ptr<pfrt_optimization, void (*)(pfrt_optimization*)> owner(
      handle, api().optimizer->release_result);
  PassResult out;
  pfrt_pass_stats total{};
  total.struct_size = sizeof(total);
  check(api().optimizer->totals(handle, &total));
  out.modified = total.modified != 0;
  out.stats = stats_from_c(total);
  for (size_t i = 0; i < api().optimizer->report_count(handle); ++i) {
    pfrt_pass_report c{};
    c.struct_size = sizeof(c);
    check(api().optimizer->report_at(handle, i, &c));
    PassReport report{str(c.pass),           c.runs,        c.milliseconds,
                      c.nodes_before,        c.nodes_after, c.stats->modified != 0,
                      stats_from_c(*c.stats)};
    for (size_t r = 0; r < api().optimizer->rule_count(handle, i); ++r) {
      pfrt_string rule{};
      uint64_t count = 0;
      check(api().optimizer->rule_at(handle, i, r, &rule, &count));
      report.stats.rules[str(rule)] = count;
      out.stats.rules[str(rule)] += count;
    }
    out.reports.push_back(std::move(report));
  }
  for (size_t i = 0; i < api().optimizer->warning_count(handle); ++i) {
    out.warnings.push_back(str(api().optimizer->warning_at(handle, i)));
  }
  return out;
}

inline OptimizerHandle make_optimizer(const Handle<pfrt_options>& options) {
  pfrt_optimizer* handle = nullptr;
  check(api().optimizer->create(Environment::instance().handle(), options.get(), &handle));
  return OptimizerHandle(handle, api().optimizer->release);
}

inline PassResult run(pfrt_optimizer* optimizer, Graph& graph, const std::string& pass,
                      bool until_fixed_point,
                      const pyflame_rt::detail::ProgressCall* progress = nullptr) {
  pfrt_optimization* result = nullptr;
  pfrt_status* const status = api().optimizer->run(optimizer, graph.handle(), text(pass),
                                                   until_fixed_point ? 1 : 0, &result);
  if (progress != nullptr)
    progress->finish(status);
  else
    check(status);
  graph.refresh();
  return take_result(result);
}

}  // namespace detail

// A built-in pass of the library.
class BuiltInPass : public Pass {
 public:
  // Name that skip_passes takes.
  const char* name() const final { return name_.c_str(); }
  // A line that says what the pass does.
  const char* description() const final { return description_; }
  // Whether the pass runs at that level.
  bool should_run(OptLevel level) const final { return level_ && level >= *level_; }
  std::vector<std::string> after() const final { return after_; }
  // Runs the pass alone, once.
  PassResult run(Graph& graph) final {
    const detail::OptimizerHandle optimizer = detail::make_optimizer(options_);
    pyflame_rt::detail::check(
        api().optimizer->add_pass(optimizer.get(), pyflame_rt::detail::text(name_), nullptr));
    return detail::run(optimizer.get(), graph, name_, false);
  }
  // Options for calls of the C API.
  pfrt_options* options() const noexcept { return options_.get(); }

 protected:
  // For the passes below; |level| nullopt puts the pass in no level.
  template <typename Config>
  BuiltInPass(const char* name, const char* description, std::optional<OptLevel> level,
              std::vector<std::string> after, const Config& config)
      : name_(name), description_(description), level_(level), after_(std::move(after)) {
    detail::Setter c(PFRT_OPTIONS_OPTIMIZER, nullptr);
    c.set("level", std::string("all"));
    detail::set(c, config);
    options_ = c.handle();
  }

 private:
  std::string name_;
  const char* description_;
  std::optional<OptLevel> level_;
  std::vector<std::string> after_;
  pyflame_rt::detail::Handle<pfrt_options> options_;
};

// Folds constants: computes beforehand what depends on constants alone.
class ConstantFoldingPass final : public BuiltInPass {
 public:
  // Makes the pass with |config|.
  explicit ConstantFoldingPass(const ConstantFoldingConfig& config = {})
      : BuiltInPass("ConstantFoldingPass", "computes beforehand what follows from constants",
                    OptLevel::Basic, {}, config) {}
};
// Removes nodes that no output depends on.
class DeadCodeEliminationPass final : public BuiltInPass {
 public:
  // Makes the pass with |config|.
  explicit DeadCodeEliminationPass(const DCEConfig& config = {})
      : BuiltInPass("DeadCodeEliminationPass", "removes what no output depends on", OptLevel::Basic,
                    {"ConstantFoldingPass"}, config) {}
};
// Merges nodes that compute the same.
class CSEPass final : public BuiltInPass {
 public:
  // Makes the pass with |config|.
  explicit CSEPass(const CSEConfig& config = {})
      : BuiltInPass("CSEPass", "computes once what several nodes compute alike", OptLevel::Extended,
                    {"ConstantFoldingPass", "DeadCodeEliminationPass"}, config) {}
};
// Fuses several operators into one.
class OperatorFusionPass final : public BuiltInPass {
 public:
  // Makes the pass with |config|.
  explicit OperatorFusionPass(const FusionConfig& config = {})
      : BuiltInPass("OperatorFusionPass", "makes one operator of several", OptLevel::Extended,
                    {"ConstantFoldingPass", "CSEPass"}, config) {}
};
// Moves changes of layout to where they cost least.
class LayoutOptimizationPass final : public BuiltInPass {
 public:
  // Makes the pass with |config|.
  explicit LayoutOptimizationPass(const LayoutConfig& config = {})
      : BuiltInPass("LayoutOptimizationPass", "moves layouts to where they cost least",
                    OptLevel::All, {"OperatorFusionPass"}, config) {}
};

// Joins operators where a provider says that they take less time together. It belongs to no level:
// it runs by itself, or in a PassManager that it is given to.
class DataflowPass final : public BuiltInPass {
 public:
  // Makes the pass with |config|.
  explicit DataflowPass(const DataflowConfig& config = {})
      : BuiltInPass("DataflowPass",
                    "joins operators where a provider says that they take less time together",
                    std::nullopt, {"ConstantFoldingPass", "CSEPass"}, config) {}
};

// Runs passes in the order of their registration, except that each follows the passes of its
// after().
class PassManager {
 public:
  // Makes a manager without passes.
  explicit PassManager(PassManagerConfig config = {}) : config_(std::move(config)) {}
  PassManager(PassManager&&) noexcept = default;
  PassManager& operator=(PassManager&&) noexcept = default;
  // Makes a manager with the built-in passes of the level.
  static PassManager create_default(OptLevel level) {
    PassManagerConfig config;
    config.opt_level = level;
    return create_default(std::move(config));
  }
  static PassManager create_default(PassManagerConfig config) {
    PassManager manager(std::move(config));
    const OptLevel level = manager.config_.opt_level;
    if (level >= OptLevel::Basic) {
      manager.register_pass(std::make_unique<ConstantFoldingPass>());
      manager.register_pass(std::make_unique<DeadCodeEliminationPass>());
    }
    if (level >= OptLevel::Extended) {
      manager.register_pass(std::make_unique<CSEPass>());
      manager.register_pass(std::make_unique<OperatorFusionPass>());
    }
    if (level >= OptLevel::All) manager.register_pass(std::make_unique<LayoutOptimizationPass>());
    return manager;
  }

  // Adds a pass at the end; one of the same name is replaced in its place.
  void register_pass(std::unique_ptr<Pass> pass) {
    if (pass == nullptr) throw InvalidArgumentError("register_pass: null");
    for (Entry& known : passes_) {
      if (known.name != pass->name()) continue;
      known.pass = std::move(pass);
      return;
    }
    passes_.push_back({pass->name(), std::move(pass)});
  }
  // Adds a pass that a plug-in of kind pass brings, by its name.
  void register_plugin_pass(const std::string& name) { passes_.push_back({name, nullptr}); }
  // Names of the passes, in the order of their registration.
  std::vector<std::string> passes() const {
    std::vector<std::string> names;
    names.reserve(passes_.size());
    for (const Entry& entry : passes_) names.push_back(entry.name);
    return names;
  }
  // Options as given to the constructor.
  const PassManagerConfig& config() const noexcept { return config_; }

  // Runs each pass of the level that is not skipped, once. On failure the graph is as it was.
  PassResult run(Graph& graph) { return run(graph, {}, false); }
  // Runs the pass |name|, whatever its level.
  PassResult run_pass(const std::string& name, Graph& graph) { return run(graph, name, false); }
  // Runs all passes until none changes anything or max_iterations is reached.
  PassResult run_until_fixed_point(Graph& graph) { return run(graph, {}, true); }

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<Pass> pass;  // null: a plug-in's
  };

  PassResult run(Graph& graph, const std::string& only, bool until_fixed_point) {
    detail::Setter c(PFRT_OPTIONS_OPTIMIZER, nullptr);
    detail::set(c, config_);
    const detail::OptimizerHandle optimizer = detail::make_optimizer(c.handle());
    const pyflame_rt::detail::ProgressCall progress(c.handle().get(), config_.progress);
    const pfrt_optimizer_api& functions = *api().optimizer;
    for (const Entry& entry : passes_) {
      if (auto* built_in = dynamic_cast<BuiltInPass*>(entry.pass.get())) {
        pyflame_rt::detail::check(functions.add_pass(
            optimizer.get(), pyflame_rt::detail::text(entry.name), built_in->options()));
      } else if (entry.pass == nullptr) {
        pyflame_rt::detail::check(
            functions.add_pass(optimizer.get(), pyflame_rt::detail::text(entry.name), nullptr));
      } else if (only == entry.name ||
                 (only.empty() && entry.pass->should_run(config_.opt_level))) {
        std::string after;
        for (const std::string& name : entry.pass->after()) after += name + ",";
        pfrt_custom_pass custom = detail::to_c(*entry.pass);
        custom.after = pyflame_rt::detail::text(after);
        pyflame_rt::detail::check(functions.add_custom_pass(optimizer.get(), &custom));
      }
    }
    return detail::run(optimizer.get(), graph, only, until_fixed_point, &progress);
  }

  PassManagerConfig config_;
  std::vector<Entry> passes_;
};

// Runs ConstantFoldingPass once.
inline PassResult fold_constants(Graph& graph, const ConstantFoldingConfig& config = {}) {
  return ConstantFoldingPass(config).run(graph);
}
// Runs DeadCodeEliminationPass once.
inline PassResult eliminate_dead_code(Graph& graph, const DCEConfig& config = {}) {
  return DeadCodeEliminationPass(config).run(graph);
}
// Runs CSEPass once.
inline PassResult eliminate_common_subexpressions(Graph& graph, const CSEConfig& config = {}) {
  return CSEPass(config).run(graph);
}
// Runs OperatorFusionPass once.
inline PassResult fuse_operators(Graph& graph, const FusionConfig& config = {}) {
  return OperatorFusionPass(config).run(graph);
}
// Runs LayoutOptimizationPass once.
inline PassResult optimize_layout(Graph& graph, const LayoutConfig& config = {}) {
  return LayoutOptimizationPass(config).run(graph);
}
// Runs all passes of a level until nothing changes.
inline PassResult optimize(Graph& graph, OptLevel level = OptLevel::Extended) {
  return PassManager::create_default(level).run_until_fixed_point(graph);
}

// A rewrite that the built-in passes know.
struct RuleInfo {
  // The pass, the rule's own name, the lowest level word ("by name": only where the pass is given
  // to a manager), and a line that says what the rule replaces by what.
  std::string pass, rule, level, text;
};
// All rewrites; PassStats::rules counts them by name.
inline std::vector<RuleInfo> known_rules() {
  std::vector<RuleInfo> out;
  for (size_t i = 0; i < api().optimizer->known_rule_count(); ++i) {
    pfrt_string pass{}, rule{}, level{}, text{};
    pyflame_rt::detail::check(api().optimizer->known_rule_at(i, &pass, &rule, &level, &text));
    out.push_back({pyflame_rt::detail::str(pass), pyflame_rt::detail::str(rule),
                   pyflame_rt::detail::str(level), pyflame_rt::detail::str(text)});
  }
  return out;
}

}  // namespace pyflame_rt::opt
