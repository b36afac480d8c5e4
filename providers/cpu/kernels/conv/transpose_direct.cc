// SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose of one or two dimensions in float32 vectors: each phase (phases.h) multiplies
// panels of 16 output channels, packed once, by lines of a band of the input. The sums of a phase
// go to every s-th pixel of a tile of the output, which is then reordered to planes.
#include <algorithm>
#include <memory>

#include "providers/cpu/elements/ceil_div.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/epilogue/in_float32.h"
#include "providers/cpu/jit/panel_microkernel.h"
#include "providers/cpu/kernel/pays.h"
#include "providers/cpu/kernels/conv/phases.h"
#include "providers/cpu/kernels/matmul/split_matmul.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kPanel = PanelMicrokernel::kPanel;
constexpr int64_t kPass = 64;  // k of a sum before it is added to others, which keeps errors small
constexpr int64_t kBandBytes = 256 << 10;  // stays in the second-level cache
constexpr int64_t kTileSites = 192;  // of a tile: the sums of a phase stay in the first-level cache
constexpr int64_t kLeastSites = 24, kWantedTasks = 16;
constexpr int64_t kMostStride = 64;  // more phases than that are not worth their loops

struct Plan {
  ConvGeometry geometry;
  Phases phases;
  Window window;  // of all phases
  const PanelMicrokernel* microkernel;
  bool has_bias;
  int64_t band;  // rows of sites
  ImageBand image;
  std::vector<Phase> list;
  int64_t panels, depth;
  int64_t tile_y, tile_x;  // sites of a tile

  Plan(const ConvGeometry& g, bool bias)
      : geometry(g),
        phases(g.window, g.group_in),
        window(phases.window()),
        microkernel(PanelMicrokernel::get()),
        has_bias(bias),
        band(band_rows()),
        image(window, phases.order, band, false),
        list(phases.list(image)),
        panels(ceil_div(g.group_out, kPanel)),
        depth(phases.depth()) {
    const int64_t width = phases.x.sites, sites = band * width;
    const int64_t wanted = ceil_div(sites, ceil_div(kWantedTasks, columns()));
    const int64_t tile = std::clamp(wanted, kLeastSites, kTileSites);
    tile_x = ceil_div(width, ceil_div(width, tile));
    const int64_t rows = std::clamp<int64_t>(tile / tile_x, 1, band);
    tile_y = ceil_div(band, ceil_div(band, rows));
  }
  int64_t columns() const { return ceil_div(panels, microkernel->panels()); }
  // The output of a tile: pixels of a row; elements of a panel.
  int64_t tile_width() const { return tile_x * phases.x.stride; }
  int64_t tile_elements() const { return tile_y * phases.y.stride * tile_width() * kPanel; }
  uint64_t scratch_bytes() const {
    return static_cast<uint64_t>(microkernel->panels() * tile_elements()) * sizeof(float);
  }

 private:
  int64_t band_rows() const {
    const int64_t row = ImageBand::bytes_of_row(window, phases.order, false);
    const int64_t most = std::max<int64_t>(kBandBytes / row, 2);
    return ceil_div(phases.y.sites, ceil_div(phases.y.sites, most));
  }
};

// A tile of the band whose first row of sites is |top|.
struct Tile : SiteTile {
  int64_t top;
};

// Sites [first, second) among the |count| from |begin| on whose pixel of |phase| lies inside the
// output.
std::pair<int64_t, int64_t> inside(const PhaseAxis& axis, int64_t phase, int64_t begin,
                                   int64_t count) {
  int64_t end = begin + count;
  while (begin < end && axis.pixel(begin, phase) < 0) ++begin;
  while (end > begin && axis.pixel(end - 1, phase) >= axis.out) --end;
  return {begin, end};
}

// Writes the sums of one phase to its lines of the tile.
void multiply(const Plan& plan, const Phase& phase, const Tile& t, const float* lines,
              const float* weights, const float* bias, float* out) {
  const PhaseAxis &ay = plan.phases.y, &ax = plan.phases.x;
  const auto [y0, y1] = inside(ay, phase.y, t.y, t.rows);
  const auto [x0, x1] = inside(ax, phase.x, t.x, t.columns);
  const int64_t n = x1 - x0, row = plan.tile_width() * kPanel;
  if (n <= 0) return;
  const auto line_of = [&, first = x0](int64_t y) {
    return out + ((y - t.y) * ay.stride + phase.y) * row +
           ((first - t.x) * ax.stride + phase.x) * kPanel;
  };
  const auto chunks = static_cast<int64_t>(phase.offsets.size());
  if (chunks == 0) {
    for (int64_t y = y0; y < y1; ++y)
      for (int64_t p = 0; p < t.panels; ++p)
        for (int64_t i = 0; i < n; ++i)
          std::copy_n(bias + p * kPanel, kPanel,
                      line_of(y) + p * plan.tile_elements() + i * ax.stride * kPanel);
    return;
  }
  const PanelMicrokernel::RowBlocks row_blocks = plan.microkernel->row_blocks(n);
  PanelMicrokernel::Blocks p{};
  p.a_row = plan.image.step();
  p.depth = phase.depth;
  p.b_panel = plan.depth * kPanel;
  p.c_row = ax.stride * kPanel;
  p.c_panel = plan.tile_elements();
  const int64_t pass = std::max<int64_t>(1, kPass / phase.depth);
  for (int64_t chunk = 0; chunk < chunks; chunk += pass) {
    p.chunks = p.chain = std::min(pass, chunks - chunk);
    p.offsets = phase.offsets.data() + chunk;
    p.b = weights + (phase.at + chunk * phase.depth) * kPanel;
    p.start = chunk == 0 ? bias : nullptr;
    for (int64_t y = y0; y < y1; ++y) {
      p.a = lines + (y - t.top) * plan.image.row_step() + x0 * plan.image.step();
      p.c = line_of(y);
      plan.microkernel->run(row_blocks, t.panels, p);
    }
  }
}

void run_tile(const Run& run, const Plan& plan, const Tile& t, float* scratch) {
  const ConvGeometry& g = plan.geometry;
  const int64_t group = t.image % g.groups, first = t.panel * kPanel;
  const float* const weights =
      run.packed<float>() + (group * plan.panels + t.panel) * plan.depth * kPanel;
  float bias[PanelMicrokernel::kMostPanels * kPanel] = {};
  if (plan.has_bias)
    std::copy_n(run.input<float>(2) + group * g.group_out + first,
                std::min(t.panels * kPanel, g.group_out - first), bias);
  for (const Phase& phase : plan.list)
    multiply(plan, phase, t, run.shared<float>(), weights, bias, scratch);
  put_sites(run, plan.phases, g.group_out, t, scratch, plan.tile_width() * kPanel,
            plan.tile_elements());
}

pfrt_code run_plan(const Run& run, const Plan& plan) {
  const ConvGeometry& g = plan.geometry;
  if (run.packed<float>() == nullptr) return fail_unpacked(run, "conv_transpose_direct");
  const int64_t height = plan.phases.y.sites, width = plan.phases.x.sites;
  const int64_t columns = plan.columns(), across = ceil_div(width, plan.tile_x);
  const int64_t pixels = plan.phases.y.in * plan.phases.x.in;
  for (int64_t image = 0; image < g.batch * g.groups; ++image)
    for (int64_t top = 0; top < height && !run.stopped(); top += plan.band) {
      const float* const from = run.input<float>(0) + image * g.group_in * pixels;
      run.parallel(plan.image.tasks(), [&](int64_t task, uint32_t) {
        plan.image.fill(task, top, from, run.shared<float>());
      });
      const int64_t rows = std::min(plan.band, height - top);
      run.parallel(ceil_div(rows, plan.tile_y) * across * columns, [&](int64_t i, uint32_t worker) {
        if (run.stopped()) return;
        Tile t{};
        t.image = image;
        t.panel = i % columns * plan.microkernel->panels();
        t.panels = std::min(plan.microkernel->panels(), plan.panels - t.panel);
        t.top = top;
        const int64_t y = i / columns / across * plan.tile_y;
        t.y = top + y;
        t.rows = std::min(plan.tile_y, rows - y);
        t.x = i / columns % across * plan.tile_x;
        t.columns = std::min(plan.tile_x, width - t.x);
        run_tile(run, plan, t, run.scratch<float>(worker));
      });
    }
  return run.stop();
}

// A number for each of the two dimensions of the taps.
struct Taps {
  int64_t y, x;
};
Taps taps_of(const SnapshotNode& node) {
  const auto dims = node.input_dims(1);
  return {dims.size() == 4 ? dims[2] : 1, dims.back()};
}

bool only_ones(std::span<const int64_t> list) {
  return std::ranges::all_of(list, [](int64_t x) { return x == 1; });
}

// The strides; nullopt where they are not two positive numbers up to kMostStride.
std::optional<Taps> strides_of(const SnapshotNode& node) {
  const auto strides = node.attr_ints("strides");
  const size_t rank = node.input_dims(1).size() - 2;
  if (strides.empty()) return Taps{1, 1};
  if (strides.size() != rank) return std::nullopt;
  const Taps s{rank == 2 ? strides[0] : 1, strides.back()};
  if (s.y < 1 || s.x < 1 || s.y > kMostStride || s.x > kMostStride || s.y * s.x > kMostStride)
    return std::nullopt;
  return s;
}

// The phases as far as the weights alone tell: how they are packed does not depend on the image.
Phases phases_of(const Taps& taps, const Taps& strides, int64_t channels) {
  Window w;
  w.image = w.positions = {1, 1};
  w.kernel = {taps.y, taps.x};
  w.strides = {strides.y, strides.x};
  w.dilations = {1, 1};
  w.pads = w.end_pads = {0, 0};
  return Phases(w, channels);
}

}  // namespace

std::string refuse_conv_transpose_direct(const KernelRequest& node) {
  if (PanelMicrokernel::get() == nullptr) return "the machine, or PFRT_ISA, has no AVX2";
  if (splits_products(node.precision())) return "products on tiles are faster";
  const auto weights = node.input_dims(1);
  if (weights.size() != 3 && weights.size() != 4)
    return "panels are for one or two spatial dimensions";
  if (SnapshotNode::elements(weights) <= 0 || !node.is_constant(1))
    return "panels are for constant weights";
  const int64_t groups = node.attr_int("group", 1);
  if (groups < 1 || weights[0] % groups != 0) return "channels are no multiple of groups";
  if (!pays(weights[1] >= kPanel / 2))
    return message("panels are for many output channels, not ", weights[1], " a group");
  if (!only_ones(node.attr_ints("dilations"))) return "dilations are not 1";
  if (!strides_of(node)) return "strides are too long";
  return "";
}

std::optional<PackedInput> pack_conv_transpose_direct(const SnapshotNode& node) {
  const auto dims = node.input_dims(1);
  const int64_t groups = node.attr_int("group", 1), channels = dims[0] / groups, outs = dims[1];
  const Taps taps = taps_of(node), strides = *strides_of(node);
  const int64_t panels = ceil_div(outs, kPanel);
  const Phases phases = phases_of(taps, strides, channels);
  const int64_t panel = phases.depth() * kPanel;
  PackedInput packed;
  packed.input = 1;
  packed.recipe = message("phase_panels/", groups, "/", outs, "x", channels, "x", taps.y, "x",
                          taps.x, "/", strides.y, "x", strides.x);
  packed.bytes = static_cast<uint64_t>(groups * panels * panel) * sizeof(float);
  packed.pack = [=](const void* source, void* memory) {
    const float* from = static_cast<const float*>(source);
    float* to = static_cast<float*>(memory);
    std::vector<int64_t> places;
    std::fill_n(to, groups * panels * panel, 0.0f);
    for (int64_t g = 0; g < groups; ++g, to += panels * panel)
      for (int64_t c = 0; c < channels; ++c) {
        phases.places(c, places);
        for (int64_t o = 0; o < outs; ++o) {
          float* const column = to + o / kPanel * panel + o % kPanel;
          for (const int64_t place : places) column[place * kPanel] = *from++;
        }
      }
  };
  return packed_from_float32(node, std::move(packed));
}

Result<Kernel> make_conv_transpose_direct(const KernelRequest& node) {
  PFRT_ASSIGN(ConvGeometry g, transposed_geometry(node));
  PFRT_TRY(need_types(node, {1, 2}, Types{node.input_dtype(0)}));
  PFRT_TRY(check_bias(node, 2, g.groups * g.group_out));
  g.window = two_dimensional(std::move(g.window));
  Kernel kernel;
  if (g.batch == 0 || g.window.image_size() == 0) {
    kernel.run = [](const Run& run) { return run.stop(); };
    return kernel;
  }
  if (PanelMicrokernel::get() == nullptr)
    return error(Code::kUNSUPPORTED, "AVX2 is not usable any more");
  const auto plan = std::make_shared<const Plan>(g, node.has_input(2));
  kernel.flops = g.flops();
  kernel.packed_alone = true;
  kernel.scratch_bytes = plan->scratch_bytes();
  kernel.shared_bytes = plan->image.bytes();
  kernel.run = [plan](const Run& run) { return run_plan(run, *plan); };
  return in_float32(node, {0, 2}, std::move(kernel));
}

}  // namespace pfrt::cpu
