// SPDX-License-Identifier: Apache-2.0
#include "core/op/defs/common/notes.h"

#include <algorithm>
#include <iterator>

namespace pfrt {
namespace {

struct Note {
  std::string_view domain, name, text;
};

constexpr std::string_view kNanInWindow =
    "NaN in a window makes NaN, as NumPy's maximum does. The text does not name NaN; the "
    "reference, which marks padding by NaN, and ONNX Runtime keep or drop it by its place.";
constexpr std::string_view kSamePadding =
    "SAME_UPPER and SAME_LOWER never pad by less than zero: with a stride beyond the window the "
    "text's formula gives a negative sum, which the reference's pools fail on, ONNX Runtime's "
    "MaxPool refuses, and its AveragePool takes for cropping on both sides.";

constexpr Note kNotes[] = {
    {"", "ArgMax", "The first NaN is the greatest, as in NumPy; ONNX Runtime passes over NaN."},
    {"", "ArgMin", "The first NaN is the least, as in NumPy; ONNX Runtime passes over NaN."},
    {"", "Attention",
     "A query all of whose keys are masked gives zeros, as the function of the standard has it. "
     "Scores that are minus infinity without a mask give NaN, as their softmax does."},
    {"", "AveragePool", kSamePadding},
    {"", "Cast",
     "To string: \"NaN\", \"INF\" and \"-INF\", the literals of the text and of ONNX Runtime; "
     "whole "
     "numbers without a point, as both write \"1000\". The reference writes nan, inf and 1.0. "
     "Other numbers are NumPy's shortest text, as in the reference; ONNX Runtime rounds float64 "
     "to eight digits. To integers: NaN and what does not fit is undefined in the text."},
    {"", "Clip",
     "NaN stays NaN. A bound of NaN bounds nothing, as in the standard's function and ONNX "
     "Runtime; "
     "NumPy's clip gives NaN."},
    {"", "Conv", kSamePadding},
    {"", "GlobalMaxPool", kNanInWindow},
    {"", "GridSample",
     "With padding border and mode cubic each pixel that is read is moved to the border, not the "
     "place, as in PyTorch and ONNX Runtime; the reference moves the place. A place of NaN counts "
     "as -1."},
    {"", "Hardmax",
     "NaN counts as the greatest, as NumPy's argmax of the reference has it. ONNX Runtime then "
     "gives zeros alone."},
    {"", "Max", "NaN in any operand makes NaN, as in NumPy and ONNX Runtime."},
    {"", "MaxPool",
     "NaN in a window makes NaN, as NumPy's maximum does, and its index is that of the first NaN; "
     "the text does not name NaN, the reference and ONNX Runtime keep or drop it by its place. "
     "SAME_UPPER and SAME_LOWER never pad by less than zero, where a stride beyond the window "
     "makes "
     "the text's formula negative; the reference fails there and ONNX Runtime refuses."},
    {"", "MaxRoiPool", kNanInWindow},
    {"", "Min", "NaN in any operand makes NaN, as in NumPy and ONNX Runtime."},
    {"", "ReduceMax",
     "NaN makes NaN, as in the reference; ONNX Runtime drops NaN but in first place."},
    {"", "ReduceMin",
     "NaN makes NaN, as in the reference; ONNX Runtime drops NaN but in first place."},
    {"", "Shrink",
     "NaN is neither below -lambd nor above lambd and gives 0, by text and reference."},
    {"", "Softmax",
     "A line of minus infinity alone, and one with NaN or infinity, is NaN throughout."},
    {"", "ThresholdedRelu", "NaN is not above alpha and gives 0, by text and reference."},
    {"", "TopK",
     "NaN is greater than every number, as NumPy sorts it; ONNX Runtime's order depends on its "
     "place."},
};

}  // namespace

std::string_view operator_note(std::string_view domain, std::string_view name) {
  const auto* found = std::ranges::find_if(
      kNotes, [&](const Note& note) { return note.domain == domain && note.name == name; });
  return found == std::end(kNotes) ? std::string_view() : found->text;
}

}  // namespace pfrt
