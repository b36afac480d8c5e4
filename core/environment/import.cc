// SPDX-License-Identifier: Apache-2.0
#include "core/environment/import.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/os/cpu.h"
#include "core/base/os/path.h"
#include "core/session/compiled_cache.h"

namespace pfrt {
namespace {

constexpr double kImportUntil = 0.9;  // of a load's progress

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(tolower(c)); });
  return text;
}

std::shared_ptr<const Importer> importer_by_content(PluginSource& plugins,
                                                    const ModelSource& source) {
  std::shared_ptr<const Importer> best;
  uint32_t best_score = 0;
  for (const auto& importer : plugins.importers()) {
    const uint32_t score = importer->probe(source.data, source.size);
    if (score <= best_score) continue;
    best_score = score;
    best = importer;
  }
  return best;
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
  call.info = std::move(loaded->info);
  if (loaded->version == 1)
    call.warnings.emplace_back(
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

// The graph of the source, by the format that its name or content tells.
Result<std::shared_ptr<Graph>> import_graph(PluginSource& plugins, ImportCall& call,
                                            const Options& options, ModelInfo& info) {
  const ModelSource& source = call.source();
  const std::string what = source.text();
  const auto take_options = [&](std::string_view importer) -> Status {
    auto taken = options_for(plugins, importer, options);
    if (!taken.ok()) return taken.take_status().prepend("loading " + what);
    call.options = taken.take();
    return {};
  };
  if (source.size == 0) return error(Code::kINVALID_MODEL, "loading ", what, ": it is empty");
  if (is_pfm(source.data, source.size)) {
    info.format = "pfm";
    PFRT_TRY(take_options(info.format));
    if (!call.options.empty())
      return error(Code::kINVALID_ARGUMENT, "loading ", what, ": there is no option '",
                   call.options.front().first, "' of the pfm importer; it has none");
    return import_pfm(call);
  }
  const std::string extension = extension_of(source.name);
  if (extension == "pfm")
    return error(Code::kINVALID_MODEL, "loading ", what, ": it does not start like a .pfm file");
  std::string why;
  PFRT_ASSIGN(auto importer, importer_for(plugins, extension, &why));
  if (!importer) importer = importer_by_content(plugins, source);
  if (!importer) return unknown_format(plugins, what, std::move(why));
  auto graph = std::make_shared<Graph>();
  info.format = lower(importer->name());
  PFRT_TRY(take_options(info.format));
  PFRT_TRY(importer->load(call, graph));
  return graph;
}

// Identifies everything besides its bytes that decides what a model becomes.
std::string load_key(Environment& environment, const Options& options) {
  std::string key =
      message(library_identity(), "/", options.get(load_option::kValidate), "/",
              options.get(load_option::kInferShapes), "/", options.get(load_option::kConfine));
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

Result<ImportCall::Bytes> ImportCall::open_beside(std::string_view location) {
  if (source_.read_beside) {
    reads_beside = true;
    PFRT_ASSIGN(const auto bytes, source_.read_beside(location, progress_));
    return Bytes{bytes, bytes->data(), bytes->bytes()};
  }
  if (source_.path.empty())
    return error(Code::kUNSUPPORTED, "opening external data '", location,
                 "': the model was given as memory, so it has no folder; load it from its file");
  PFRT_ASSIGN(const auto file,
              os::MappedFile::open_beside(source_.path, std::string(location), confine_,
                                          environment_.guard_mapped_files()));
  if (file->health()) files.push_back(file->health());
  model_files.push_back({file->path(), file->stamp(), file});
  return Bytes{file, file->data(), file->size()};
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
  ModelInfo info;
  auto graph = import_graph(environment.plugins(), call, options, info);
  // Bytes of a file that is gone mean nothing, whether the result looks right or wrong.
  for (const auto& used : call.files)
    if (used->check()) return used->status().prepend("loading " + source.text());
  if (!graph.ok()) return graph.take_status();
  apply_info(call.info, *graph.value(), info);
  info.import_ms = static_cast<double>(os::monotonic_ns() - started) * 1e-6;
  PFRT_ASSIGN(const auto operators, environment.registry().operators_for(*graph.value()));
  auto model = Model::create(graph.take(), std::move(info), options.get(load_option::kValidate),
                             options.get(load_option::kInferShapes), std::move(call.warnings),
                             progress, operators);
  if (!model.ok()) return model.take_status().prepend("loading " + source.text());
  if (source.file)
    model.value()->set_files(std::move(call.model_files), load_key(environment, options));
  else if (!call.reads_beside && environment.cache(options.get(load_option::kCacheDir)))
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
      environment.cache(options.get(load_option::kCacheDir));
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
  ModelInfo info;
  info.format = "graph";
  PFRT_ASSIGN(const auto operators, environment.registry().operators_for(graph));
  PFRT_ASSIGN(auto model,
              Model::create(graph.clone(), std::move(info), options.get(load_option::kValidate),
                            options.get(load_option::kInferShapes), {}, progress, operators));
  return std::shared_ptr<const Model>(std::move(model));
}

}  // namespace pfrt
