// SPDX-License-Identifier: Apache-2.0
//
// Estimates for a bare product or a language model from a description in words: cycles and rates,
// without values. Pure functions of their arguments.
#pragma once

#include "providers/wse/program/options.h"
#include "providers/wse/program/words.h"

namespace pfrt::wse {

// "gemm=4096x4096x4096" or "gemv=4096x4096" (K x N), "grid=512", "algorithm=meshgemm|cannon|summa",
// "group=27" of the tree, "json".
Result<std::string> estimate_product(const Settings& settings, const Words& words);
// "layers= width= heads= kv_heads= inner= context= tokens= new_tokens= prefill_grids=480,600
// decode_grids=420,540 groups=21,27 json"; LLaMA3-8B where nothing is given.
Result<std::string> estimate_language_model(const Settings& settings, const Words& words);

}  // namespace pfrt::wse
