// SPDX-License-Identifier: Apache-2.0
//
// RegexFullMatch, whose patterns are RE2's. A node's pattern is compiled once, and matched by
// several threads at once. A run stops between two texts, since RE2 cannot be stopped inside one: a
// text of 20 MB takes it 0.1 to 0.8 s.
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "plugins/ops/onnx_op.h"
#include "plugins/ops_text/operators.h"
#include "plugins/ops_text/regex.h"

namespace pfrt::ops {
namespace {

pfrt_code create_pattern(void*, const pfrt_op_create* context, void** out_state) {
  try {
    const pfrt_snapshot_attr* attr =
        attribute(*context->node, context->attr_size, "pattern", PFRT_ATTR_STRING);
    if (attr == nullptr)
      return context->fail(context, PFRT_CODE_INVALID_MODEL,
                           text("attribute 'pattern' is absent or no string"));
    std::string why;
    auto pattern = compiled("pattern", attr->s, {}, why);
    if (!pattern) return context->fail(context, PFRT_CODE_INVALID_MODEL, text(why));
    *out_state = pattern.release();
    return PFRT_CODE_OK;
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    return context->fail(context, PFRT_CODE_PLUGIN, text(error.what()));
  }
}

void release_pattern(void*, void* state) { delete static_cast<re2::RE2*>(state); }

pfrt_code infer(void*, const pfrt_op_infer* context) {
  const pfrt_snapshot_value& x = context->inputs[0];
  return context->set_output(context, 0, PFRT_DTYPE_BOOL, x.rank, x.dims);
}

struct Match {
  const pfrt_op_compute* call;
  const re2::RE2* pattern;
  uint64_t count;  // a byte a bool
};

constexpr uint64_t kBlock = 256;
constexpr uint64_t kPace = uint64_t{1} << 16;  // bytes between two looks at whether to stop

void match_block(void* arg, uint64_t block, uint32_t) {
  const Match& m = *static_cast<const Match*>(arg);
  const auto* x = static_cast<const pfrt_string*>(m.call->inputs[0].data);
  auto* y = static_cast<uint8_t*>(m.call->outputs[0].data);
  uint64_t walked = 0;
  for (uint64_t i = block * kBlock; i < m.count && i < (block + 1) * kBlock; ++i) {
    y[i] = re2::RE2::FullMatch(piece(x[i]), *m.pattern);
    walked += x[i].size;
    if (walked < kPace) continue;
    walked = 0;
    if (m.call->stop(m.call) != PFRT_CODE_OK) return;
  }
}

pfrt_code compute(void*, const pfrt_op_compute* context) {
  Match match{context, static_cast<const re2::RE2*>(context->state), context->outputs[0].bytes};
  context->parallel(context, (match.count + kBlock - 1) / kBlock, match_block, &match);
  return context->stop(context);
}

constexpr pfrt_dtype kStrings = PFRT_DTYPE_STRING, kBools = PFRT_DTYPE_BOOL;

}  // namespace

pfrt_custom_op regex_full_match() {
  pfrt_custom_op op = onnx_op("RegexFullMatch", 20, 1, 0, infer, compute);
  set_types(op, kStrings, kBools);
  op.create_state = create_pattern;
  op.release_state = release_pattern;
  return op;
}

}  // namespace pfrt::ops
