// SPDX-License-Identifier: Apache-2.0
//
// RotaryEmbedding: pairs of columns of a head, half of what is rotated apart or side by side, are
// turned by the angle of the row's position. A PE has both columns of a pair.
#include <algorithm>

#include "providers/wse/operators/families.h"
#include "providers/wse/operators/heads.h"
#include "providers/wse/operators/rounding.h"
#include "providers/wse/operators/tensor.h"

namespace pfrt::wse {
namespace rotary {
namespace {

// Rows of a table from one batch to the next, and from one position to the next.
struct Steps {
  int64_t batch = 0, row = 0;
};

struct Form {
  Heads x;
  int64_t batch = 0, half = 0;  // pairs
  int64_t positions = 0;        // of the tables, where positions are given
  Steps cosine, sine;           // used where no positions are given
  bool interleaved = false, by_position = false;
};

// Reads the steps of the table at |input|, whose batch and positions may be one for all.
bool read_steps(const Call& call, const Form& f, uint32_t input, Steps* steps, std::string* why) {
  const Dims& table = call.in[input].dims;
  Dims wanted{f.batch, f.x.positions, f.half};
  for (size_t d = 0; d < 2 && table.size() == 3; ++d)
    if (table[d] == 1) wanted[d] = 1;
  *steps = {wanted[0] == 1 ? 0 : wanted[1], wanted[1] == 1 ? 0 : 1};
  return has_dims(call, input, wanted, why);
}

bool read_form(const Call& call, Form* f, std::string* why) {
  if (!sound(call, 3, why) || !output_has_dims(call, 0, call.in[0].dims, why)) return false;
  const Dims& dims = call.in[0].dims;
  const int64_t heads = call.node.attr_int("num_heads", 0);
  if (!read_heads(dims, heads, &f->x))
    return fault(call, why, "dimensions ", text_of(dims), " for ", heads, " heads");
  f->batch = dims[0];
  const int64_t asked = call.node.attr_int("rotary_embedding_dim", 0),
                rotated = asked != 0 ? asked : f->x.columns;
  if (rotated < 0 || rotated > f->x.columns || rotated % 2 != 0)
    return fault(call, why, "rotary_embedding_dim ", rotated, " for heads of ", f->x.columns);
  f->half = rotated / 2;
  f->interleaved = call.node.attr_int("interleaved", 0) != 0;
  f->by_position = has_input(call, 3);
  const Dims& table = call.in[1].dims;
  if (f->by_position && (table.size() != 2 || !has_dims(call, 3, {f->batch, f->x.positions}, why)))
    return fault(call, why, "tables of dimensions ", text_of(table), " for positions ",
                 text_of(call.in[3].dims));
  f->positions = f->by_position ? table[0] : 0;
  if (!f->by_position)
    return read_steps(call, *f, 1, &f->cosine, why) && read_steps(call, *f, 2, &f->sine, why);
  const Dims wanted{f->positions, f->half};
  return has_dims(call, 1, wanted, why) && has_dims(call, 2, wanted, why);
}

// A table's row for each position of each batch. False where there is none.
bool read_positions(const Call& call, const Form& f, const Steps& steps, std::vector<int64_t>* rows,
                    std::string* why) {
  const int64_t count = f.batch * f.x.positions;
  for (int64_t i = 0; i < count; ++i) {
    int64_t row = i / f.x.positions * steps.batch + i % f.x.positions * steps.row;
    if (f.by_position) {
      row = call.in[3].as<int64_t>()[i];
      if (row < -f.positions || row >= f.positions)
        return fault(call, why, "position ", row, " (element ", i, ") is outside [", -f.positions,
                     ", ", f.positions, "), the tables' rows");
      if (row < 0) row += f.positions;
    }
    rows->push_back(row);
  }
  return true;
}

template <typename R>
void rotate(R round, const Form& f, const float* cosine, const float* sine, const float* x,
            float* y) {
  const int64_t apart = f.interleaved ? 1 : f.half, step = f.interleaved ? 2 : 1;
  for (int64_t i = 0; i < f.half; ++i) {
    const float a = round(x[i * step]), b = round(x[i * step + apart]);
    const float c = round(cosine[i]), s = round(sine[i]);
    y[i * step] = round(round(c * a) - round(s * b));
    y[i * step + apart] = round(round(s * a) + round(c * b));
  }
  for (int64_t i = 2 * f.half; i < f.x.columns; ++i) y[i] = round(x[i]);
}

bool run(const Call& call, std::string* why) {
  Form f;
  std::vector<int64_t> cosine, sine;
  if (!read_form(call, &f, why) || !read_positions(call, f, f.cosine, &cosine, why) ||
      !read_positions(call, f, f.sine, &sine, why))
    return false;
  if (call.in[0].count() == 0) return true;
  with_rounding(call.arithmetic, [&](auto round) {
    for (int64_t b = 0; b < f.batch; ++b)
      for (int64_t h = 0; h < f.x.count; ++h)
        for (int64_t r = 0; r < f.x.positions; ++r) {
          const auto position = static_cast<size_t>(b * f.x.positions + r);
          const int64_t at = f.x.at(b, h, r);
          rotate(round, f, call.in[1].as() + cosine[position] * f.half,
                 call.in[2].as() + sine[position] * f.half, call.in[0].as() + at,
                 call.out[0].as() + at);
        }
  });
  return true;
}

std::string refuse(const SnapshotNode& node) {
  const int32_t rank = node.input_rank(0);
  if (rank != 3 && rank != 4)
    return message("RotaryEmbedding of an input of rank ", rank, ": rank 3 or 4 is taken here");
  if (rank == 3 && node.attr_int("num_heads", 0) < 1)
    return "RotaryEmbedding of rank 3 without num_heads: 1 or more heads are taken here";
  return first_of({refuse_unlike_output(node, 0, kFloat), refuse_input(node, 1, kFloat),
                   refuse_input(node, 2, kFloat),
                   refuse_input(node, 3, types_of(PFRT_DTYPE_INT64))});
}

constexpr Operator kOperators[] = {
    {"", "RotaryEmbedding", Family::kElementwise, {.vector_operations = 3}, refuse, run},
};

}  // namespace
}  // namespace rotary

std::span<const Operator> rotary_operators() { return rotary::kOperators; }

}  // namespace pfrt::wse
