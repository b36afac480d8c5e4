// SPDX-License-Identifier: Apache-2.0
//
// A client's function that places the buffers of runs.
#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/plugin_scope.h"
#include "capi/handle/slots.h"
#include "core/plan/blocks.h"

namespace pfrt::capi {
namespace {

class ClientPlanner final : public MemoryPlanner {
 public:
  explicit ClientPlanner(std::shared_ptr<const pfrt_memory_planner> client)
      : client_(std::move(client)) {}

  Result<uint64_t> place(std::string_view graph, std::string_view memory,
                         std::vector<BlockItem>& items) override {
    std::vector<pfrt_memory_item> all;
    all.reserve(items.size());
    std::vector<uint64_t> offsets(items.size());
    for (const BlockItem& item : items)
      all.push_back({sizeof(pfrt_memory_item), static_cast<uint32_t>(item.alignment),
                     to_c(item.name), item.bytes, item.first, item.last});
    std::string said;
    pfrt_memory_request request{};
    request.struct_size = sizeof request;
    request.graph = to_c(graph);
    request.memory = to_c(memory);
    request.items = all.data();
    request.count = all.size();
    request.offsets = offsets.data();
    request.fail = &fail;
    request.host = &said;
    pfrt_code code = PFRT_CODE_OK;
    const bool returned =
        call_foreign([&] { code = client_->create_plan(client_->user, &request); });
    if (!returned || code != PFRT_CODE_OK)
      return error(returned ? static_cast<Code>(code) : Code::kINTERNAL,
                   "placing the buffers of graph '", graph, "': the memory planner ",
                   returned ? "failed" : "threw", said.empty() ? "" : ": ", said);
    for (size_t i = 0; i < items.size(); ++i) items[i].offset = offsets[i];
    return request.bytes;
  }

 private:
  static pfrt_code fail(const pfrt_memory_request* request, pfrt_code code, pfrt_string message) {
    try {
      *static_cast<std::string*>(request->host) = view(message);
    } catch (const std::bad_alloc&) {  // the code says enough
    }
    return code;
  }
  std::shared_ptr<const pfrt_memory_planner> client_;
};

}  // namespace

pfrt_status* set_memory_planner(pfrt_env* env, const pfrt_memory_planner* planner) {
  return guard([&]() -> Status {
    PFRT_ASSIGN(const auto client, taken(planner));
    if (!env) return null_argument("env");
    if (client && !client->create_plan)
      return error(Code::kINVALID_ARGUMENT,
                   "setting a memory planner: a function of the struct is NULL");
    auto made = client ? std::make_shared<ClientPlanner>(client) : nullptr;
    env->state->replace([&](Replacements& own) { own.planner = std::move(made); });
    return {};
  });
}

}  // namespace pfrt::capi
