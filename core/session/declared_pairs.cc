// SPDX-License-Identifier: Apache-2.0
#include "core/session/declared_pairs.h"

#include <algorithm>
#include <charconv>

#include "core/base/abi/sized.h"

namespace pfrt {
namespace {

constexpr std::string_view kStateKey = "pyflame_rt.state.";

struct Way {
  pfrt_state_growth number;
  StatePair::Growth growth;
  std::string_view word;
};
constexpr Way kWays[] = {
    {PFRT_STATE_BY_NAMES, StatePair::Growth::kByNames, "by_names"},
    {PFRT_STATE_REPLACED, StatePair::Growth::kNone, "replaced"},
    {PFRT_STATE_GROWS, StatePair::Growth::kAlong, "grows"},
    {PFRT_STATE_IN_PLACE, StatePair::Growth::kInPlace, "in_place"},
};

template <typename T>
bool parse_number(std::string_view text, T& out) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  return code == std::errc() && end == text.data() + text.size();
}

// |value| as "<way>[:<axis>[:<capacity>]] <output>"; false where it is none.
bool parse_pair(std::string_view value, StatePair& out) {
  const size_t space = value.find(' ');
  if (space == std::string_view::npos || space + 1 == value.size()) return false;
  out.output = value.substr(space + 1);
  const std::string_view way = value.substr(0, space);
  const size_t colon = way.find(':');
  const auto* at = std::ranges::find(kWays, way.substr(0, colon), &Way::word);
  if (at == std::end(kWays)) return false;
  out.growth = at->growth;
  const bool along = at->growth == StatePair::Growth::kAlong;
  if (colon == std::string_view::npos) return !along;
  const std::string_view rest = way.substr(colon + 1);
  const size_t second = rest.find(':');
  if (!parse_number(rest.substr(0, second), out.axis)) return false;
  if (second == std::string_view::npos) return along;
  return (along || at->growth == StatePair::Growth::kInPlace) &&
         parse_number(rest.substr(second + 1), out.capacity) && out.capacity > 0;
}

}  // namespace

Status declare_pair(Graph& graph, const pfrt_state_pair& pair) {
  const auto* way = std::ranges::find(kWays, pair.growth, &Way::number);
  if (way == std::end(kWays))
    return abi::unknown_number("declaring a state", "growth", pair.growth);
  const std::string input(view(pair.input)), output(view(pair.output));
  if (input.empty() || output.empty())
    return error(Code::kINVALID_ARGUMENT, "declaring a state: the pair of input '", input,
                 "' and output '", output, "' has an empty name");
  std::string value(way->word);
  const bool has_room = pair.growth == PFRT_STATE_GROWS || pair.growth == PFRT_STATE_IN_PLACE;
  if (pair.capacity && !has_room)
    return error(Code::kINVALID_ARGUMENT, "declaring a state: the pair of input '", input,
                 "' has a capacity, but neither grows along an axis nor is written in place");
  if (pair.growth == PFRT_STATE_GROWS || pair.capacity) value += message(":", pair.axis);
  if (pair.capacity) value += message(":", pair.capacity);
  value += " " + output;
  const std::string key = std::string(kStateKey) + input;
  const auto at = std::ranges::find(graph.metadata, key, [](const auto& e) { return e.first; });
  if (at != graph.metadata.end())
    at->second = std::move(value);
  else
    graph.metadata.emplace_back(key, std::move(value));
  return {};
}

Result<std::vector<StatePair>> declared_pairs(const Graph& graph) {
  std::vector<StatePair> out;
  for (const auto& [key, value] : graph.metadata) {
    if (!key.starts_with(kStateKey) || key.size() == kStateKey.size()) continue;
    StatePair pair;
    pair.input = key.substr(kStateKey.size());
    if (!parse_pair(value, pair))
      return error(Code::kINVALID_MODEL, "reading the model's states: metadata '", key, "' is '",
                   value, "'; it has to be a way of growth and an output, as in 'grows:2 present'");
    if (graph.is_input(graph.find(pair.input)) && graph.is_output(graph.find(pair.output)))
      out.push_back(std::move(pair));
  }
  return out;
}

}  // namespace pfrt
