// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/tensors/save.h"

#include <algorithm>
#include <filesystem>

#include "cxxapi/cli/line/output_file.h"
#include "cxxapi/cli/line/usage_error.h"
#include "cxxapi/cli/tensors/npy.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using pyflame_rt::Tensor;
using pyflame_rt::Value;
using pyflame_rt::ValueKind;

void save_in(const std::string& folder, const std::string& name, const Value& value,
             const std::vector<std::string>& inputs, std::vector<std::string>* saved) {
  const auto save = [&](const std::string& stem, const Tensor& tensor) {
    const std::string path = npy_path(folder, stem);
    if (std::find(saved->begin(), saved->end(), path) != saved->end())
      throw UsageError("two outputs would be written to '" + path + "'");
    for (const std::string& input : inputs) keep_input(input, path, "give another folder");
    write_npy(path, tensor);
    saved->push_back(path);
  };
  switch (value.kind()) {
    case ValueKind::Tensor:
      return save(name, value.tensor());
    case ValueKind::Map: {
      const auto [keys, values] = value.map_parts();
      save(name + "_keys", keys);
      return save(name + "_values", values);
    }
    case ValueKind::Sequence:
    case ValueKind::Optional:
      for (size_t i = 0; i < value.size(); ++i)
        save_in(folder, name + "_" + std::to_string(i), value.at(i), inputs, saved);
      return;
    default:
      throw UsageError("output '" + name + "' is sparse and cannot be written as .npy");
  }
}

}  // namespace

std::string npy_path(const std::string& folder, const std::string& name) {
  std::string file = name;
  std::replace(file.begin(), file.end(), '/', '_');
  return (fs::path(folder) / (file + ".npy")).string();
}

bool is_npy_file(const std::string& path) {
  std::error_code error;
  return fs::path(path).extension() == ".npy" && !fs::is_directory(path, error);
}

void save_value(const std::string& path, const std::string& name, const Value& value,
                const std::vector<std::string>& inputs, std::vector<std::string>* saved) {
  if (is_npy_file(path)) {
    if (!value.is_tensor())
      throw UsageError("output '" + name + "' is not a tensor and takes more than the file '" +
                       path + "': give a folder");
    for (const std::string& input : inputs) keep_input(input, path);
    write_npy(path, value.tensor());
    saved->push_back(path);
    return;
  }
  std::error_code error;
  fs::create_directories(path, error);
  const std::string why = error ? error.message() : "it is there, and is none";
  if (!fs::is_directory(path, error))
    throw UsageError("cannot make the folder '" + path + "': " + why +
                     (fs::is_regular_file(path, error) ? "; a file's name ends in .npy" : ""));
  save_in(path, name, value, inputs, saved);
}

}  // namespace cli
