// SPDX-License-Identifier: Apache-2.0
//
// Says how well the tables of rows choose. For each node of a list every row that is able to do it
// is made (providers/cpu/kernel/pays.h), and all take turns on one thread; before each run the
// nearest caches are filled with other data, as in a network. Rows are compared with the one that a
// session takes, in the same layout: results have to agree, and a row is beyond where it takes
// longer than the best by more than 5 %.
//
//   choices FILE|- [--part I/N] [--seconds S] [--cold] [--json]
//
// FILE has a node a line (bench/models/exports/choices.py writes such): how often it occurs, its
// operator, then dimensions, constant ones with a C, the output, attributes of integers, and which
// sides are nChw16c (i, o, io):
//
//   2 Conv in=1x64x56x56 in=64x64x3x3C out=1x64x56x56 pads=1x1x1x1 sides=io
//
// --part takes every N-th node from the I-th on, S are the seconds of a node. With --cold constants
// come from memory, as in networks of more weights than the last cache holds. The exit code is 1
// where results do not agree.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "bench/micro/step.h"
#include "providers/cpu/isa/caches.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/kernel/pays.h"

namespace micro {
namespace {

using pfrt::cpu::EveryRowPays;
using pfrt::cpu::KernelRow;

constexpr double kBeyond = 1.05;
constexpr double kMostError = 1e-4;  // root mean square of differences, by that of the results

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Other data than what is measured: twice what the first two levels of caches hold.
class OtherData {
 public:
  OtherData() {
    constexpr int64_t kLeast = 1 << 20;
    const auto caches = pfrt::cpu::data_caches();
    const int64_t bytes = caches.size() > 1 ? std::max(2 * caches[1].bytes, kLeast) : kLeast;
    data_.assign(static_cast<size_t>(bytes) / sizeof(float), 1.0F);
  }
  void fill_caches() const {
    constexpr size_t kLine = 16;
    float sum = 0;
    for (size_t i = 0; i < data_.size(); i += kLine) sum += data_[i];
    volatile float seen = sum;
    static_cast<void>(seen);
  }

 private:
  std::vector<float> data_;
};

struct Family {
  std::unique_ptr<Step> step;
  double seconds = std::numeric_limits<double>::infinity();
  bool agrees = true;
};

struct Listed {
  std::string text;
  int64_t count = 0;
  Node node;
};

Dims dims_of(const std::string& text) {
  Dims dims;
  std::stringstream in(text);
  for (std::string dim; std::getline(in, dim, 'x');) dims.push_back(std::stoll(dim));
  return dims;
}

Listed listed(const std::string& line) {
  Listed out;
  std::istringstream in(line);
  if (!(in >> out.count >> out.node.op)) throw std::runtime_error("no node: " + line);
  for (std::string word; in >> word;) {
    const size_t at = word.find('=');
    if (at == std::string::npos) throw std::runtime_error("'" + word + "' is no NAME=VALUE");
    const std::string name = word.substr(0, at), value = word.substr(at + 1);
    if (name == "sides") {
      out.node.sides = {value.find('i') != std::string::npos, value.find('o') != std::string::npos};
    } else if (name == "out") {
      out.node.output = dims_of(value);
    } else if (name == "in") {
      out.node.inputs.push_back(dims_of(value));
      out.node.constant.push_back(value.back() == 'C');
    } else {
      out.node.ints.emplace_back(name, dims_of(value));
    }
  }
  out.text = line.substr(line.find(out.node.op));
  // Names of steps tell that some side is nChw16c, not which: such a guess may be wrong.
  if (out.node.sides.input != out.node.sides.output && chosen_row(out.node) == nullptr) {
    out.node.sides = {};
    out.text = out.text.substr(0, out.text.find(" sides="));
  }
  return out;
}

// The chosen one first. Kernels of one name that need equal memory are the same.
std::vector<Family> families_of(const Node& node) {
  const KernelRow* const chosen = chosen_row(node);
  if (chosen == nullptr) throw std::runtime_error("no row takes it");
  std::vector<Family> out;
  const auto add = [&](const KernelRow& row, bool packs) {
    std::string why;
    auto step = Step::make(row, node, why, packs);
    if (step == nullptr) return;
    for (const Family& other : out)
      if (other.step->name() == step->name() && other.step->memory_bytes() == step->memory_bytes())
        return;
    out.push_back({.step = std::move(step)});
  };
  add(*chosen, true);
  if (out.empty()) throw std::runtime_error(std::string(chosen->name) + " cannot be made");
  const EveryRowPays every;
  for (const auto& family : pfrt::cpu::kernels())
    for (const KernelRow& row : family) {
      if (row.op != node.op || row.domain != node.domain) continue;
      add(row, true);
      if (row.has(pfrt::cpu::kPackOptional)) add(row, false);
    }
  return out;
}

bool agree(std::span<const float> a, std::span<const float> b) {
  double squares = 0, of_all = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = double{a[i]} - double{b[i]};
    squares += difference * difference;
    of_all += double{a[i]} * double{a[i]};
  }
  return std::sqrt(squares) <= kMostError * std::sqrt(of_all);
}

double best_of(const std::vector<Family>& families) {
  double best = families[0].seconds;
  for (const Family& family : families) best = std::min(best, family.seconds);
  return best;
}

// Runs in turns those that are not far from the best.
void measure(std::vector<Family>& families, double seconds, bool cold, const OtherData& other) {
  constexpr double kFar = 2;
  constexpr int kLeastRounds = 5;
  const double end = now() + seconds;
  for (int round = 0; round < kLeastRounds || now() < end; ++round) {
    const double far = kFar * best_of(families);
    for (Family& family : families) {
      if (round > 0 && family.seconds > far && &family != families.data()) continue;
      if (cold) family.step->forget_constants();
      other.fill_caches();
      const double start = now();
      family.step->run();
      family.seconds = std::min(family.seconds, now() - start);
    }
  }
}

class Table {
 public:
  explicit Table(bool json) : json_(json) {
    const auto isa = pfrt::cpu::isa_name(pfrt::cpu::isa());
    if (json_)
      std::printf("{\"isa\":\"%s\",\"nodes\":[", std::string(isa).c_str());
    else
      std::printf("times in microseconds, %s\n%6s  %-26s %9s  %-26s %9s %6s  node\n",
                  std::string(isa).c_str(), "count", "chosen", "takes", "best", "takes", "ratio");
  }
  void add(const Listed& listed, const std::vector<Family>& families) {
    const auto best =
        std::min_element(families.begin(), families.end(),
                         [](const Family& a, const Family& b) { return a.seconds < b.seconds; });
    const double chosen = families[0].seconds, ratio = chosen / best->seconds;
    const auto times = static_cast<double>(listed.count);
    all_ += times * chosen;
    gain_ += times * (chosen - best->seconds);
    ++nodes_;
    for (const Family& family : families) agrees_ &= family.agrees;
    if (json_) return add_json(listed, families);
    const std::string line = row(listed, families[0], *best, ratio);
    std::printf("%s\n", line.c_str());
    for (const Family& family : families)
      if (!family.agrees) std::printf("  MISSED: the results of %s differ\n", text(family).c_str());
    if (ratio > kBeyond) beyond_.emplace_back(times * (chosen - best->seconds), line);
    std::fflush(stdout);
  }
  void fail(const Listed& listed, const char* why) {
    std::fprintf(stderr, "choices: %s: %s\n", listed.text.c_str(), why);
    agrees_ = false;
  }
  // The exit code.
  int end() {
    if (json_) {
      std::printf("]}\n");
      return agrees_ ? 0 : 1;
    }
    std::sort(beyond_.rbegin(), beyond_.rend());
    std::printf("\n%zu of %d nodes are chosen beyond 5 %%; most to gain first\n", beyond_.size(),
                nodes_);
    for (const auto& [gain, line] : beyond_) std::printf("%s\n", line.c_str());
    std::printf("the best rows would save %.2f %% of %.1f ms\n", 100 * gain_ / all_, all_ * 1e3);
    return agrees_ ? 0 : 1;
  }

 private:
  static std::string text(const Family& family) { return std::string(family.step->name()); }
  static std::string row(const Listed& listed, const Family& chosen, const Family& best,
                         double ratio) {
    char line[1024];
    std::snprintf(line, sizeof line, "%6lld  %-26s %9.1f  %-26s %9.1f %6.2f  %s",
                  static_cast<long long>(listed.count), text(chosen).c_str(), chosen.seconds * 1e6,
                  text(best).c_str(), best.seconds * 1e6, ratio, listed.text.c_str());
    return line;
  }
  void add_json(const Listed& listed, const std::vector<Family>& families) const {
    std::printf("%s\n{\"node\":\"%s\",\"count\":%lld,\"chosen\":\"%s\",\"families\":[",
                nodes_ > 1 ? "," : "", listed.text.c_str(), static_cast<long long>(listed.count),
                text(families[0]).c_str());
    for (const Family& family : families)
      std::printf("%s{\"name\":\"%s\",\"us\":%.3f,\"agrees\":%s}",
                  &family == families.data() ? "" : ",", text(family).c_str(), family.seconds * 1e6,
                  family.agrees ? "true" : "false");
    std::printf("]}");
    std::fflush(stdout);
  }

  const bool json_;
  bool agrees_ = true;
  int nodes_ = 0;
  double all_ = 0, gain_ = 0;
  std::vector<std::pair<double, std::string>> beyond_;
};

struct Arguments {
  std::string file;
  size_t part = 0, parts = 1;
  double seconds = 0.15;
  bool json = false, cold = false;
};

Arguments arguments(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool more = i + 1 < argc;
    unsigned part = 0, parts = 0;
    if (word == "--json") {
      out.json = true;
    } else if (word == "--cold") {
      out.cold = true;
    } else if (word == "--seconds" && more) {
      out.seconds = std::stod(argv[++i]);
    } else if (word == "--part" && more && std::sscanf(argv[++i], "%u/%u", &part, &parts) == 2 &&
               part >= 1 && part <= parts) {
      out.part = part - 1;
      out.parts = parts;
    } else if (out.file.empty() && (word == "-" || word[0] != '-')) {
      out.file = word;
    } else {
      throw std::runtime_error("'" + word + "' is not known");
    }
  }
  if (out.file.empty())
    throw std::runtime_error("usage: choices FILE|- [--part I/N] [--seconds S] [--cold] [--json]");
  return out;
}

int run(const Arguments& args) {
  std::ifstream file(args.file);
  if (args.file != "-" && !file) throw std::runtime_error("cannot read '" + args.file + "'");
  std::istream& in = args.file == "-" ? std::cin : file;
  const OtherData other;
  Table table(args.json);
  size_t number = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || number++ % args.parts != args.part) continue;
    const Listed node = listed(line);
    try {
      std::vector<Family> families = families_of(node.node);
      for (Family& family : families) {
        family.step->run();
        family.agrees = agree(families[0].step->output(), family.step->output());
      }
      measure(families, args.seconds, args.cold, other);
      // A node may be beyond by chance, so it is measured for longer.
      if (families[0].seconds > kBeyond * best_of(families))
        measure(families, 2 * args.seconds, args.cold, other);
      table.add(node, families);
    } catch (const std::exception& error) {
      table.fail(node, error.what());
    }
  }
  return table.end();
}

}  // namespace
}  // namespace micro

int main(int argc, char** argv) {
  try {
    return micro::run(micro::arguments(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "choices: %s\n", error.what());
    return 2;
  }
}
