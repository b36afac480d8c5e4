// SPDX-License-Identifier: Apache-2.0
//
// A client's own planner of the memory that runs work in. It is called from any thread, several at
// once, when a run needs a plan for dimensions that it has none for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <pyflame_rt/env.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {
namespace memory {

// A buffer to be placed.
struct MemoryItem {
  // Name of the value in the buffer, or else of the node that uses it first; may be empty.
  std::string name;
  // Size of the buffer, and the alignment of its offset.
  size_t bytes = 0, alignment = 64;
  // First and last step that use the buffer; steps of one number may run at once.
  uint32_t first_step = 0, last_step = 0;

  // Whether the two are in use at the same time, so that they may not overlap.
  bool lives_with(const MemoryItem& other) const noexcept {
    return first_step <= other.last_step && other.first_step <= last_step;
  }
};

// A question to a planner.
struct MemoryRequest {
  // The graph's name, and "host" or the provider whose device the block is on.
  std::string graph, memory;
  // Buffers to place, in no particular order.
  std::vector<MemoryItem> items;
};

// The answer of a planner.
struct MemoryPlan {
  std::vector<size_t> offsets;  // start of each item in the block
  size_t bytes = 0;             // size of the block
};

// A planner, to be derived from; override one of the two functions.
class IMemoryPlanner {
 public:
  virtual ~IMemoryPlanner() = default;
  // Returns the plan. A wrong plan fails the run with InvalidArgumentError, which names the items.
  // An exception comes out of the run as the error that it is, or as PyFlameRTError.
  virtual MemoryPlan create_plan(const MemoryRequest& request) { return CreatePlan(request); }
  // Returns the plan; create_plan calls it by default.
  virtual MemoryPlan CreatePlan(const MemoryRequest& request) {
    throw UnsupportedError("planning memory of graph '" + request.graph +
                               "': the planner overrides neither create_plan nor CreatePlan",
                           PFRT_CODE_UNSUPPORTED);
  }
};

namespace detail {

inline pfrt_code plan_with(IMemoryPlanner& planner, pfrt_memory_request& c) {
  MemoryRequest request;
  request.graph = pyflame_rt::detail::str(c.graph);
  request.memory = pyflame_rt::detail::str(c.memory);
  for (size_t i = 0; i < c.count; ++i) {
    const auto& item =
        *static_cast<const pfrt_memory_item*>(pfrt_at(c.items, c.items->struct_size, i));
    request.items.push_back({pyflame_rt::detail::str(item.name), static_cast<size_t>(item.bytes),
                             item.alignment, item.first, item.last});
  }
  const MemoryPlan plan = planner.create_plan(request);
  if (plan.offsets.size() != c.count)
    return c.fail(&c, PFRT_CODE_INVALID_ARGUMENT,
                  pyflame_rt::detail::text("it gave " + std::to_string(plan.offsets.size()) +
                                           " offsets for " + std::to_string(c.count) + " items"));
  for (size_t i = 0; i < c.count; ++i) c.offsets[i] = plan.offsets[i];
  c.bytes = plan.bytes;
  return PFRT_CODE_OK;
}

inline pfrt_memory_planner c_planner(std::shared_ptr<IMemoryPlanner> planner) {
  using Kept = std::shared_ptr<IMemoryPlanner>;
  pfrt_memory_planner c{};
  c.struct_size = sizeof(c);
  c.user = new Kept(std::move(planner));
  c.create_plan = [](void* user, pfrt_memory_request* request) -> pfrt_code {
    try {
      return plan_with(**static_cast<Kept*>(user), *request);
    } catch (const PyFlameRTError& fault) {
      pfrt_code code = fault.code();
      if (code == PFRT_CODE_OK) code = PFRT_CODE_INTERNAL;
      return request->fail(request, code, pyflame_rt::detail::text(fault.what()));
    } catch (const std::bad_alloc&) {
      return PFRT_CODE_OUT_OF_MEMORY;
    } catch (const std::exception& fault) {
      return request->fail(request, PFRT_CODE_INTERNAL, pyflame_rt::detail::text(fault.what()));
    } catch (...) {
      return PFRT_CODE_INTERNAL;
    }
  };
  c.release = [](void* user) { delete static_cast<Kept*>(user); };
  return c;
}

}  // namespace detail
}  // namespace memory

inline void Environment::set_memory_planner(std::shared_ptr<memory::IMemoryPlanner> planner) {
  if (planner == nullptr) {
    detail::check(api().env->set_memory_planner(handle(), nullptr));
    return;
  }
  const pfrt_memory_planner c = memory::detail::c_planner(std::move(planner));
  detail::check(api().env->set_memory_planner(handle(), &c));
}

}  // namespace pyflame_rt
