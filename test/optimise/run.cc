// SPDX-License-Identifier: Apache-2.0
#include "test/optimise/run.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "cxxapi/cli/tensors/npy.h"
#include "test/optimise/generator.h"
#include "test/optimise/shrink.h"

namespace pfrt_optimise {
namespace {

Report report(const RunOptions& options, uint64_t index, const ModelSpec& model,
              const Config& config, const Failure& failure) {
  Report out{index, config, failure, model, {}};
  // Refusals count as equal when their messages begin alike.
  const std::string start = failure.message.substr(0, failure.message.find('\''));
  out.small = shrink(model, [&](const ModelSpec& tried) {
    const auto found = failure_of(tried, config);
    return found && found->kind == failure.kind &&
           (failure.kind == FailureKind::Differs ||
            found->message.compare(0, start.size(), start) == 0);
  });
  const auto last = failure_of(out.small, config);
  std::ostringstream text;
  text << "model " << index << " of seed " << options.seed << ", " << config.name << ": "
       << failure.message << "\ncut down to " << node_count(out.small.graph) << " of "
       << node_count(model.graph) << " nodes: " << (last ? last->message : "") << '\n'
       << text_of(out.small);
  std::string name = config.name;
  std::replace(name.begin(), name.end(), ':', '_');
  const std::string file =
      (std::filesystem::path(options.folder) / ("random_" + std::to_string(options.seed) + "_" +
                                                std::to_string(index) + "_" + name + ".onnx"))
          .string();
  try {
    pyflame_rt::save_model(build(out.small), file);
    text << "written to " << file << '\n';
  } catch (const std::exception& error) {
    text << "not written: " << error.what() << '\n';
  }
  text << "repeat: " << options.program << " --seed " << options.seed << " --only " << index
       << " --config " << config.name << (options.kind.empty() ? "" : " --kind ") << options.kind
       << '\n';
  out.text = text.str();
  return out;
}

void save(const ModelSpec& model, const Reference& reference, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  pyflame_rt::save_model(build(model), (folder / "model.onnx").string());
  for (size_t feed = 0; feed < reference.results().size(); ++feed) {
    const std::filesystem::path data = folder / ("feed_" + std::to_string(feed));
    std::filesystem::create_directories(data);
    for (const auto& [name, tensor] : model.feeds[feed])
      cli::write_npy((data / ("in_" + name + ".npy")).string(), tensor);
    if (!reference.results()[feed]) continue;
    for (size_t i = 0; i < model.graph.outputs.size(); ++i)
      cli::write_npy((data / ("out_" + model.graph.outputs[i] + ".npy")).string(),
                     (*reference.results()[feed])[i]);
  }
}

}  // namespace

RunResult run_models(const RunOptions& options) {
  RunResult result;
  for (uint64_t index = options.first; index < options.first + options.count; ++index) {
    const ModelSpec model = pfrt_optimise::generate(options.seed, index, options.kind);
    const Reference reference(model);
    for (const Config& config : options.configs) {
      const auto failure = reference.check(config);
      if (!failure) continue;
      ++result.failures;
      if (result.reports.size() < options.most_reports)
        result.reports.push_back(report(options, index, model, config, *failure));
      if (failure->kind == FailureKind::Reference) break;  // all configurations fail alike
    }
  }
  return result;
}

std::optional<int> run_command_line(int argc, char** argv) {
  RunOptions options;
  options.program = argv[0];
  options.count = 300;
  options.most_reports = 10;
  options.configs = configs();
  std::string folder;
  bool asked = false, only = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--seed")
      options.seed = std::stoull(value);
    else if (name == "--first")
      options.first = std::stoull(value);
    else if (name == "--only")
      options.first = std::stoull(value), only = true;
    else if (name == "--models")
      options.count = std::stoull(value);
    else if (name == "--config")
      options.configs = {config_named(value)};
    else if (name == "--kind")
      options.kind = value;
    else if (name == "--save")
      folder = value;
    else
      return std::nullopt;
    asked = true;
  }
  if (!asked) return std::nullopt;
  if (only) options.count = 1;
  if (only)
    std::printf(
        "%s", text_of(pfrt_optimise::generate(options.seed, options.first, options.kind)).c_str());
  for (uint64_t i = 0; !folder.empty() && i < options.count; ++i) {
    const ModelSpec model = pfrt_optimise::generate(options.seed, options.first + i, options.kind);
    save(model, Reference(model),
         std::filesystem::path(folder) / std::to_string(options.first + i));
  }
  const RunResult result = run_models(options);
  for (const Report& report : result.reports) std::printf("\n%s", report.text.c_str());
  std::printf("%llu models of seed %llu from %llu, %zu configurations: %llu failures\n",
              static_cast<unsigned long long>(options.count),
              static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(options.first), options.configs.size(),
              static_cast<unsigned long long>(result.failures));
  return result.failures == 0 ? 0 : 1;
}

}  // namespace pfrt_optimise
