// SPDX-License-Identifier: Apache-2.0
//
// Lists of plug-ins that commands show. Pure functions but for the printing.
#pragma once

#include <pyflame_rt/env.hpp>
#include <vector>

namespace cli {

class Json;

void write_plugins(const std::vector<pyflame_rt::PluginInfo>& plugins, Json* json);
void print_plugins(const std::vector<pyflame_rt::PluginInfo>& plugins);

}  // namespace cli
