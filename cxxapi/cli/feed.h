// SPDX-License-Identifier: Apache-2.0
//
// Inputs for a model: from files, random or zero, with the symbolic dimensions fixed by the user.
// The same seed gives the same data. No state.
#pragma once

#include <map>
#include <pyflame_rt/session.hpp>
#include <string>
#include <unordered_map>
#include <vector>

namespace cli {

using Dims = std::map<std::string, int64_t>;  // by dimension name
using Feed = std::unordered_map<std::string, pyflame_rt::Value>;

// "NAME=VALUE" split at the last '='; UsageError naming |option| when there is none.
std::pair<std::string, std::string> split_assignment(const std::string& text, const char* option);
Dims parse_dims(const std::vector<std::string>& texts);

// The shape with symbolic dimensions replaced; 1 where nothing is said. An unranked value is a
// scalar.
std::vector<int64_t> fixed_shape(const pyflame_rt::TensorInfo& info, const Dims& dims);

// Floats are standard normal, 8-bit integers use their range, other integers and bools are 0 or 1
// (so that they may be indices and masks), strings are short words.
pyflame_rt::Tensor random_tensor(pyflame_rt::DType dtype, std::vector<int64_t> shape,
                                 uint64_t seed);

// |texts| are NAME=FILE.npy, NAME=FILE.pb, NAME=random or NAME=zeros; inputs that are not named and
// must be fed are random. |origins| receives a word an input, for printing.
Feed make_feed(const pyflame_rt::InferenceSession& session, const std::vector<std::string>& texts,
               const Dims& dims, std::map<std::string, std::string>* origins);
// UsageError when |dims| names a dimension that no input has.
void check_dims(const std::vector<pyflame_rt::NodeArg>& inputs, const Dims& dims);

}  // namespace cli
