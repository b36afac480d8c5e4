// SPDX-License-Identifier: Apache-2.0
#include "capi/plugin/importer.h"

#include <unordered_set>

#include "capi/handle/counted.h"
#include "capi/handle/graph.h"
#include "capi/handle/guard.h"
#include "capi/handle/plugin_scope.h"
#include "capi/handle/slots.h"
#include "capi/handle/value.h"
#include "core/base/foreign.h"
#include "core/base/os/path.h"
#include "core/environment/export.h"
#include "core/environment/import.h"
#include "core/options/provider_options.h"

// A file as a plug-in sees it, with the owner of its bytes.
struct pfrt_file : pfrt::capi::Counted {
  std::shared_ptr<void> keep;
};

namespace pfrt::capi {
namespace {

pfrt_code report(const pfrt_sink* sink, const Status& status) {
  return sink->fail(sink, static_cast<pfrt_code>(status.code()), PFRT_NO_INDEX,
                    to_c(status.message()));
}

// ---- the host's side of a load ----

// A request's host.
struct Load {
  ImportCall& call;
  pfrt_graph& graph;
};

Load& load_of(const pfrt_import_request* request) { return *static_cast<Load*>(request->host); }
ImportCall& call_of(const pfrt_import_request* request) { return load_of(request).call; }

void file_retain(pfrt_file* file) { retain(file); }
void file_release(void* file, void*) { release(static_cast<pfrt_file*>(file)); }

pfrt_code open_beside(const pfrt_import_request* request, pfrt_string location,
                      const pfrt_sink* sink, pfrt_file** out_file, const void** out_data,
                      uint64_t* out_size) {
  try {
    *out_file = nullptr;
    *out_data = nullptr;
    *out_size = 0;
    auto file = std::make_unique<pfrt_file>();
    auto bytes = call_of(request).open_beside(view(location));
    if (!bytes.ok()) return report(sink, bytes.status());
    *out_data = bytes->data;
    *out_size = bytes->size;
    file->keep = std::move(bytes->keep);
    *out_file = file.release();
    return PFRT_CODE_OK;
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
}

void warn(const pfrt_import_request* request, pfrt_string text) {
  try {
    call_of(request).attempt.warnings.emplace_back(view(text));
  } catch (const std::bad_alloc&) {  // losing a warning is better than failing the load
  }
}

void set_info(const pfrt_import_request* request, pfrt_string key, pfrt_string value) {
  try {
    call_of(request).attempt.info.emplace_back(view(key), view(value));
  } catch (const std::bad_alloc&) {
  }
}

pfrt_code choose_entry(const pfrt_import_request* request, const pfrt_string* names, size_t count,
                       const pfrt_sink* sink, size_t* out_index) {
  try {
    *out_index = 0;
    std::vector<std::string> all;
    for (size_t i = 0; names && i < count; ++i) all.emplace_back(view(names[i]));
    const auto chosen = call_of(request).choose_entry(std::move(all));
    if (!chosen.ok()) return report(sink, chosen.status());
    *out_index = chosen.value();
    return PFRT_CODE_OK;
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
}

pfrt_code add_state(const pfrt_import_request* request, const pfrt_state_pair* pair,
                    const pfrt_sink* sink) {
  try {
    if (!pair) return report(sink, null_argument("pair"));
    Status added = abi::check(*pair);
    if (added.ok()) {
      pfrt_graph& graph = load_of(request).graph;
      graph.edited();
      added = call_of(request).add_state(*graph.graph, abi::known(pair));
    }
    return added.ok() ? pfrt_code{PFRT_CODE_OK} : report(sink, added);
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
}

// The importer's faults in what it gives a definer.
Status check_weights(const pfrt_weights& weights) {
  constexpr std::string_view kDoing = "giving a definer the file's weights";
  if ((weights.count && (!weights.names || !weights.values)) ||
      (weights.meta_count && !weights.meta))
    return error(Code::kPLUGIN, kDoing, ": a list is NULL but its count is not 0");
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < weights.count; ++i) {
    const std::string_view name = view(weights.names[i]);
    if (!weights.values[i] || weights.values[i]->value->kind != PFRT_VALUE_TENSOR)
      return error(Code::kPLUGIN, kDoing, ": '", name, "' is no tensor");
    if (!names.insert(name).second)
      return error(Code::kPLUGIN, kDoing, ": there are two called '", name, "'");
  }
  return {};
}

// Has the client's function build the graph.
Status run_definer(Load& load, const pfrt_weights* given) {
  if (!given) return null_argument("weights");
  PFRT_TRY(abi::by_plugin(abi::check(*given), Code::kPLUGIN));
  const pfrt_weights weights = abi::known(given);
  PFRT_TRY(check_weights(weights));
  std::string text;
  pfrt_definition definition{};
  definition.struct_size = sizeof definition;
  definition.abi = PFRT_ABI_VERSION;
  definition.host = &text;
  definition.graph = &load.graph;
  definition.weights = &weights;
  definition.fail = [](const pfrt_definition* d, pfrt_code code, pfrt_string message) {
    return call_foreign([&] { *static_cast<std::string*>(d->host) = view(message); })
               ? code
               : pfrt_code{PFRT_CODE_OUT_OF_MEMORY};
  };
  pfrt_code code = PFRT_CODE_INTERNAL;
  const Options::Definer& definer = load.call.definer;
  if (!call_foreign([&] { code = definer.fn(definer.user, &definition); }))
    return error(Code::kINTERNAL, "the definer let an exception out");
  if (code == PFRT_CODE_OK) return {};
  return error(static_cast<Code>(code), "the definer failed: ",
               text.empty() ? std::string(code_text(static_cast<Code>(code))) : text);
}

pfrt_code define(const pfrt_import_request* request, const pfrt_weights* weights,
                 const pfrt_sink* sink) {
  try {
    Load& load = load_of(request);
    ImportCall::Attempt& attempt = load.call.attempt;
    if (attempt.asked_definer && attempt.defined.ok())
      attempt.defined = error(Code::kPLUGIN, "the importer asks the definer twice");
    if (attempt.defined.ok()) {
      attempt.asked_definer = true;
      attempt.defined = run_definer(load, weights);
    }
    return attempt.defined.ok() ? pfrt_code{PFRT_CODE_OK} : report(sink, attempt.defined);
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
}

// ---- the host's side of a save ----

ExportCall& call_of(const pfrt_export_request* request) {
  return *static_cast<ExportCall*>(request->host);
}

pfrt_code write_out(const pfrt_export_request* request, uint32_t file, const void* data,
                    uint64_t size, const pfrt_sink* sink) {
  const Status status = call_of(request).write(file, data, size);
  return status.ok() ? static_cast<pfrt_code>(PFRT_CODE_OK) : report(sink, status);
}

pfrt_code add_sidecar(const pfrt_export_request* request, pfrt_string name, const pfrt_sink* sink,
                      uint32_t* out) {
  try {
    ExportCall& call = call_of(request);
    const auto file =
        call.add_file(os::folder_of(call.path()) + "/" + os::name_of(std::string(view(name))));
    if (!file.ok()) return report(sink, file.status());
    *out = file.value();
    return PFRT_CODE_OK;
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  }
}

using GraphHandle = std::unique_ptr<pfrt_graph, void (*)(pfrt_graph*)>;

pfrt_graph::Flag new_flag() { return std::make_shared<std::atomic<bool>>(false); }

class PluginImporter final : public Importer {
 public:
  explicit PluginImporter(std::shared_ptr<const Plugin> plugin) : plugin_(std::move(plugin)) {}

  const std::string& name() const override { return plugin_->name; }
  std::vector<std::string_view> extensions() const override {
    std::vector<std::string_view> out;
    for (size_t i = 0; i < table().extension_count; ++i) out.push_back(view(table().extensions[i]));
    return out;
  }
  uint32_t probe(const void* data, uint64_t size) const override {
    uint32_t sure = 0;
    call_foreign([&] { sure = table().probe(data, size); });
    return sure;
  }
  Result<std::vector<pfrt_option_info>> options() const override {
    if (!(plugin_->features & PFRT_IMPORTER_OPTIONS)) return std::vector<pfrt_option_info>();
    return declared_options(table().option_count, table().option_at, plugin_->name);
  }
  bool writes() const override { return (plugin_->features & PFRT_IMPORTER_SAVE) != 0; }

  Result<std::shared_ptr<Graph>> load(ImportCall& call) const override {
    const ModelSource& source = call.source();
    // The plug-in and the definer may keep references to the handles.
    const GraphHandle handle(new pfrt_graph(std::make_shared<Graph>(), new_flag()), release);
    Load load{call, *handle};
    const std::unique_ptr<pfrt_file, void (*)(pfrt_file*)> file(new pfrt_file, release);
    file->keep = source.keep;
    pfrt_import_request request{};
    request.struct_size = sizeof request;
    request.abi = PFRT_ABI_VERSION;
    request.host = &load;
    request.api = &kApi;
    request.graph = handle.get();
    request.path = to_c(source.path);
    request.data = source.data;
    request.size = source.size;
    request.file = file.get();
    std::vector<pfrt_key_value> options;
    options.reserve(call.attempt.options.size());
    for (const auto& [key, value] : call.attempt.options)
      options.push_back({to_c(key), to_c(value)});
    request.options = options.data();
    request.option_count = options.size();
    request.file_retain = file_retain;
    request.file_release = file_release;
    request.open_beside = open_beside;
    request.warn = warn;
    request.set_info = set_info;
    request.choose_entry = choose_entry;
    request.add_state = add_state;
    if (call.definer.fn) request.define = define;
    const Stop stop = [&] { return call.progress().stop(); };
    Sink sink(&call.logger(), stop);
    sink.set_progress([&](double fraction) { (void)call.progress().at(fraction).ok(); });
    const pfrt_code code = [&] {
      const PluginScope scope(plugin_->library);
      return sink.call([&] { return table().load(&request, sink.get()); }, PFRT_CODE_PLUGIN,
                       "plug-in");
    }();
    std::shared_ptr<Graph> graph = handle->end_load();
    PFRT_TRY(sink.status(code, "loading " + source.text()));
    return graph;
  }

  Status save(ExportCall& call, std::shared_ptr<Graph> graph) const override {
    const GraphHandle handle(new pfrt_graph(std::move(graph)), release);
    std::vector<pfrt_key_value> entries;
    for (const auto& [key, value] : call.info()) entries.push_back({to_c(key), to_c(value)});
    pfrt_export_request request{};
    request.struct_size = sizeof request;
    request.abi = PFRT_ABI_VERSION;
    request.host = &call;
    request.api = &kApi;
    request.graph = handle.get();
    request.path = to_c(call.path());
    request.info = entries.data();
    request.info_count = entries.size();
    request.write = write_out;
    request.add_sidecar = add_sidecar;
    const Stop stop = [&] { return call.progress().stop(); };
    Sink sink(&call.logger(), stop);
    sink.set_progress([&](double fraction) { (void)call.progress().at(fraction).ok(); });
    const pfrt_code code =
        sink.call([&] { return table().save(&request, sink.get()); }, PFRT_CODE_PLUGIN, "plug-in");
    return sink.status(code, "writing");
  }

 private:
  const pfrt_importer_table& table() const { return *plugin_->importer(); }
  std::shared_ptr<const Plugin> plugin_;
};

}  // namespace

std::shared_ptr<const Importer> importer_of(std::shared_ptr<const Plugin> plugin) {
  return std::make_shared<PluginImporter>(std::move(plugin));
}

}  // namespace pfrt::capi
