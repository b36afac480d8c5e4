// SPDX-License-Identifier: Apache-2.0
//
// `pfrt inspect --html`: optimises a copy of a model's graph and writes the page.
#pragma once

#include <pyflame_rt/model_io.hpp>

#include "cxxapi/cli/commands.h"

namespace cli {

// Writes the page and returns the exit code. Throws UsageError when the page cannot be written.
int write_page(const InspectArgs& args, const pyflame_rt::Model& model,
               const pyflame_rt::Graph& graph);

}  // namespace cli
