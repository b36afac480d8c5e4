// SPDX-License-Identifier: Apache-2.0
//
// Each stage has a list of squares that it could have, with the cycles that it then takes. A price
// for a PE is looked for at which the squares that are cheapest, cycles and PEs together, just fit
// on the chips; they are laid out in shelves, in the order in which they run.
#include "providers/wse/place/placement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <set>

namespace pfrt::wse {
namespace {

constexpr int64_t kSides[] = {1,  2,   3,   4,   6,   8,   12,  16,  24,  32,  48,  64,
                              96, 128, 192, 256, 320, 384, 420, 480, 512, 600, 660, 720};

constexpr std::string_view kStopped = "placing layers was stopped";

struct Choice {
  int64_t side;
  double cycles;
};

struct Candidate {
  std::vector<uint32_t> layers;
  std::vector<Choice> choices;  // sides on which all layers' memory fits, the smallest first
};

class Placer {
 public:
  Placer(const Target& target, std::vector<Layer> layers, const Stop& stop)
      : target_(target), stop_(stop) {
    out_.layers = std::move(layers);
  }

  Result<Placement> run(uint32_t* layer) {
    make_stages();
    for (size_t i = 0; i < stages_.size(); ++i) {
      if (stopped()) return error(Code::kCANCELLED, kStopped);
      PFRT_TRY(list_choices(i, layer));
    }
    const bool pipelined = target_.execution != Execution::kStreaming && lay_out() && route();
    if (stopped()) return error(Code::kCANCELLED, kStopped);
    if (!pipelined && target_.execution == Execution::kPipelined) {
      *layer = 0;
      return error(Code::kUNSUPPORTED, out_.remedy);
    }
    if (!pipelined) stream();
    finish();
    return std::move(out_);
  }

 private:
  Mapping map(uint32_t layer, int64_t side) const {
    return map_layer(target_.machine, target_.arithmetic, out_.layers[layer], side);
  }
  // Between rectangles, and along the last column, there is a PE for streams that pass.
  int64_t corridor() const { return stages_.size() > 1 ? 1 : 0; }
  int64_t longest_side() const {
    return std::max<int64_t>(
        1, std::min(target_.fabric.columns - 2 * corridor(), target_.fabric.rows - corridor()));
  }

  // A product begins a stage; what follows it stays on its PEs.
  void make_stages() {
    for (uint32_t i = 0; i < out_.layers.size(); ++i) {
      const Layer& layer = out_.layers[i];
      const bool own = layer.is_product() || layer.row->family == Family::kAttention;
      if (stages_.empty() || (own && has_product_)) {
        stages_.emplace_back();
        has_product_ = false;
      }
      has_product_ = has_product_ || own;
      stages_.back().layers.push_back(i);
    }
  }

  // Cycles and memory of all layers of |stage| together on |side| x |side| PEs.
  struct Sum {
    double cycles = 0;
    int64_t bytes = 0;
    Mapping largest;  // of the layer that needs most memory
    uint32_t layer = 0;
  };
  Sum sum_on(const Candidate& stage, int64_t side) const {
    Sum out;
    int64_t weights = 0, buffers = 0;
    for (const uint32_t i : stage.layers) {
      Mapping mapping = map(i, side);
      out.cycles += mapping.cycles;
      weights += mapping.weight_bytes;
      buffers = std::max(buffers, mapping.buffer_bytes);
      if (i != stage.layers.front() && mapping.bytes() <= out.largest.bytes()) continue;
      out.largest = std::move(mapping);
      out.layer = i;
    }
    out.bytes = weights + buffers;
    return out;
  }

  // PEs of a chip whose memory may be used.
  int64_t most_pes() const {
    const int64_t all = target_.fabric.columns * target_.fabric.rows;
    return target_.chips.memory_bytes > 0
               ? std::min(all, target_.chips.memory_bytes / target_.machine.data_bytes())
               : all;
  }

  // A larger square that is slower is no choice.
  void add_choice(Candidate& stage, int64_t side) const {
    if (side * side > most_pes()) return;
    const Sum sum = sum_on(stage, side);
    if (sum.bytes > target_.machine.data_bytes()) return;
    if (stage.choices.empty() || sum.cycles < stage.choices.back().cycles)
      stage.choices.push_back({side, sum.cycles});
  }

  // The first layers of |stage|, one at least, that fit together on the longest side.
  size_t fitting(const Candidate& stage) const {
    int64_t weights = 0, buffers = 0;
    for (size_t i = 0; i < stage.layers.size(); ++i) {
      const Mapping mapping = map(stage.layers[i], longest_side());
      weights += mapping.weight_bytes;
      buffers = std::max(buffers, mapping.buffer_bytes);
      if (weights + buffers > target_.machine.data_bytes()) return std::max<size_t>(1, i);
    }
    return stage.layers.size();
  }

  Status list_choices(size_t index, uint32_t* failed) {
    Candidate& stage = stages_[index];
    for (const int64_t side : kSides)
      if (side < longest_side()) add_choice(stage, side);
    add_choice(stage, longest_side());
    if (!stage.choices.empty()) return {};
    // Layers that follow the product find room elsewhere.
    if (const size_t count = fitting(stage); count < stage.layers.size()) {
      Candidate rest;
      rest.layers.assign(stage.layers.begin() + static_cast<ptrdiff_t>(count), stage.layers.end());
      stage.layers.resize(count);
      stages_.insert(stages_.begin() + static_cast<ptrdiff_t>(index) + 1, std::move(rest));
      return list_choices(index, failed);
    }
    // Alone on the fabric it needs no corridor.
    const int64_t whole = std::min(target_.fabric.columns, target_.fabric.rows);
    add_choice(stage, whole);
    alone_ = index;
    if (!stage.choices.empty()) return {};
    const Sum sum = sum_on(stage, whole);
    *failed = sum.layer;
    return error(Code::kUNSUPPORTED, does_not_fit(target_, out_.layers[sum.layer], sum.largest, 0));
  }

  // Squares at a price of |price| cycles a PE.
  std::vector<int64_t> sides_at(double price) const {
    std::vector<int64_t> out;
    for (const Candidate& stage : stages_) {
      const Choice* best = nullptr;
      double least = std::numeric_limits<double>::infinity();
      for (const Choice& choice : stage.choices) {
        const double cost = choice.cycles + price * static_cast<double>(choice.side) *
                                                static_cast<double>(choice.side);
        if (cost < least) {
          least = cost;
          best = &choice;
        }
      }
      out.push_back(best == nullptr ? stage.choices.front().side : best->side);
    }
    return out;
  }

  // Squares in shelves, chip after chip; false where they do not fit.
  bool shelve(const std::vector<int64_t>& sides, std::vector<Stage>* stages) const {
    return shelve(sides, stages, target_.chips.count()).whole;
  }
  // The stages that found room on |chips|: all of them or not, the first that did not, and the
  // chips.
  struct Shelved {
    bool whole = true;
    size_t stage = 0;
    int64_t chips = 1;
  };
  Shelved shelve(const std::vector<int64_t>& sides, std::vector<Stage>* stages,
                 int64_t chips) const {
    int64_t chip = 0, x = 0, y = 0, height = 0, used = 0;
    if (stages != nullptr) stages->clear();
    const int64_t limit = most_pes();
    for (size_t i = 0; i < sides.size(); ++i) {
      const int64_t side = sides[i], room = side + corridor();
      if (x + room > target_.fabric.columns - corridor()) {
        x = 0;
        y += height;
        height = 0;
      }
      if (y + room > target_.fabric.rows || used + side * side > limit) {
        if (++chip == chips || side * side > limit) return {false, i, chip};
        x = y = height = used = 0;
      }
      if (stages != nullptr) {
        Stage& stage = stages->emplace_back();
        stage.layers = stages_[i].layers;
        stage.rect = {target_.fabric.x + x, target_.fabric.y + y, side, side};
        stage.chip = chip;
      }
      x += room;
      height = std::max(height, room);
      used += side * side;
    }
    return {true, 0, chip + 1};
  }

  bool lay_out() {
    if (alone_ != kNone) {
      out_.remedy = remedy();
      return false;
    }
    double low = 0, high = 1;
    if (!shelve(sides_at(low), nullptr)) {
      while (!shelve(sides_at(high), nullptr)) {
        low = high;
        high *= 8;
        if (high > 1e18) {
          out_.remedy = remedy();
          return false;
        }
      }
      for (int i = 0; i < 40; ++i) {
        const double middle = (low + high) / 2;
        (shelve(sides_at(middle), nullptr) ? high : low) = middle;
      }
      low = high;
    }
    return shelve(sides_at(low), &out_.stages);
  }

  // The row of PEs below the shelf that |stage| stands on.
  int64_t row_below(const Stage& stage) const { return below_.at({stage.chip, stage.rect.y}); }

  // The way of a stream from |from| to |to|. It begins at the PEs beside a rectangle, which hand on
  // what its last column sends, and leads down between rectangles, along below the shelf and up to
  // the PEs beside the reader; from shelf to shelf it follows the last column.
  std::vector<Point> way(const Stage& from, const Stage& to, int64_t lane) const {
    const auto right = [](const Stage& s) { return s.rect.x + s.rect.columns; };
    const auto door = [&](const Stage& s) { return s.rect.y + lane % s.rect.rows; };
    const int64_t below = row_below(from), other = row_below(to);
    const int64_t last = target_.fabric.x + target_.fabric.columns - 1;
    std::vector<Point> out = {{right(from), door(from)}, {right(from), below}};
    if (other != below) {
      out.push_back({last, below});
      out.push_back({last, other});
    }
    out.insert(out.end(), {{right(to), other}, {right(to), door(to)}});
    return out;
  }

  // A stream for each pair of stages of which one reads the other's results. False, with the
  // remedy, where a PE would have too many colors or queues.
  bool route() {
    assign_stages();
    for (const Stage& stage : out_.stages) {
      int64_t& below = below_[{stage.chip, stage.rect.y}];
      below = std::max(below, stage.rect.y + stage.rect.rows);
    }
    std::vector<std::unique_ptr<Routes>> routes;
    for (int64_t chip = 0; chip < target_.chips.count() && chip < used_chips(); ++chip)
      routes.push_back(std::make_unique<Routes>(target_.machine));
    for (const Stage& stage : out_.stages) {
      int colors = 0;
      for (const uint32_t i : stage.layers)
        colors = std::max(colors, map(i, stage.rect.columns).colors);
      routes[static_cast<size_t>(stage.chip)]->reserve(stage.rect, colors);
    }
    std::set<std::pair<uint32_t, uint32_t>> done;
    int64_t lane = 0;
    for (uint32_t i = 0; i < out_.layers.size(); ++i)
      for (const uint32_t r : out_.layers[i].reads) {
        const std::pair<uint32_t, uint32_t> pair(out_.stage_of[r], out_.stage_of[i]);
        const Stage &from = out_.stages[pair.first], &to = out_.stages[pair.second];
        if (&from == &to || from.chip != to.chip || !done.insert(pair).second) continue;
        if (stopped()) return false;
        if (!routes[static_cast<size_t>(from.chip)]->connect(way(from, to, lane++), &out_.remedy))
          return false;
      }
    for (const auto& of_chip : routes) {
      out_.remedy = of_chip->check();
      if (!out_.remedy.empty()) return false;
      out_.most_colors = std::max(out_.most_colors, of_chip->most_colors());
    }
    return true;
  }

  int64_t used_chips() const {
    int64_t out = 0;
    for (const Stage& stage : out_.stages) out = std::max(out, stage.chip + 1);
    return out;
  }

  void assign_stages() {
    out_.stage_of.assign(out_.layers.size(), 0);
    for (uint32_t s = 0; s < out_.stages.size(); ++s)
      for (const uint32_t i : out_.stages[s].layers) out_.stage_of[i] = s;
  }

  // Puts the stages one after another on the squares that suit them, all on the first chip.
  void stream() {
    out_.streaming = true;
    out_.stages.clear();
    const std::vector<int64_t> sides = sides_at(0);
    for (size_t i = 0; i < stages_.size(); ++i) {
      Stage& stage = out_.stages.emplace_back();
      stage.layers = stages_[i].layers;
      stage.rect = {target_.fabric.x, target_.fabric.y, sides[i], sides[i]};
    }
  }

  std::string remedy() const {
    int64_t pes = 0, layers = 0;
    for (const Candidate& stage : stages_) {
      const int64_t side = stage.choices.empty() ? 1 : stage.choices.front().side;
      pes += (side + corridor()) * (side + corridor());
      layers += static_cast<int64_t>(stage.layers.size());
    }
    const int64_t there = most_pes() * target_.chips.count();
    std::string out =
        message("the model's ", layers, " layers need ", with_commas(pes), " PEs of ",
                with_commas(target_.machine.data_bytes()),
                " B at least, with those between them, and there are ", with_commas(there));
    if (alone_ != kNone)
      return out +
             message(", but '", name_of(alone_), "' fits only on a square as wide as the ",
                     target_.fabric.columns, "x", target_.fabric.rows,
                     " PEs, which leaves none for streams: weights are streamed from the host");
    const std::vector<int64_t> least = least_sides();
    const Shelved here = shelve(least, nullptr, target_.chips.count());
    if (pes <= there && !here.whole)
      out += message(", but squares stand in shelves, in the order in which they run, and '",
                     name_of(here.stage), "' on ", least[here.stage], "x", least[here.stage],
                     " finds no room beside those before it");
    constexpr int64_t kMostChips = 4096;
    const Shelved more = shelve(least, nullptr, kMostChips);
    out += more.whole ? message(": it fits on ", std::max(more.chips, target_.chips.count() + 1),
                                " chips (chips=WxH); with fewer")
                      : std::string(": here");
    return out + ", weights are streamed from the host";
  }

  std::string_view name_of(size_t stage) const {
    return out_.layers[stages_[stage].layers.front()].name;
  }
  std::vector<int64_t> least_sides() const {
    std::vector<int64_t> out;
    out.reserve(stages_.size());
    for (const Candidate& stage : stages_)
      out.push_back(stage.choices.empty() ? 1 : stage.choices.front().side);
    return out;
  }

  void finish() {
    out_.mappings.resize(out_.layers.size());
    out_.refused.resize(out_.layers.size());
    assign_stages();
    const Machine& m = target_.machine;
    for (Stage& stage : out_.stages) {
      double words = 0;  // an element of a weight each, whatever its type
      for (const uint32_t i : stage.layers) {
        out_.mappings[i] = map(i, stage.rect.columns);
        stage.cycles += out_.mappings[i].cycles;
        words += static_cast<double>(out_.layers[i].weights);
      }
      if (out_.streaming)
        stage.host_cycles =
            load_cycles(m, words, words * static_cast<double>(bytes_of(target_.arithmetic)));
    }
    for (uint32_t i = 0; i < out_.layers.size(); ++i)
      for (const uint32_t r : out_.layers[i].reads) {
        Stage& from = out_.stages[out_.stage_of[r]];
        const Stage& to = out_.stages[out_.stage_of[i]];
        if (&from == &to) continue;
        const auto elements = static_cast<double>(out_.layers[r].outputs);
        from.transfer_cycles = std::max(from.transfer_cycles, transfer(from, to, elements));
        if (from.chip != to.chip) out_.elements_between_chips += elements;
      }
  }

  double transfer(const Stage& from, const Stage& to, double elements) const {
    const Machine& m = target_.machine;
    const double bytes = elements * static_cast<double>(bytes_of(target_.arithmetic));
    if (from.chip != to.chip) return target_.chips.transfer(from.chip, to.chip, bytes) * m.clock_hz;
    if (out_.streaming) return 0;
    // The stream is as wide as the smaller square, and as long as their middles are apart.
    const double links = static_cast<double>(std::min(from.rect.rows, to.rect.rows));
    const double hops = static_cast<double>(std::abs(from.rect.center_x() - to.rect.center_x()) +
                                            std::abs(from.rect.center_y() - to.rect.center_y()));
    return 2 * m.ramp + m.dsd_setup + std::ceil(bytes / 4 / links) * m.wavelet + hops * m.hop +
           m.turn;
  }

  bool stopped() const { return stop_ && stop_(); }

  const Target& target_;
  const Stop& stop_;
  std::map<std::pair<int64_t, int64_t>, int64_t>
      below_;  // by chip and the row that a shelf begins in
  Placement out_;
  std::vector<Candidate> stages_;
  bool has_product_ = false;
  static constexpr size_t kNone = SIZE_MAX;
  size_t alone_ = kNone;  // a stage that fits only where it has all PEs
};

}  // namespace

int64_t Chips::distance(int64_t a, int64_t b) const {
  return std::abs(a % columns - b % columns) + std::abs(a / columns - b / columns);
}

double Chips::transfer(int64_t a, int64_t b, double bytes) const {
  const auto links = static_cast<double>(distance(a, b));
  return links == 0 ? 0 : bytes / bytes_per_second + links * latency_seconds;
}

double Placement::cycles() const {
  double out = 0;
  for (const Stage& s : stages) out += s.cycles + s.transfer_cycles + s.host_cycles;
  return out;
}

double Placement::slowest() const {
  double out = 0;
  if (streaming) return cycles();
  for (const Stage& s : stages) out = std::max(out, s.cycles + s.transfer_cycles);
  return out;
}

int64_t Placement::chips_used() const {
  std::set<int64_t> chips;
  for (const Stage& s : stages) chips.insert(s.chip);
  return static_cast<int64_t>(chips.size());
}

std::vector<std::string> Placement::run_by_others() const {
  std::vector<std::string> out = elsewhere;
  for (size_t i = 0; i < refused.size(); ++i)
    if (!refused[i].empty()) out.push_back(message(layers[i].op, " '", layers[i].name, "'"));
  return out;
}

double load_cycles(const Machine& machine, double words, double bytes) {
  return std::max(words / (machine.h2d_words * machine.channels),
                  bytes / machine.host_bytes_per_second * machine.clock_hz);
}

int64_t whole(double value) {
  constexpr double kMost = 9e18;
  return std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, -kMost, kMost));
}

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number < 0 ? -number : number);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), ",");
  return number < 0 ? "-" + digits : digits;
}

std::string does_not_fit(const Target& target, const Layer& layer, const Mapping& mapping,
                         int64_t fits_from) {
  const Machine& m = target.machine;
  const auto program = static_cast<int64_t>(m.program_bytes),
             sram = static_cast<int64_t>(m.sram_bytes);
  const int64_t needed = mapping.bytes() + program;
  std::string upper = m.name;
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  std::string out =
      message(upper, ": layer '", layer.name, "' does not fit: needs ", with_commas(needed),
              " B per PE on rectangle ", mapping.side, "x", mapping.side, " (weights ",
              with_commas(mapping.weight_bytes), ", buffers ", with_commas(mapping.buffer_bytes),
              ", runtime ", with_commas(program), "); limit ", with_commas(sram), " B, over by ",
              with_commas(needed - sram), " B. ");
  if (fits_from > 0) return out + message("Fits from ", fits_from, "x", fits_from, ".");
  return out +
         "It fits on no rectangle of this wafer: split it over more nodes, or give it to the CPU";
}

Result<Placement> place(const Target& target, std::vector<Layer> layers, uint32_t* layer,
                        const Stop& stop) {
  return Placer(target, std::move(layers), stop).run(layer);
}

}  // namespace pfrt::wse
