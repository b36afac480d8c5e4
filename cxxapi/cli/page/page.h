// SPDX-License-Identifier: Apache-2.0
//
// The page that `pfrt inspect --html` writes: one file that refers to nothing outside of it. Pure
// functions.
#pragma once

#include <optional>
#include <pyflame_rt/opt/pass.hpp>
#include <string>
#include <vector>

#include "cxxapi/cli/page/drawing.h"
#include "cxxapi/cli/print/summary.h"

namespace cli {

// A graph with its drawings.
struct PageGraph {
  std::vector<Drawing> drawings;
  OperatorCounts operators;
  size_t nodes = 0;     // bodies included
  size_t left_out = 0;  // boxes that are not drawn
};
PageGraph page_graph(const pyflame_rt::Graph& graph);

struct PageContents {
  std::string model, level;
  std::vector<SummaryLine> summary;
  PageGraph before;
  std::optional<PageGraph> after;  // nothing when the passes failed
  pyflame_rt::opt::PassResult passes;
  std::string failure;  // message of a pass that failed
};

std::string write_html(const PageContents& contents);

}  // namespace cli
