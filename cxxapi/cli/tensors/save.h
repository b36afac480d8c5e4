// SPDX-License-Identifier: Apache-2.0
//
// The outputs of a run as .npy files.
#pragma once

#include <pyflame_rt/value.hpp>
#include <string>
#include <vector>

namespace cli {

// Whether |path| is meant as a file: it ends in .npy and is no folder.
bool is_npy_file(const std::string& path);
// Returns the path in |folder| of a tensor of |name|.
std::string npy_path(const std::string& folder, const std::string& name);
// Writes |value|, a tensor, to |path|, or to the folder |path|, which is made where it is not
// there: NAME.npy, NAME_0.npy, ... for the elements of a sequence, NAME_keys.npy and
// NAME_values.npy for a map. Adds the files to |saved|. Throws UsageError when that is not
// possible, or would overwrite one of |inputs|.
void save_value(const std::string& path, const std::string& name, const pyflame_rt::Value& value,
                const std::vector<std::string>& inputs, std::vector<std::string>* saved);

}  // namespace cli
