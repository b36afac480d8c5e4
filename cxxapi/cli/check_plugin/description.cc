// SPDX-License-Identifier: Apache-2.0
//
// Tests of a plug-in's description, which every kind has to pass before its own functions are
// called.
#include <cstring>
#include <filesystem>
#include <string_view>

#include "cxxapi/cli/check_plugin/ages.h"
#include "cxxapi/cli/check_plugin/kinds.h"
#include "cxxapi/cli/check_plugin/plugin_file.h"

namespace cli::check {
namespace {

// The words of kinds by their numbers; an empty one stands for a kind that has no table.
constexpr std::string_view kKinds[] = {"",     "provider", "import", "ops",
                                       "pass", "service",  "",       "executor"};

std::string_view word_of(pfrt_plugin_kind kind) {
  return kind < std::size(kKinds) ? kKinds[kind] : std::string_view();
}

std::string known_kinds() {
  std::string out;
  for (std::string_view word : kKinds)
    if (!word.empty()) out += (out.empty() ? "" : ", ") + std::string(word);
  return out;
}

struct Slot {
  const char* name;
  size_t offset;
  uint64_t feature;  // any of these bits requires it; 0 = always required
};

#define PFRT_SLOT(table, member, feature) \
  { #member, offsetof(table, member), feature }
constexpr uint64_t kMemory = PFRT_PROVIDER_MEMORY | PFRT_PROVIDER_FENCES;

std::vector<Slot> slots_of(pfrt_plugin_kind kind) {
  switch (kind) {
    case PFRT_PLUGIN_PROVIDER:
      return {PFRT_SLOT(pfrt_provider_table, open, 0),
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
              PFRT_SLOT(pfrt_provider_table, allocate, kMemory),
              PFRT_SLOT(pfrt_provider_table, release_memory, kMemory),
              PFRT_SLOT(pfrt_provider_table, copy, kMemory),
              PFRT_SLOT(pfrt_provider_table, signal, PFRT_PROVIDER_FENCES),
              PFRT_SLOT(pfrt_provider_table, wait, PFRT_PROVIDER_FENCES),
              PFRT_SLOT(pfrt_provider_table, release_fence, PFRT_PROVIDER_FENCES),
              PFRT_SLOT(pfrt_provider_table, run_begin, PFRT_PROVIDER_RUNS),
              PFRT_SLOT(pfrt_provider_table, run_end, PFRT_PROVIDER_RUNS),
              PFRT_SLOT(pfrt_provider_table, report, PFRT_PROVIDER_REPORT),
              PFRT_SLOT(pfrt_provider_table, fingerprint, PFRT_PROVIDER_FINGERPRINT),
              PFRT_SLOT(pfrt_provider_table, ask, PFRT_PROVIDER_ASK)};
    case PFRT_PLUGIN_IMPORT:
      return {PFRT_SLOT(pfrt_importer_table, probe, 0), PFRT_SLOT(pfrt_importer_table, load, 0),
              PFRT_SLOT(pfrt_importer_table, save, PFRT_IMPORTER_SAVE),
              PFRT_SLOT(pfrt_importer_table, option_count, PFRT_IMPORTER_OPTIONS),
              PFRT_SLOT(pfrt_importer_table, option_at, PFRT_IMPORTER_OPTIONS)};
    case PFRT_PLUGIN_SERVICE:
      return {PFRT_SLOT(pfrt_service_table, start, 0),
              PFRT_SLOT(pfrt_service_table, stop, 0),
              PFRT_SLOT(pfrt_service_table, address, PFRT_SERVICE_ADDRESS),
              PFRT_SLOT(pfrt_service_table, option_count, PFRT_SERVICE_OPTIONS),
              PFRT_SLOT(pfrt_service_table, option_at, PFRT_SERVICE_OPTIONS),
              PFRT_SLOT(pfrt_service_table, check, PFRT_SERVICE_CHECK),
              PFRT_SLOT(pfrt_service_table, ask, PFRT_SERVICE_ASK)};
    case PFRT_PLUGIN_EXECUTOR:
      return {PFRT_SLOT(pfrt_executor_table, create, 0)};
    default:
      return {};
  }
}
#undef PFRT_SLOT

bool check_table(Trial& trial, const pfrt_plugin_desc& desc) {
  const auto* table = static_cast<const char*>(desc.table);
  uint32_t size = 0;
  std::memcpy(&size, table, sizeof size);
  bool good = true;
  for (const Slot& slot : slots_of(desc.kind)) {
    if (slot.feature && !(desc.features & slot.feature)) continue;
    const std::string name = std::string("'") + slot.name + "'";
    if (!trial.expect(slot.offset + sizeof(void*) <= size, "struct-size-plugin",
                      "its table's struct_size is " + std::to_string(size) +
                          ", which ends before its function " + name)) {
      good = false;
      continue;
    }
    void* function = nullptr;
    std::memcpy(&function, table + slot.offset, sizeof function);
    good &=
        trial.expect(function != nullptr, slot.feature ? "feature-function" : "required-function",
                     "its table has no function " + name +
                         (slot.feature ? ", though it sets the feature bit" : ""));
  }
  return good;
}

// The features of |kind| that this host knows.
uint64_t features_of(pfrt_plugin_kind kind) {
  uint64_t all = 0;
  for (const Slot& slot : slots_of(kind)) all |= slot.feature;
  if (kind == PFRT_PLUGIN_PROVIDER)
    all |= PFRT_PROVIDER_SIMULATED | PFRT_PROVIDER_DEFERRED | PFRT_PROVIDER_NO_FOLD |
           PFRT_PROVIDER_OWN_THREADS | PFRT_PROVIDER_RANGES | PFRT_PROVIDER_BATCH;
  return all;
}

std::string range(const pfrt_plugin_desc& desc) {
  return "it serves ABI " + std::to_string(desc.abi_major) + "." + std::to_string(desc.min_minor) +
         " to " + std::to_string(desc.abi_major) + "." + std::to_string(desc.max_minor) +
         ", this host " + std::to_string(PFRT_ABI_MAJOR) + ".0 to " +
         std::to_string(PFRT_ABI_MAJOR) + "." + std::to_string(PFRT_ABI_MINOR);
}

bool same(const pfrt_plugin_desc& a, const pfrt_plugin_desc& b) {
  return a.table == b.table && a.kind == b.kind && a.features == b.features &&
         a.min_minor == b.min_minor && a.max_minor == b.max_minor &&
         text_of(a.name) == text_of(b.name) && text_of(a.version) == text_of(b.version);
}

// Asks for the description; a query that does not return breaks |rule|.
pfrt_code ask(Trial& trial, std::string_view rule, const PluginFile& file, Age age,
              size_t desc_size, Guarded* memory) {
  pfrt_host_info host = host_info();
  host.max_minor = PFRT_ABI_MINOR + (age == Age::kNewer ? 1 : 0);
  Sized<pfrt_host_info> sized(age, host, "the host's description");
  sized.make_read_only();
  std::memset(memory->data(), 0, std::min(desc_size, sizeof(pfrt_plugin_desc)));
  auto* desc = reinterpret_cast<pfrt_plugin_desc*>(memory->data());
  desc->struct_size = static_cast<uint32_t>(desc_size);
  desc->abi = PFRT_ABI_VERSION;
  return call(trial, rule,
              std::string("pfrt_plugin_query ran ") + age_text(age) + " with a description of " +
                  std::to_string(desc_size) + " bytes",
              [&] { return file.query()(sized.get(), desc); });
}

// Asks as hosts of this minor version and of a later one do: with larger structs, at the end of a
// page.
void check_ages(Trial& trial, const std::string& path) {
  const PluginFile file(trial, path);
  const pfrt_plugin_desc today = file.describe(trial);
  for (Age age : {Age::kNow, Age::kNewer}) {
    const size_t size = size_at<pfrt_plugin_desc>(age);
    Guarded memory(size, "the description", kHostStruct, 8);
    const pfrt_code code = ask(trial, "struct-size-host", file, age, size, &memory);
    pfrt_plugin_desc desc{};
    std::memcpy(&desc, memory.data(), sizeof desc);
    trial.expect(desc.struct_size == size, "struct-size-host",
                 std::string("it changed the description's struct_size ") + age_text(age));
    for (size_t i = sizeof desc; i < size; ++i)
      if (static_cast<unsigned char>(memory.data()[i]) != 0xcd) {
        trial.fail("struct-size-host", "it wrote beyond the description it knows");
        break;
      }
    trial.expect(code == PFRT_CODE_OK && same(desc, today), "query",
                 std::string("its description is another ") + age_text(age));
  }
  trial.keep("struct-size-host");
  trial.keep("unknown");
}

}  // namespace

void check_description(Trial& trial, const std::string& path) {
  const ProcessState before;
  const size_t threads = thread_count();
  const std::string name = std::filesystem::path(path).filename().string();
  const PluginFile file(trial, path);
  pfrt_host_info host = host_info();
  Guarded memory(sizeof(pfrt_plugin_desc), "the description", kHostStruct, 8);
  const pfrt_code code = ask(trial, "query", file, Age::kNow, sizeof(pfrt_plugin_desc), &memory);
  pfrt_plugin_desc desc{};
  std::memcpy(&desc, memory.data(), sizeof desc);
  bool good = trial.expect(desc.abi_major == PFRT_ABI_MAJOR, "major", range(desc));
  if (!good) return;
  good &= trial.expect(desc.min_minor <= PFRT_ABI_MINOR && desc.min_minor <= desc.max_minor,
                       "minor", range(desc));
  if (!good) return;
  good &= trial.expect(code == PFRT_CODE_OK, "query", "it returned " + code_text(code));
  good &= trial.expect(desc.sanitizer == own_sanitizer(), "sanitizer",
                       "it says sanitizer " + std::to_string(desc.sanitizer) + ", this host has " +
                           std::to_string(own_sanitizer()));
  if (!good) return;
  good &= trial.expect(desc.name.data && desc.name.size > 0 && desc.name.size < 4096 &&
                           (desc.version.data || desc.version.size == 0),
                       "query", "it gave no name or no version");
  const std::string word(word_of(desc.kind));
  good &= trial.expect(!word.empty() && name.starts_with("libpyflamert_" + word + "_"), "kind",
                       "it says kind " + std::to_string(desc.kind) +
                           (word.empty() ? "" : " (" + word + ")") + ", its file is '" + name +
                           "'; this version knows " + known_kinds());
  good &= trial.expect(desc.table != nullptr, "query", "it gave no table");
  if (!word.empty())
    good &= trial.expect((desc.features & ~features_of(desc.kind)) == 0, "unknown",
                         "it sets features " + std::to_string(desc.features) +
                             ", some of which this host does not know");
  good &= trial.expect(desc.reserved == 0, "unknown", "its description's reserved word is not 0");
  if (!good) return;
  trial.at("struct-size-plugin", "its table was read");
  if (!check_table(trial, desc)) return;
  if (desc.kind == PFRT_PLUGIN_PROVIDER) {
    const pfrt_string devices = static_cast<const pfrt_provider_table*>(desc.table)->devices;
    if (!trial.expect(devices.data && devices.size, "query", "its table names no device")) return;
  }
  pfrt_plugin_desc again{};
  again.struct_size = sizeof again;
  again.abi = PFRT_ABI_VERSION;
  call(trial, "query", "pfrt_plugin_query ran again", [&] { return file.query()(&host, &again); });
  trial.expect(same(desc, again), "query", "its description is another the second time");
  trial.expect(threads_are(threads), "starts-threads",
               "threads run after it was only asked what it is");
  const std::string changed = before.changed();
  trial.expect(changed.empty(), "process-state", changed + " changed when it was loaded");
  trial.tell("kind", word);
  trial.tell("name", text_of(desc.name));
  trial.tell("version", text_of(desc.version));
  trial.tell("features", std::to_string(desc.features));
  trial.tell("min_minor", std::to_string(desc.min_minor));
}

std::vector<NamedTrial> description_trials(const PluginFacts& facts) {
  const std::string path = facts.path;
  return {{"hosts of other ages", [path](Trial& t) { check_ages(t, path); }}};
}

}  // namespace cli::check
