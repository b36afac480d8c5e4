// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <iterator>

#include "cxxapi/cli/commands.h"
#include "cxxapi/cli/plugin_list.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/table.h"

namespace cli {
namespace {

using pyflame_rt::Environment;
using pyflame_rt::KernelInfo;
using pyflame_rt::OperatorInfo;
using pyflame_rt::ProviderInfo;
using pyflame_rt::ProviderOption;

// Writes "9-12", or "13-" for a range that is still current.
std::string range_text(uint32_t since, uint32_t until) {
  return std::to_string(since) + "-" + (until == 0 ? std::string() : std::to_string(until));
}

// The options that a plug-in adds to those of a load; none unless it is a loaded importer.
std::vector<ProviderOption> load_options(const pyflame_rt::PluginInfo& plugin) {
  if (plugin.kind != "import" || !plugin.loaded) return {};
  return Environment::instance().importer_options(plugin.name);
}

std::string option_type_text(pfrt_option_type type) {
  constexpr const char* kNames[] = {"?", "bool", "int", "float", "string", "strings"};
  return kNames[type < std::size(kNames) ? type : 0];
}

std::string domain_text(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

void write_kernel(const KernelInfo& kernel, Json* json) {
  json->object().field("op", kernel.op).field("domain", kernel.domain).field("types", kernel.types);
  json->field("name", kernel.name).field("isa", kernel.isa);
  json->field("since", kernel.since).field("until", kernel.until).end();
}

}  // namespace

void write_plugins(const std::vector<pyflame_rt::PluginInfo>& plugins, Json* json) {
  json->key("plugins").list();
  for (const pyflame_rt::PluginInfo& p : plugins) {
    json->object().field("kind", p.kind).field("name", p.name).field("path", p.path);
    json->field("version", p.version).field("loaded", p.loaded).field("reason", p.reason);
    json->field("abi", std::to_string(p.abi_major) + "." + std::to_string(p.abi_minor));
    if (const std::vector<ProviderOption> options = load_options(p); !options.empty()) {
      json->key("options").list();
      for (const ProviderOption& option : options) {
        json->object().field("key", option.key).field("type", option_type_text(option.type));
        json->field("default", option.default_value).field("choices", option.choices);
        json->field("doc", option.doc).end();
      }
      json->end();
    }
    json->end();
  }
  json->end();
}

void print_plugins(const std::vector<pyflame_rt::PluginInfo>& plugins) {
  Table table({"kind", "name", "version", "abi", "state", "path"});
  for (const pyflame_rt::PluginInfo& p : plugins) {
    table.add({p.kind, p.name, p.version,
               std::to_string(p.abi_major) + "." + std::to_string(p.abi_minor),
               p.loaded ? "loaded" : "rejected: " + p.reason, p.path});
  }
  table.print();
}

int providers_command(const ListArgs& args) {
  const Environment& environment = Environment::instance();
  const std::vector<ProviderInfo> providers = environment.providers();
  const auto kernels = [&](const ProviderInfo& p) {
    return args.kernels && p.available ? environment.kernels(p.name) : std::vector<KernelInfo>();
  };
  if (args.json) {
    Json json;
    json.object().key("providers").list();
    for (const ProviderInfo& p : providers) {
      json.object()
          .field("name", p.name)
          .field("available", p.available)
          .field("devices", p.devices);
      json.field("path", p.path).field("reason", p.reason);
      if (args.kernels) {
        json.key("kernels").list();
        for (const KernelInfo& kernel : kernels(p)) write_kernel(kernel, &json);
        json.end();
      }
      json.end();
    }
    json.end().end().print();
    return 0;
  }
  Table table({"provider", "devices", "state", "path"});
  for (const ProviderInfo& p : providers) {
    table.add(
        {p.name, p.devices, p.available ? "available" : "not available: " + p.reason, p.path});
  }
  table.print();
  if (!args.kernels) return 0;
  for (const ProviderInfo& p : providers) {
    const std::vector<KernelInfo> rows = kernels(p);
    std::printf("\n%s: %zu kernels\n", p.name.c_str(), rows.size());
    if (rows.empty()) continue;
    Table list({"operator", "domain", "opsets", "types", "kernel", "isa"});
    for (const KernelInfo& k : rows) {
      list.add({k.op, domain_text(k.domain), range_text(k.since, k.until), k.types, k.name, k.isa});
    }
    list.print(80);
  }
  return 0;
}

namespace {

// Prints notes for all opsets of an operator, whose rows follow each other.
void print_notes(const std::vector<OperatorInfo>& operators) {
  const OperatorInfo* last = nullptr;
  for (const OperatorInfo& op : operators) {
    const bool again = last != nullptr && last->op == op.op && last->domain == op.domain;
    if (!op.note.empty() && !again)
      std::printf("%s: %s\n", (op.domain.empty() ? op.op : op.domain + "." + op.op).c_str(),
                  op.note.c_str());
    last = &op;
  }
}

}  // namespace

int ops_command(const ListArgs& args) {
  std::vector<OperatorInfo> operators = Environment::operators();
  for (OperatorInfo& op : Environment::instance().custom_operators())
    operators.push_back(std::move(op));
  if (args.json) {
    Json json;
    json.object().key("operators").list();
    for (const OperatorInfo& op : operators) {
      json.object().field("op", op.op).field("domain", op.domain).field("since", op.since);
      json.field("until", op.until).field("runs_in", op.runs_in).field("note", op.note);
      json.field("types", op.types).end();
    }
    json.end().end().print();
    return 0;
  }
  if (args.notes) {
    print_notes(operators);
    return 0;
  }
  Table table({"operator", "domain", "opsets", "runs in", "types"});
  for (const OperatorInfo& op : operators) {
    table.add(
        {op.op, domain_text(op.domain), range_text(op.since, op.until), op.runs_in, op.types});
  }
  table.print();
  std::printf("%zu rows\n", operators.size());
  return 0;
}

int plugins_command(const ListArgs& args) {
  const std::vector<pyflame_rt::PluginInfo> plugins = Environment::instance().plugins();
  if (!args.json) {
    print_plugins(plugins);
    for (const pyflame_rt::PluginInfo& p : plugins) {
      const std::vector<ProviderOption> options = load_options(p);
      if (options.empty()) continue;
      std::printf("\n%s: %zu options of loads\n", p.name.c_str(), options.size());
      Table table({"key", "type", "default", "choices", "meaning"});
      for (const ProviderOption& option : options)
        table.add({option.key, option_type_text(option.type), option.default_value, option.choices,
                   option.doc});
      table.print();
    }
    return 0;
  }
  Json json;
  json.object();
  write_plugins(plugins, &json);
  json.end().print();
  return 0;
}

}  // namespace cli
