// SPDX-License-Identifier: Apache-2.0
//
// Small changes to ONNX models: mostly at the level of the messages, so that they get past the
// parser, now and then in the bytes. An equal random state gives an equal change.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace pfrt_fuzz {

using Random = std::mt19937_64;

// |model| and |donor| are serialized models; parts of |donor| may be taken over. |log| gets a line
// a change. A |model| that cannot be parsed is changed in its bytes alone.
std::string mutate(const std::string& model, const std::string& donor, Random& random,
                   std::vector<std::string>* log);

}  // namespace pfrt_fuzz
