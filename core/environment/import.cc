// SPDX-License-Identifier: Apache-2.0
#include "core/environment/import.h"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "core/base/os/cpu.h"
#include "core/base/os/path.h"
#include "core/environment/foreign_file.h"
#include "core/options/provider_options.h"
#include "core/session/compiled_cache.h"

namespace pfrt {
namespace {

constexpr double kImportUntil = 0.9;  // of a load's progress

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(tolower(c)); });
  return text;
}

// The importers that may know the content, the surest first, without the one called |asked|.
std::vector<std::shared_ptr<const Importer>> importers_by_content(PluginSource& plugins,
                                                                  const ModelSource& source,
                                                                  std::string_view asked) {
  std::vector<std::pair<uint32_t, std::shared_ptr<const Importer>>> scored;
  for (auto& importer : plugins.importers()) {
    const uint32_t score = importer->probe(source.data, source.size);
    if (score > 0 && importer->name() != asked) scored.emplace_back(score, std::move(importer));
  }
  std::ranges::stable_sort(scored, std::greater(), [](const auto& s) { return s.first; });
  std::vector<std::shared_ptr<const Importer>> out;
  out.reserve(scored.size());
  for (auto& [score, importer] : scored) out.push_back(std::move(importer));
  return out;
}

Status unknown_format(PluginSource& plugins, std::string_view what, std::string why) {
  std::string known = "pfm";
  const auto importers = plugins.importers();
  if (why.empty() && importers.empty())
    why = "there are no importers in " + plugins.searched() +
          "; set PFRT_PLUGIN_PATH to the folder of the plug-ins";
  for (const auto& importer : importers)
    for (const std::string_view extension : importer->extensions())
      known += ", " + std::string(extension);
  return error(Code::kUNSUPPORTED_FORMAT, "loading ", what, ": ",
               why.empty() ? "no importer knows this format (known: " + known + ")" : why);
}

void apply_info(const InfoList& list, Graph& graph, ModelInfo& info) {
  for (const auto& [key, value] : list) {
    if (key == "producer_name") info.producer_name = value;
    if (key == "producer_version") info.producer_version = value;
    if (key == "domain") info.domain = value;
    if (key == "description") info.description = value;
    if (key == "graph_name") graph.name = value;
    if (key == "model_version") info.model_version = std::strtoll(value.c_str(), nullptr, 10);
    if (key == "ir_version") info.ir_version = std::strtoll(value.c_str(), nullptr, 10);
  }
}

Result<std::shared_ptr<Graph>> import_pfm(ImportCall& call) {
  const ModelSource& source = call.source();
  auto loaded = load_pfm(source.data, source.size, source.keep, call.progress());
  if (!loaded.ok()) return loaded.take_status().prepend("loading " + source.text());
  call.attempt.info = std::move(loaded->info);
  if (loaded->version == 1)
    call.attempt.warnings.emplace_back(
        "the file has .pfm version 1, in which damage to the graph is not noticed; save it anew");
  return std::move(loaded->graph);
}

// Options of the load for |importer|. Options for other importers are left to them; a word that
// names no importer is a mistake.
Result<std::vector<std::pair<std::string, std::string>>> options_for(PluginSource& plugins,
                                                                     std::string_view importer,
                                                                     const Options& options) {
  std::vector<std::pair<std::string, std::string>> out;
  for (Options::ForPlugin& given : options.for_plugins()) {
    if (given.word == importer) {
      out.emplace_back(std::move(given.key), std::move(given.value));
      continue;
    }
    std::vector<std::string> words{"pfm"};
    for (const auto& other : plugins.importers()) words.push_back(lower(other->name()));
    if (std::ranges::find(words, given.word) != words.end()) continue;
    std::string listed;
    for (const std::string& word : words) listed += message(listed.empty() ? "" : ", ", word);
    return error(Code::kINVALID_ARGUMENT, "option 'import.", given.word, ".", given.key,
                 "' is for an importer that there is not; there are ", listed);
  }
  return out;
}

// Gives |call| the options for |importer|, each of which |schema| has.
Status take_options(PluginSource& plugins, ImportCall& call, const std::string& importer,
                    const Options& options, const std::vector<pfrt_option_info>& schema) {
  const std::string doing = "loading " + call.source().text();
  auto taken = options_for(plugins, importer, options);
  if (!taken.ok()) return taken.take_status().prepend(doing);
  call.attempt.options = taken.take();
  for (const auto& [key, value] : call.attempt.options)
    PFRT_TRY(check_option(schema, doing, message("import.", importer, ".", key), key, value));
  return {};
}

// Nothing that the caller asked for was passed over, and what the importer says fits the graph.
Status check_import(const ImportCall& call, const Graph& graph, const std::string& format) {
  const std::string doing = "loading " + call.source().text();
  if (!call.entry.empty() && call.attempt.entries.empty())
    return error(Code::kINVALID_ARGUMENT, doing, ": option 'entry' is '", call.entry, "', but a ",
                 format, " file has one graph and no entries to choose from; leave it out");
  if (call.definer.fn && !call.attempt.asked_definer)
    return error(Code::kINVALID_ARGUMENT, doing, ": a definer was given, but the ", format,
                 " file has a graph of its own; load it without one");
  for (const auto& [input, output] : call.attempt.pairs) {
    const bool has_input = graph.is_input(graph.find(input));
    if (has_input && graph.is_output(graph.find(output))) continue;
    return error(Code::kINVALID_MODEL, doing, ": its state has the pair of input '", input,
                 "' and output '", output, "', but the graph has no such ",
                 has_input ? "output" : "input");
  }
  return {};
}

// The graph that one importer makes of the source.
Result<std::shared_ptr<Graph>> import_with(PluginSource& plugins, ImportCall& call,
                                           const Importer& importer, const Options& options,
                                           ModelInfo& info) {
  call.attempt = {};
  info.format = lower(importer.name());
  PFRT_ASSIGN(const auto schema, importer.options());
  PFRT_TRY(take_options(plugins, call, info.format, options, schema));
  auto graph = importer.load(call);
  if (call.attempt.defined.ok()) return graph;
  Status failed = call.attempt.defined;
  return std::move(failed.prepend("loading " + call.source().text()));
}

// The graph of the source, by the importer that takes it: |named| by the file's extension (may be
// null), then those that know its content. |why| says why the named one is not usable.
Result<std::shared_ptr<Graph>> import_with_any(PluginSource& plugins, ImportCall& call,
                                               std::shared_ptr<const Importer> named,
                                               std::string why, const Options& options,
                                               ModelInfo& info) {
  const std::string doing = "loading " + call.source().text();
  std::vector<std::pair<std::string, Status>> declined;  // by name of the importer
  std::vector<std::shared_ptr<const Importer>> candidates;
  if (named) candidates.push_back(std::move(named));
  for (bool all = false;; all = true) {
    for (const auto& importer : candidates) {
      auto graph = import_with(plugins, call, *importer, options, info);
      if (graph.ok() || graph.status().code() != Code::kUNSUPPORTED_FORMAT ||
          !call.attempt.defined.ok())
        return graph;
      declined.emplace_back(importer->name(), graph.take_status());
    }
    if (all) break;
    candidates = importers_by_content(plugins, call.source(),
                                      declined.empty() ? std::string() : declined.front().first);
  }
  if (declined.empty()) return unknown_format(plugins, call.source().text(), std::move(why));
  if (declined.size() == 1) return std::move(declined.front().second);
  std::string reasons;
  for (const auto& [name, status] : declined) {
    std::string_view text = status.message();
    if (text.starts_with(doing + ": ")) text.remove_prefix(doing.size() + 2);
    reasons += message(reasons.empty() ? "" : "; ", name, " (", text, ")");
  }
  return error(Code::kUNSUPPORTED_FORMAT, doing, ": no importer takes it; asked were ", reasons);
}

// The graph of the source, by the format that its name or content tells.
Result<std::shared_ptr<Graph>> import_graph(PluginSource& plugins, ImportCall& call,
                                            const Options& options, ModelInfo& info) {
  const ModelSource& source = call.source();
  const std::string what = source.text();
  if (source.size == 0) return error(Code::kINVALID_MODEL, "loading ", what, ": it is empty");
  std::shared_ptr<Graph> graph;
  if (is_pfm(source.data, source.size)) {
    info.format = "pfm";
    PFRT_TRY(take_options(plugins, call, info.format, options, {}));
    PFRT_ASSIGN(graph, import_pfm(call));
  } else {
    const std::string extension = extension_of(source.name);
    if (extension == "pfm")
      return error(Code::kINVALID_MODEL, "loading ", what, ": it does not start like a .pfm file");
    std::string why;
    PFRT_ASSIGN(auto named, importer_for(plugins, extension, &why));
    auto imported = import_with_any(plugins, call, std::move(named), std::move(why), options, info);
    if (!imported.ok()) {
      // What no importer knows by its content may be something else than a model.
      const Code code = imported.status().code();
      const bool unread = code == Code::kUNSUPPORTED_FORMAT || code == Code::kINVALID_MODEL;
      std::string other;
      if (unread && call.attempt.defined.ok() && importers_by_content(plugins, source, {}).empty())
        other = foreign_file(source.data, source.size);
      if (other.empty()) return imported;
      return error(Code::kUNSUPPORTED_FORMAT, "loading ", what, ": ", other);
    }
    graph = imported.take();
  }
  PFRT_TRY(check_import(call, *graph, info.format));
  const ImportCall::Attempt& made = call.attempt;
  if (!made.entries.empty()) info.entry = made.entries[made.entry];
  for (const std::string& entry : made.entries)
    info.entries += message(info.entries.empty() ? "" : ",", entry);
  return graph;
}

// Identifies everything besides its bytes that decides what a model becomes.
std::string load_key(Environment& environment, const Options& options) {
  std::string key =
      message(library_identity(), "/", options.get(load_option::kValidate), "/",
              options.get(load_option::kInferShapes), "/", options.get(load_option::kConfine), "/",
              options.get(load_option::kEntry));
  for (const Options::ForPlugin& given : options.for_plugins())
    key += message("/", given.word, ".", given.key.size(), ":", given.key, "=", given.value);
  return key + "/" + environment.plugins().searched();
}

// The model of |source|, without reading it, where |cache| knows it.
std::shared_ptr<const Model> known_model(Environment& environment, CompiledCache& cache,
                                         const ModelSource& source, const Options& options) {
  const auto import = [self = environment.shared_from_this(), source,
                       options](Progress& progress) -> Result<std::shared_ptr<const Model>> {
    const EnvironmentScope scope = EnvironmentScope::lasting(*self, load_budget(*self, options));
    return load_model(*self, source, options, progress, os::monotonic_ns());
  };
  auto known = cache.known_model({source.path, source.file->stamp(), source.file},
                                 load_key(environment, options), import);
  if (!known) return nullptr;
  for (const std::string& warning : known->warnings())
    environment.logger().log(PFRT_LOG_INFO, "loading ", source.text(), ": ", warning);
  return known;
}

}  // namespace

std::string extension_of(const std::string& path) {
  const std::string name = os::name_of(path);
  const size_t dot = name.rfind('.');
  return lower(dot == std::string::npos ? "" : name.substr(dot + 1));
}

Result<std::shared_ptr<const Importer>> importer_for(PluginSource& plugins,
                                                     const std::string& extension,
                                                     std::string* why) {
  if (extension.empty()) return std::shared_ptr<const Importer>();
  const auto serves = [&](const Importer& importer) {
    const auto all = importer.extensions();
    return std::ranges::find(all, extension) != all.end();
  };
  PFRT_ASSIGN(auto named, plugins.importer_named(extension, why));
  if (named && serves(*named)) return named;
  for (auto& importer : plugins.importers())
    if (serves(*importer)) return std::move(importer);
  return std::shared_ptr<const Importer>();
}

Result<std::shared_ptr<const Model>> load_model(Environment& environment, const ModelSource& source,
                                                const Options& options, Progress& progress,
                                                uint64_t started) {
  PFRT_TRY(progress.stage("import", kImportUntil).prepend("loading " + source.text()));
  ImportCall call(
      source, environment, progress,
      options.get(load_option::kConfine) == "strict" ? os::Confine::kStrict : os::Confine::kLinks);
  if (const auto file = os::health_of(source.data)) call.files.push_back(file);
  if (source.file) call.model_files.push_back({source.path, source.file->stamp(), source.file});
  call.definer = options.definer();
  call.entry = options.get(load_option::kEntry);
  ModelInfo info;
  auto graph = import_graph(environment.plugins(), call, options, info);
  // Bytes of a file that is gone mean nothing, whether the result looks right or wrong.
  for (const auto& used : call.files)
    if (used->check()) return used->status().prepend("loading " + source.text());
  if (!graph.ok()) return graph.take_status();
  apply_info(call.attempt.info, *graph.value(), info);
  info.import_ms = static_cast<double>(os::monotonic_ns() - started) * 1e-6;
  PFRT_ASSIGN(const auto operators, environment.registry().operators_for(*graph.value()));
  auto model = Model::create(graph.take(), std::move(info), options.get(load_option::kValidate),
                             options.get(load_option::kInferShapes),
                             std::move(call.attempt.warnings), progress, operators);
  if (!model.ok()) return model.take_status().prepend("loading " + source.text());
  // The bytes of a file do not tell what a definer makes of it.
  const bool told_by_bytes = !call.definer.fn;
  if (told_by_bytes && source.file)
    model.value()->set_files(std::move(call.model_files), load_key(environment, options));
  else if (told_by_bytes && !call.reads_beside &&
           environment.cache(options.get(load_option::kCacheDir)))
    model.value()->set_memory(source.data, source.size, load_key(environment, options));
  for (const std::string& warning : model.value()->warnings())
    environment.logger().log(PFRT_LOG_INFO, "loading ", source.text(), ": ", warning);
  return std::shared_ptr<const Model>(model.take());
}

BudgetPtr load_budget(const Environment& environment, const Options& options) {
  return budget_of("the model", static_cast<uint64_t>(options.get(load_option::kMemoryLimit)),
                   environment.budget());
}

Result<std::shared_ptr<const Model>> load_model_file(Environment& environment, std::string path,
                                                     const Options& options) {
  const EnvironmentScope scope =
      EnvironmentScope::lasting(environment, load_budget(environment, options));
  const uint64_t started = os::monotonic_ns();
  Progress progress = options.progress();
  ModelSource source;
  source.path = source.name = std::move(path);
  auto file = os::MappedFile::open(source.path, environment.guard_mapped_files());
  if (!file.ok()) return file.take_status().prepend("loading a model");
  source.data = file.value()->data();
  source.size = file.value()->size();
  source.file = file.value();
  source.keep = file.take();
  const std::shared_ptr<CompiledCache> cache =
      options.definer().fn ? nullptr : environment.cache(options.get(load_option::kCacheDir));
  if (!cache) return load_model(environment, source, options, progress, started);
  if (auto known = known_model(environment, *cache, source, options)) {
    PFRT_TRY(progress.stage("done", 1.0));
    return known;
  }
  PFRT_ASSIGN(auto model, load_model(environment, source, options, progress, started));
  RunControl control;
  control.cancelled = progress.cancel_flag();
  control.deadline_ns = progress.deadline_ns();
  const auto own = environment.replacements();
  if (own) control.executor = own->threads().get();
  control.width = environment.width(control.executor);
  cache->remember(*model, load_key(environment, options), control);
  PFRT_TRY(progress.stop().prepend("loading " + source.text()));
  return model;
}

Result<std::shared_ptr<const Model>> model_of_graph(Environment& environment, const Graph& graph,
                                                    const Options& options) {
  const EnvironmentScope scope =
      EnvironmentScope::lasting(environment, load_budget(environment, options));
  Progress progress = options.progress();
  if (options.definer().fn || !options.get(load_option::kEntry).empty())
    return error(Code::kINVALID_ARGUMENT, "making a model of a graph: ",
                 options.definer().fn ? "a definer" : "option 'entry'",
                 " is for files; leave it out");
  ModelInfo info;
  info.format = "graph";
  PFRT_ASSIGN(const auto operators, environment.registry().operators_for(graph));
  PFRT_ASSIGN(auto model,
              Model::create(graph.clone(), std::move(info), options.get(load_option::kValidate),
                            options.get(load_option::kInferShapes), {}, progress, operators));
  return std::shared_ptr<const Model>(std::move(model));
}

}  // namespace pfrt
