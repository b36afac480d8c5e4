// SPDX-License-Identifier: Apache-2.0
#include "core/environment/export.h"

#include "core/environment/import.h"
#include "core/ir/verify.h"
#include "core/op/defs/standardise.h"
#include "core/op/engine/lookup.h"
#include "core/session/pass_options.h"

namespace pfrt {
namespace {

InfoList info_list(const ModelInfo& info) {
  InfoList list;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) list.emplace_back(key, value);
  };
  add("producer_name", info.producer_name);
  add("producer_version", info.producer_version);
  add("domain", info.domain);
  add("description", info.description);
  if (info.model_version) add("model_version", std::to_string(info.model_version));
  if (info.ir_version) add("ir_version", std::to_string(info.ir_version));
  return list;
}

Status save_as_pfm(const Model& model, const std::string& path, Progress& progress) {
  PFRT_ASSIGN(auto file, os::AtomicFile::create(path));
  PFRT_TRY(save_pfm(
      model.graph(), info_list(model.info()),
      [&](const void* data, uint64_t size) { return file->write(data, size); }, progress));
  PFRT_TRY(model.intact(true));
  return file->commit();
}

Status save_with(const Importer& exporter, Logger& logger, const Model& model,
                 const std::string& path, Progress& progress) {
  if (!exporter.writes())
    return error(Code::kUNSUPPORTED, exporter.name(), " can be read but not written");
  ExportCall call(path, info_list(model.info()), logger, progress);
  PFRT_ASSIGN([[maybe_unused]] const uint32_t first, call.add_file(path));
  // The copy makes the storage of getters this call's own.
  std::shared_ptr<Graph> graph = model.graph().clone();
  PFRT_TRY(check_sayable(*graph));
  // A graph of no particular opset, built by hand or left by passes, is written with the lowest
  // opsets that it needs.
  if (graph->opset("") == newest_opset("") && infer_types(*graph).ok()) {
    PFRT_TRY(standardise(*graph));
    name_captures(*graph);
  }
  Status saved = exporter.save(call, std::move(graph));
  PFRT_TRY(model.intact(true));
  PFRT_TRY(std::move(saved));
  return call.commit();
}

}  // namespace

Result<uint32_t> ExportCall::add_file(const std::string& path) {
  PFRT_ASSIGN(auto file, os::AtomicFile::create(path));
  files_.push_back(std::move(file));
  return static_cast<uint32_t>(files_.size() - 1);
}

Status ExportCall::write(uint32_t file, const void* data, uint64_t size) {
  if (file >= files_.size())
    return error(Code::kINTERNAL, "writing to file ", file, " of ", files_.size());
  return files_[file]->write(data, size);
}

Status ExportCall::commit() {
  for (size_t i = files_.size(); i-- > 0;) PFRT_TRY(files_[i]->commit());
  return {};
}

Status save_model(Environment& environment, const Model& given, const std::string& path,
                  Progress& progress) {
  PFRT_ASSIGN(const Model* const whole, given.whole(progress));
  const Model& model = *whole;
  PFRT_TRY(model.intact(true));
  PFRT_TRY(progress.stage("write", 1.0));
  const std::string extension = extension_of(path);
  if (extension == "pfm") return save_as_pfm(model, path, progress);
  std::string why;
  PFRT_ASSIGN(const auto exporter, importer_for(environment.plugins(), extension, &why));
  if (!exporter)
    return error(
        Code::kUNSUPPORTED_FORMAT,
        why.empty() ? "no plug-in writes '." + extension + "' files; use .pfm or .onnx" : why);
  return save_with(*exporter, environment.logger(), model, path, progress);
}

}  // namespace pfrt
