// SPDX-License-Identifier: Apache-2.0
#include "capi/plugin/client_pass.h"

#include <algorithm>

#include "capi/handle/graph.h"
#include "capi/handle/slots.h"
#include "core/base/abi/sized.h"
#include "core/environment/registry.h"
#include "core/pass/engine/pipeline.h"

namespace pfrt::capi {

Result<std::shared_ptr<const ClientPass>> client_pass(const pfrt_custom_pass& given,
                                                      std::shared_ptr<void> keep, Logger& logger,
                                                      std::string_view doing) {
  PFRT_TRY(check_registered("pass", given.abi, view(given.name)));
  auto made = std::make_shared<ClientPass>();
  made->name = view(given.name);
  if (made->name.empty() || !given.run)
    return error(Code::kINVALID_ARGUMENT, doing, " pass '", made->name,
                 "': it needs a name and a function");
  if (given.level > PFRT_PASS_ALL)
    return abi::unknown_number(message(doing, " pass '", made->name, "'"), "level", given.level);
  made->level = static_cast<int>(std::max<uint32_t>(given.level, PFRT_PASS_BASIC));
  // A caller of the pass holds the environment's state during the call.
  made->run = [given, keep = std::move(keep), log = &logger](
                  const Graph& graph, const Stop& stop,
                  PassResult& result) -> Result<std::shared_ptr<Graph>> {
    const std::unique_ptr<pfrt_graph, decltype(&release<pfrt_graph>)> handle(
        new pfrt_graph(graph.clone()), &release<pfrt_graph>);
    name_captures(*handle->graph);
    Sink sink(log, stop);
    sink.keep_warnings(&result.warnings);
    pfrt_pass_stats stats{};
    stats.struct_size = sizeof stats;
    pfrt_pass_call one{};
    one.struct_size = sizeof one;
    one.abi = PFRT_ABI_VERSION;
    one.api = &kApi;
    one.graph = handle.get();
    one.sink = sink.get();
    one.stats = &stats;
    const pfrt_code code =
        sink.call([&] { return given.run(given.user, &one); }, PFRT_CODE_PROVIDER, "pass");
    PFRT_TRY(sink.status(code, "rewriting the graph"));
    if (!stats.modified) return std::shared_ptr<Graph>();
    result.modified = true;
    result.stats.nodes_removed = stats.nodes_removed;
    result.stats.nodes_added = stats.nodes_added;
    result.stats.nodes_fused = stats.nodes_fused;
    result.stats.constants_folded = stats.constants_folded;
    result.stats.initializers_removed = stats.initializers_removed;
    // A copy: the pass may have kept the handle.
    return handle->graph->clone();
  };
  return std::shared_ptr<const ClientPass>(std::move(made));
}

}  // namespace pfrt::capi
