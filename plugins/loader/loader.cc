// SPDX-License-Identifier: Apache-2.0
#include "plugins/loader/loader.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <span>
#include <utility>

#include "core/base/abi/first_version.h"
#include "core/base/foreign.h"
#include "core/base/os/path.h"
#include "core/base/provider_name.h"

namespace pfrt {
namespace {

constexpr std::string_view kPrefix = "libpyflamert_";
constexpr std::string_view kSuffix = ".so";

// A kind of plug-in that has a table.
struct Kind {
  pfrt_plugin_kind number;
  std::string_view word;
};
constexpr Kind kKinds[] = {
    {PFRT_PLUGIN_PROVIDER, "provider"}, {PFRT_PLUGIN_IMPORT, "import"},
    {PFRT_PLUGIN_OPS, "ops"},           {PFRT_PLUGIN_PASS, "pass"},
    {PFRT_PLUGIN_SERVICE, "service"},   {PFRT_PLUGIN_EXECUTOR, "executor"},
};

const Kind* find_kind(std::string_view word) {
  const auto* at = std::ranges::find(kKinds, word, &Kind::word);
  return at == std::end(kKinds) ? nullptr : at;
}

// The sentence part that refuses a kind without a table.
std::string unknown_kind() {
  std::string out = ", which this version does not know; it knows ";
  for (const Kind& kind : kKinds) out += message(&kind == kKinds ? "" : ", ", kind.word);
  return out;
}

constexpr pfrt_sanitizer own_sanitizer() {
#if defined(PFRT_SANITIZE_ADDRESS)
  return PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  return PFRT_SANITIZER_THREAD;
#else
  return PFRT_SANITIZER_NONE;
#endif
}

// "libpyflamert_provider_cpu.so" to its kind, whether that is known or not, and short name.
bool split_name(std::string_view file, std::string* kind, std::string* short_name) {
  if (file.substr(0, kPrefix.size()) != kPrefix || file.size() <= kPrefix.size() + kSuffix.size() ||
      file.substr(file.size() - kSuffix.size()) != kSuffix)
    return false;
  file.remove_prefix(kPrefix.size());
  file.remove_suffix(kSuffix.size());
  const size_t bar = file.find('_');
  if (bar == std::string_view::npos || bar == 0 || bar + 1 == file.size()) return false;
  *kind = file.substr(0, bar);
  *short_name = file.substr(bar + 1);
  return true;
}

// Functions a table of this kind must have: name and where it stands.
struct Slot {
  const char* name;
  size_t offset;
  uint64_t feature;  // any of these bits asks for it; 0 = always
};

#define PFRT_SLOT(table, member, feature) \
  { #member, offsetof(table, member), feature }
constexpr Slot kProviderSlots[] = {
    PFRT_SLOT(pfrt_provider_table, open, 0),
    PFRT_SLOT(pfrt_provider_table, close, 0),
    PFRT_SLOT(pfrt_provider_table, claim, 0),
    PFRT_SLOT(pfrt_provider_table, compile, 0),
    PFRT_SLOT(pfrt_provider_table, release_executable, 0),
    PFRT_SLOT(pfrt_provider_table, specialise, 0),
    PFRT_SLOT(pfrt_provider_table, release_program, 0),
    PFRT_SLOT(pfrt_provider_table, supports, PFRT_PROVIDER_SUPPORTS),
    PFRT_SLOT(pfrt_provider_table, constants, PFRT_PROVIDER_CONSTANTS),
    PFRT_SLOT(pfrt_provider_table, kernel_count, PFRT_PROVIDER_KERNELS),
    PFRT_SLOT(pfrt_provider_table, kernel_at, PFRT_PROVIDER_KERNELS),
    PFRT_SLOT(pfrt_provider_table, option_count, PFRT_PROVIDER_OPTIONS),
    PFRT_SLOT(pfrt_provider_table, option_at, PFRT_PROVIDER_OPTIONS),
    PFRT_SLOT(pfrt_provider_table, allocate, PFRT_PROVIDER_MEMORY | PFRT_PROVIDER_FENCES),
    PFRT_SLOT(pfrt_provider_table, release_memory, PFRT_PROVIDER_MEMORY | PFRT_PROVIDER_FENCES),
    PFRT_SLOT(pfrt_provider_table, copy, PFRT_PROVIDER_MEMORY | PFRT_PROVIDER_FENCES),
    PFRT_SLOT(pfrt_provider_table, signal, PFRT_PROVIDER_FENCES),
    PFRT_SLOT(pfrt_provider_table, wait, PFRT_PROVIDER_FENCES),
    PFRT_SLOT(pfrt_provider_table, release_fence, PFRT_PROVIDER_FENCES),
    PFRT_SLOT(pfrt_provider_table, run_begin, PFRT_PROVIDER_RUNS),
    PFRT_SLOT(pfrt_provider_table, run_end, PFRT_PROVIDER_RUNS),
    PFRT_SLOT(pfrt_provider_table, report, PFRT_PROVIDER_REPORT),
    PFRT_SLOT(pfrt_provider_table, fingerprint, PFRT_PROVIDER_FINGERPRINT),
    PFRT_SLOT(pfrt_provider_table, ask, PFRT_PROVIDER_ASK),
};
constexpr Slot kImporterSlots[] = {
    PFRT_SLOT(pfrt_importer_table, probe, 0),
    PFRT_SLOT(pfrt_importer_table, load, 0),
    PFRT_SLOT(pfrt_importer_table, save, PFRT_IMPORTER_SAVE),
    PFRT_SLOT(pfrt_importer_table, option_count, PFRT_IMPORTER_OPTIONS),
    PFRT_SLOT(pfrt_importer_table, option_at, PFRT_IMPORTER_OPTIONS),
};
constexpr Slot kServiceSlots[] = {
    PFRT_SLOT(pfrt_service_table, start, 0),
    PFRT_SLOT(pfrt_service_table, stop, 0),
    PFRT_SLOT(pfrt_service_table, address, PFRT_SERVICE_ADDRESS),
    PFRT_SLOT(pfrt_service_table, option_count, PFRT_SERVICE_OPTIONS),
    PFRT_SLOT(pfrt_service_table, option_at, PFRT_SERVICE_OPTIONS),
    PFRT_SLOT(pfrt_service_table, check, PFRT_SERVICE_CHECK),
    PFRT_SLOT(pfrt_service_table, ask, PFRT_SERVICE_ASK),
};
constexpr Slot kExecutorSlots[] = {
    PFRT_SLOT(pfrt_executor_table, create, 0),
};
#undef PFRT_SLOT

constexpr size_t kLongestText = 4096;

bool sound(pfrt_string s) { return s.size <= kLongestText && (s.data || s.size == 0); }

std::string check_slots(const void* table, uint64_t features, std::span<const Slot> slots) {
  uint32_t size = 0;
  std::memcpy(&size, table, sizeof size);
  if (size == 0) return "the struct_size of its table is not set; set it to the table's sizeof";
  for (const Slot& slot : slots) {
    if (slot.feature && !(features & slot.feature)) continue;
    void* function = nullptr;
    if (slot.offset + sizeof function <= size)
      std::memcpy(&function, static_cast<const char*>(table) + slot.offset, sizeof function);
    if (!function)
      return message("its table has no function '", slot.name, "'",
                     slot.feature ? ", though it declares the feature"
                                  : ", which every plug-in of this kind needs");
  }
  return {};
}

std::string check_table(const pfrt_plugin_desc& desc) {
  if (desc.kind == PFRT_PLUGIN_PROVIDER) {
    std::string fault = check_slots(desc.table, desc.features, kProviderSlots);
    if (fault.empty() && !sound(static_cast<const pfrt_provider_table*>(desc.table)->devices))
      fault = "its list of devices is no string";
    return fault;
  }
  if (desc.kind == PFRT_PLUGIN_IMPORT) {
    std::string fault = check_slots(desc.table, desc.features, kImporterSlots);
    const auto& table = *static_cast<const pfrt_importer_table*>(desc.table);
    for (size_t i = 0; fault.empty() && i < table.extension_count; ++i)
      if (!table.extensions || i > kLongestText || !sound(table.extensions[i]))
        fault = "its list of extensions is shorter than it says";
    return fault;
  }
  if (desc.kind == PFRT_PLUGIN_SERVICE)
    return check_slots(desc.table, desc.features, kServiceSlots);
  if (desc.kind == PFRT_PLUGIN_EXECUTOR)
    return check_slots(desc.table, desc.features, kExecutorSlots);
  if (desc.kind == PFRT_PLUGIN_OPS) {
    const auto& table = *static_cast<const pfrt_ops_table*>(desc.table);
    if (table.struct_size < abi::kFirst<pfrt_ops_table>.bytes || (table.count && !table.ops))
      return "its table is shorter than a pfrt_ops_table, or lists no operators";
  }
  if (desc.kind == PFRT_PLUGIN_PASS) {
    const auto& table = *static_cast<const pfrt_pass_table*>(desc.table);
    if (table.struct_size < abi::kFirst<pfrt_pass_table>.bytes || (table.count && !table.passes))
      return "its table is shorter than a pfrt_pass_table, or lists no passes";
  }
  return {};
}

// Calls |query|, and catches whatever it throws.
pfrt_code call_query(pfrt_plugin_query_fn query, const pfrt_host_info& host,
                     pfrt_plugin_desc* desc) {
  try {
    return query(&host, desc);
  } catch (...) {
    *desc = {};
    return PFRT_CODE_INTERNAL;
  }
}

}  // namespace

std::string provider_table_fault(const pfrt_provider_table& table, uint64_t features,
                                 bool own_open) {
  return check_slots(&table, features, std::span(kProviderSlots).subspan(own_open ? 1 : 0));
}

uint64_t unknown_features(pfrt_plugin_kind kind, uint64_t features) {
  switch (kind) {
    case PFRT_PLUGIN_PROVIDER:
      return features & ~(2 * uint64_t{PFRT_PROVIDER_BATCH} - 1);  // the last of them
    case PFRT_PLUGIN_IMPORT:
      return features & ~uint64_t{PFRT_IMPORTER_SAVE | PFRT_IMPORTER_OPTIONS};
    case PFRT_PLUGIN_SERVICE:
      return features & ~(2 * uint64_t{PFRT_SERVICE_ASK} - 1);  // the last of them
    default:
      return features;
  }
}

PluginLoader::PluginLoader(std::vector<PluginFolder> folders, Logger* logger)
    : folders_(std::move(folders)), logger_(logger) {
  scan();
}

// A turn with the loader. What it has to say is written when the lock is free again, since the
// client's log function may look for plug-ins itself.
class PluginLoader::Turn {
 public:
  explicit Turn(PluginLoader& loader) : loader_(loader), lock_(loader.mutex_) {
    loader.warn_of_folders();
  }
  ~Turn() {
    const std::vector<Line> lines = std::exchange(loader_.lines_, {});
    lock_.unlock();
    for (const Line& line : lines)
      call_foreign([&] { loader_.logger_->write(line.level, line.text); });
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  PluginLoader& loader_;
  std::unique_lock<std::mutex> lock_;
};

void PluginLoader::scan() {
  warned_ = false;
  for (const PluginFolder& folder : folders_) {
    for (const std::string& file : os::list_folder(folder.path)) {
      auto plugin = std::make_shared<Plugin>();
      if (!split_name(file, &plugin->kind, &plugin->short_name)) continue;
      const bool known = std::any_of(plugins_.begin(), plugins_.end(), [&](const auto& p) {
        return p->kind == plugin->kind && p->short_name == plugin->short_name;
      });
      if (known) continue;
      plugin->path = folder.path + "/" + file;
      plugins_.push_back(std::move(plugin));
    }
  }
}

// Warns at the first use and not in scan(), so that the warning reaches a sink that is set after
// creation.
void PluginLoader::warn_of_folders() {
  if (warned_ || !logger_) return;
  warned_ = true;
  for (const PluginFolder& folder : folders_) {
    if (folder.named_by.empty()) continue;
    if (const std::string fault = os::folder_fault(folder.path); !fault.empty())
      say(PFRT_LOG_WARNING, "plug-in folder '", folder.path, "' of ", folder.named_by,
          " cannot be searched: ", fault);
  }
}

std::string PluginLoader::searched() const {
  std::string out;
  for (const PluginFolder& folder : folders_) {
    const std::string fault = os::folder_fault(folder.path);
    out += message(out.empty() ? "" : ", ", folder.path, fault.empty() ? "" : " (" + fault + ")");
  }
  return out;
}

void PluginLoader::rescan() {
  std::lock_guard lock(mutex_);
  std::erase_if(plugins_, [](const auto& p) { return p->table == nullptr; });
  scan();
}

void PluginLoader::open(Plugin& plugin) {
  if (plugin.opened) return;
  plugin.opened = true;
  const auto reject = [&](std::string reason) {
    plugin.reason = std::move(reason);
    plugin.table = nullptr;
    plugin.library.reset();
    say(PFRT_LOG_WARNING, "plug-in '", plugin.path, "' is not used: ", plugin.reason);
  };
  if (!find_kind(plugin.kind))
    return reject(message("its file, ", os::name_of(plugin.path), ", is of kind '", plugin.kind,
                          "'", unknown_kind()));
  // Importers bring libraries of their own (protobuf) that a host process may have too.
  auto library = os::Library::open(plugin.path, plugin.kind == "import");
  if (!library.ok()) return reject(library.status().message());
  plugin.library = library.take();
  auto query =
      reinterpret_cast<pfrt_plugin_query_fn>(plugin.library->symbol(PFRT_PLUGIN_QUERY_SYMBOL));
  if (!query) return reject("it does not export " PFRT_PLUGIN_QUERY_SYMBOL);

  pfrt_host_info host{};
  host.struct_size = sizeof host;
  host.abi = PFRT_ABI_VERSION;
  host.abi_major = PFRT_ABI_MAJOR;
  host.min_minor = 0;
  host.max_minor = PFRT_ABI_MINOR;
  host.sanitizer = own_sanitizer();
  host.version = to_c(PFRT_VERSION_TEXT);
  pfrt_plugin_desc desc{};
  desc.struct_size = sizeof desc;
  desc.abi = PFRT_ABI_VERSION;
  const pfrt_code code = call_query(query, host, &desc);
  const std::string ranges = message("it serves ABI ", desc.abi_major, ".", desc.min_minor, " to ",
                                     desc.abi_major, ".", desc.max_minor, ", this host ",
                                     PFRT_ABI_MAJOR, ".0 to ", PFRT_ABI_MAJOR, ".", PFRT_ABI_MINOR);
  plugin.abi_major = desc.abi >> 16;
  plugin.abi_minor = desc.abi & 0xffffu;
  if (sound(desc.name)) plugin.name = view(desc.name);
  if (sound(desc.version)) plugin.version = view(desc.version);
  if (code != PFRT_CODE_OK && desc.abi_major == 0)
    return reject(message("its query failed: ", code_text(static_cast<Code>(code))));
  if (desc.abi_major != PFRT_ABI_MAJOR)
    return reject(ranges + "; build the plug-in against this runtime's headers");
  if (desc.min_minor > PFRT_ABI_MINOR) return reject(ranges + "; it needs a newer runtime");
  if (code != PFRT_CODE_OK)
    return reject(message("its query failed: ", code_text(static_cast<Code>(code))));
  if (std::string fault = refuse(plugin, desc); !fault.empty()) return reject(std::move(fault));
  plugin.features = desc.features;
  plugin.table = desc.table;
  say(PFRT_LOG_DEBUG, "plug-in '", plugin.path, "' (", plugin.name, ") is open");
}

std::string PluginLoader::refuse(const Plugin& plugin, const pfrt_plugin_desc& desc) const {
  if (desc.max_minor < desc.min_minor)
    return message("it serves ABI minors from ", desc.min_minor, " to ", desc.max_minor,
                   ", which is none");
  if (desc.sanitizer != own_sanitizer())
    return "it was built with another sanitizer than this runtime; build both alike";
  const auto* kind = std::ranges::find(kKinds, desc.kind, &Kind::number);
  if (kind == std::end(kKinds) || kind->word != plugin.kind)
    return message("its file, ", os::name_of(plugin.path), ", is of kind '", plugin.kind,
                   "', it says it is of kind ", desc.kind,
                   kind == std::end(kKinds) ? unknown_kind() : message(" (", kind->word, ")"));
  if (!desc.table || plugin.name.empty()) return "it gave no name or no table";
  if (desc.reserved)
    return message("the reserved word of its description is ", desc.reserved,
                   ", which means nothing to this host; set it to 0");
  if (const uint64_t bits = unknown_features(desc.kind, desc.features))
    return message("it declares features ", bits, ", which ABI ", PFRT_ABI_MAJOR, ".",
                   PFRT_ABI_MINOR,
                   " does not have; it has to leave out what the host's max_minor does not have");
  if (std::string fault = check_table(desc); !fault.empty()) return fault;
  for (const auto& other : plugins_)
    if (other->table && other->kind == plugin.kind && other->name == plugin.name)
      return message("'", plugin.name, "' is there already, from '", other->path,
                     "'; keep one of the two files");
  return {};
}

std::vector<std::shared_ptr<const Plugin>> PluginLoader::list(std::string_view kind) {
  const Turn turn(*this);
  std::vector<std::shared_ptr<const Plugin>> out;
  for (const auto& p : plugins_)
    if (kind.empty() || p->kind == kind) out.push_back(p);
  return out;
}

std::vector<std::shared_ptr<const Plugin>> PluginLoader::open_all(std::string_view kind) {
  const Turn turn(*this);
  std::vector<std::shared_ptr<const Plugin>> out;
  for (const auto& p : plugins_) {
    if (!kind.empty() && p->kind != kind) continue;
    open(*p);
    out.push_back(p);
  }
  return out;
}

Result<std::shared_ptr<const Plugin>> PluginLoader::open_short(std::string_view kind,
                                                               std::string_view short_name) {
  const Turn turn(*this);
  for (const auto& p : plugins_) {
    if (p->kind != kind || p->short_name != short_name) continue;
    open(*p);
    return std::shared_ptr<const Plugin>(p);
  }
  return std::shared_ptr<const Plugin>();
}

Result<std::shared_ptr<const Plugin>> PluginLoader::open_file(const std::string& path) {
  const auto refused = [&](const auto&... why) {
    return error(Code::kPLUGIN, "opening plug-in '", path, "': ", why...);
  };
  const auto file = os::resolved(path);
  if (!file) return error(Code::kNOT_FOUND, "opening plug-in '", path, "': there is no such file");
  const Turn turn(*this);
  for (const auto& p : plugins_) {
    if (os::resolved(p->path) != file) continue;
    open(*p);
    if (!p->table) return refused(p->reason);
    return std::shared_ptr<const Plugin>(p);
  }
  auto plugin = std::make_shared<Plugin>();
  if (!split_name(os::name_of(*file), &plugin->kind, &plugin->short_name))
    return refused("the name of its file does not say what it is; a plug-in's is ", kPrefix,
                   "KIND_NAME", kSuffix, ", as ", kPrefix, "ops_mine", kSuffix);
  plugin->path = *file;
  // Of two files with one name the first one is used, as in the folders.
  const auto same = std::ranges::find_if(plugins_, [&](const auto& p) {
    return p->kind == plugin->kind && p->short_name == plugin->short_name;
  });
  if (same != plugins_.end() && (*same)->table)
    return refused("'", (*same)->path, "' has its kind and name and is open; rename one of them");
  open(*plugin);
  if (!plugin->table) return refused(plugin->reason);
  if (same != plugins_.end())
    *same = plugin;
  else
    plugins_.push_back(plugin);
  return std::shared_ptr<const Plugin>(std::move(plugin));
}

Result<std::shared_ptr<const Plugin>> PluginLoader::find(std::string_view kind,
                                                         std::string_view name) {
  const bool provider = kind == "provider";
  const std::string stem = provider_word(name);
  const Turn turn(*this);
  std::vector<std::shared_ptr<Plugin>> candidates;
  for (const auto& p : plugins_)
    if (p->kind == kind) candidates.push_back(p);
  std::stable_partition(candidates.begin(), candidates.end(),
                        [&](const auto& p) { return p->short_name == stem; });
  std::string there;
  std::shared_ptr<const Plugin> other;  // of another name that |name| may stand for
  for (const auto& p : candidates) {
    open(*p);
    if (p->table && p->name == name) return std::shared_ptr<const Plugin>(p);
    if (p->table && provider && !other && names_provider(name, p->name)) {
      other = p;
      if (p->short_name == stem) return other;  // the file named after it
    }
    there +=
        message(there.empty() ? "" : ", ", p->table ? p->name : p->path + " (" + p->reason + ")");
  }
  if (other) return other;
  return error(Code::kNOT_FOUND, "looking for ", kind, " '", name, "' in ", searched(), ": ",
               there.empty() ? "there are no such plug-ins; set PFRT_PLUGIN_PATH to their folder"
                             : "found only " + there);
}

}  // namespace pfrt
