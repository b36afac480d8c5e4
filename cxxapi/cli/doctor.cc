// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <pyflame_rt/measure.hpp>
#include <sstream>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/machine/machine.h"
#include "cxxapi/cli/plugin_list.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/progress.h"
#include "cxxapi/cli/print/table.h"
#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

using pyflame_rt::Environment;
using pyflame_rt::Measurement;
using pyflame_rt::PluginInfo;

std::vector<Measurement> measure_if_asked(const DoctorArgs& args) {
  if (!args.measure) return {};
  pyflame_rt::MeasureOptions options;
  options.threads = static_cast<uint32_t>(args.threads);
  options.seconds = args.seconds;
  options.only = args.only;
  ProgressLine line;
  options.progress = [&line](double fraction) {
    line.show("measuring: " + number_text(std::floor(100 * fraction)) + " %");
    return true;
  };
  return pyflame_rt::measure(options);
}

void write_measurements(const std::vector<Measurement>& measured, Json* json) {
  json->key("measured").list();
  for (const Measurement& m : measured) {
    if (m.threads == 0) continue;
    json->object().field("provider", m.provider).field("name", m.name).field("unit", m.unit);
    json->field("threads", m.threads).field("median", m.median).field("best", m.best);
    json->field("note", m.note).end();
  }
  json->end().key("not_measured").list();
  for (const Measurement& m : measured) {
    if (m.threads != 0) continue;
    json->object().field("provider", m.provider).field("name", m.name);
    json->field("reason", m.note).end();
  }
  json->end();
}

// Prints the rows of one provider from |first| on; returns where those of the next begin.
size_t print_provider(const std::vector<Measurement>& measured, size_t first) {
  uint32_t most = 1;
  size_t end = first;
  for (; end < measured.size() && measured[end].provider == measured[first].provider; ++end)
    most = std::max(most, measured[end].threads);
  std::printf("\n%s, random operands; medians, and the best of bursts\n",
              measured[first].provider.c_str());
  std::vector<std::string> heading = {"measured", "unit", "1 thread", "best"};
  if (most > 1) heading.insert(heading.end(), {std::to_string(most) + " threads", "best"});
  heading.push_back("with");
  Table table(heading);
  for (size_t i = first; i < end; ++i) {
    const Measurement& m = measured[i];
    std::vector<std::string> row = {m.name, m.unit};
    if (m.threads == 0) {
      row.resize(heading.size() - 1, "-");
      row.push_back("not measured: " + m.note);
      table.add(row);
      continue;
    }
    for (bool more = true; more; i += more) {
      row.push_back(number_text(measured[i].median));
      row.push_back(number_text(measured[i].best));
      more = i + 1 < end && measured[i + 1].name == m.name;
    }
    row.resize(heading.size() - 1, "-");
    row.push_back(m.note);
    table.add(row);
  }
  table.print();
  return end;
}

// Folder in which the library looks for plug-ins when nothing is set; empty when it is unknown.
std::string default_folder() {
  Dl_info info{};
  if (::dladdr(&pyflame_rt::api(), &info) == 0) return {};
  std::error_code error;
  auto library = std::filesystem::canonical(info.dli_fname, error);
  if (error) library = info.dli_fname;
  return (library.parent_path() / "pyflame_rt" / "plugins").string();
}

// Finds faults that keep this installation from working as it was set up.
std::vector<std::string> find_problems(const char* plugin_path,
                                       const std::vector<PluginInfo>& plugins) {
  namespace fs = std::filesystem;
  std::vector<std::string> problems;
  std::error_code error;
  std::istringstream folders(plugin_path == nullptr ? "" : plugin_path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty() || fs::is_directory(folder, error)) continue;
    problems.push_back("PFRT_PLUGIN_PATH names '" + folder + "', which " +
                       (fs::exists(folder, error) ? "is no folder" : "does not exist"));
  }
  bool provider = false;
  for (const PluginInfo& plugin : plugins) {
    if (!plugin.loaded)
      problems.push_back("plug-in '" + plugin.path + "' is rejected: " + plugin.reason);
    provider = provider || (plugin.loaded && plugin.kind == "provider");
  }
  const std::string own = default_folder();
  if (!provider)
    problems.push_back(
        "no provider is found, so that nothing can run: set PFRT_PLUGIN_PATH to the "
        "folder of the plug-ins" +
        (fs::is_directory(own, error) ? "" : "; '" + own + "' does not exist"));
  return problems;
}

// Whose threads loops use: of a plug-in's, by the word in its file's name, name and file too.
std::string executor_text(const std::string& word, const std::vector<PluginInfo>& plugins) {
  const std::string own = "pool, the library's own threads";
  std::string others;
  for (const PluginInfo& plugin : plugins) {
    if (plugin.kind != "executor" || !plugin.loaded) continue;
    const std::string stem = std::filesystem::path(plugin.path).stem().string();
    const std::string short_name = stem.substr(std::string("libpyflamert_executor_").size());
    if (short_name == word) return word + ", the threads of " + plugin.name + ": " + plugin.path;
    others += (others.empty() ? "; there is also " : ", ") + short_name;
  }
  return own + others;
}

void print_measurements(const std::vector<Measurement>& measured) {
  for (size_t i = 0; i < measured.size();) i = print_provider(measured, i);
}

}  // namespace

int doctor_command(const DoctorArgs& args) {
  const Machine machine = read_machine();
  pyflame_rt::EnvironmentOptions options;
  options.executor = args.executor;
  const std::vector<PluginInfo> plugins = Environment::instance(options).plugins();
  const std::string executor = executor_text(args.executor, plugins);
  const char* path = ::secure_getenv("PFRT_PLUGIN_PATH");
  const char* cap = ::secure_getenv("PFRT_ISA");
  const std::vector<std::string> problems = find_problems(path, plugins);
  const std::vector<std::string> notes = machine_notes(machine, cap == nullptr ? "" : cap);
  const std::vector<Measurement> measured = measure_if_asked(args);
  if (args.json) {
    Json json;
    json.object()
        .field("version", pyflame_rt::version())
        .field("abi", PFRT_ABI_MAJOR)
        .field("cpu", machine.cpu);
    json.key("isa").list();
    for (const std::string& name : machine.isa) json.value(name);
    json.end().field("cores_online", machine.online).field("cores_usable", machine.usable);
    json.key("cgroup_quota");
    if (machine.quota) {
      json.value(*machine.quota);
    } else {
      json.value("none");
    }
    json.field("threads", default_threads(machine))
        .field("executor", executor)
        .field("memory", machine.memory)
        .field("system", machine.system);
    json.field("plugin_path", path == nullptr ? "" : path)
        .field("isa_cap", cap == nullptr ? "" : cap);
    write_plugins(plugins, &json);
    json.key("notes").list();
    for (const std::string& note : notes) json.value(note);
    json.end().key("problems").list();
    for (const std::string& problem : problems) json.value(problem);
    json.end();
    if (args.measure) write_measurements(measured, &json);
    json.end().print();
    return problems.empty() ? 0 : 1;
  }
  std::printf("library   %s, ABI %u.%u\n", pyflame_rt::version().c_str(), PFRT_ABI_MAJOR,
              PFRT_ABI_MINOR);
  std::printf("system    %s\n", machine.system.c_str());
  std::printf("cpu       %s\n", machine.cpu.c_str());
  std::printf("isa       %s\n", isa_text(machine).c_str());
  if (cap != nullptr) std::printf("          capped by PFRT_ISA=%s\n", cap);
  std::printf("cores     %d online, %d usable by this process\n", machine.online, machine.usable);
  std::printf("quota     %s\n",
              machine.quota ? (number_text(*machine.quota) + " cores' time").c_str() : "none");
  std::printf("threads   %d by default\n", default_threads(machine));
  std::printf("executor  %s\n", executor.c_str());
  std::printf("memory    %s\n", bytes_text(machine.memory).c_str());
  std::printf("plug-ins  %zu%s%s\n", plugins.size(),
              path == nullptr ? "" : ", PFRT_PLUGIN_PATH=", path == nullptr ? "" : path);
  if (!plugins.empty()) print_plugins(plugins);
  if (args.measure) print_measurements(measured);
  for (const std::string& note : notes) std::printf("note      %s\n", note.c_str());
  for (const std::string& problem : problems) std::printf("problem   %s\n", problem.c_str());
  return problems.empty() ? 0 : 1;
}

}  // namespace cli
