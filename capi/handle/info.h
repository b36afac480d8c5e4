// SPDX-License-Identifier: Apache-2.0
//
// Types of values as clients see and describe them.
#pragma once

#include <string>
#include <vector>

#include "core/model/ports.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt::capi {

// What getters of a graph or session hand out views of.
struct InfoStorage {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<std::string> names;
  std::vector<pfrt_string> name_views;
};
pfrt_value_info make_value_info(const PortInfo& port, InfoStorage& storage);
// The type that a value info describes; dimension names become symbols.
Result<Type> type_from(const pfrt_value_info& info, SymbolTable& symbols);

}  // namespace pfrt::capi
