// SPDX-License-Identifier: Apache-2.0
#include "capi/plugin/importer.h"

#include "capi/handle/counted.h"
#include "capi/handle/graph.h"
#include "capi/handle/guard.h"
#include "capi/handle/plugin_scope.h"
#include "capi/handle/slots.h"
#include "core/base/foreign.h"
#include "core/base/os/path.h"
#include "core/environment/export.h"
#include "core/environment/import.h"

// What a plug-in sees as a file: bytes and what keeps them.
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

ImportCall& call_of(const pfrt_import_request* request) {
  return *static_cast<ImportCall*>(request->host);
}

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
    call_of(request).warnings.emplace_back(view(text));
  } catch (const std::bad_alloc&) {  // a warning less is better than a failed load
  }
}

void set_info(const pfrt_import_request* request, pfrt_string key, pfrt_string value) {
  try {
    call_of(request).info.emplace_back(view(key), view(value));
  } catch (const std::bad_alloc&) {
  }
}

// ---- of a save ----

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
  bool writes() const override { return (plugin_->features & PFRT_IMPORTER_SAVE) != 0; }

  Status load(ImportCall& call, const std::shared_ptr<Graph>& graph) const override {
    const ModelSource& source = call.source();
    // The plug-in may keep references to either.
    const GraphHandle handle(new pfrt_graph(graph), release);
    const std::unique_ptr<pfrt_file, void (*)(pfrt_file*)> file(new pfrt_file, release);
    file->keep = source.keep;
    pfrt_import_request request{};
    request.struct_size = sizeof request;
    request.abi = PFRT_ABI_VERSION;
    request.host = &call;
    request.api = &kApi;
    request.graph = handle.get();
    request.path = to_c(source.path);
    request.data = source.data;
    request.size = source.size;
    request.file = file.get();
    std::vector<pfrt_key_value> options;
    options.reserve(call.options.size());
    for (const auto& [key, value] : call.options) options.push_back({to_c(key), to_c(value)});
    request.options = options.data();
    request.option_count = options.size();
    request.file_retain = file_retain;
    request.file_release = file_release;
    request.open_beside = open_beside;
    request.warn = warn;
    request.set_info = set_info;
    const Stop stop = [&] { return call.progress().stop(); };
    Sink sink(&call.logger(), stop);
    sink.set_progress([&](double fraction) { (void)call.progress().at(fraction).ok(); });
    const pfrt_code code = [&] {
      const PluginScope scope(plugin_->library);
      return sink.call([&] { return table().load(&request, sink.get()); }, PFRT_CODE_PLUGIN,
                       "plug-in");
    }();
    return sink.status(code, "loading " + source.text());
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
