// SPDX-License-Identifier: Apache-2.0
//
// The inputs and outputs of a session, for those outside, and checks of the values given for them.
// Pure; thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

using NamedValues = std::vector<std::pair<std::string, ValuePtr>>;

// An input or output, for those outside.
struct PortInfo {
  std::string name;
  Type type;
  std::vector<int64_t> dims;           // -1 = dynamic
  std::vector<std::string> dim_names;  // empty where a dimension has no name
  bool has_initializer = false;
};

PortInfo port_info(const Graph& graph, ValueId id);
// Describes value |planned| of |graph|, which |model| declares as |declared|: dimensions that
// nothing infers have their declared names. A run need not keep to declared numbers.
PortInfo port_info(const Graph& graph, ValueId planned, const Graph& model, ValueId declared);

// Checks |inputs|, one for each port (null where not given), against what the ports expect, and
// dimensions of one name against each other. The first |required| must be given. Where dimensions
// of one name differ, |out_differ| is told how; without it that is an error.
Status check_inputs(const std::vector<PortInfo>& ports, size_t required, const SymbolTable& symbols,
                    const std::vector<ValuePtr>& inputs, std::string* out_differ = nullptr);
// Checks that sample |index| names inputs that must be fed, and fits.
Status check_sample(const std::vector<PortInfo>& ports, size_t required, const SymbolTable& symbols,
                    const NamedValues& sample, size_t index);

}  // namespace pfrt
