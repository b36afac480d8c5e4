// SPDX-License-Identifier: Apache-2.0
//
// The environment: logging, the plug-in search and threads, shared by everything in the process. It
// is made when it is first needed and never destroyed: exit() with live sessions is legal in any
// order. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <pyflame_rt/api.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {

// Options of the environment. Empty strings and 0 mean "the default".
struct EnvironmentOptions {
  std::string plugin_path;  // folders, colon-separated, searched before PFRT_PLUGIN_PATH
  std::string log_level;    // "debug", "info", "warning", "error", "off"
  // Most threads of a run; 0 = as many as affinity and quota allow.
  int num_threads = 0;
  // Further keys of the library's schema, as text: "memory_limit", "memory_pressure",
  // "memory_idle_s" and others. An unknown key throws InputError.
  std::map<std::string, std::string> extra = {};
  // Word of the plug-in of kind executor whose threads loops of runs use; empty = the library's own
  // pool. "tbb" takes oneTBB's, in the arena of the calling thread, so that a host which is built
  // on oneTBB shares its threads. NotFoundError when there is no such plug-in.
  std::string executor = {};
};

// A file of the plug-in search path.
struct PluginInfo {
  // Kind ("provider"), name, file and version of the plug-in; the version is empty when it was not
  // opened.
  std::string kind, name, path, version;
  std::string reason;  // why it was rejected, or empty
  // Whether it was opened and accepted.
  bool loaded = false;
  // ABI version that the plug-in was built with; 0 when it was not opened.
  uint32_t abi_major = 0, abi_minor = 0;
};

// A provider that sessions can name.
struct ProviderInfo {
  // Name that sessions use, and the plug-in's file.
  std::string name, path;
  std::string devices;  // comma-separated
  std::string reason;   // why it is not available, or empty
  // Whether its plug-in can be opened.
  bool available = false;
};

// A kernel of a provider. Opset ranges are inclusive; |until| 0 means "still current".
struct KernelInfo {
  // Operator, its domain ("" is ai.onnx), element types, the kernel's own name, and the instruction
  // set that it needs.
  std::string op, domain, types, name, isa;
  // Range of opsets of the domain.
  uint32_t since = 0, until = 0;
};

// An operator that the library knows.
struct OperatorInfo {
  // Name and domain ("" is ai.onnx).
  std::string op, domain;
  std::string runs_in;  // "provider" or "host"
  std::string note;     // which was followed where standard and implementations differ
  std::string types;    // that a registered operator is for, "float32, any -> bool"; empty = any
  // Range of opsets of the domain; |until| 0 means "still current".
  uint32_t since = 0, until = 0;
};

// An option of a provider for SessionOptions::extra, or of an importer for LoadOptions::extra: the
// key as given there, the type as in the C table.
struct ProviderOption {
  // The key, its default as text, and a sentence on its effect.
  std::string key, default_value, doc;
  std::string choices;  // space-separated; empty = any
  // PFRT_OPTION_INT and the like.
  pfrt_option_type type = PFRT_OPTION_UNSET;
};

struct Question;  // ask.hpp
struct Answer;
class IExecutor;     // executor.hpp
class IThreadHooks;  // executor.hpp
namespace memory {
class IAllocator;      // memory/allocator.hpp
class IMemoryPlanner;  // memory/planner.hpp
}  // namespace memory

// Severity of a line of the log.
enum class LogLevel : uint32_t {
  Debug = PFRT_LOG_DEBUG,
  Info = PFRT_LOG_INFO,
  Warning = PFRT_LOG_WARNING,
  Error = PFRT_LOG_ERROR,
};

namespace detail {

// Registrations that a program makes, also in its static initialisers before there is an
// environment. They are kept, and applied when the environment is made.
class Registrations {
 public:
  using Apply = std::function<void(pfrt_env*)>;

  static Registrations& instance() {
    static Registrations* const all = new Registrations;  // exit() with live sessions is legal
    return *all;
  }
  // Adds a registration; the result is for remove. Throws what |apply| throws; then nothing is
  // kept.
  size_t add(Apply apply) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (env_ != nullptr) apply(env_);
    entries_.push_back(std::move(apply));
    return entries_.size() - 1;
  }
  void remove(size_t entry, const Apply& undo) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (env_ != nullptr) undo(env_);
    entries_[entry] = nullptr;
  }
  void attach(pfrt_env* env) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Apply& apply : entries_)
      if (apply) apply(env);
    env_ = env;
  }

 private:
  std::mutex mutex_;
  pfrt_env* env_ = nullptr;
  std::vector<Apply> entries_;
};

}  // namespace detail

// The state that everything in the process shares; made when it is first asked for.
class Environment {
 public:
  // Takes a line without its end; called from any thread, several at once. An exception that it
  // throws is lost with the line. It may use the library and set another logger, but not the model
  // or session that the line's call is at work on; lines that it causes go to stderr.
  using Logger = std::function<void(LogLevel, const std::string&)>;

  // Returns the environment of the process, or the one that use_api was given. |options| count on
  // the first call in the process only; later ones are ignored (has_instance() tells), and so are
  // those for an environment that was given.
  static Environment& instance(const EnvironmentOptions& options = {}) {
    const std::lock_guard<std::mutex> lock(slot().mutex);
    Slot& s = slot();
    pfrt_env* const given = detail::given().env;
    if (s.environment == nullptr || (given != nullptr && s.environment->handle() != given)) {
      std::unique_ptr<Environment> made(new Environment(options));
      detail::Registrations::instance().attach(made->handle());
      s.environment = made.release();
    }
    return *s.environment;
  }
  // Whether the environment exists already.
  static bool has_instance() {
    const std::lock_guard<std::mutex> lock(slot().mutex);
    return slot().environment != nullptr;
  }

  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  // Sends log lines to |logger|, from any thread, instead of stderr; an empty one restores stderr.
  void set_logger(Logger logger) {
    const bool restore = !logger;
    {
      const std::lock_guard<std::mutex> lock(logger_mutex_);
      logger_ = std::make_shared<Logger>(std::move(logger));
    }
    detail::check(api().env->set_logger(env_.get(), restore ? nullptr : &forward_log, this));
  }

  // Looks through the plug-in folders again and opens the files there, so that each row says
  // whether it would load.
  void refresh_plugins() { detail::check(api().env->refresh_plugins(env_.get())); }
  // Every file of the plug-in search path, opened to see whether it would load.
  std::vector<PluginInfo> plugins() const;
  // Opens the plug-in of a file, whatever folder it lies in; sessions that are made later find what
  // it brings. Throws NotFoundError where there is no such file, and PyFlameRTError with the reason
  // where it is not usable.
  PluginInfo open_plugin(const std::string& path);
  // Every provider that sessions can name.
  std::vector<ProviderInfo> providers() const;
  // The kernel table of a provider, by its name.
  std::vector<KernelInfo> kernels(const std::string& provider) const;
  // The options of a provider, by its name.
  std::vector<ProviderOption> provider_options(const std::string& provider) const;
  // The options that an importer, by its name, adds to those of a load (LoadOptions::extra). Throws
  // NotFoundError when there is no such importer.
  std::vector<ProviderOption> importer_options(const std::string& importer) const;
  static std::vector<OperatorInfo> operators();  // the built-in ones
  // Operators registered by the program or brought by plug-ins of kind ops, which are opened.
  std::vector<OperatorInfo> custom_operators() const;
  // Returns a device's answer. The device is opened for the call or shared with sessions that have
  // it open (ask.hpp). Throws UnsupportedError when it takes no questions or does not know the
  // verb.
  Answer ask(const Question& question) const;

  // Makes |allocator| the source of memory for models and runs that begin afterwards; null restores
  // the library's own (memory/allocator.hpp). It is kept until its last allocation has been given
  // back.
  void set_allocator(std::shared_ptr<memory::IAllocator> allocator);
  // Makes |planner| place the buffers of runs, for plans that are made from now on; null restores
  // the library's own (memory/planner.hpp).
  void set_memory_planner(std::shared_ptr<memory::IMemoryPlanner> planner);
  // Makes runs that begin afterwards use the threads of |executor| instead of the library's; null
  // restores those of the environment's options (executor.hpp).
  void set_executor(std::shared_ptr<IExecutor> executor);
  // Gives this environment a pool of its own, whose threads |hooks| start and join; null restores
  // the process's pool (executor.hpp). An executor goes first.
  void set_thread_hooks(std::shared_ptr<IThreadHooks> hooks);

  // Frees memory whose contents can be made again: plans and idle blocks of all sessions, idle
  // memory of the global pool and of the C library. Returns the bytes of blocks and pools that were
  // freed.
  uint64_t trim() const {
    uint64_t bytes = 0;
    detail::check(api().env->trim(env_.get(), &bytes));
    return bytes;
  }

  pfrt_env* handle() const noexcept { return env_.get(); }

 private:
  struct Slot {
    std::mutex mutex;
    Environment* environment = nullptr;
  };
  static Slot& slot() {
    static Slot* const the_slot = new Slot;
    return *the_slot;
  }

  // An environment is never destroyed, so that one which was given stays borrowed.
  explicit Environment(const EnvironmentOptions& options) {
    if (pfrt_env* const given = detail::given().env) {
      env_ = detail::Handle<pfrt_env>::adopt(given);
      return;
    }
    detail::Handle<pfrt_options> c;
    detail::check(api().options->create(PFRT_OPTIONS_ENV, c.out()));
    const auto set_text = [&c](const char* key, const std::string& value) {
      if (value.empty()) return;
      detail::check(api().options->set_string(c.get(), detail::text(key), detail::text(value)));
    };
    set_text("plugin_path", options.plugin_path);
    set_text("log_level", options.log_level);
    set_text("executor", options.executor);
    if (options.num_threads != 0) {
      detail::check(api().options->set_int(c.get(), detail::text("threads"), options.num_threads));
    }
    for (const auto& [key, value] : options.extra)
      detail::check(api().options->set_text(c.get(), detail::text(key), detail::text(value)));
    detail::check(api().env->create(c.get(), env_.out()));
  }

  static void forward_log(void* user, pfrt_log_level level, pfrt_string message) {
    auto* self = static_cast<Environment*>(user);
    std::shared_ptr<Logger> logger;
    {
      const std::lock_guard<std::mutex> lock(self->logger_mutex_);
      logger = self->logger_;
    }
    try {
      if (logger && *logger) (*logger)(static_cast<LogLevel>(level), detail::str(message));
    } catch (...) {
      // Nothing may unwind through the C library; a logger that throws loses its line.
    }
  }

  detail::Handle<pfrt_env> env_;
  std::mutex logger_mutex_;
  std::shared_ptr<Logger> logger_;
};

namespace detail {
inline PluginInfo plugin_info(const pfrt_plugin_info& c) {
  PluginInfo info;
  info.kind = str(c.kind);
  info.name = str(c.name);
  info.path = str(c.path);
  info.version = str(c.version);
  info.reason = str(c.reason);
  info.loaded = c.loaded != 0;
  info.abi_major = c.abi_major;
  info.abi_minor = c.abi_minor;
  return info;
}
}  // namespace detail

inline std::vector<PluginInfo> Environment::plugins() const {
  std::vector<PluginInfo> out(api().env->plugin_count(env_.get()));
  for (size_t i = 0; i < out.size(); ++i) {
    pfrt_plugin_info c{};
    c.struct_size = sizeof(c);
    detail::check(api().env->plugin_at(env_.get(), i, &c));
    out[i] = detail::plugin_info(c);
  }
  return out;
}

inline PluginInfo Environment::open_plugin(const std::string& path) {
  pfrt_plugin_info c{};
  c.struct_size = sizeof(c);
  detail::check(api().env->open_plugin(env_.get(), detail::text(path), &c));
  return detail::plugin_info(c);
}

inline std::vector<ProviderInfo> Environment::providers() const {
  std::vector<ProviderInfo> out(api().env->provider_count(env_.get()));
  for (size_t i = 0; i < out.size(); ++i) {
    pfrt_provider_info c{};
    c.struct_size = sizeof(c);
    detail::check(api().env->provider_at(env_.get(), i, &c));
    ProviderInfo& info = out[i];
    info.name = detail::str(c.name);
    info.path = detail::str(c.path);
    info.devices = detail::str(c.devices);
    info.reason = detail::str(c.reason);
    info.available = c.available != 0;
  }
  return out;
}

inline std::vector<KernelInfo> Environment::kernels(const std::string& provider) const {
  size_t count = 0;
  detail::check(api().env->kernel_count(env_.get(), detail::text(provider), &count));
  std::vector<KernelInfo> out(count);
  for (size_t i = 0; i < count; ++i) {
    pfrt_kernel_info c{};
    c.struct_size = sizeof(c);
    detail::check(api().env->kernel_at(env_.get(), detail::text(provider), i, &c));
    KernelInfo& info = out[i];
    info.op = detail::str(c.op);
    info.domain = detail::str(c.domain);
    info.types = detail::str(c.types);
    info.name = detail::str(c.name);
    info.isa = detail::str(c.isa);
    info.since = c.since;
    info.until = c.until;
  }
  return out;
}

namespace detail {

inline ProviderOption option_from_c(const pfrt_option_info& c) {
  return {str(c.key), str(c.default_value), str(c.doc), str(c.choices), c.type};
}

template <class Count, class At>
std::vector<ProviderOption> options_from_c(pfrt_env* env, const std::string& plugin, Count count_of,
                                           At option_at) {
  size_t count = 0;
  check(count_of(env, text(plugin), &count));
  std::vector<ProviderOption> out(count);
  for (size_t i = 0; i < count; ++i) {
    pfrt_option_info c{};
    c.struct_size = sizeof(c);
    check(option_at(env, text(plugin), i, &c));
    out[i] = option_from_c(c);
  }
  return out;
}

}  // namespace detail

inline std::vector<ProviderOption> Environment::provider_options(
    const std::string& provider) const {
  return detail::options_from_c(env_.get(), provider, api().env->provider_option_count,
                                api().env->provider_option_at);
}

inline std::vector<ProviderOption> Environment::importer_options(
    const std::string& importer) const {
  return detail::options_from_c(env_.get(), importer, api().env->importer_option_count,
                                api().env->importer_option_at);
}

namespace detail {

inline OperatorInfo operator_from_c(const pfrt_operator_info& c) {
  OperatorInfo info;
  info.op = str(c.op);
  info.domain = str(c.domain);
  info.runs_in = str(c.runs_in);
  info.note = str(c.note);
  info.types = str(c.types);
  info.since = c.since;
  info.until = c.until;
  return info;
}

}  // namespace detail

inline std::vector<OperatorInfo> Environment::operators() {
  std::vector<OperatorInfo> out(api().env->operator_count());
  for (size_t i = 0; i < out.size(); ++i) {
    pfrt_operator_info c{};
    c.struct_size = sizeof(c);
    detail::check(api().env->operator_at(i, &c));
    out[i] = detail::operator_from_c(c);
  }
  return out;
}

inline std::vector<OperatorInfo> Environment::custom_operators() const {
  size_t count = 0;
  detail::check(api().env->custom_operator_count(env_.get(), &count));
  std::vector<OperatorInfo> out(count);
  for (size_t i = 0; i < count; ++i) {
    pfrt_operator_info c{};
    c.struct_size = sizeof(c);
    detail::check(api().env->custom_operator_at(env_.get(), i, &c));
    out[i] = detail::operator_from_c(c);
  }
  return out;
}

}  // namespace pyflame_rt
