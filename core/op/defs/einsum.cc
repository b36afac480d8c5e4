// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/einsum.h"

#include <algorithm>
#include <map>

#include "core/op/defs/common/helpers.h"
#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {
namespace {

constexpr char kRest = '.';  // an ellipsis in a term

bool is_label(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

struct Equation {
  std::vector<std::string> terms;
  std::string output;
  std::string fault;  // empty when well-formed
};

// The labels in |text|, with an ellipsis as kRest.
std::string labels_of(std::string_view text, std::string& fault) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_label(text[i])) {
      out += text[i];
    } else if (text.substr(i, 3) == "..." && out.find(kRest) == std::string::npos) {
      out += kRest;
      i += 2;
    } else {
      fault = message("'", text, "' is not made of letters and at most one '...'");
      return {};
    }
  }
  return out;
}

// The output of an equation without "->": the ellipsis, then the labels that occur once, in
// alphabetical order.
std::string implied_output(const std::vector<std::string>& terms) {
  std::map<char, int> times;
  for (const std::string& term : terms)
    for (char c : term) ++times[c];
  std::string out = times.count(kRest) ? std::string(1, kRest) : std::string();
  for (const auto& [label, count] : times)
    if (label != kRest && count == 1) out += label;
  return out;
}

Equation parse(std::string_view given) {
  Equation e;
  std::string text;
  for (char c : given)
    if (c != ' ' && c != '\t' && c != '\n') text += c;
  const size_t arrow = text.find("->");
  const std::string_view left = std::string_view(text).substr(0, arrow);
  for (size_t at = 0; at <= left.size();) {
    const size_t comma = std::min(left.find(',', at), left.size());
    e.terms.push_back(labels_of(left.substr(at, comma - at), e.fault));
    at = comma + 1;
  }
  if (arrow == std::string::npos) {
    e.output = implied_output(e.terms);
    return e;
  }
  e.output = labels_of(std::string_view(text).substr(arrow + 2), e.fault);
  for (size_t i = 0; i < e.output.size() && e.fault.empty(); ++i) {
    const char c = e.output[i];
    if (e.output.find(c, i + 1) != std::string::npos)
      e.fault = message("the output names '", std::string(1, c), "' twice");
    const bool named = std::any_of(e.terms.begin(), e.terms.end(), [&](const std::string& term) {
      return term.find(c) != std::string::npos;
    });
    if (!named && c != kRest)
      e.fault = message("no input has the output's '", std::string(1, c), "'");
  }
  return e;
}

std::string written(const std::string& labels) {
  std::string out;
  for (char c : labels) c == kRest ? out += "..." : out += c;
  return out;
}

// Collects dimensions by label; |rest| gets those of the ellipses. False when the rank of an input
// is unknown.
Result<bool> collect(const Inference& in, const Equation& e, std::map<char, Dim>& dims,
                     Shape& rest) {
  if (!e.fault.empty()) return in.fail("equation: ", e.fault);
  if (e.terms.size() != in.input_count())
    return in.fail("the equation has ", e.terms.size(), " terms for ", in.input_count(), " inputs");
  for (size_t i = 0; i < e.terms.size(); ++i)
    if (!in.has_shape(i)) return false;
  for (size_t i = 0; i < e.terms.size(); ++i) {
    const std::string& term = e.terms[i];
    const Shape& shape = in.shape(i);
    const bool open = term.find(kRest) != std::string::npos;
    const size_t named = term.size() - (open ? 1 : 0);
    if (shape.size() < named || (!open && shape.size() != named))
      return in.fail("term '", written(term), "' does not fit input ", i, " of rank ",
                     shape.size());
    size_t at = 0;
    for (char c : term) {
      if (c == kRest) {
        const auto begin = shape.begin() + static_cast<std::ptrdiff_t>(at);
        const Shape own(begin, begin + static_cast<std::ptrdiff_t>(shape.size() - named));
        PFRT_ASSIGN(rest, in.broadcast(rest, own));
        at += own.size();
        continue;
      }
      auto [known, fresh] = dims.try_emplace(c, shape[at]);
      if (!fresh) {
        PFRT_ASSIGN(const Shape both, in.broadcast({known->second}, {shape[at]}));
        known->second = both[0];
      }
      ++at;
    }
  }
  return true;
}

}  // namespace

Status canonical_einsum(Rewriter& rewriter) {
  const Attribute* given = rewriter.node().attr("equation");
  if (!given || given->type != PFRT_ATTR_STRING)
    return rewriter.fail("attribute 'equation' is absent");
  const Equation e = parse(given->s);
  if (!e.fault.empty()) return rewriter.fail("equation '", given->s, "': ", e.fault);
  std::string text;
  for (size_t i = 0; i < e.terms.size(); ++i) text += (i ? "," : "") + written(e.terms[i]);
  rewriter.node().set_attr(Attribute::of_string("equation", text + "->" + written(e.output)));
  return {};
}

Status infer_einsum(Inference& in) {
  PFRT_TRY(same_dtypes(in, 0, in.input_count()));
  const Equation e = parse(in.node().attr_string("equation", ""));
  std::map<char, Dim> dims;
  Shape rest;
  PFRT_ASSIGN(const bool known, collect(in, e, dims, rest));
  if (!known) {
    in.set_output_unknown_shape(0, in.input(0).dtype);
    return {};
  }
  Shape out;
  for (char c : e.output) {
    if (c == kRest)
      out.insert(out.end(), rest.begin(), rest.end());
    else
      out.push_back(dims[c]);
  }
  in.set_output(0, in.input(0).dtype, std::move(out));
  return {};
}

double flops_of_einsum(const Inference& in) {
  std::map<char, Dim> dims;
  Shape rest;
  const Result<bool> known = collect(in, parse(in.node().attr_string("equation", "")), dims, rest);
  if (!known.ok() || !known.value()) return 0;
  for (const auto& [label, dim] : dims) rest.push_back(dim);
  double flops = 2;
  for (const Dim& d : rest) flops *= d.known() ? static_cast<double>(d.value()) : 0;
  return flops;
}

}  // namespace pfrt
