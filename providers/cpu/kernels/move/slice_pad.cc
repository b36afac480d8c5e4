// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>

#include "providers/cpu/elements/indices.h"
#include "providers/cpu/elements/load.h"
#include "providers/cpu/elements/strided.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernel/slice_range.h"
#include "providers/cpu/kernels/move/make.h"

namespace pfrt::cpu {
namespace {

std::vector<int64_t> copy_of(std::span<const int64_t> dims) { return {dims.begin(), dims.end()}; }

// Whether an integer input is absent, or its values are known before the run.
bool settled(const SnapshotNode& node, uint32_t i) {
  return !node.has_input(i) ||
         static_cast<int64_t>(node.constant_int64s(i).size()) == node.input_elements(i);
}

// Axes an operator names, or all in order.
Result<std::vector<size_t>> named_axes(const std::optional<std::vector<int64_t>>& axes, size_t rank,
                                       size_t count) {
  std::vector<size_t> out;
  out.reserve(count);
  if (!axes) {
    for (size_t i = 0; i < count; ++i) out.push_back(i);
  } else {
    for (int64_t a : *axes) {
      PFRT_ASSIGN(const int64_t axis, axis_of(a, rank));
      out.push_back(static_cast<size_t>(axis));
    }
  }
  if (out.size() != count || count > rank)
    return kernel_error(out.size(), " axes for ", count, " values and rank ", rank);
  return out;
}

enum class Mode { kConstant, kReflect, kEdge, kWrap };

// Input position behind each output position of one dimension; -1 for the constant.
Result<std::vector<int64_t>> pad_map(Mode mode, int64_t size, int64_t begin, int64_t end,
                                     int64_t planned) {
  if (size + begin + end != planned)
    return kernel_error("pads ", begin, " and ", end, " make ", size + begin + end, " of ", size,
                        ", planned ", planned);
  const int64_t low = std::max<int64_t>(0, -begin), kept = size - low - std::max<int64_t>(0, -end);
  if (mode != Mode::kConstant && kept <= 0 && planned > 0)
    return kernel_error("nothing is left to pad a dimension from");
  std::vector<int64_t> map(static_cast<size_t>(planned));
  for (int64_t o = 0; o < planned; ++o) {
    int64_t i = o - begin - low;  // among the elements that are kept
    if (i < 0 || i >= kept) {
      if (mode == Mode::kConstant) {
        map[static_cast<size_t>(o)] = -1;
        continue;
      }
      if (mode == Mode::kEdge) {
        i = i < 0 ? 0 : kept - 1;
      } else if (mode == Mode::kWrap || kept == 1) {
        i = (i % kept + kept) % kept;
      } else {
        const int64_t period = 2 * (kept - 1);
        i = (i % period + period) % period;
        if (i >= kept) i = period - i;
      }
    }
    map[static_cast<size_t>(o)] = low + i;
  }
  return map;
}

// Rows of the output from maps: constants, single elements, and the runs in between.
void pad_rows(const Run& run, const std::vector<std::vector<int64_t>>& maps,
              const std::vector<int64_t>& strides, const char* in, const char* constant, char* out,
              int64_t bytes) {
  const size_t last = maps.size() - 1;
  const std::vector<int64_t>& columns = maps[last];
  const int64_t length = static_cast<int64_t>(columns.size());
  int64_t rows = 1;
  for (size_t d = 0; d < last; ++d) rows *= static_cast<int64_t>(maps[d].size());
  if (length == 0) return;
  run.blocks(rows, std::max<int64_t>(1, (1 << 15) / length), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t left = r, source = 0;
      bool inside = true;
      for (size_t d = last; d-- > 0;) {
        const int64_t size = static_cast<int64_t>(maps[d].size());
        const int64_t at = maps[d][static_cast<size_t>(left % size)];
        left /= size;
        inside = inside && at >= 0;
        source += at * strides[d];
      }
      char* to = out + r * length * bytes;
      for (int64_t c = 0; c < length;) {
        const int64_t at = inside ? columns[static_cast<size_t>(c)] : -1;
        int64_t n = 1;
        if (at >= 0)
          while (c + n < length && columns[static_cast<size_t>(c + n)] == at + n) ++n;
        std::memcpy(to + c * bytes, at < 0 ? constant : in + (source + at) * bytes,
                    static_cast<size_t>(n * bytes));
        c += n;
      }
    }
    run.apply_epilogue(begin * length, end * length);
  });
}

}  // namespace

struct SliceInputs {
  std::vector<int64_t> starts, ends;
  std::optional<std::vector<int64_t>> axes, steps;
};

// A slice as a copy from element |offset| on.
struct SliceCopy {
  int64_t offset;
  StridedCopy copy;
};

Result<SliceCopy> slice_copy(size_t bytes, const std::vector<int64_t>& in,
                             const std::vector<int64_t>& out, const SliceInputs& at) {
  PFRT_ASSIGN(const std::vector<size_t> named, named_axes(at.axes, in.size(), at.starts.size()));
  std::vector<int64_t> strides = dense_strides(in);
  std::vector<int64_t> count = in;
  int64_t offset = 0;
  for (size_t i = 0; i < at.starts.size(); ++i) {
    const size_t axis = named[i];
    PFRT_ASSIGN(const auto range,
                slice_range(at.starts[i], at.ends[i], at.steps ? (*at.steps)[i] : 1, in[axis]));
    count[axis] = range.count;
    offset += range.start * strides[axis];
    // With one element the stride is never used, and a huge step could overflow.
    strides[axis] = range.count > 1 ? strides[axis] * range.step : 0;
  }
  if (count != out) return kernel_error("starts and ends make other dimensions than were planned");
  return SliceCopy{offset, StridedCopy(bytes, out, strides, dense_strides(out))};
}

Result<Kernel> make_slice(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 1));
  PFRT_TRY(need_types(node, {1, 2, 3, 4}, kIndices));
  const std::vector<int64_t> in = copy_of(node.input_dims(0)), out = copy_of(node.output_dims(0));
  if (in.size() != out.size())
    return kernel_error("rank ", in.size(), " was planned as rank ", out.size());
  const IndexInput starts(node, 1), ends(node, 2), axes(node, 3), steps(node, 4);
  if (starts.count() != ends.count() || (steps.present() && steps.count() != starts.count()))
    return kernel_error("starts, ends and steps must have one length, found ", starts.count(),
                        " and ", ends.count());
  const size_t bytes = stored_size(node.input_dtype(0));
  const auto copy = [bytes](const Run& run, const SliceCopy& slice) {
    slice.copy.run(run, run.input<char>(0) + slice.offset * static_cast<int64_t>(bytes),
                   run.output(0), 0);
    return run.stop();
  };
  Kernel kernel;
  if (settled(node, 1) && settled(node, 2) && settled(node, 3) && settled(node, 4)) {
    SliceInputs at{node.constant_int64s(1), node.constant_int64s(2), {}, {}};
    if (axes.present()) at.axes = node.constant_int64s(3);
    if (steps.present()) at.steps = node.constant_int64s(4);
    auto slice = slice_copy(bytes, in, out, at);
    if (slice.ok()) {  // the run says what is wrong
      kernel.run = [copy, slice = slice.take()](const Run& run) { return copy(run, slice); };
      return kernel;
    }
  }
  kernel.run = [=](const Run& run) -> pfrt_code {
    SliceInputs at{starts.read(run), ends.read(run), {}, {}};
    if (axes.present()) at.axes = axes.read(run);
    if (steps.present()) at.steps = steps.read(run);
    auto slice = slice_copy(bytes, in, out, at);
    if (!slice.ok()) return run.fail(slice.status().code(), "Slice: ", slice.status().message());
    return copy(run, *slice);
  };
  return kernel;
}

// Input positions of each dimension, as pad_map says.
Result<std::vector<std::vector<int64_t>>> pad_maps(
    Mode mode, const std::vector<int64_t>& in, const std::vector<int64_t>& out,
    const std::vector<int64_t>& pads, const std::optional<std::vector<int64_t>>& axes) {
  const size_t named_count = pads.size() / 2;
  PFRT_ASSIGN(const std::vector<size_t> named, named_axes(axes, in.size(), named_count));
  std::vector<int64_t> begin(in.size(), 0), end(in.size(), 0);
  for (size_t i = 0; i < named_count; ++i) {
    begin[named[i]] = pads[i];
    end[named[i]] = pads[i + named_count];
  }
  std::vector<std::vector<int64_t>> maps;
  for (size_t d = 0; d < in.size(); ++d) {
    // Checked here so that the sums below cannot overflow.
    constexpr int64_t kLimit = int64_t{1} << 61;
    if (begin[d] < -kLimit || begin[d] > kLimit || end[d] < -kLimit || end[d] > kLimit)
      return kernel_error("pads of dimension ", d, " are out of range");
    PFRT_ASSIGN(auto map, pad_map(mode, in[d], begin[d], end[d], out[d]));
    maps.push_back(std::move(map));
  }
  return maps;
}

Result<Kernel> make_pad(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1, 3}, kIndices));
  const std::vector<int64_t> in = copy_of(node.input_dims(0)), out = copy_of(node.output_dims(0));
  if (in.size() != out.size())
    return kernel_error("rank ", in.size(), " was planned as rank ", out.size());
  const std::string_view name = node.attr_string("mode", "constant");
  Mode mode = Mode::kConstant;
  if (name == "reflect") {
    mode = Mode::kReflect;
  } else if (name == "edge") {
    mode = Mode::kEdge;
  } else if (name == "wrap") {
    mode = Mode::kWrap;
  } else if (name != "constant") {
    return kernel_error("mode is '", name, "', expected constant, reflect, edge or wrap");
  }
  const bool has_value = node.has_input(2) && node.input_elements(2) > 0;
  if (has_value && node.input_dtype(2) != node.input_dtype(0))
    return kernel_error("the constant has another type than the data");
  const IndexInput pads(node, 1), axes(node, 3);
  if (pads.count() % 2 != 0)
    return kernel_error("pads holds ", pads.count(),
                        " values, expected a begin and an end an axis");
  const int64_t bytes = static_cast<int64_t>(stored_size(node.input_dtype(0)));
  const auto pad = [=, strides = dense_strides(in)](const Run& run,
                                                    const std::vector<std::vector<int64_t>>& maps) {
    if (maps.empty()) {
      copy_bytes(run, run.input(0), run.output(0), bytes);
      run.apply_epilogue(0, 1);
      return run.stop();
    }
    static constexpr char kZero[16] = {};
    pad_rows(run, maps, strides, run.input<char>(0), has_value ? run.input<char>(2) : kZero,
             run.output<char>(0), bytes);
    return run.stop();
  };
  Kernel kernel;
  if (settled(node, 1) && settled(node, 3)) {
    std::optional<std::vector<int64_t>> named;
    if (axes.present()) named = node.constant_int64s(3);
    auto maps = pad_maps(mode, in, out, node.constant_int64s(1), named);
    if (maps.ok()) {  // the run says what is wrong
      kernel.run = [pad, maps = maps.take()](const Run& run) { return pad(run, maps); };
      return kernel;
    }
  }
  kernel.run = [=](const Run& run) -> pfrt_code {
    std::optional<std::vector<int64_t>> named;
    if (axes.present()) named = axes.read(run);
    auto maps = pad_maps(mode, in, out, pads.read(run), named);
    if (!maps.ok()) return run.fail(maps.status().code(), "Pad: ", maps.status().message());
    return pad(run, *maps);
  };
  return kernel;
}

Result<Kernel> make_reverse_sequence(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_types(node, {1}, kIndices));
  const auto dims = node.input_dims(0);
  const int64_t time_axis = node.attr_int("time_axis", 0),
                batch_axis = node.attr_int("batch_axis", 1);
  if (dims.size() < 2 || time_axis + batch_axis != 1 || time_axis * batch_axis != 0)
    return kernel_error("time_axis ", time_axis, " and batch_axis ", batch_axis,
                        " must be 0 and 1, in rank 2 or more");
  PFRT_TRY(need_output_dims(node, 0, dims));
  const int64_t steps = dims[static_cast<size_t>(time_axis)],
                batch = dims[static_cast<size_t>(batch_axis)];
  const int64_t bytes = SnapshotNode::elements(dims.subspan(2)) *
                        static_cast<int64_t>(stored_size(node.input_dtype(0)));
  const int64_t time_stride = (time_axis == 0 ? batch : 1) * bytes,
                batch_stride = (time_axis == 0 ? 1 : steps) * bytes;
  const IndexInput lengths(node, 1);
  if (lengths.count() != batch)
    return kernel_error(lengths.count(), " lengths for a batch of ", batch);
  Kernel kernel;
  kernel.run = [=](const Run& run) -> pfrt_code {
    const std::vector<int64_t> length = lengths.read(run);
    for (int64_t n : length)
      if (n < 0 || n > steps)
        return run.fail(Code::kINVALID_ARGUMENT, "ReverseSequence: length ", n, " is outside [0, ",
                        steps, "]");
    run.parallel(batch, [&](int64_t b, uint32_t) {
      const int64_t n = length[static_cast<size_t>(b)];
      for (int64_t t = 0; t < steps && !run.stopped(); ++t) {
        const int64_t from = t < n ? n - 1 - t : t;
        std::memcpy(run.output<char>(0) + t * time_stride + b * batch_stride,
                    run.input<char>(0) + from * time_stride + b * batch_stride,
                    static_cast<size_t>(bytes));
      }
    });
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
