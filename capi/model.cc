// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "capi/handles.h"
#include "capi/reader.h"
#include "capi/sink.h"
#include "core/base/os/atomic_file.h"
#include "core/base/os/cpu.h"
#include "core/base/os/file.h"
#include "core/base/os/path.h"
#include "core/format/pfm.h"
#include "core/op/defs/standardise.h"
#include "core/pass/pipeline.h"

// What a plug-in sees as a file: bytes and what keeps them.
struct pfrt_file : pfrt::capi::Counted {
  std::shared_ptr<void> keep;
};

namespace pfrt::capi {
namespace {

struct Source {
  std::string path;  // of the file; empty when it has none, and so no folder
  std::string name;  // for messages and by its extension for the format; may be empty
  const void* data = nullptr;
  uint64_t size = 0;
  std::shared_ptr<void> keep;
  const ReaderSource* reader = nullptr;  // where files beside it come from instead

  std::string text() const { return name.empty() ? "a model in memory" : "'" + name + "'"; }
};

// ---- the host's side of an import ----

struct Import {
  const Source& source;
  Progress& progress;
  EnvState& env;
  InfoList info;
  std::vector<std::string> warnings;
  os::Confine confine = os::Confine::kLinks;
  std::vector<std::shared_ptr<os::FileHealth>> files;  // beside the model

  static Import& of(const pfrt_import_request* request) {
    return *static_cast<Import*>(request->host);
  }
};

void file_retain(pfrt_file* file) { retain(file); }
void file_release(void* file, void*) { release(static_cast<pfrt_file*>(file)); }

pfrt_code open_beside(const pfrt_import_request* request, pfrt_string location,
                      const pfrt_sink* sink, pfrt_file** out_file, const void** out_data,
                      uint64_t* out_size) {
  const auto report = [&](const Status& status) {
    return sink->fail(sink, static_cast<pfrt_code>(status.code()), PFRT_NO_INDEX,
                      to_c(status.message()));
  };
  try {
    *out_file = nullptr;
    *out_data = nullptr;
    *out_size = 0;
    Import& import = Import::of(request);
    auto file = std::make_unique<pfrt_file>();
    if (import.source.reader) {
      auto bytes = import.source.reader->read_beside(view(location), import.progress);
      if (!bytes.ok()) return report(bytes.status());
      *out_data = bytes.value()->data();
      *out_size = bytes.value()->bytes();
      file->keep = bytes.take();
      *out_file = file.release();
      return PFRT_CODE_OK;
    }
    if (import.source.path.empty())
      return report(
          error(Code::kUNSUPPORTED, "opening external data '", location,
                "': the model was given as memory, so it has no folder; load it from its file"));
    auto opened = os::MappedFile::open_beside(import.source.path, std::string(view(location)),
                                              import.confine, import.env.guard_mapped_files);
    if (!opened.ok()) return report(opened.status());
    if (opened.value()->health()) import.files.push_back(opened.value()->health());
    *out_data = opened.value()->data();
    *out_size = opened.value()->size();
    file->keep = opened.take();
    *out_file = file.release();
    return PFRT_CODE_OK;
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
}

Status run_importer(const Plugin& plugin, Import& import, const std::shared_ptr<Graph>& graph) {
  // The plug-in may keep references to either.
  const std::unique_ptr<pfrt_graph, void (*)(pfrt_graph*)> handle(new pfrt_graph(graph), release);
  const std::unique_ptr<pfrt_file, void (*)(pfrt_file*)> file(new pfrt_file, release);
  file->keep = import.source.keep;
  pfrt_import_request request{};
  request.struct_size = sizeof request;
  request.abi = PFRT_ABI_VERSION;
  request.host = &import;
  request.api = &kApi;
  request.graph = handle.get();
  request.path = to_c(import.source.path);
  request.data = import.source.data;
  request.size = import.source.size;
  request.file = file.get();
  request.file_retain = file_retain;
  request.file_release = file_release;
  request.open_beside = open_beside;
  request.warn = [](const pfrt_import_request* r, pfrt_string text) {
    try {
      Import::of(r).warnings.emplace_back(view(text));
    } catch (const std::bad_alloc&) {  // a warning less is better than a failed load
    }
  };
  request.stop = [](const pfrt_import_request* r) -> pfrt_code {
    return static_cast<pfrt_code>(Import::of(r).progress.stop().code());
  };
  request.set_info = [](const pfrt_import_request* r, pfrt_string key, pfrt_string value) {
    try {
      Import::of(r).info.emplace_back(view(key), view(value));
    } catch (const std::bad_alloc&) {
    }
  };
  // Whether to stop is what stop is for.
  request.progress = [](const pfrt_import_request* r, double fraction) {
    (void)Import::of(r).progress.at(fraction).ok();
  };
  TextSink sink(import.env.logger);
  const pfrt_code code = [&] {
    const PluginScope scope(plugin.library);
    return call_plugin(sink, [&] { return plugin.importer()->load(&request, &sink.sink); });
  }();
  return sink.status(code, "loading " + import.source.text());
}

// ---- choosing a format ----

std::string extension_of(const std::string& path) {
  const std::string name = os::name_of(path);
  const size_t dot = name.rfind('.');
  std::string extension = dot == std::string::npos ? "" : name.substr(dot + 1);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(tolower(c)); });
  return extension;
}

bool serves(const Plugin& plugin, std::string_view extension) {
  const pfrt_importer_table& table = *plugin.importer();
  for (size_t i = 0; i < table.extension_count; ++i)
    if (view(table.extensions[i]) == extension) return true;
  return false;
}

// The importer for |extension|: the plug-in named after it first, so that others need not be
// opened.
Result<std::shared_ptr<const Plugin>> importer_for(PluginLoader& loader,
                                                   const std::string& extension, std::string* why) {
  if (!extension.empty()) {
    PFRT_ASSIGN(auto named, loader.open_short("import", extension));
    if (named && named->table && serves(*named, extension)) return named;
    if (named && !named->table)
      *why = message("its importer '", named->path, "' is not usable: ", named->reason);
    for (const auto& plugin : loader.open_all("import"))
      if (plugin->table && serves(*plugin, extension)) return plugin;
  }
  return std::shared_ptr<const Plugin>();
}

Result<std::shared_ptr<const Plugin>> importer_by_content(PluginLoader& loader,
                                                          const Source& source) {
  std::shared_ptr<const Plugin> best;
  uint32_t best_score = 0;
  for (const auto& plugin : loader.open_all("import")) {
    if (!plugin->table) continue;
    const uint32_t score = plugin->importer()->probe(source.data, source.size);
    if (score > best_score) {
      best_score = score;
      best = plugin;
    }
  }
  return best;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(tolower(c)); });
  return text;
}

void apply_info(const InfoList& list, Graph& graph, ModelInfo& info) {
  for (const auto& [key, value] : list) {
    if (key == "producer_name") info.producer_name = value;
    if (key == "producer_version") info.producer_version = value;
    if (key == "domain") info.domain = value;
    if (key == "description") info.description = value;
    if (key == "graph_name") graph.name = value;
    if (key == "model_version") info.model_version = std::strtoll(value.c_str(), nullptr, 10);
  }
}

InfoList info_list(const ModelInfo& info) {
  InfoList list;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) list.emplace_back(key, value);
  };
  add("producer_name", info.producer_name);
  add("producer_version", info.producer_version);
  add("domain", info.domain);
  add("description", info.description);
  if (info.model_version) add("model_version", std::to_string(info.model_version));
  return list;
}

// The graph of |source|, by the format that its name or content tells.
Result<std::shared_ptr<Graph>> import_graph(const Source& source, Import& import, ModelInfo& info) {
  PluginLoader& loader = *import.env.loader;
  const std::string what = source.text();
  if (source.size == 0) return error(Code::kINVALID_MODEL, "loading ", what, ": it is empty");
  if (is_pfm(source.data, source.size)) {
    auto loaded = load_pfm(source.data, source.size, source.keep, import.progress);
    if (!loaded.ok()) return loaded.take_status().prepend("loading " + what);
    import.info = std::move(loaded->info);
    if (loaded->version == 1)
      import.warnings.emplace_back(
          "the file has .pfm version 1, in which damage to the graph is not noticed; save it anew");
    info.format = "pfm";
    return std::move(loaded->graph);
  }
  std::string why;
  const std::string extension = extension_of(source.name);
  if (extension == "pfm")
    return error(Code::kINVALID_MODEL, "loading ", what, ": it does not start like a .pfm file");
  PFRT_ASSIGN(auto plugin, importer_for(loader, extension, &why));
  if (!plugin) {
    PFRT_ASSIGN(plugin, importer_by_content(loader, source));
  }
  if (!plugin) {
    std::string known = "pfm";
    const auto importers = loader.open_all("import");
    if (why.empty() && importers.empty())
      why = "there are no importers in " + loader.searched() +
            "; set PFRT_PLUGIN_PATH to the folder of the plug-ins";
    for (const auto& p : importers)
      for (size_t i = 0; p->table && i < p->importer()->extension_count; ++i)
        known += ", " + std::string(view(p->importer()->extensions[i]));
    return error(Code::kUNSUPPORTED_FORMAT, "loading ", what, ": ",
                 why.empty() ? "no importer knows this format (known: " + known + ")" : why);
  }
  auto graph = std::make_shared<Graph>();
  PFRT_TRY(run_importer(*plugin, import, graph));
  info.format = lower(plugin->name);
  return graph;
}

constexpr double kReadUntil = 0.5, kImportUntil = 0.9;  // of a load's progress

Status load(pfrt_env* env, const Source& source, const Options& o, Progress& progress,
            uint64_t started, pfrt_model** out) {
  PFRT_TRY(progress.stage("import", kImportUntil).prepend("loading " + source.text()));
  const auto file = os::health_of(source.data);
  Import import{source, progress, *env->state, {}, {}, {}, {}};
  import.confine = o.get_string("confine") == "strict" ? os::Confine::kStrict : os::Confine::kLinks;
  if (file) import.files.push_back(file);
  ModelInfo info;
  auto graph = import_graph(source, import, info);
  // What was read of a file that is gone means nothing, whether it looked right or wrong.
  for (const auto& used : import.files)
    if (used->check()) return used->status().prepend("loading " + source.text());
  if (!graph.ok()) return graph.take_status();
  apply_info(import.info, *graph.value(), info);
  info.import_ms = static_cast<double>(os::monotonic_ns() - started) * 1e-6;
  PFRT_ASSIGN(auto operators, operators_for(*env->state, *graph.value()));
  auto model = Model::create(graph.take(), std::move(info), o.get_bool("validate"),
                             o.get_bool("infer_shapes"), std::move(import.warnings), progress,
                             std::move(operators));
  if (!model.ok()) return model.take_status().prepend("loading " + source.text());
  for (const std::string& w : model.value()->warnings())
    env->state->logger.log(PFRT_LOG_INFO, "loading ", source.text(), ": ", w);
  auto handle = std::make_unique<pfrt_model>();
  handle->env = env->state;
  handle->model = model.take();
  *out = handle.release();
  return {};
}

// The options of a call, or the defaults.
Result<Options> load_options(const pfrt_options* options, const char* doing) {
  if (!options) return Options(PFRT_OPTIONS_LOAD);
  if (options->options.kind() == PFRT_OPTIONS_LOAD) return options->options;
  return error(Code::kINVALID_ARGUMENT, doing, " a model: the options are of kind ",
               options_kind_name(options->options.kind()), ", not load");
}

pfrt_status* load_file(pfrt_env* env, pfrt_string path, const pfrt_options* options,
                       pfrt_model** out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_model" : "env");
    *out = nullptr;
    const EnvScope scope = EnvScope::lasting(*env->state);
    const uint64_t started = os::monotonic_ns();
    PFRT_ASSIGN(const Options o, load_options(options, "loading"));
    Progress progress = o.progress();
    Source source;
    source.path = source.name = view(path);
    auto file = os::MappedFile::open(source.path, env->state->guard_mapped_files);
    if (!file.ok()) return file.take_status().prepend("loading a model");
    source.data = file.value()->data();
    source.size = file.value()->size();
    source.keep = file.take();
    return load(env, source, o, progress, started, out);
  });
}

pfrt_status* load_memory(pfrt_env* env, const void* data, size_t size, pfrt_memory_mode mode,
                         pfrt_release_fn release_fn, void* user, const pfrt_options* options,
                         pfrt_model** out) {
  // From here on |release_fn| is called when the last view goes, whatever happens.
  std::shared_ptr<void> keep;
  return guard([&]() -> Status {
    if (mode == PFRT_BORROW) {
      keep = std::shared_ptr<void>(const_cast<void*>(data), [release_fn, user](void* d) {
        if (release_fn) release_fn(user, d);
      });
    }
    if (!env || !out || (size && !data))
      return null_argument(!env ? "env" : !out ? "out_model" : "data");
    const EnvScope scope = EnvScope::lasting(*env->state);
    *out = nullptr;
    const uint64_t started = os::monotonic_ns();
    PFRT_ASSIGN(const Options o, load_options(options, "loading"));
    Progress progress = o.progress();
    Source source;
    source.size = size;
    if (mode == PFRT_COPY) {
      PFRT_ASSIGN(auto copy, Buffer::allocate(size, false));
      if (size) std::memcpy(copy->data(), data, size);
      source.data = copy->data();
      source.keep = std::move(copy);
    } else if (mode == PFRT_BORROW) {
      source.data = data;
      source.keep = keep;
    } else {
      return error(Code::kINVALID_ARGUMENT, "loading a model from memory: mode ", mode,
                   " is neither PFRT_COPY nor PFRT_BORROW");
    }
    return load(env, source, o, progress, started, out);
  });
}

pfrt_status* load_reader(pfrt_env* env, const pfrt_reader* reader, const pfrt_options* options,
                         pfrt_model** out) {
  // From here on |reader| is released, whatever happens.
  const ReaderSource bytes(reader);
  return guard([&]() -> Status {
    if (!env || !reader || !out)
      return null_argument(!env ? "env" : !reader ? "reader" : "out_model");
    *out = nullptr;
    const uint64_t started = os::monotonic_ns();
    PFRT_ASSIGN(const Options o, load_options(options, "loading"));
    Progress progress = o.progress();
    Source source;
    source.name = bytes.name();
    source.reader = &bytes;
    PFRT_TRY(progress.stage("read", kReadUntil).prepend("loading " + source.text()));
    auto all = bytes.read_bytes(progress);
    if (!all.ok()) return all.take_status().prepend("loading " + source.text());
    source.data = all.value()->data();
    source.size = all.value()->bytes();
    source.keep = all.take();
    return load(env, source, o, progress, started, out);
  });
}

pfrt_status* from_graph(pfrt_env* env, const pfrt_graph* graph, const pfrt_options* options,
                        pfrt_model** out) {
  return guard([&]() -> Status {
    if (!env || !graph || !out) return null_argument(!env ? "env" : !graph ? "graph" : "out_model");
    *out = nullptr;
    const EnvScope scope = EnvScope::lasting(*env->state);
    PFRT_ASSIGN(const Options o, load_options(options, "making"));
    Progress progress = o.progress();
    ModelInfo info;
    info.format = "graph";
    PFRT_ASSIGN(auto operators, operators_for(*env->state, *graph->graph));
    PFRT_ASSIGN(auto model,
                Model::create(graph->graph->clone(), std::move(info), o.get_bool("validate"),
                              o.get_bool("infer_shapes"), {}, progress, std::move(operators)));
    auto handle = std::make_unique<pfrt_model>();
    handle->env = env->state;
    handle->model = std::move(model);
    *out = handle.release();
    return {};
  });
}

// ---- saving ----

struct Export {
  std::string path;
  Progress& progress;
  std::vector<std::unique_ptr<os::AtomicFile>> files;
  static Export& of(const pfrt_export_request* request) {
    return *static_cast<Export*>(request->host);
  }
};

pfrt_code write_out(const pfrt_export_request* request, uint32_t file, const void* data,
                    uint64_t size, const pfrt_sink* sink) {
  Export& e = Export::of(request);
  if (file >= e.files.size()) return PFRT_CODE_INTERNAL;
  const Status status = e.files[file]->write(data, size);
  return status.ok() ? static_cast<pfrt_code>(PFRT_CODE_OK)
                     : sink->fail(sink, static_cast<pfrt_code>(status.code()), PFRT_NO_INDEX,
                                  to_c(status.message()));
}

pfrt_code add_sidecar(const pfrt_export_request* request, pfrt_string name, const pfrt_sink* sink,
                      uint32_t* out) {
  try {
    Export& e = Export::of(request);
    auto file =
        os::AtomicFile::create(os::folder_of(e.path) + "/" + os::name_of(std::string(view(name))));
    if (!file.ok())
      return sink->fail(sink, static_cast<pfrt_code>(file.status().code()), PFRT_NO_INDEX,
                        to_c(file.status().message()));
    *out = static_cast<uint32_t>(e.files.size());
    e.files.push_back(file.take());
    return PFRT_CODE_OK;
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
}

// The bytes that constants had; DATA_LOSS leaves the old file where it is.
Status run_exporter(const Plugin& plugin, Logger& logger, const Model& model,
                    const std::string& path, Progress& progress) {
  if (!(plugin.features & PFRT_IMPORTER_SAVE))
    return error(Code::kUNSUPPORTED, plugin.name, " can be read but not written");
  Export out{path, progress, {}};
  PFRT_ASSIGN(auto first, os::AtomicFile::create(path));
  out.files.push_back(std::move(first));
  // A copy, so that getters' storage is this call's own.
  std::shared_ptr<Graph> graph = model.graph().clone();
  // What is of no particular opset, as built by hand or left by passes, asks no more of its readers
  // than it needs.
  if (graph->opset("") == newest_opset("") && infer_types(*graph).ok()) {
    PFRT_TRY(standardise(*graph));
    name_captures(*graph);
  }
  const std::unique_ptr<pfrt_graph, void (*)(pfrt_graph*)> handle(new pfrt_graph(std::move(graph)),
                                                                  release);
  const InfoList info = info_list(model.info());
  std::vector<pfrt_key_value> entries;
  for (const auto& [key, value] : info) entries.push_back({to_c(key), to_c(value)});
  pfrt_export_request request{};
  request.struct_size = sizeof request;
  request.abi = PFRT_ABI_VERSION;
  request.host = &out;
  request.api = &kApi;
  request.graph = handle.get();
  request.path = to_c(path);
  request.info = entries.data();
  request.info_count = entries.size();
  request.write = write_out;
  request.add_sidecar = add_sidecar;
  request.stop = [](const pfrt_export_request* r) -> pfrt_code {
    return static_cast<pfrt_code>(Export::of(r).progress.stop().code());
  };
  request.progress = [](const pfrt_export_request* r, double fraction) {
    (void)Export::of(r).progress.at(fraction).ok();
  };
  TextSink sink(logger);
  const pfrt_code code =
      call_plugin(sink, [&] { return plugin.importer()->save(&request, &sink.sink); });
  PFRT_TRY(model.intact(true));
  PFRT_TRY(sink.status(code, "writing"));
  // Sidecars first: the model that refers to them comes last.
  for (size_t i = out.files.size(); i-- > 0;) PFRT_TRY(out.files[i]->commit());
  return {};
}

Status save_model(EnvState& env, const Model& model, const std::string& path, Progress& progress) {
  PFRT_TRY(model.intact(true));
  PFRT_TRY(progress.stage("write", 1.0));
  const std::string extension = extension_of(path);
  if (extension == "pfm") {
    PFRT_ASSIGN(auto file, os::AtomicFile::create(path));
    PFRT_TRY(save_pfm(
        model.graph(), info_list(model.info()),
        [&](const void* data, uint64_t size) { return file->write(data, size); }, progress));
    PFRT_TRY(model.intact(true));
    return file->commit();
  }
  std::string why;
  PFRT_ASSIGN(auto plugin, importer_for(*env.loader, extension, &why));
  if (!plugin)
    return error(
        Code::kUNSUPPORTED_FORMAT,
        why.empty() ? "no plug-in writes '." + extension + "' files; use .pfm or .onnx" : why);
  return run_exporter(*plugin, env.logger, model, path, progress);
}

pfrt_status* save_with(pfrt_env* env, const pfrt_model* model, pfrt_string path_view,
                       const pfrt_options* options) {
  return guard([&]() -> Status {
    if (!env || !model) return null_argument(env ? "model" : "env");
    PFRT_ASSIGN(const Options o, load_options(options, "saving"));
    Progress progress = o.progress();
    const std::string path(view(path_view));
    Status saved = save_model(*env->state, *model->model, path, progress);
    if (!saved.ok()) return std::move(saved.prepend("saving '" + path + "'"));
    (void)progress.at(1.0).ok();  // it is written: too late to cancel
    return {};
  });
}

pfrt_status* save(pfrt_env* env, const pfrt_model* model, pfrt_string path) {
  return save_with(env, model, path, nullptr);
}

pfrt_status* graph_of(const pfrt_model* model, pfrt_graph** out) {
  return guard([&]() -> Status {
    if (!model || !out) return null_argument(model ? "out_graph" : "model");
    *out = nullptr;
    *out = new pfrt_graph(model->model->graph().clone());
    return {};
  });
}

pfrt_status* info(const pfrt_model* model, pfrt_model_info* out) {
  return guard([&]() -> Status {
    if (!model || !out) return null_argument(model ? "out_info" : "model");
    const ModelInfo& m = model->model->info();
    pfrt_model_info i{};
    i.graph_name = to_c(model->model->graph().name);
    i.description = to_c(m.description);
    i.producer_name = to_c(m.producer_name);
    i.producer_version = to_c(m.producer_version);
    i.domain = to_c(m.domain);
    i.model_version = m.model_version;
    i.format = to_c(m.format);
    i.node_count = m.node_count;
    i.initializer_count = m.initializer_count;
    i.parameter_count = m.parameter_count;
    i.parameter_bytes = m.parameter_bytes;
    i.import_ms = m.import_ms;
    write(out, i);
    return {};
  });
}

size_t metadata_count(const pfrt_model* model) {
  return model ? model->model->graph().metadata.size() : 0;
}

pfrt_status* metadata_at(const pfrt_model* model, size_t index, pfrt_key_value* out) {
  return guard([&]() -> Status {
    if (!model || !out) return null_argument(model ? "out_entry" : "model");
    const auto& entries = model->model->graph().metadata;
    if (index >= entries.size())
      return error(Code::kINVALID_ARGUMENT, "reading metadata entry ", index, " of ",
                   entries.size());
    *out = {to_c(entries[index].first), to_c(entries[index].second)};
    return {};
  });
}

size_t warning_count(const pfrt_model* model) {
  return model ? model->model->warnings().size() : 0;
}

pfrt_status* warning_at(const pfrt_model* model, size_t index, pfrt_string* out) {
  return guard([&]() -> Status {
    if (!model || !out) return null_argument(model ? "out_warning" : "model");
    const auto& all = model->model->warnings();
    if (index >= all.size())
      return error(Code::kINVALID_ARGUMENT, "reading warning ", index, " of ", all.size());
    *out = to_c(all[index]);
    return {};
  });
}

}  // namespace

const pfrt_model_api kModelApi = {
    sizeof(pfrt_model_api),
    PFRT_ABI_VERSION,
    load_file,
    load_memory,
    from_graph,
    retain<pfrt_model>,
    last_call<release<pfrt_model>, pfrt_model>,
    save,
    graph_of,
    info,
    metadata_count,
    metadata_at,
    warning_count,
    warning_at,
    load_reader,
    save_with,
};

}  // namespace pfrt::capi
