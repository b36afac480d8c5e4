// SPDX-License-Identifier: Apache-2.0
//
// Provides what an environment gets from plug-ins, whoever finds and opens them. Implementations
// are thread-safe; what they hand out keeps the plug-in's library loaded.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"
#include "core/provider/provider.h"
#include "pyflame_rt/custom.h"

namespace pfrt {

struct ClientPass;
class ExportCall;
class ImportCall;

// Reads, and perhaps writes, models of one format.
class Importer {
 public:
  virtual ~Importer() = default;
  virtual const std::string& name() const = 0;                   // "ONNX"
  virtual std::vector<std::string_view> extensions() const = 0;  // "onnx", lower case
  // Certainty that |data| is of its format; 0 = it is not.
  virtual uint32_t probe(const void* data, uint64_t size) const = 0;
  // The options of a load that it knows, by its own keys.
  virtual Result<std::vector<pfrt_option_info>> options() const = 0;
  // Returns the graph, which nobody else can edit any more. UNSUPPORTED_FORMAT declines: the bytes
  // are not of its format after all.
  virtual Result<std::shared_ptr<Graph>> load(ImportCall& call) const = 0;
  virtual bool writes() const = 0;
  virtual Status save(ExportCall& call, std::shared_ptr<Graph> graph) const = 0;
};

// The operators that one plug-in brings.
struct OperatorTable {
  std::string path;
  const pfrt_ops_table* table = nullptr;
  std::shared_ptr<void> library;
};

// The passes that one plug-in brings.
struct PassTable {
  std::string path;
  std::vector<std::shared_ptr<const ClientPass>> passes;
};

class PluginSource {
 public:
  virtual ~PluginSource() = default;

  // The provider to open, without options. |name| is its name or a word for it
  // (core/base/provider_name.h). NOT_FOUND lists the providers there are.
  virtual Result<ProviderSource> provider(std::string_view name) = 0;
  // All usable providers.
  virtual std::vector<ProviderSource> providers() = 0;
  // Names and words that stand for providers whose files are there, usable or not.
  virtual std::vector<std::string> provider_names() = 0;

  // The importer whose file is named after |extension|; null when there is none. |why| says why
  // one that is there is not usable.
  virtual Result<std::shared_ptr<const Importer>> importer_named(std::string_view extension,
                                                                 std::string* why) = 0;
  virtual std::vector<std::shared_ptr<const Importer>> importers() = 0;

  virtual std::vector<OperatorTable> operators() = 0;
  // Passes of the plug-ins whose paths |known| does not have.
  virtual Result<std::vector<PassTable>> passes(const std::set<std::string>& known) = 0;

  // The folders that are searched, worded for a sentence.
  virtual std::string searched() const = 0;
};

}  // namespace pfrt
