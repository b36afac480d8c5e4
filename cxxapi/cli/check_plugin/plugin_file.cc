// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/plugin_file.h"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <clocale>
#include <cstring>
#include <filesystem>
#include <thread>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "cxxapi/cli/check_plugin/crash_note.h"

namespace cli::check {
namespace {

std::string handlers() {
  std::string out;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    out.append(reinterpret_cast<const char*>(&now.sa_sigaction), sizeof now.sa_sigaction);
  }
  return out;
}

std::string folder() {
  char path[4096];
  return getcwd(path, sizeof path) ? path : "";
}

}  // namespace

std::string code_text(pfrt_code code) {
  switch (code) {
#define PFRT_X(name, number, text) \
  case number:                     \
    return text;
    PFRT_CODE_TABLE(PFRT_X)
#undef PFRT_X
    default:
      return "code " + std::to_string(code);
  }
}

// Returns rounding, flushing and masks, without the flags that any operation sets.
unsigned float_control() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3fu;
#else
  return static_cast<unsigned>(std::fegetround());
#endif
}

ProcessState::ProcessState()
    : floats_(float_control()),
      rounding_(std::fegetround()),
      locale_(std::setlocale(LC_ALL, nullptr)),
      folder_(folder()),
      handlers_(handlers()) {}

std::string ProcessState::changed() const {
  if (float_control() != floats_ || std::fegetround() != rounding_)
    return "the floating-point control word";
  if (locale_ != std::setlocale(LC_ALL, nullptr)) return "the locale";
  if (folder_ != folder()) return "the working folder";
  if (handlers_ != handlers()) return "a signal handler";
  return {};
}

size_t thread_count() {
  size_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error)) {
    (void)entry;
    ++count;
  }
  return count;
}

bool threads_are(size_t count) {
  for (int i = 0; i < 1000 && thread_count() != count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return thread_count() == count;
}

pfrt_sanitizer own_sanitizer() {
#if defined(PFRT_SANITIZE_ADDRESS)
  return PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  return PFRT_SANITIZER_THREAD;
#else
  return PFRT_SANITIZER_NONE;
#endif
}

pfrt_host_info host_info() {
  pfrt_host_info host{};
  host.struct_size = sizeof host;
  host.abi = PFRT_ABI_VERSION;
  host.abi_major = PFRT_ABI_MAJOR;
  host.max_minor = PFRT_ABI_MINOR;
  host.sanitizer = own_sanitizer();
  host.version = {PFRT_VERSION_TEXT, sizeof PFRT_VERSION_TEXT - 1};
  return host;
}

PluginFile::PluginFile(Trial& trial, const std::string& path) {
  int flags = RTLD_NOW | RTLD_LOCAL;
#if !defined(PFRT_SANITIZE_ADDRESS) && !defined(PFRT_SANITIZE_THREAD)
  // The host opens importers with this flag; sanitizer runtimes refuse it.
  if (std::filesystem::path(path).filename().string().find("_import_") != std::string::npos)
    flags |= RTLD_DEEPBIND;
#endif
  trial.at("opens", "being opened");
  handle_ = ::dlopen(path.c_str(), flags);
  const char* error = handle_ ? "" : ::dlerror();
  if (!trial.expect(handle_ != nullptr, "opens", error ? error : "dlopen failed"))
    throw Broken("not opened");
  query_ = reinterpret_cast<pfrt_plugin_query_fn>(::dlsym(handle_, PFRT_PLUGIN_QUERY_SYMBOL));
  if (!trial.expect(query_ != nullptr, "query-symbol", "it has no such symbol"))
    throw Broken("no query");
}

PluginFile::~PluginFile() {
  if (!handle_) return;
  note_doing("unload", "being unloaded");
  ::dlclose(handle_);
}

void PluginFile::close(Trial& trial) {
  trial.at("unload", "being unloaded");
  trial.expect(::dlclose(handle_) == 0, "unload", "dlclose failed");
  handle_ = nullptr;
}

pfrt_plugin_desc PluginFile::describe(Trial& trial) const {
  const pfrt_host_info host = host_info();
  pfrt_plugin_desc desc{};
  desc.struct_size = sizeof desc;
  desc.abi = PFRT_ABI_VERSION;
  const pfrt_code code =
      call(trial, "query", "pfrt_plugin_query ran", [&] { return query_(&host, &desc); });
  if (code != PFRT_CODE_OK || !desc.table) throw Broken("no description");
  return desc;
}

}  // namespace cli::check
