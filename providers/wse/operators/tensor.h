// SPDX-License-Identifier: Apache-2.0
//
// Shared by operators in looking at their nodes and tensors: the types that are taken, whether a
// call is sound, lists of integers. Pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "providers/wse/operators/operators.h"

namespace pfrt::wse {

// A set of element types, a bit each.
using Types = uint32_t;
constexpr Types types_of(pfrt_dtype dtype) { return Types{1} << dtype; }
constexpr Types kFloat = types_of(PFRT_DTYPE_FLOAT32);
constexpr Types kIndex = types_of(PFRT_DTYPE_INT64) | types_of(PFRT_DTYPE_INT32);
constexpr Types kBool = types_of(PFRT_DTYPE_BOOL);
constexpr Types kMoved = kFloat | kIndex | kBool;

// Reasons to refuse; empty where there is none. An absent input or output has no type and is not
// refused.
std::string refuse_input(const SnapshotNode& node, uint32_t input, Types types);
std::string refuse_output(const SnapshotNode& node, uint32_t output, Types types);
// Input |input| is of another type than output 0, or not of |types|.
std::string refuse_unlike_output(const SnapshotNode& node, uint32_t input, Types types);
// All inputs and outputs are of |types|.
std::string refuse_types(const SnapshotNode& node, Types types);
// Outputs from |made| on are asked for; |what| they are.
std::string refuse_outputs(const SnapshotNode& node, uint32_t made, std::string_view what);
// Input |input|, |what| it is, is there but not a constant.
std::string refuse_run_time(const SnapshotNode& node, uint32_t input, std::string_view what);
// The first that is not empty.
std::string first_of(std::initializer_list<std::string> reasons);

// Sets |*why| to "<operator>: <parts>"; false.
template <typename... Parts>
bool fault(const Call& call, std::string* why, const Parts&... parts) {
  if (why != nullptr) *why = message(call.node.op(), ": ", parts...);
  return false;
}
std::string text_of(const Dims& dims);

bool has_input(const Call& call, uint32_t i);
// Whether output |i| is to be made.
bool wants(const Call& call, uint32_t i);
// The first |needed| inputs and the first output are there, and whatever is there has dimensions
// that can be and memory, but for lists of integers, which a node's constants may have. Holds for
// anything a host does right: it keeps other calls in bounds.
bool sound(const Call& call, uint32_t needed, std::string* why);
// Input |i| has exactly |dims|, or is absent.
bool has_dims(const Call& call, uint32_t i, const Dims& dims, std::string* why);
bool output_has_dims(const Call& call, uint32_t i, const Dims& dims, std::string* why);

// An int64 or int32 tensor widened: from the call where it has the tensor, else from the node's
// constant. Empty when absent.
std::vector<int64_t> integers(const Call& call, uint32_t input);
// The number that input |i| holds in the call's arithmetic; |fallback| when absent or empty.
float scalar_input(const Call& call, uint32_t input, float fallback);
float rounded_attr(const Call& call, std::string_view name, float fallback);
// Rounds an output that was moved as it was.
void round_output(const Call& call, const Tensor& tensor);

}  // namespace pfrt::wse
