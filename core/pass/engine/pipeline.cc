// SPDX-License-Identifier: Apache-2.0
#include "core/pass/engine/pipeline.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>

#include "core/ir/graph_counts.h"
#include "core/ir/verify.h"
#include "core/pass/engine/editors.h"
#include "core/pass/engine/passes.h"
#include "core/pass/engine/run_verified.h"

namespace pfrt {
namespace {

// Joins captures of one outer value under several names.
void merge_captures(Graph& body) {
  std::vector<Capture> kept;
  for (const Capture& c : body.captures) {
    const auto same = std::ranges::find(kept, c.outer, &Capture::outer);
    if (same == kept.end())
      kept.push_back(c);
    else
      body.replace_uses(c.inner, same->inner);
  }
  body.captures = std::move(kept);
}

// Orders |waiting| so that each pass follows those of its after() that are present, else unchanged.
Result<std::vector<Pass*>> in_order(std::vector<Pass*> waiting, std::string_view added) {
  std::vector<Pass*> order;
  while (!waiting.empty()) {
    const auto is_ready = [&](const Pass* one) {
      return std::ranges::none_of(one->after(), [&](std::string_view name) {
        return std::ranges::any_of(waiting, [&](const Pass* w) { return w->name() == name; });
      });
    };
    const auto next = std::ranges::find_if(waiting, is_ready);
    if (next == waiting.end()) {
      std::string names;
      for (const Pass* one : waiting) names += message(names.empty() ? "" : ", ", one->name());
      return error(Code::kINVALID_ARGUMENT, "adding pass '", added,
                   "': these would run after each other in a circle: ", names);
    }
    order.push_back(*next);
    waiting.erase(next);
  }
  return order;
}

// Tells the caller how far the passes are.
Status tell(const PassContext& context, double done) {
  return context.progress ? context.progress->at(done) : Status();
}

}  // namespace

Pipeline Pipeline::standard(PipelineConfig config, Logger* logger) {
  const OptLevel level = config.level;
  Pipeline pipeline(std::move(config), logger);
  std::vector<std::unique_ptr<Pass>> all;
  all.push_back(constant_folding_pass());
  all.push_back(dead_code_pass());
  all.push_back(cse_pass());
  all.push_back(fusion_pass({}, level));
  all.push_back(layout_pass());
  for (auto& pass : all) {
    if (pass->level() > level) continue;
    [[maybe_unused]] const Status added = pipeline.add(std::move(pass));
    assert(added.ok());  // tests show that built-in passes have no circle
  }
  return pipeline;
}

Status Pipeline::add(std::unique_ptr<Pass> pass) {
  const auto same = std::ranges::find_if(
      registered_, [&](const auto& known) { return known->name() == pass->name(); });
  std::vector<Pass*> waiting;
  waiting.reserve(registered_.size());
  for (const auto& known : registered_)
    waiting.push_back(same != registered_.end() && known == *same ? pass.get() : known.get());
  if (same == registered_.end()) waiting.push_back(pass.get());
  PFRT_ASSIGN(std::vector<Pass*> order, in_order(std::move(waiting), pass->name()));
  if (same == registered_.end())
    registered_.push_back(std::move(pass));
  else
    *same = std::move(pass);
  passes_ = std::move(order);
  return {};
}

std::vector<std::string> Pipeline::names() const {
  std::vector<std::string> out;
  out.reserve(passes_.size());
  for (const auto& pass : passes_) out.emplace_back(pass->name());
  return out;
}

bool Pipeline::skipped(const Pass& pass) const {
  return pass.level() > config_.level ||
         std::ranges::find(config_.skip_passes, pass.name()) != config_.skip_passes.end();
}

PassReport& Pipeline::report_of(const Pass& pass) {
  for (PassReport& report : reports_)
    if (report.pass == pass.name()) return report;
  reports_.push_back({});
  reports_.back().pass = pass.name();
  return reports_.back();
}

Status Pipeline::run_one(Pass& pass, std::shared_ptr<Graph>& graph, PassContext& context,
                         PassResult& result) {
  PassReport& report = report_of(pass);
  const auto start = std::chrono::steady_clock::now();
  const uint64_t before = count_nodes(*graph);
  if (report.runs == 0) report.nodes_before = before;
  PassResult found;
  Status status;
  if (context.gate.blocks(pass.name())) return {};
  Profile* const profile = context.progress ? context.progress->profile() : nullptr;
  const ProfileSpan span(profile, profile ? "pass " + std::string(pass.name()) : std::string());
  if (context.difference) {
    status = run_verified(pass, graph, context, found, report.undone);
  } else {
    context.gate.begin(pass.name());
    status = pass.run(graph, context, found);
  }
  if (status.ok() && context.stopped) status = context.stopped();
  if (context.editors && !pass.keeps_editors()) context.editors->close();
  if (!status.ok()) return status.prepend(message("pass ", pass.name()));
  if (found.modified && config_.validate_after_pass) {
    if (Status valid = verify(*graph); !valid.ok())
      return valid.prepend(message("after pass ", pass.name()));
  }
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  report.runs += 1;
  report.ms += ms;
  report.nodes_after = count_nodes(*graph);
  report.result.add(found);
  if (config_.verbose && logger_ && logger_->level() < PFRT_LOG_OFF) {
    std::string rules;
    for (const auto& [rule, count] : found.stats.rules)
      rules += message(rules.empty() ? "; " : ", ", rule, " ", count);
    // It was asked for, whatever the logger's level.
    logger_->write(PFRT_LOG_INFO, message(pass.name(), ": ", before, " nodes before, ",
                                          report.nodes_after, " after, ", ms, " ms", rules));
  }
  for (const std::string& warning : found.warnings)
    if (logger_) logger_->log(PFRT_LOG_WARNING, pass.name(), ": ", warning);
  result.add(found);
  return {};
}

Status Pipeline::run(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) {
  for (size_t p = 0; p < passes_.size(); ++p) {
    PFRT_TRY(tell(context, static_cast<double>(p) / static_cast<double>(passes_.size())));
    if (!skipped(*passes_[p])) PFRT_TRY(run_one(*passes_[p], graph, context, result));
  }
  return {};
}

Status Pipeline::run_pass(std::string_view name, std::shared_ptr<Graph>& graph,
                          PassContext& context, PassResult& result) {
  for (const auto& pass : passes_)
    if (pass->name() == name) return run_one(*pass, graph, context, result);
  std::string known;
  for (const std::string& one : names()) known += (known.empty() ? "" : ", ") + one;
  return error(Code::kNOT_FOUND, "running pass '", name, "': registered are ",
               known.empty() ? "none" : known);
}

Status Pipeline::run_until_fixed_point(std::shared_ptr<Graph>& graph, PassContext& context,
                                       PassResult& result) {
  // Verification runs each pass on a graph of its own.
  Editors editors;
  editors.watch(context.progress);
  if (!context.difference) context.editors = &editors;
  Status status = repeat(graph, context, result);
  context.editors = nullptr;
  return status;
}

Status Pipeline::repeat(std::shared_ptr<Graph>& graph, PassContext& context, PassResult& result) {
  // A pass that found nothing finds nothing until another one has changed the graph.
  constexpr uint64_t kNever = UINT64_MAX;
  uint64_t changes = 0;
  std::vector<uint64_t> nothing_at(passes_.size(), kNever);
  for (uint32_t i = 0; i < config_.max_iterations; ++i) {
    const uint64_t before = changes;
    // Nobody knows how many rounds there will be: each takes half of what is left.
    const double begin = 1 - std::ldexp(1.0, -static_cast<int>(std::min<uint32_t>(i, 60)));
    for (size_t p = 0; p < passes_.size(); ++p) {
      PFRT_TRY(tell(context, begin + (1 - begin) / 2 * static_cast<double>(p) /
                                         static_cast<double>(passes_.size())));
      if (skipped(*passes_[p]) || nothing_at[p] == changes) continue;
      PassResult found;
      PFRT_TRY(run_one(*passes_[p], graph, context, found));
      result.add(found);
      changes += found.modified;
      nothing_at[p] = found.modified ? kNever : changes;
    }
    if (changes == before) return {};
  }
  return {};
}

void name_captures(Graph& graph) {
  for (NodeId id : graph.node_ids()) {
    for (const Attribute& attr : graph.node(id)->attrs) {
      const auto settle = [&](Graph& body) {
        merge_captures(body);
        for (const Capture& c : body.captures) {
          const std::string& outer = graph.at(c.outer).name;
          if (body.at(c.inner).name == outer) continue;
          const ValueId own = body.find(outer);
          std::vector<std::pair<ValueId, std::string>> names;
          if (own != kNoId) names.emplace_back(own, body.at(body.fresh(outer + "_inner")).name);
          names.emplace_back(c.inner, outer);
          body.rename(names);
        }
        name_captures(body);
      };
      if (attr.graph) settle(*attr.graph);
      for (const auto& body : attr.graphs) settle(*body);
    }
  }
}

}  // namespace pfrt
