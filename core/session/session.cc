// SPDX-License-Identifier: Apache-2.0
#include "core/session/session.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory_resource>

#include "core/base/floating_point.h"
#include "core/base/lock.h"
#include "core/exec/device_copy.h"
#include "core/ir/verify.h"
#include "core/plan/client_operator.h"
#include "core/plan/fault.h"
#include "core/session/optimise.h"
#include "core/session/pass_options.h"
#include "core/session/precision_search.h"
#include "core/session/sessions.h"

namespace pfrt {
namespace {

pfrt_compile_hints precision_hint(std::string_view precision) {
  if (precision == "ieee") return PFRT_COMPILE_PLAIN;
  if (precision == "fast") return PFRT_COMPILE_FAST;
  return precision == "bf16" ? PFRT_COMPILE_BF16 : 0;  // auto: each node has its own
}

std::string shape_text(const std::vector<int64_t>& dims, const std::vector<std::string>& names) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool named = dims[i] < 0 && i < names.size() && !names[i].empty();
    text += (i ? "," : "") + (named         ? names[i]
                              : dims[i] < 0 ? std::string("?")
                                            : std::to_string(dims[i]));
  }
  return text + "]";
}

int level_number(std::string_view level) {
  return level == "none" ? 0 : level == "basic" ? 1 : level == "extended" ? 2 : 3;
}

// A rewritten graph must be valid, and look the same from outside.
Status check_rewrite(const Graph& before, Graph& after) {
  const auto same = [&](const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](ValueId x, ValueId y) {
      return before.at(x).name == after.at(y).name &&
             !before.at(x).constant == !after.at(y).constant;
    });
  };
  for (const bool inputs : {true, false})
    if (!same(inputs ? before.inputs : before.outputs, inputs ? after.inputs : after.outputs))
      return error(Code::kVALIDATION, "the graph's ", inputs ? "inputs" : "outputs",
                   " are others than before; a pass must keep them, in order and by name");
  PFRT_TRY(after.bind_captures());
  return verify(after);
}

// Dimensions that nothing infers have the names they are declared with. Declared numbers are no
// promise that a run keeps.
void name_dims(const Graph& graph, const Type& declared, PortInfo& info) {
  if (!info.type.is_tensor() || !declared.is_tensor() || !declared.has_shape) return;
  if (!info.type.has_shape) {
    info.type.has_shape = true;
    info.type.shape.assign(declared.shape.size(), Dim());
    info.dims.assign(declared.shape.size(), -1);
    info.dim_names.resize(declared.shape.size());
  }
  for (size_t i = 0; i < info.dims.size() && info.dims.size() == declared.shape.size(); ++i)
    if (info.dims[i] < 0 && info.dim_names[i].empty())
      info.dim_names[i] = graph.symbols->given_name(declared.shape[i]);
}

}  // namespace

PortInfo port_info(const Graph& graph, ValueId id) {
  const GraphValue& v = graph.at(id);
  PortInfo info;
  info.name = v.name;
  info.type = v.type;
  info.has_initializer = v.constant != nullptr;
  for (const Dim& d : v.type.shape) {
    info.dims.push_back(d.known() ? d.value() : -1);
    info.dim_names.push_back(graph.symbols->given_name(d));
  }
  return info;
}

Result<std::shared_ptr<Session>> Session::create(std::shared_ptr<const Model> model,
                                                 const Options& options,
                                                 const std::vector<std::string>& extra_outputs,
                                                 Context context) {
  const uint64_t start = os::monotonic_ns();
  auto session = std::shared_ptr<Session>(new Session);
  session->keep_ = std::move(context.keep);
  session->model_ = std::move(model);
  session->extra_outputs_ = extra_outputs;
  session->max_threads_ = context.max_threads;
  session->num_threads_ =
      static_cast<uint32_t>(std::min<int64_t>(options.get_int("num_threads"), 1024));
  session->profile_ = options.get_bool("enable_profiling");
  session->level_ = options.get_string("optimization_level");
  session->verbose_ = options.get_bool("verbose_optimization");
  session->skip_passes_ = options.get_strings("skip_passes");
  PFRT_TRY(check_pass_names(session->skip_passes_, "creating a session"));
  session->verify_ = options.get_string("verify") == "on";
  session->samples_ = std::move(context.samples);
  session->progress_ = options.progress();
  session->packed_ = context.packed;
  session->all_ = context.all;
  session->own_logger_ = std::make_unique<Logger>(context.logger);
  if (options.is_set("log_level"))
    session->own_logger_->set_level(log_level_from(options.get_string("log_level")));
  session->logger_ = session->own_logger_.get();
  session->fallback_ = options.get_string("session.fallback") == "on";
  session->precision_ = precision_hint(options.get_string("precision"));
  session->max_error_ = options.get_float("max_error");
  if (!(session->max_error_ >= 0))
    return error(Code::kINVALID_ARGUMENT, "creating a session: max_error ", session->max_error_,
                 " is no error; give 0 or more, such as 0.001");
  if (options.is_set("max_error") && options.get_string("precision") != "auto")
    return error(Code::kINVALID_ARGUMENT,
                 "creating a session: max_error is of precision 'auto', "
                 "but precision is '",
                 options.get_string("precision"), "'");
  session->tune_ = options.get_string("tune") == "on";
  if (options.get_int("image.max_pixels") < 1)
    return error(Code::kINVALID_ARGUMENT, "creating a session: image.max_pixels is ",
                 options.get_int("image.max_pixels"), "; give a number of pixels, 1 at least");
  session->max_pixels_ = static_cast<uint64_t>(options.get_int("image.max_pixels"));
  session->concurrent_steps_ = options.get_string("execution_mode") == "parallel";
  session->roster_ = std::make_unique<Roster>(std::move(context.providers), context.logger);
  PFRT_TRY(session->open_providers());

  const Graph& g = session->model_->graph();
  for (ValueId id : g.inputs)
    if (!g.at(id).constant) session->input_ids_.push_back(id);
  session->required_inputs_ = session->input_ids_.size();
  for (ValueId id : g.inputs)
    if (g.at(id).constant) session->input_ids_.push_back(id);
  for (ValueId id : session->input_ids_) session->inputs_.push_back(port_info(g, id));

  if (Status status = session->check_samples(); !status.ok())
    return std::move(status.prepend("creating a session"));

  session->operators_ = std::move(context.operators);
  for (auto& pass : context.passes)
    if (pass->level <= level_number(session->level_)) session->passes_.push_back(std::move(pass));
  PFRT_ASSIGN(session->optimised_, session->prepare({}, session->pass_notes_, session->progress_));
  if (options.get_string("precision") == "auto") PFRT_TRY(session->choose_precisions());
  PFRT_ASSIGN(session->plans_, session->plan());
  PFRT_TRY(session->progress_.stop());
  session->progress_ = Progress();
  session->roster_->succeeded();
  const Graph& planned = session->plans_->main->graph();
  for (size_t i = 0; i < planned.outputs.size(); ++i) {
    PortInfo info = port_info(planned, planned.outputs[i]);
    if (i < g.outputs.size()) {
      info.name = g.at(g.outputs[i]).name;
      name_dims(g, g.at(g.outputs[i]).type, info);
    }
    session->outputs_.push_back(std::move(info));
  }
  PFRT_TRY(session->model_->intact(true));
  if (session->all_) session->all_->add(session);
  if (session->logger_->wants(PFRT_LOG_INFO)) {
    std::string providers;
    for (const std::string& name : session->providers())
      providers += (providers.empty() ? "" : ", ") + name;
    session->logger_->log(PFRT_LOG_INFO, "session of graph '", g.name, "': ", g.node_count(),
                          " nodes, ", planned.node_count(), " after optimisation level ",
                          session->level_, ", on ", providers, "; made in ",
                          static_cast<double>(os::monotonic_ns() - start) / 1e6, " ms");
  }
  return session;
}

Result<std::unique_ptr<CompiledGraph>> Session::compile(
    const std::shared_ptr<const Graph>& canonical, const Plans& plans,
    const Progress& progress) const try {
  PFRT_ASSIGN(const CompileServices with, services(plans.candidates, *canonical, progress));
  const bool own = canonical == optimised_->graph && !node_precision_.empty();
  return CompiledGraph::create(canonical, with,
                               {.fallback = fallback_,
                                .concurrent_steps = concurrent_steps_,
                                .tune = tune_,
                                .precision = precision_,
                                .node_precision = own ? &node_precision_ : nullptr});
} catch (const std::bad_alloc&) {
  return error(Code::kOUT_OF_MEMORY, "planning graph '", canonical->name, "': no memory left");
}

Result<CompileServices> Session::services(std::vector<Candidate> candidates, const Graph& graph,
                                          const Progress& progress) const {
  if (graph.operators) {
    PFRT_ASSIGN(auto opened,
                Provider::open(client_operator_provider(graph.operators, max_pixels_), logger_));
    candidates.push_back({opened->name(), opened, {}});
  }
  return CompileServices{std::move(candidates), packed_, logger_, progress};
}

Status Session::add_extra_outputs(Graph& graph) const {
  for (const std::string& name : extra_outputs_) {
    const ValueId id = graph.find(name);
    if (id == kNoId) {
      std::vector<std::string> names;
      for (ValueId v = 0; v < graph.value_count(); ++v) names.push_back(graph.at(v).name);
      const std::string near = nearest_name(name, names);
      return error(Code::kNOT_FOUND, "creating a session: extra output '", name,
                   "' is not a value of the graph", near.empty() ? "" : "; the nearest is '", near,
                   near.empty() ? "" : "'");
    }
    graph.outputs.push_back(id);
  }
  return {};
}

// The passes of the runtime itself, on a graph in canonical form.
Result<Model::Optimised> Session::optimise(const Graph& canonical, Verifier* verifier,
                                           const Progress& progress) const {
  const auto level = static_cast<OptLevel>(level_number(level_));
  std::shared_ptr<Graph> graph = canonical.clone();
  PFRT_TRY(add_extra_outputs(*graph));
  Model::Optimised out;
  if (level != OptLevel::kNone) {
    PFRT_ASSIGN(CompileServices own, services(roster_->candidates(), *graph, progress));
    PassServices services(std::move(own), verifier);
    PassContext context = services.context();
    PipelineConfig config;
    config.level = level;
    config.verbose = verbose_;
    config.skip_passes = skip_passes_;
    Pipeline pipeline = Pipeline::standard(std::move(config), logger_);
    PassResult result;
    PFRT_TRY(pipeline.run_until_fixed_point(graph, context, result));
    out.reports = pipeline.reports();
  }
  out.graph = std::move(graph);
  return out;
}

// What the optimised graph depends on besides the model.
std::string Session::optimised_key() const {
  std::string key = message(reinterpret_cast<uintptr_t>(packed_), "/", level_);
  const auto list = [&](const std::vector<std::string>& names) {
    for (const std::string& name : names) key += message("/", name.size(), ":", name);
    key += "//";
  };
  list(skip_passes_);
  list(extra_outputs_);
  list(provider_names_);
  return key + message(reinterpret_cast<uintptr_t>(operators_.get()), "/", max_pixels_);
}

Status Session::choose_precisions() {
  PFRT_ASSIGN(CompileServices own, services(roster_->candidates(), *optimised_->graph, progress_));
  PrecisionSearch search({std::move(own), &samples_, max_error_});
  PFRT_ASSIGN(PrecisionChoice choice, search.choose(optimised_->graph));
  node_precision_ = std::move(choice.nodes);
  pass_notes_.insert(pass_notes_.end(), choice.notes.begin(), choice.notes.end());
  return {};
}

Result<std::unique_ptr<Verifier>> Session::make_verifier(const Graph& graph,
                                                         const Progress& progress) const {
  if (!verify_) return std::unique_ptr<Verifier>();
  PFRT_ASSIGN(CompileServices own, services(roster_->candidates(), graph, progress));
  return std::make_unique<Verifier>(Verifier::Context{std::move(own), samples_});
}

Result<std::string> Session::difference(Verifier& verifier, const Graph& before,
                                        const Graph& after) const {
  PFRT_ASSIGN(const auto was, make_canonical(before.clone(), operators_));
  auto is = make_canonical(after.clone(), operators_);
  if (is.status().code() == Code::kVALIDATION || is.status().code() == Code::kSHAPE_MISMATCH)
    return is.status().message();
  if (!is.ok()) return is.take_status();
  return verifier.difference(was, *is);
}

Result<std::shared_ptr<const Model::Optimised>> Session::prepare(const std::vector<ValueId>& fed,
                                                                 std::vector<std::string>& notes,
                                                                 const Progress& progress) const {
  std::shared_ptr<Graph> graph;
  if (!fed.empty()) {
    graph = model_->graph().clone();
    for (ValueId id : fed) graph->at(id).constant = nullptr;
  }
  PFRT_ASSIGN(const std::unique_ptr<Verifier> verifier, make_verifier(model_->graph(), progress));
  for (const auto& pass : passes_) {
    const Graph& before = graph ? *graph : model_->graph();
    PassResult result;
    auto made = pass->run(before, result);
    if (!made.ok()) return made.take_status().prepend("pass '" + pass->name + "'");
    const bool changed = *made != nullptr;
    notes.push_back(message("pass '", pass->name, "' ",
                            changed ? "changed the graph" : "found nothing to change"));
    notes.insert(notes.end() - 1, result.warnings.begin(), result.warnings.end());
    for (const std::string& warning : result.warnings)
      if (logger_) logger_->log(PFRT_LOG_WARNING, "pass '", pass->name, "': ", warning);
    if (!changed) continue;
    notes.back() +=
        message(": ", before.node_count(), " nodes before, ", (*made)->node_count(), " after");
    if (Status status = check_rewrite(before, **made); !status.ok())
      return status.prepend("after pass '" + pass->name + "'");
    if (verifier) {
      PFRT_ASSIGN(const std::string wrong, difference(*verifier, before, **made));
      if (!wrong.empty()) {
        notes.push_back(message("verification: pass '", pass->name, "' changes results (", wrong,
                                ") and was undone as a whole"));
        if (logger_) logger_->log(PFRT_LOG_WARNING, notes.back());
        continue;
      }
    }
    graph = made.take();
  }
  const bool rewritten = graph != nullptr;
  PFRT_ASSIGN(std::shared_ptr<const Graph> canonical,
              rewritten ? make_canonical(std::move(graph), operators_, &progress)
                        : model_->canonical(operators_, progress));
  if (level_ == "none" && extra_outputs_.empty())
    return std::make_shared<const Model::Optimised>(Model::Optimised{std::move(canonical), {}});
  const auto make = [&] { return optimise(*canonical, verifier.get(), progress); };
  if (!rewritten && !verifier) return model_->optimised(optimised_key(), progress, make);
  PFRT_ASSIGN(Model::Optimised made, make());
  if (verifier) {
    const std::vector<std::string> told = verifier->notes();
    notes.insert(notes.end(), told.begin(), told.end());
  }
  return std::make_shared<const Model::Optimised>(std::move(made));
}

uint32_t Session::width(int64_t asked, uint32_t available) const {
  uint32_t width = asked > 0 ? static_cast<uint32_t>(std::min<int64_t>(asked, 1024)) : num_threads_;
  if (width == 0) width = available ? available : os::usable_processors();
  if (available) width = std::min(width, available);
  return max_threads_ ? std::min(width, max_threads_) : width;
}

Status Session::check_inputs(const std::vector<ValuePtr>& inputs) const {
  struct Named {
    const std::string *symbol, *input;  // and the input that gave its size
    int64_t size;
  };
  std::array<std::byte, 1024> near;
  std::pmr::monotonic_buffer_resource memory(near.data(), near.size());
  std::pmr::vector<Named> named(&memory);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const PortInfo& port = inputs_[i];
    const Value* value = inputs[i].get();
    if (!value) {
      if (i < required_inputs_)
        return error(Code::kINPUT, "running: input '", port.name, "' (",
                     type_text(port.type, *model_->graph().symbols), ") was not given");
      continue;
    }
    if (port.type.kind == PFRT_VALUE_UNSET) continue;
    if (value->kind != port.type.kind && port.type.kind != PFRT_VALUE_OPTIONAL)
      return error(Code::kINPUT, "running: input '", port.name, "' is not a ",
                   type_text(port.type, *model_->graph().symbols));
    if (value->kind != PFRT_VALUE_TENSOR || port.type.kind != PFRT_VALUE_TENSOR) continue;
    const Tensor& t = value->tensor;
    if (t.dtype != port.type.dtype && port.type.dtype != PFRT_DTYPE_UNSET)
      return error(Code::kDTYPE_MISMATCH, "running: input '", port.name, "' expects ",
                   dtype_name(port.type.dtype), ", got ", dtype_name(t.dtype));
    if (!port.type.has_shape) continue;
    const auto mismatch = [&](const std::string& detail) {
      return error(Code::kSHAPE_MISMATCH, "running: input '", port.name, "' expects ",
                   shape_text(port.dims, port.dim_names), ", got ", shape_text(t.dims, {}), detail);
    };
    if (t.dims.size() != port.dims.size())
      return mismatch(message(" (rank ", t.dims.size(), " instead of ", port.dims.size(), ")"));
    for (size_t d = 0; d < port.dims.size(); ++d) {
      if (port.dims[d] >= 0 && port.dims[d] != t.dims[d])
        return mismatch(message(" (dimension ", d, " differs)"));
      if (port.dims[d] >= 0 || port.dim_names[d].empty()) continue;
      const auto known = std::ranges::find_if(
          named, [&](const Named& n) { return *n.symbol == port.dim_names[d]; });
      if (known == named.end())
        named.push_back({&port.dim_names[d], &port.name, t.dims[d]});
      else if (known->size != t.dims[d])
        return mismatch(message(" (dimension '", port.dim_names[d], "' is ", known->size,
                                " in input '", *known->input, "')"));
    }
  }
  return {};
}

Status Session::check_samples() const {
  for (size_t s = 0; s < samples_.size(); ++s) {
    std::vector<ValuePtr> ordered(inputs_.size());
    for (const auto& [name, value] : samples_[s]) {
      const auto port = std::ranges::find(inputs_, name, &PortInfo::name);
      const auto at = static_cast<size_t>(port - inputs_.begin());
      if (at >= required_inputs_)
        return error(Code::kINPUT, "sample ", s, " gives '", name,
                     "', which is no input that must be fed");
      if (value->tensor.device())
        return error(Code::kINPUT, "sample ", s, ": '", name, "' is in the memory of a device");
      ordered[at] = value;
    }
    Status status = check_inputs(ordered);
    if (!status.ok()) return std::move(status.prepend(message("sample ", s)));
  }
  return {};
}

Result<std::shared_ptr<CompiledGraph>> Session::variant(Plans& plans,
                                                        const std::vector<ValuePtr>& inputs,
                                                        const RunControl& control) const {
  std::vector<bool> fed;
  std::vector<ValueId> ids;
  for (size_t i = required_inputs_; i < inputs.size(); ++i) {
    fed.push_back(inputs[i] != nullptr);
    if (inputs[i]) ids.push_back(input_ids_[i]);
  }
  if (ids.empty()) return plans.main;
  Progress progress(control.cancelled, nullptr, nullptr);
  progress.set_deadline(control.deadline_ns);
  const auto lock = lock_unless(plans.mutex, [&] { return progress.stopped(); });
  if (!lock.owns_lock()) return progress.stop();
  std::shared_ptr<CompiledGraph>& slot = plans.variants[fed];
  if (!slot) {
    std::vector<std::string> notes;  // the same as the first time
    PFRT_ASSIGN(auto optimised, prepare(ids, notes, progress));
    PFRT_ASSIGN(slot, compile(optimised->graph, plans, progress));
  }
  return slot;
}

Status Session::attempt(Plans& plans, const std::vector<ValuePtr>& inputs,
                        const std::vector<OutputRequest>& requests, const RunControl& control,
                        std::vector<ValuePtr>& outputs) const try {
  PFRT_ASSIGN(const std::shared_ptr<CompiledGraph> graph, variant(plans, inputs, control));
  // The compiled graph's inputs are in the order of its graph; both orders are by the model's input
  // list.
  std::vector<ValuePtr> ordered;
  ordered.reserve(graph->inputs().size());
  size_t next = 0;
  for (ValueId id : graph->inputs()) {
    const std::string& name = graph->graph().at(id).name;
    for (size_t tried = 0; tried < inputs_.size(); ++tried, ++next) {
      if (next == inputs_.size()) next = 0;
      if (inputs_[next].name != name) continue;
      ordered.push_back(inputs[next++]);
      break;
    }
  }
  PFRT_TRY(graph->run(std::move(ordered), requests, control, outputs));
  return place_outputs(requests, outputs);
} catch (const std::bad_alloc&) {
  return error(Code::kOUT_OF_MEMORY, "running: no memory left");
}

Status Session::run(const std::vector<ValuePtr>& inputs, const std::vector<OutputRequest>& requests,
                    const RunControl& control, std::vector<ValuePtr>& outputs) {
  PFRT_TRY(model_->intact(false));
  PFRT_TRY(check_inputs(inputs));
  // A run may also be on a thread that came through no ABI function.
  const FloatingPointScope floating_point;
  for (bool released = false;;) {
    const std::shared_ptr<Plans> plans = current();
    Status status = attempt(*plans, inputs, requests, control, outputs);
    if (status.ok()) {
      roster_->succeeded();
      return status;
    }
    if (fault_of(status.code()) == Fault::kNone) return status;
    PFRT_TRY(model_->intact(true));  // nobody is to blame for what zeros do
    outputs.clear();
    PFRT_TRY(recover(plans, std::move(status), &released));
  }
}

Result<std::shared_ptr<Provider>> Session::device_of(std::string_view name) const {
  const size_t only = name.empty() ? Roster::kNobody : roster_->find(name);
  if (!name.empty() && only == Roster::kNobody)
    return error(Code::kNOT_FOUND, "looking for device memory: the session has no provider '", name,
                 "'");
  for (size_t i = 0; i < roster_->size(); ++i) {
    if (only != Roster::kNobody && only != i) continue;
    if (auto provider = roster_->provider(i); provider && provider->has_memory()) return provider;
  }
  const bool failed =
      only != Roster::kNobody && roster_->state(only).condition == PFRT_PROVIDER_FAILED;
  return error(failed ? Code::kPROVIDER : Code::kUNSUPPORTED, "looking for device memory: ",
               name.empty() ? "none of the session's providers in use" : std::string(name),
               failed ? " is not in use: " : " has no memory of its own",
               failed ? std::string(roster_->state(only).reason) : "");
}

Session::Explanation Session::explain() {
  Explanation out;
  out.steps = current()->main->explain();
  uint64_t first = UINT64_MAX;
  for (const StepReport& step : out.steps)
    if (step.started_ns) first = std::min(first, step.started_ns);
  for (StepReport& step : out.steps)
    if (step.started_ns) step.started_ns -= first;
  out.notes.push_back("optimisation level " + level_ +
                      (passes_.empty() ? "" : message(", ", passes_.size(), " registered passes")));
  out.notes.insert(out.notes.end(), pass_notes_.begin(), pass_notes_.end());
  for (const PassReport& report : optimised_->reports) {
    std::string rules;
    for (const auto& [rule, count] : report.result.stats.rules)
      rules += message(rules.empty() ? ": " : ", ", rule, " ", count);
    out.notes.push_back(message(report.pass, ", ", report.nodes_before, " nodes before, ",
                                report.nodes_after, " after", rules));
    out.notes.insert(out.notes.end(), report.result.warnings.begin(), report.result.warnings.end());
  }
  for (size_t i = 0; i < roster_->size(); ++i) {
    const Roster::State state = roster_->state(i);
    if (state.failures == 0) continue;
    const char* now = state.condition == PFRT_PROVIDER_FAILED      ? " is not used: "
                      : state.condition == PFRT_PROVIDER_RECOVERED ? " has recovered from: "
                                                                   : " fails: ";
    out.notes.push_back(message(std::string(state.name), now, std::string(state.reason)));
  }
  return out;
}

}  // namespace pfrt
