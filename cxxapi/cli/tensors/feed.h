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

using Dims = std::map<std::string, int64_t>;  // by the names that dim_name returns
using Feed = std::unordered_map<std::string, pyflame_rt::Value>;

// Splits "NAME=VALUE" at the last '=' before any quotes; throws UsageError naming |option| when
// there is none.
std::pair<std::string, std::string> split_assignment(const std::string& text, const char* option);
Dims parse_dims(const std::vector<std::string>& texts);

// Returns the name of a symbolic dimension for --dim: its own, or "INPUT:AXIS" where it has none.
std::string dim_name(const pyflame_rt::TensorInfo& info, size_t axis);
// Returns the shape with symbolic dimensions replaced; 1 where |dims| lacks one. An unranked value
// is a scalar.
std::vector<int64_t> fixed_shape(const pyflame_rt::TensorInfo& info, const Dims& dims);

// Makes a tensor. Floats are standard normal, 8-bit integers use their range, other integers and
// bools are 0 or 1 (so that they may be indices and masks), strings are short words.
pyflame_rt::Tensor random_tensor(pyflame_rt::DType dtype, std::vector<int64_t> shape,
                                 uint64_t seed);

// Throws UsageError when |dims| names a dimension that no input has.
void check_dims(const std::vector<pyflame_rt::NodeArg>& inputs, const Dims& dims);

// Makes a model's inputs: values of files, and made-up ones in the shapes that are asked for.
class Feeder {
 public:
  // |texts| are NAME=FILE.npy, NAME=FILE.pb, NAME=random, NAME=zeros or NAME and what is_literal
  // takes; inputs that are not named and must be fed are random. Reads the files, whose shapes fix
  // the dimensions they share with other inputs. Throws UsageError for an input or a dimension that
  // the model does not have, and for an input that cannot be made up.
  Feeder(const std::vector<pyflame_rt::NodeArg>& inputs, const std::vector<std::string>& texts,
         Dims dims);

  // Origin of each input that is fed, for printing: "random", "zeros", the file, or what was typed.
  const std::map<std::string, std::string>& origins() const { return origins_; }
  // Inputs that are made up.
  const std::vector<pyflame_rt::NodeArg>& made_up() const { return made_up_; }
  // Dimensions that the user or a file has fixed.
  const Dims& dims() const { return dims_; }
  // Makes all inputs. |sizes| are those of the other dimensions; 1 where it lacks one.
  Feed feed(const Dims& sizes) const;

 private:
  Dims dims_;
  std::map<std::string, std::string> origins_;
  std::vector<pyflame_rt::NodeArg> made_up_;
  std::map<std::string, uint64_t> seeds_;
  Feed files_;
};

}  // namespace cli
