// SPDX-License-Identifier: Apache-2.0
//
// A rewrite that the client, or a plug-in, brought. Immutable; |run| may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/ir/graph.h"
#include "core/pass/engine/pass.h"
#include "core/provider/sink.h"

namespace pfrt {

// |run| gives null when there was nothing to do.
struct ClientPass {
  std::string name;
  int level = 1;  // 1 basic, 2 extended, 3 all: the lowest at which it runs
  // Counts and warnings of the rewrite go to |result|.
  std::function<Result<std::shared_ptr<Graph>>(const Graph& graph, const Stop& stop,
                                               PassResult& result)>
      run;
};

}  // namespace pfrt
