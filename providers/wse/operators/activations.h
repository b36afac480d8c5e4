// SPDX-License-Identifier: Apache-2.0
//
// Functions of one element, and of two, as a PE computes them: operator by operator, each of which
// rounds once. Arguments are values of the arithmetic at hand. Comparisons are written with < so
// that a NaN comes through.
#pragma once

#include <cmath>

#include "providers/wse/operators/rounding.h"
#include "providers/wse/operators/tensor.h"

namespace pfrt::wse::elementwise {

// ---------------------------------------------------------------------------- no attributes

struct Identity {
  template <typename R>
  float operator()(R, float x) const {
    return x;
  }
};

struct Abs {
  template <typename R>
  float operator()(R, float x) const {
    return std::fabs(x);
  }
};

struct Neg {
  template <typename R>
  float operator()(R, float x) const {
    return -x;
  }
};

struct Relu {
  template <typename R>
  float operator()(R, float x) const {
    return x < 0 ? 0.0F : x;
  }
};

struct Exp {
  template <typename R>
  float operator()(R round, float x) const {
    return round.exp(x);
  }
};

struct Log {
  template <typename R>
  float operator()(R round, float x) const {
    return round.wide(std::log(static_cast<double>(x)));
  }
};

struct Sqrt {
  template <typename R>
  float operator()(R round, float x) const {
    return round.square_root(x);
  }
};

struct Reciprocal {
  template <typename R>
  float operator()(R round, float x) const {
    return round.divide(1, x);
  }
};

struct Erf {
  template <typename R>
  float operator()(R round, float x) const {
    return round.wide(std::erf(static_cast<double>(x)));
  }
};

struct Tanh {
  template <typename R>
  float operator()(R round, float x) const {
    return round.wide(std::tanh(static_cast<double>(x)));
  }
};

struct Floor {
  template <typename R>
  float operator()(R round, float x) const {
    return round(std::floor(x));
  }
};

struct Ceil {
  template <typename R>
  float operator()(R round, float x) const {
    return round(std::ceil(x));
  }
};

// Halves to even.
struct Round {
  template <typename R>
  float operator()(R round, float x) const {
    return round(std::nearbyint(x));
  }
};

struct Sigmoid {
  template <typename R>
  float operator()(R round, float x) const {
    return round.divide(1, round(1 + round.exp(-x)));
  }
};

// Softplus in a form whose exponential cannot overflow.
struct Softplus {
  template <typename R>
  float operator()(R round, float x) const {
    const float rest = round.wide(std::log1p(static_cast<double>(round.exp(-std::fabs(x)))));
    return round((x < 0 ? 0.0F : x) + rest);
  }
};

struct Mish {
  template <typename R>
  float operator()(R round, float x) const {
    return round(x * Tanh()(round, Softplus()(round, x)));
  }
};

struct HardSwish {
  template <typename R>
  float operator()(R round, float x) const {
    const float gate = round(round(round(1.0F / 6) * x) + 0.5F);
    return round(x * (gate < 0 ? 0.0F : gate > 1 ? 1.0F : gate));
  }
};

struct Gelu {
  template <typename R>
  float operator()(R round, float x) const {
    const float part = Erf()(round, round(round(0.70710678118654752F) * x));
    return round(round(0.5F * x) * round(1 + part));
  }
};

struct GeluByTanh {
  template <typename R>
  float operator()(R round, float x) const {
    const float cube = round(round(x * x) * x);
    const float inner = round(x + round(round(0.044715F) * cube));
    const float part = Tanh()(round, round(round(0.79788456080286536F) * inner));
    return round(round(0.5F * x) * round(1 + part));
  }
};

// ------------------------------------------------------------------------------- attributes

struct LeakyRelu {
  float alpha;
  explicit LeakyRelu(const Call& call) : alpha(rounded_attr(call, "alpha", 0.01F)) {}
  template <typename R>
  float operator()(R round, float x) const {
    return x < 0 ? round(alpha * x) : x;
  }
};

struct Elu {
  float alpha;
  explicit Elu(const Call& call) : alpha(rounded_attr(call, "alpha", 1)) {}
  template <typename R>
  float operator()(R round, float x) const {
    return x < 0 ? round(alpha * round.wide(std::expm1(static_cast<double>(x)))) : x;
  }
};

struct HardSigmoid {
  float alpha, beta;
  explicit HardSigmoid(const Call& call)
      : alpha(rounded_attr(call, "alpha", 0.2F)), beta(rounded_attr(call, "beta", 0.5F)) {}
  template <typename R>
  float operator()(R round, float x) const {
    const float line = round(round(alpha * x) + beta);
    return line < 0 ? 0.0F : line > 1 ? 1.0F : line;
  }
};

// x * sigmoid(alpha * x)
struct Swish {
  float alpha;
  explicit Swish(const Call& call, float fallback = 1)
      : alpha(rounded_attr(call, "alpha", fallback)) {}
  template <typename R>
  float operator()(R round, float x) const {
    const float scaled = alpha == 1 ? x : round(alpha * x);
    return round(x * Sigmoid()(round, scaled));
  }
};

struct QuickGelu : Swish {
  explicit QuickGelu(const Call& call) : Swish(call, 1.702F) {}
};

// The result is the largest if the least is above it.
struct Clip {
  float least, largest;
  explicit Clip(const Call& call)
      : least(scalar_input(call, 1, -INFINITY)), largest(scalar_input(call, 2, INFINITY)) {}
  template <typename R>
  float operator()(R, float x) const {
    const float above = x < least ? least : x;
    return largest < above ? largest : above;
  }
};

// -------------------------------------------------------------------------------- two elements

struct Add {
  template <typename R>
  float operator()(R round, float a, float b) const {
    return round(a + b);
  }
};

struct Sub {
  template <typename R>
  float operator()(R round, float a, float b) const {
    return round(a - b);
  }
};

struct Mul {
  template <typename R>
  float operator()(R round, float a, float b) const {
    return round(a * b);
  }
};

struct Div {
  template <typename R>
  float operator()(R round, float a, float b) const {
    return round.divide(a, b);
  }
};

struct Pow {
  template <typename R>
  float operator()(R round, float a, float b) const {
    return round.wide(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
};

struct Max {
  template <typename R>
  float operator()(R, float a, float b) const {
    return std::isnan(a) || a > b ? a : b;
  }
};

struct Min {
  template <typename R>
  float operator()(R, float a, float b) const {
    return std::isnan(a) || a < b ? a : b;
  }
};

struct PRelu {
  template <typename R>
  float operator()(R round, float x, float slope) const {
    return x < 0 ? round(x * slope) : x;
  }
};

// A bias is added before.
template <typename Function>
struct Biased {
  template <typename R>
  float operator()(R round, float x, float bias) const {
    return Function()(round, round(x + bias));
  }
};

}  // namespace pfrt::wse::elementwise
