// SPDX-License-Identifier: Apache-2.0
//
// Lets an exception out of claim.
#include <stdexcept>
#include <string_view>

#include "pyflame_rt/plugin.h"

namespace {

pfrt_code open(pfrt_string name, const pfrt_key_value*, size_t option_count, const pfrt_sink* sink,
               pfrt_provider** out) {
  static int device;
  *out = nullptr;
  if (std::string_view(name.data, name.size) != "none" || option_count != 0)
    return sink->fail(sink, PFRT_CODE_INVALID_ARGUMENT, PFRT_NO_INDEX, {"'none', no options", 18});
  *out = reinterpret_cast<pfrt_provider*>(&device);
  return PFRT_CODE_OK;
}
void close(pfrt_provider*) {}
pfrt_code claim(pfrt_provider*, const pfrt_snapshot*, const pfrt_claims*, const pfrt_sink*) {
  throw std::runtime_error("claim threw this");
}
pfrt_code compile(pfrt_provider*, const pfrt_region*, size_t, size_t, const pfrt_sink*,
                  pfrt_executable**, size_t*) {
  return PFRT_CODE_UNSUPPORTED;
}
void release_executable(pfrt_executable*) {}
pfrt_code specialise(pfrt_executable*, const pfrt_shapes*, const pfrt_sink*, pfrt_program*) {
  return PFRT_CODE_UNSUPPORTED;
}
void release_program(pfrt_executable*, pfrt_program*) {}

pfrt_provider_table make_table() {
  pfrt_provider_table t{};
  t.struct_size = sizeof t;
  t.abi = PFRT_ABI_VERSION;
  t.devices = {"none", 4};
  t.open = open;
  t.close = close;
  t.claim = claim;
  t.compile = compile;
  t.release_executable = release_executable;
  t.specialise = specialise;
  t.release_program = release_program;
  return t;
}

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info*,
                                                   pfrt_plugin_desc* out_desc) {
  static const pfrt_provider_table table = make_table();
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_PROVIDER;
#if defined(PFRT_SANITIZE_ADDRESS)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->name = {"ThrowingExecutionProvider", 25};
  out_desc->version = {"9.9", 3};
  out_desc->table = &table;
  return PFRT_CODE_OK;
}
