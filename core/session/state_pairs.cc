// SPDX-License-Identifier: Apache-2.0
//
// Finds out which outputs become which inputs, and how their values grow.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/session/declared_pairs.h"
#include "core/session/state.h"

namespace pfrt {
namespace {

size_t find_port(const std::vector<PortInfo>& ports, std::string_view name) {
  return static_cast<size_t>(std::ranges::find(ports, name, &PortInfo::name) - ports.begin());
}

std::string names_of(const std::vector<PortInfo>& ports) {
  std::string out;
  for (const PortInfo& port : ports) out += message(out.empty() ? "'" : ", '", port.name, "'");
  return out.empty() ? "none" : out;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == text.npos ? std::string() : text.replace(at, from.size(), to);
}

// Names that exporters give the output that belongs to |input|.
std::vector<std::string> output_names(const std::string& input) {
  std::vector<std::string> out{replaced(input, "past_key_values", "present"),
                               replaced(input, "past", "present"), input + "_out", input + "N"};
  if (input.starts_with("in_")) out.push_back("out_" + input.substr(3));
  if (input.ends_with("_in")) out.push_back(input.substr(0, input.size() - 3) + "_out");
  return out;
}

bool may_be_the_same(const PortInfo& input, const PortInfo& output) {
  const auto alike = [](auto a, auto b, auto unset) { return a == b || a == unset || b == unset; };
  return alike(input.type.kind, output.type.kind, pfrt_value_kind{PFRT_VALUE_UNSET}) &&
         alike(input.type.dtype, output.type.dtype, pfrt_dtype{PFRT_DTYPE_UNSET}) &&
         (!input.type.has_shape || !output.type.has_shape ||
          input.dims.size() == output.dims.size());
}

// Axes whose dimension has a name in the input, and another or none in the output.
std::vector<size_t> growing_axes(const PortInfo& input, const PortInfo& output) {
  std::vector<size_t> out;
  for (size_t i = 0; i < input.dims.size() && i < output.dims.size(); ++i)
    if (input.dims[i] < 0 && output.dims[i] < 0 && !input.dim_names[i].empty() &&
        input.dim_names[i] != output.dim_names[i])
      out.push_back(i);
  return out;
}

// Whether an operator that writes rows into a cache makes |output| from |input|.
bool writes_into(const Graph& graph, std::string_view input, std::string_view output) {
  const ValueId from = graph.find(input), to = graph.find(output);
  if (from == kNoId || to == kNoId || graph.at(to).producer == kNoId) return false;
  const Node& node = *graph.node(graph.at(to).producer);
  if (node.op != "TensorScatter" && node.op != "GroupQueryAttention") return false;
  const bool same_dims = graph.at(from).type.has_shape && graph.at(to).type.has_shape &&
                         graph.at(from).type.shape == graph.at(to).type.shape;
  return same_dims && std::ranges::find(node.inputs, from) != node.inputs.end();
}

}  // namespace

Result<std::shared_ptr<State>> State::create(std::shared_ptr<Session> session,
                                             const std::vector<StatePair>& pairs) {
  std::shared_ptr<State> state(new State(std::move(session)));
  for (const StatePair& pair : pairs) PFRT_TRY(state->add(pair));
  if (pairs.empty()) PFRT_TRY(state->add_declared_or_named());
  state->session_->states().add(state);
  return state;
}

Status State::add(const StatePair& pair) {
  constexpr std::string_view kDoing = "making a state";
  const auto &inputs = session_->inputs(), &outputs = session_->outputs();
  Entry e;
  e.input = find_port(inputs, pair.input);
  e.output = find_port(outputs, pair.output);
  if (e.input == inputs.size())
    return error(Code::kNOT_FOUND, kDoing, ": the session has no input '", pair.input, "'; it has ",
                 names_of(inputs));
  if (e.output == outputs.size())
    return error(Code::kNOT_FOUND, kDoing, ": the session has no output '", pair.output,
                 "'; it has ", names_of(outputs));
  for (const Entry& other : entries_)
    if (other.input == e.input || other.output == e.output)
      return error(Code::kINVALID_ARGUMENT, kDoing, ": ",
                   other.input == e.input ? "input '" : "output '",
                   other.input == e.input ? pair.input : pair.output, "' is in two pairs");
  const PortInfo &input = inputs[e.input], &output = outputs[e.output];
  const std::string both = message("output '", pair.output, "' as input '", pair.input, "'");
  if (!may_be_the_same(input, output))
    return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both,
                 ": their types or ranks are not the same");
  if (pair.growth == StatePair::Growth::kAlong) {
    if (input.type.has_shape && pair.axis >= input.dims.size())
      return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both, ": axis ", pair.axis, " of rank ",
                   input.dims.size());
    e.axis = pair.axis;
  }
  if (pair.growth == StatePair::Growth::kByNames) {
    const std::vector<size_t> axes = growing_axes(input, output);
    if (axes.size() > 1)
      return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both,
                   ": more than one dimension has another name in the output; say along which "
                   "axis it grows");
    if (!axes.empty()) e.axis = axes.front();
    e.in_place = axes.empty() && writes_into(*session_->planned_graph(), pair.input, pair.output);
  }
  if (pair.growth == StatePair::Growth::kInPlace) e.in_place = true;
  if (pair.capacity) PFRT_TRY(give_capacity(e, pair, both));
  if (e.in_place && (input.type.kind != PFRT_VALUE_TENSOR || input.type.dtype == PFRT_DTYPE_STRING))
    return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both,
                 ": a value in place is a tensor of numbers");
  entries_.push_back(std::move(e));
  return {};
}

Status State::give_capacity(Entry& e, const StatePair& pair, std::string_view both) const {
  constexpr std::string_view kDoing = "making a state";
  const PortInfo& input = input_of(e);
  if (pair.growth != StatePair::Growth::kAlong && pair.growth != StatePair::Growth::kInPlace)
    return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both, ": a capacity of ", pair.capacity,
                 " is for values that grow along an axis or are written in place; say which");
  if (input.type.has_shape && pair.axis >= input.dims.size())
    return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both, ": a capacity along axis ",
                 pair.axis, " of rank ", input.dims.size());
  if (std::cmp_greater(pair.capacity, std::numeric_limits<int64_t>::max()))
    return error(Code::kINVALID_ARGUMENT, kDoing, " of ", both, ": a capacity of ", pair.capacity,
                 " is no length");
  if (e.in_place && input.type.has_shape && input.dims[pair.axis] >= 0 &&
      std::cmp_not_equal(input.dims[pair.axis], pair.capacity))
    return error(Code::kSHAPE_MISMATCH, kDoing, " of ", both, ": a capacity of ", pair.capacity,
                 ", but the model says that dimension ", pair.axis, " is ", input.dims[pair.axis]);
  e.capacity = pair.capacity;
  e.capacity_axis = pair.axis;
  return {};
}

Status State::add_declared_or_named() {
  PFRT_ASSIGN(const std::vector<StatePair> declared,
              declared_pairs(session_->model()->signature()));
  for (const StatePair& pair : declared) PFRT_TRY(add(pair));
  return declared.empty() ? find_pairs() : Status();
}

Status State::find_pairs() {
  const auto &inputs = session_->inputs(), &outputs = session_->outputs();
  for (const PortInfo& input : inputs)
    for (const std::string& name : output_names(input.name)) {
      const size_t at = name.empty() ? outputs.size() : find_port(outputs, name);
      if (at == outputs.size() || !may_be_the_same(input, outputs[at])) continue;
      PFRT_TRY(add({input.name, name}));
      break;
    }
  if (!entries_.empty()) return {};
  return error(Code::kINVALID_ARGUMENT, "making a state: no names of inputs (", names_of(inputs),
               ") and outputs (", names_of(outputs),
               ") tell what a run leaves for the next, as past and present do; give the pairs");
}

}  // namespace pfrt
