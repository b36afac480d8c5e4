// SPDX-License-Identifier: Apache-2.0
//
// The ONNX plug-in's door: what crosses dlopen, and the guard that turns exceptions into codes.
#include "pyflame_rt/plugin.h"

#include <exception>
#include <new>

#include "plugins/import_onnx/probe.h"
#include "plugins/import_onnx/reader.h"
#include "plugins/import_onnx/writer.h"

namespace pfrt::onnx {
namespace {

template <typename Work>
pfrt_code guarded(const pfrt_sink* sink, Work work) {
  const auto fail = [sink](pfrt_code code, std::string_view text) {
    return sink->fail(sink, code, PFRT_NO_INDEX, to_c(text));
  };
  try {
    const Status status = work();
    return status.ok() ? static_cast<pfrt_code>(PFRT_CODE_OK)
                       : fail(static_cast<pfrt_code>(status.code()), status.message());
  } catch (const std::bad_alloc&) {
    return fail(PFRT_CODE_OUT_OF_MEMORY, "ONNX: no memory left");
  } catch (const std::exception& fault) {
    return fail(PFRT_CODE_INTERNAL, fault.what());
  } catch (...) {
    return fail(PFRT_CODE_INTERNAL, "ONNX: an unknown exception");
  }
}

pfrt_code load(const pfrt_import_request* request, const pfrt_sink* sink) {
  return guarded(sink, [&] { return read_model(*request, *sink); });
}

pfrt_code save(const pfrt_export_request* request, const pfrt_sink* sink) {
  return guarded(sink, [&] { return write_model(*request, *sink); });
}

constexpr pfrt_string kExtensions[] = {{"onnx", 4}};

constexpr pfrt_importer_table kTable = {
    sizeof(pfrt_importer_table), PFRT_ABI_VERSION, kExtensions, 1, probe, load, save,
};

#if defined(PFRT_SANITIZE_ADDRESS)
constexpr pfrt_sanitizer kSanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
constexpr pfrt_sanitizer kSanitizer = PFRT_SANITIZER_THREAD;
#else
constexpr pfrt_sanitizer kSanitizer = PFRT_SANITIZER_NONE;
#endif

}  // namespace
}  // namespace pfrt::onnx

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  if (!host || !out_desc) return PFRT_CODE_PLUGIN;
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->min_minor = 0;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_IMPORT;
  out_desc->sanitizer = pfrt::onnx::kSanitizer;
  out_desc->features = PFRT_IMPORTER_SAVE;
  out_desc->name = {"ONNX", 4};
  out_desc->version = {"0.1.0", 5};
  out_desc->table = &pfrt::onnx::kTable;
  return PFRT_CODE_OK;
}
