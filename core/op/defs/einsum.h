// SPDX-License-Identifier: Apache-2.0
//
// Einsum: its equation and the consequences. The canonical equation has no blanks and names its
// output ("ij,jk->ik"). The functions change only the node that is edited; thread-safe on different
// graphs.
#pragma once

#include "core/op/engine/inference.h"
#include "core/op/engine/rewriter.h"

namespace pfrt {

Status canonical_einsum(Rewriter& rewriter);
Status infer_einsum(Inference& inference);
// Counts a product and a sum for each combination of all labels.
double flops_of_einsum(const Inference& inference);

}  // namespace pfrt
