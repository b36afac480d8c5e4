// SPDX-License-Identifier: Apache-2.0
//
// A graph as a page shows it: boxes for nodes, inputs, outputs and captured values, with their
// texts, and the links between. All text is clean and cut. Externally synchronised with the graph.
#pragma once

#include <optional>
#include <pyflame_rt/graph.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cxxapi/cli/page/boxes.h"

namespace cli {

struct Box {
  std::string_view category;
  std::string op, name, domain;
  std::string label;      // the end of the name
  std::string constants;  // short texts of those it takes
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<std::optional<size_t>> inputs;  // values; none where an optional input is absent
  std::vector<size_t> outputs;
  std::vector<std::pair<std::string, size_t>> bodies;  // attribute and drawing
  size_t key =
      0;  // the same for a node of another graph that makes the same value by the same operator
  bool is_node = false;
  bool only_here = false;
};

struct ValueNote {
  std::string name, type;
  std::string constant;  // "constant", with its elements where they are few
};

struct Drawing {
  std::string title;  // of a body
  std::vector<Box> boxes;
  std::vector<ValueNote> values;
  std::vector<Link> links;
};

// Draws the graph first, then the bodies in it, those of one box together.
std::vector<Drawing> draw(const pyflame_rt::Graph& graph);
// Marks boxes that one graph has and the other lacks.
void compare(std::vector<Drawing>* before, std::vector<Drawing>* after);
// Keeps the first |most| boxes, those of the graph before those of bodies, and what belongs to
// them. Returns the number of those that are left out.
size_t shorten(std::vector<Drawing>* drawings, size_t most);

}  // namespace cli
