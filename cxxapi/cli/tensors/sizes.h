// SPDX-License-Identifier: Apache-2.0
//
// Sizes for the symbolic dimensions that nobody gave, found by trying.
#pragma once

#include <functional>
#include <string>

#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/tensors/feed.h"

namespace cli {

// Runs the model on a feed; throws a PyFlameRTError when that fails. The options are NULL at the
// first try, which may take its time, and hold a deadline at the others.
using Attempt = std::function<void(const Feed& feed, const pyflame_rt::RunOptions* options)>;

// Calls |attempt| with every open dimension 1 and, when the model refuses that shape, with other
// sizes: powers of two, the sizes of fixed dimensions and the numbers that refusals name, from
// small to large, each for one dimension alone and for all; a leading dimension, which mostly is a
// batch, grows last. Gives up after seconds. Returns the sizes that ran, empty where nothing was
// open; the UsageError says what was assumed and what to give.
Dims fit_sizes(const Feeder& feeder, const Attempt& attempt);

// Writes "batch=1, samples=512 assumed; --dim NAME=N gives others".
std::string assumed_text(const Dims& dims);
void write_assumed(const Dims& dims, Json* json);  // {"batch":1,"samples":512}
// Returns an attempt that runs |session|.
Attempt run_once(const pyflame_rt::InferenceSession& session);

}  // namespace cli
