// SPDX-License-Identifier: Apache-2.0
//
// Tensors typed on the command line. Pure functions.
#pragma once

#include <pyflame_rt/session.hpp>
#include <string>

namespace cli {

// Whether |text| is meant as numbers or words rather than as the name of a file: it begins like a
// number, a list or a quoted word, or is true, false, nan or inf.
bool is_literal(const std::string& text);

// Makes the tensor that |text| says: a number, true, false, a "word", or nested lists of them, as
// in
// [[1, 2], [3, 4]]. Dimensions of 1 are put in front where the input has more of them. Throws
// UsageError for another form, for lists of different lengths, for numbers that the input's type
// does not hold, and for types that have no numbers to type.
pyflame_rt::Tensor parse_literal(const std::string& text, const pyflame_rt::NodeArg& arg);

}  // namespace cli
