// SPDX-License-Identifier: Apache-2.0
//
// Cuts a failing model down to a small one that still fails, greedily.
#pragma once

#include <functional>

#include "test/optimise/model.h"

namespace pfrt_optimise {

using Fails = std::function<bool(const ModelSpec&)>;

// |fails| must be true of |model|. Keeps the outputs, feeds, nodes, attributes and sizes that the
// failure needs. Values of removed nodes become inputs with their contents in the first feed.
ModelSpec shrink(ModelSpec model, const Fails& fails);

}  // namespace pfrt_optimise
