// SPDX-License-Identifier: Apache-2.0
//
// Phases and rates of a LLaMA-shaped language model on a square of PEs, as the programs of WaferLLM
// (OSDI'25) have them. Pure functions of their arguments.
#pragma once

#include "providers/wse/schedule/products.h"

namespace pfrt::wse {

struct Llama {
  int64_t layers, width;
  int64_t heads, kv_heads;  // keys and values are |width| x kv_heads / heads wide
  int64_t inner;            // of the feed-forward part
};

// Adds the phases of one token through one layer, with |context| tokens before it. |group| is that
// of the tree; 0: the fastest.
void decode_layer(Schedule& schedule, const Llama& model, int64_t context, int64_t group = 0);
// Adds the phases of |tokens| at once through one layer.
void prefill_layer(Schedule& schedule, const Llama& model, int64_t tokens);

struct LlamaMemory {
  int64_t weights = 0;      // of a layer, bytes a PE
  int64_t cache_token = 0;  // of a layer and token, bytes of a PE that holds its part
  int64_t activations = 0;  // buffers, bytes a PE
};
LlamaMemory llama_memory(const Llama& model, int64_t side, Arithmetic arithmetic);

// The tokens that |layers| layers' caches can hold on |side| x |side| PEs with |free_bytes| left on
// each: kept balanced over the rows by shifting, and where only the last row takes new ones.
struct CacheCapacity {
  int64_t shifted, concatenated;
};
CacheCapacity cache_capacity(const LlamaMemory& memory, int64_t layers, int64_t side,
                             int64_t free_bytes);

}  // namespace pfrt::wse
