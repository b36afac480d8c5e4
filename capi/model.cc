// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/model.h"

#include "capi/handle/counted.h"
#include "capi/handle/env.h"
#include "capi/handle/graph.h"
#include "capi/handle/guard.h"
#include "capi/handle/options.h"
#include "capi/handle/plugin_scope.h"
#include "capi/handle/slots.h"
#include "capi/reader.h"
#include "core/base/foreign.h"
#include "core/base/os/cpu.h"
#include "core/environment/export.h"
#include "core/environment/import.h"

namespace pfrt::capi {
namespace {

pfrt_model* handle_of(const pfrt_env& env, std::shared_ptr<const Model> model) {
  auto handle = std::make_unique<pfrt_model>();
  handle->env = env.state;
  handle->model = std::move(model);
  return handle.release();
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
    PFRT_ASSIGN(const Options o, load_options(options, "loading"));
    PFRT_ASSIGN(auto model, load_model_file(*env->state, std::string(view(path)), o));
    *out = handle_of(*env, std::move(model));
    return {};
  });
}

pfrt_status* load_memory(pfrt_env* env, const void* data, size_t size, pfrt_memory_mode mode,
                         pfrt_release_fn release_fn, void* user, const pfrt_options* options,
                         pfrt_model** out) {
  // |release_fn| is always called from here on, when the last view goes.
  std::shared_ptr<void> keep;
  return guard([&]() -> Status {
    if (mode == PFRT_BORROW) {
      keep = std::shared_ptr<void>(const_cast<void*>(data), [release_fn, user](void* d) {
        if (release_fn) call_foreign([&] { release_fn(user, d); });
      });
    }
    if (!env || !out || (size && !data))
      return null_argument(!env ? "env" : !out ? "out_model" : "data");
    *out = nullptr;
    const uint64_t started = os::monotonic_ns();
    PFRT_ASSIGN(const Options o, load_options(options, "loading"));
    const EnvironmentScope scope =
        EnvironmentScope::lasting(*env->state, load_budget(*env->state, o));
    Progress progress = o.progress();
    ModelSource source;
    source.size = size;
    if (mode == PFRT_COPY) {
      PFRT_ASSIGN(auto copy, Buffer::allocate(size, false));
      if (size) std::memcpy(copy->data(), data, size);
      source.data = copy->data();
      source.keep = std::move(copy);
    } else if (mode == PFRT_BORROW) {
      source.data = data;
      source.keep = keep;
    } else if (mode == PFRT_MEMORY_MODE_UNSET) {
      return error(Code::kINVALID_ARGUMENT,
                   "loading a model from memory: mode is neither PFRT_COPY nor PFRT_BORROW");
    } else {
      return abi::unknown_number("loading a model from memory", "mode", mode);
    }
    PFRT_ASSIGN(auto model, load_model(*env->state, source, o, progress, started));
    *out = handle_of(*env, std::move(model));
    return {};
  });
}

pfrt_status* load_reader(pfrt_env* env, const pfrt_reader* reader, const pfrt_options* options,
                         pfrt_model** out) {
  // |reader| is always released from here on.
  const ReaderSource bytes(reader);
  return guard([&]() -> Status {
    if (!env || !reader || !out)
      return null_argument(!env ? "env" : !reader ? "reader" : "out_model");
    *out = nullptr;
    PFRT_TRY(abi::check(*reader));
    const uint64_t started = os::monotonic_ns();
    PFRT_ASSIGN(const Options o, load_options(options, "loading"));
    Progress progress = o.progress();
    ModelSource source;
    source.name = bytes.name();
    source.read_beside = [&](std::string_view location, Progress& p) {
      return bytes.read_beside(location, p);
    };
    PFRT_TRY(progress.stage("read", kReadUntil).prepend("loading " + source.text()));
    auto all = bytes.read_bytes(progress);
    if (!all.ok()) return all.take_status().prepend("loading " + source.text());
    source.data = all.value()->data();
    source.size = all.value()->bytes();
    source.keep = all.take();
    PFRT_ASSIGN(auto model, load_model(*env->state, source, o, progress, started));
    *out = handle_of(*env, std::move(model));
    return {};
  });
}

pfrt_status* from_graph(pfrt_env* env, const pfrt_graph* graph, const pfrt_options* options,
                        pfrt_model** out) {
  return guard([&]() -> Status {
    if (!env || !graph || !out) return null_argument(!env ? "env" : !graph ? "graph" : "out_model");
    *out = nullptr;
    PFRT_TRY(graph->open());
    PFRT_ASSIGN(const Options o, load_options(options, "making"));
    PFRT_ASSIGN(auto model, model_of_graph(*env->state, *graph->graph, o));
    *out = handle_of(*env, std::move(model));
    return {};
  });
}

pfrt_status* save(pfrt_env* env, const pfrt_model* model, pfrt_string path_view,
                  const pfrt_options* options) {
  return guard([&]() -> Status {
    if (!env || !model) return null_argument(env ? "model" : "env");
    PFRT_ASSIGN(const Options o, load_options(options, "saving"));
    Progress progress = o.progress();
    const std::string path(view(path_view));
    Status saved = save_model(*env->state, *model->model, path, progress);
    if (!saved.ok()) return std::move(saved.prepend("saving '" + path + "'"));
    (void)progress.at(1.0).ok();  // too late to cancel: the file is written
    return {};
  });
}

pfrt_status* graph_of(const pfrt_model* model, pfrt_graph** out) {
  return guard([&]() -> Status {
    if (!model || !out) return null_argument(model ? "out_graph" : "model");
    *out = nullptr;
    PFRT_ASSIGN(const Model* const loaded, model->model->loaded());
    *out = new pfrt_graph(loaded->graph().clone());
    return {};
  });
}

pfrt_status* info(const pfrt_model* model, pfrt_model_info* out) {
  return guard([&]() -> Status {
    if (!model || !out) return null_argument(model ? "out_info" : "model");
    const ModelInfo& m = model->model->info();
    pfrt_model_info i{};
    i.graph_name = to_c(model->model->signature().name);
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
    i.entry = to_c(m.entry);
    i.entries = to_c(m.entries);
    return write(out, i);
  });
}

size_t metadata_count(const pfrt_model* model) {
  return model ? model->model->signature().metadata.size() : 0;
}

pfrt_status* metadata_at(const pfrt_model* model, size_t index, pfrt_key_value* out) {
  return guard([&]() -> Status {
    if (!model || !out) return null_argument(model ? "out_entry" : "model");
    const auto& entries = model->model->signature().metadata;
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
};

}  // namespace pfrt::capi
