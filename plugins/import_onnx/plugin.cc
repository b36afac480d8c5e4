// SPDX-License-Identifier: Apache-2.0
//
// The ONNX plug-in's door: what crosses dlopen, and the guard that turns exceptions into codes.
#include "pyflame_rt/plugin.h"

#include "plugins/import_onnx/probe.h"
#include "plugins/import_onnx/reader.h"
#include "plugins/import_onnx/writer.h"
#include "providers/kit/describe.h"
#include "providers/kit/guard.h"

namespace pfrt::onnx {
namespace {

template <typename Work>
pfrt_code run(const pfrt_sink* sink, Work work) {
  return guarded(sink, "the ONNX importer", [&] {
    const Status status = work();
    return status.ok() ? pfrt_code{PFRT_CODE_OK} : report_status(sink, status);
  });
}

pfrt_code load(const pfrt_import_request* request, const pfrt_sink* sink) {
  return run(sink, [&] { return read_model(*request, *sink); });
}

pfrt_code save(const pfrt_export_request* request, const pfrt_sink* sink) {
  return run(sink, [&] { return write_model(*request, *sink); });
}

constexpr pfrt_string kExtensions[] = {{"onnx", 4}};

constexpr pfrt_importer_table kTable = {
    sizeof(pfrt_importer_table),
    PFRT_ABI_VERSION,
    kExtensions,
    1,
    probe,
    load,
    save,
    nullptr,
    nullptr,  // it has no options
};

}  // namespace
}  // namespace pfrt::onnx

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  return pfrt::describe_plugin(host, PFRT_PLUGIN_IMPORT, "ONNX", PFRT_IMPORTER_SAVE,
                               &pfrt::onnx::kTable, out_desc);
}
