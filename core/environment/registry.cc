// SPDX-License-Identifier: Apache-2.0
#include "core/environment/registry.h"

#include <algorithm>

#include "core/base/abi/sized.h"
#include "core/base/foreign.h"
#include "core/op/engine/lookup.h"
#include "core/provider/client_operator.h"

namespace pfrt {
namespace {

// |set| with |op| added; nothing is changed on failure.
Result<OperatorSet::Ptr> extended(const OperatorSet::Ptr& set, const pfrt_custom_op& op,
                                  const std::string& origin, std::shared_ptr<void> keep) {
  PFRT_TRY(check_registered("operator", op.abi, view(op.name)));
  PFRT_TRY(check_registered("an operator of domain", op.abi, view(op.domain)));
  PFRT_ASSIGN(auto made, ClientOperator::create(op, origin, std::move(keep)));
  return OperatorSet::with(set, std::move(made));
}

}  // namespace

Status check_registered(std::string_view what, uint32_t abi, std::string_view name) {
  if (abi != 0 && abi >> 16 != PFRT_ABI_MAJOR)
    return error(Code::kINVALID_ARGUMENT, "registering ", what, " '", name,
                 "': it was built for ABI ", abi >> 16, ".", abi & 0xffffu,
                 ", this library implements ", PFRT_ABI_MAJOR, ".", PFRT_ABI_MINOR);
  const std::string text(name);
  if (text.find('\0') == std::string::npos) return {};
  return error(Code::kINVALID_ARGUMENT, "registering ", what, " '", text.c_str(),
               "...': the name has a NUL character in it");
}

std::shared_ptr<void> lifetime(void (*release_fn)(void*), void* user,
                               std::shared_ptr<void> library) {
  return std::shared_ptr<void>(user, [release_fn, library = std::move(library)](void* u) {
    if (release_fn) call_foreign([&] { release_fn(u); });
  });
}

OperatorSet::Ptr Registry::operators() const {
  std::lock_guard lock(mutex_);
  return operators_;
}

Result<OperatorSet::Ptr> Registry::operators_for(const Graph& graph) {
  const OperatorSet::Ptr set = operators();
  // Types that the graph does not declare may be whatever an operator takes.
  const bool unknown = any_node(graph, [&](const Graph& own, const Node& node) {
    return !is_built_in(node.domain, node.op) &&
           !(set &&
             set->choose(node.domain, node.op, graph.opset(node.domain), types_of(own, node)).op);
  });
  if (!unknown) return set;
  PFRT_TRY(open_operators());
  return operators();
}

Status Registry::add_operator(const pfrt_custom_op& op, std::shared_ptr<void> keep) {
  OperatorSet::Ptr before;  // goes when the mutex is free again
  std::lock_guard lock(mutex_);
  PFRT_ASSIGN(auto after, extended(operators_, op, "the client", std::move(keep)));
  before = std::exchange(operators_, std::move(after));
  return {};
}

Status Registry::remove_operator(std::string_view domain, std::string_view name) {
  OperatorSet::Ptr before;
  std::lock_guard lock(mutex_);
  OperatorSet::Ptr after = OperatorSet::without(operators_, domain, name);
  if (!after)
    return error(Code::kNOT_FOUND, "unregistering operator '", domain.empty() ? "ai.onnx" : domain,
                 ".", name, "': no operator of that name is registered");
  before = std::exchange(operators_, std::move(after));
  return {};
}

Status Registry::open_operators() {
  const auto tables = plugins_.operators();
  OperatorSet::Ptr before;
  std::lock_guard lock(mutex_);
  for (const OperatorTable& plugin : tables) {
    if (opened_.count(plugin.path)) continue;
    OperatorSet::Ptr set = operators_;
    for (size_t i = 0; i < plugin.table->count; ++i) {
      if (!plugin.table->ops[i])
        return error(Code::kPLUGIN, "opening plug-in '", plugin.path, "': operator ", i,
                     " of its table is NULL");
      const pfrt_custom_op op = abi::known(plugin.table->ops[i]);
      auto keep = lifetime(op.release, op.user, plugin.library);
      PFRT_TRY(abi::by_plugin(abi::check(*plugin.table->ops[i]), Code::kPLUGIN)
                   .prepend(message("opening plug-in '", plugin.path, "': operator ", i)));
      PFRT_ASSIGN(set, extended(set, op, "plug-in '" + plugin.path + "'", std::move(keep)));
    }
    opened_.insert(plugin.path);
    if (!before) before = operators_;
    operators_ = std::move(set);
  }
  return {};
}

Status Registry::open_passes() {
  const auto known = [&] {
    std::lock_guard lock(mutex_);
    return opened_;
  };
  PFRT_ASSIGN(const std::vector<PassTable> tables, plugins_.passes(known()));
  std::lock_guard lock(mutex_);
  for (const PassTable& plugin : tables) {
    if (opened_.count(plugin.path)) continue;
    std::vector<std::shared_ptr<const ClientPass>> all = passes_;
    for (size_t i = 0; i < plugin.passes.size(); ++i) {
      const auto& pass = plugin.passes[i];
      if (std::ranges::any_of(all, [&](const auto& p) { return p->name == pass->name; }))
        return error(Code::kPLUGIN, "opening plug-in '", plugin.path, "': pass ", i, " '",
                     pass->name, "' has the name of another");
      all.push_back(pass);
    }
    opened_.insert(plugin.path);
    passes_ = std::move(all);
  }
  return {};
}

Status Registry::add_provider(ProviderSource source) {
  const auto plugin = plugins_.provider(source.name);
  std::lock_guard lock(mutex_);
  const bool registered =
      std::ranges::any_of(providers_, [&](const auto& p) { return p->name == source.name; });
  if (registered || plugin.ok())
    return error(Code::kINVALID_ARGUMENT, "registering provider '", source.name,
                 "' of the client: that name is taken by ",
                 registered ? "a provider that the client registered before"
                            : "plug-in '" + plugin.value().path + "'");
  providers_.push_back(std::make_shared<const ProviderSource>(std::move(source)));
  return {};
}

std::vector<std::shared_ptr<const ProviderSource>> Registry::providers() const {
  std::lock_guard lock(mutex_);
  return providers_;
}

Status Registry::add_pass(std::shared_ptr<const ClientPass> pass, std::string_view after) {
  std::lock_guard lock(mutex_);
  const auto named = [&](std::string_view name) {
    return std::ranges::find_if(passes_, [&](const auto& p) { return p->name == name; });
  };
  if (named(pass->name) != passes_.end())
    return error(Code::kINVALID_ARGUMENT, "registering pass '", pass->name,
                 "': a pass of that name is registered");
  auto place = passes_.end();
  if (!after.empty()) {
    place = named(after);
    if (place == passes_.end())
      return error(Code::kNOT_FOUND, "registering pass '", pass->name, "' after '", after,
                   "': no pass of that name is registered");
    ++place;
  }
  passes_.insert(place, std::move(pass));
  return {};
}

std::vector<std::shared_ptr<const ClientPass>> Registry::passes() const {
  std::lock_guard lock(mutex_);
  return passes_;
}

}  // namespace pfrt
