// SPDX-License-Identifier: Apache-2.0
//
// A service that is written with the C++ API and links no library: it runs the model of its option
// "model" once on zeros, and its address is the number of values that came out.
#include <pyflame_rt/plugin.h>

#include <new>
#include <pyflame_rt/session.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Instance {
  std::string address;
};

pfrt_code start(const pfrt_service_request* request, const pfrt_sink* sink,
                pfrt_service_instance** out) {
  *out = nullptr;
  try {
    pyflame_rt::use_api(request->api, request->env);
    std::string path;
    for (size_t i = 0; i < request->option_count; ++i)
      path.assign(request->options[i].value.data, request->options[i].value.size);
    const pyflame_rt::InferenceSession session(path);
    std::unordered_map<std::string, pyflame_rt::Tensor> feeds;
    for (const pyflame_rt::NodeArg& input : session.get_inputs()) {
      std::vector<int64_t> dims;
      for (const auto& d : input.shape) dims.push_back(d.value_or(1));
      feeds.emplace(input.name, pyflame_rt::Tensor(dims, input.dtype));
    }
    const auto outputs = session.run({}, feeds);
    *out = reinterpret_cast<pfrt_service_instance*>(
        new Instance{std::to_string(outputs.at(0).num_elements())});
    return PFRT_CODE_OK;
  } catch (const pyflame_rt::PyFlameRTError& e) {
    const std::string what = e.what();
    return sink->fail(sink, PFRT_CODE_PLUGIN, PFRT_NO_INDEX, {what.data(), what.size()});
  }
}

void stop(pfrt_service_instance* service) { delete reinterpret_cast<Instance*>(service); }

pfrt_string address(const pfrt_service_instance* service) {
  const std::string& text = reinterpret_cast<const Instance*>(service)->address;
  return {text.data(), text.size()};
}

pfrt_service_table make_table() {
  pfrt_service_table table{};
  table.struct_size = sizeof table;
  table.abi = PFRT_ABI_VERSION;
  table.start = start;
  table.stop = stop;
  table.address = address;
  return table;
}

const pfrt_service_table kTable = make_table();

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out) {
  out->abi = PFRT_ABI_VERSION;
  out->abi_major = PFRT_ABI_MAJOR;
  out->max_minor = PFRT_ABI_MINOR;
  out->kind = PFRT_PLUGIN_SERVICE;
#if defined(__SANITIZE_ADDRESS__)
  out->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  out->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out->features = PFRT_SERVICE_ADDRESS;
  out->name = {"Counter", 7};
  out->version = {"1", 1};
  out->table = &kTable;
  return host->abi_major == PFRT_ABI_MAJOR ? PFRT_CODE_OK : PFRT_CODE_PLUGIN;
}
