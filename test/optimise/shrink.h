// SPDX-License-Identifier: Apache-2.0
//
// Cuts a model that fails down to a small one that still fails, greedily.
#pragma once

#include <functional>

#include "test/optimise/model.h"

namespace pfrt_optimise {

using Fails = std::function<bool(const ModelSpec&)>;

// |model| fails. Keeps what |fails| needs of outputs, feeds, nodes, attributes and sizes; values of
// nodes that go become inputs with what they held in the first feed.
ModelSpec shrink(ModelSpec model, const Fails& fails);

}  // namespace pfrt_optimise
