// SPDX-License-Identifier: Apache-2.0
//
// RNN, GRU and LSTM by the standard's equations, one element at a time.
#include <algorithm>
#include <cmath>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

struct ActivationCase {
  const char* name;
  double (*at)(double);
};

// Activations without given coefficients; HardSigmoid has the standard's defaults.
constexpr ActivationCase kActivations[] = {
    {"Sigmoid", [](double v) { return 1 / (1 + std::exp(-v)); }},
    {"Tanh", [](double v) { return std::tanh(v); }},
    {"Relu", [](double v) { return std::max(v, 0.0); }},
    {"Softsign", [](double v) { return v / (1 + std::fabs(v)); }},
    {"Softplus", [](double v) { return std::log1p(std::exp(v)); }},
    {"HardSigmoid", [](double v) { return std::clamp(0.2 * v + 0.5, 0.0, 1.0); }},
};

const ActivationCase& activation(const std::string& name) {
  return *std::find_if(std::begin(kActivations), std::end(kActivations),
                       [&](const ActivationCase& c) { return name == c.name; });
}

struct Cell {
  int gates, activations;
};

struct Setup {
  std::string op;
  int64_t directions = 1, time = 1, batch = 1, features = 1, hidden = 1;
  bool reverse = false, batch_first = false, before_reset = false, input_forget = false;
  double clip = 0;
  std::vector<std::string> activations;
  Cell cell{};
};

// Inputs in the standard's order; an absent one has no values.
struct Inputs {
  Data x, w, r, b, lengths, h, c, p;
};

double value(const Data& data, std::initializer_list<int64_t> index) {
  return data.dtype == 0 ? 0 : data.values[position(Dims(index), data.dims)];
}

double state(const Setup& s, const Data& data, int64_t d, int64_t b, int64_t j) {
  return s.batch_first ? value(data, {b, d, j}) : value(data, {d, b, j});
}

struct Outputs {
  Data y, h, c;
};

// Computes one direction of one sequence.
void sweep(const Setup& s, const Inputs& in, int64_t d, int64_t b, Outputs& out) {
  const auto H = static_cast<size_t>(s.hidden);
  Values h(H), c(H);
  for (int64_t j = 0; j < s.hidden; ++j) {
    h[static_cast<size_t>(j)] = state(s, in.h, d, b, j);
    c[static_cast<size_t>(j)] = state(s, in.c, d, b, j);
  }
  const auto act = [&](int which, double v) {
    if (s.clip > 0) v = std::clamp(v, -s.clip, s.clip);
    return activation(s.activations[static_cast<size_t>(d * s.cell.activations + which)]).at(v);
  };
  const int64_t length = in.lengths.dtype == 0
                             ? s.time
                             : static_cast<int64_t>(in.lengths.values[static_cast<size_t>(b)]);
  const int64_t rows = s.cell.gates * s.hidden;
  for (int64_t step = 0; step < length; ++step) {
    const int64_t t = s.reverse || d == 1 ? length - 1 - step : step;
    // The parts of gate |g| of unit |j| that come from the input, and from the state |from|.
    const auto driven = [&](int g, int64_t j) {
      double sum = value(in.b, {d, g * s.hidden + j});
      for (int64_t k = 0; k < s.features; ++k)
        sum += (s.batch_first ? value(in.x, {b, t, k}) : value(in.x, {t, b, k})) *
               value(in.w, {d, g * s.hidden + j, k});
      return sum;
    };
    const auto fed_back = [&](int g, int64_t j, const Values& from) {
      double sum = value(in.b, {d, rows + g * s.hidden + j});
      for (int64_t k = 0; k < s.hidden; ++k)
        sum += from[static_cast<size_t>(k)] * value(in.r, {d, g * s.hidden + j, k});
      return sum;
    };
    const auto gate = [&](int g, int64_t j) { return driven(g, j) + fed_back(g, j, h); };
    Values next(H), next_c(H), reset_h(H);
    if (s.op == "GRU")
      for (int64_t j = 0; j < s.hidden; ++j)
        reset_h[static_cast<size_t>(j)] = act(0, gate(1, j)) * h[static_cast<size_t>(j)];
    for (int64_t j = 0; j < s.hidden; ++j) {
      const auto u = static_cast<size_t>(j);
      if (s.op == "RNN") {
        next[u] = act(0, gate(0, j));
      } else if (s.op == "GRU") {
        const double z = act(0, gate(0, j)), r = act(0, gate(1, j));
        const double n = act(
            1, driven(2, j) + (s.before_reset ? r * fed_back(2, j, h) : fed_back(2, j, reset_h)));
        next[u] = (1 - z) * n + z * h[u];
      } else {
        const double i = act(0, gate(0, j) + value(in.p, {d, j}) * c[u]);
        const double f =
            s.input_forget ? 1 - i : act(0, gate(2, j) + value(in.p, {d, 2 * s.hidden + j}) * c[u]);
        next_c[u] = f * c[u] + i * act(1, gate(3, j));
        const double o = act(0, gate(1, j) + value(in.p, {d, s.hidden + j}) * next_c[u]);
        next[u] = o * act(2, next_c[u]);
      }
      const Dims at = s.batch_first ? Dims{b, t, d, j} : Dims{t, d, b, j};
      out.y.values[position(at, out.y.dims)] = next[u];
    }
    h = next;
    c = next_c;
  }
  for (int64_t j = 0; j < s.hidden; ++j) {
    const Dims at = s.batch_first ? Dims{b, d, j} : Dims{d, b, j};
    out.h.values[position(at, out.h.dims)] = h[static_cast<size_t>(j)];
    out.c.values[position(at, out.c.dims)] = c[static_cast<size_t>(j)];
  }
}

Data zeros(pfrt_dtype dtype, const Dims& dims) {
  return expected(dtype, dims, Values(static_cast<size_t>(count(dims)), 0));
}

Setup some_setup(Random& r, const std::string& op, int64_t size) {
  Setup s;
  s.op = op;
  s.cell = op == "LSTM" ? Cell{4, 3} : op == "GRU" ? Cell{3, 2} : Cell{1, 1};
  s.directions = r.from_to(1, 2);
  s.reverse = s.directions == 1 && r.once_in(3);
  s.batch_first = r.once_in(3);
  s.before_reset = op == "GRU" && r.once_in(2);
  s.input_forget = op == "LSTM" && r.once_in(4);
  s.clip = r.once_in(4) ? 0.5 : 0;
  s.time = r.from_to(1, size >= kLarge ? 9 : 5);
  s.batch = r.from_to(1, size >= kLarge ? 9 : 4);
  s.features = r.from_to(1, size >= kLarge ? 70 : 9);
  s.hidden = r.from_to(1, size >= kLarge ? 70 : 17);
  const char* const standard[] = {"Sigmoid", "Tanh", "Tanh"};
  for (int64_t d = 0; d < s.directions; ++d)
    for (int i = 0; i < s.cell.activations; ++i)
      s.activations.push_back(r.once_in(3)  ? kActivations[r.below(std::size(kActivations))].name
                              : op == "RNN" ? "Tanh"
                                            : standard[i]);
  return s;
}

Case recurrent(Random& r, const std::string& op, pfrt_dtype dtype, int64_t size) {
  const Setup s = some_setup(r, op, size);
  const int64_t d = s.directions, rows = s.cell.gates * s.hidden;
  const auto maybe = [&](Data data) { return r.once_in(3) ? Data{} : data; };
  const Dims states = s.batch_first ? Dims{s.batch, d, s.hidden} : Dims{d, s.batch, s.hidden};
  Inputs in;
  in.x = r.data(
      dtype, s.batch_first ? Dims{s.batch, s.time, s.features} : Dims{s.time, s.batch, s.features},
      -1, 1);
  in.w = r.data(dtype, {d, rows, s.features}, -0.5, 0.5);
  in.r = r.data(dtype, {d, rows, s.hidden}, -0.3, 0.3);
  in.r.constant = r.once_in(2);
  in.w.constant = r.once_in(2);
  in.b = maybe(r.data(dtype, {d, 2 * rows}, -0.5, 0.5));
  in.lengths = maybe(r.data(PFRT_DTYPE_INT32, {s.batch}, 0, static_cast<double>(s.time)));
  in.h = maybe(r.data(dtype, states, -1, 1));
  Outputs out;
  out.y = zeros(dtype, s.batch_first ? Dims{s.batch, s.time, d, s.hidden}
                                     : Dims{s.time, d, s.batch, s.hidden});
  out.h = out.c = zeros(dtype, states);
  Case c;
  c.inputs = {in.x, in.w, in.r, in.b, in.lengths, in.h};
  if (op == "LSTM") {
    in.c = maybe(r.data(dtype, states, -1, 1));
    in.p = maybe(r.data(dtype, {d, 3 * s.hidden}, -0.3, 0.3));
    c.inputs.push_back(in.c);
    c.inputs.push_back(in.p);
  }
  for (int64_t k = 0; k < d; ++k)
    for (int64_t b = 0; b < s.batch; ++b) sweep(s, in, k, b, out);
  c.outputs = {out.y, out.h};
  if (op == "LSTM") c.outputs.push_back(out.c);
  c.attrs = {{"hidden_size", s.hidden},
             {"layout", int64_t{s.batch_first}},
             {"direction", std::string(d == 2      ? "bidirectional"
                                       : s.reverse ? "reverse"
                                                   : "forward")},
             {"activations", s.activations}};
  if (s.clip > 0) c.attrs.push_back({"clip", static_cast<float>(s.clip)});
  if (op == "GRU") c.attrs.push_back({"linear_before_reset", int64_t{s.before_reset}});
  if (op == "LSTM") c.attrs.push_back({"input_forget", int64_t{s.input_forget}});
  c.relative = 64;
  c.absolute = 256 * step_error(dtype);
  return c;
}

Generator of(const char* op) {
  return [op](Random& r, pfrt_dtype dtype, int64_t size) { return recurrent(r, op, dtype, size); };
}

}  // namespace

const Generators& recurrent_cases() {
  static const Generators generators = {
      {"RNN", of("RNN")}, {"GRU", of("GRU")}, {"LSTM", of("LSTM")}};
  return generators;
}

}  // namespace pfrt::test
