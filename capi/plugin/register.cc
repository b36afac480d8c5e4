// SPDX-License-Identifier: Apache-2.0
//
// Registration of a client's operators, providers and passes with an environment (custom.h).
#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/slots.h"
#include "capi/plugin/client_pass.h"
#include "plugins/loader/loader.h"

namespace pfrt::capi {

pfrt_status* register_operator(pfrt_env* env, const pfrt_custom_op* op) {
  // Released on every failure, after all locks are given up.
  std::shared_ptr<void> keep;
  return guard([&]() -> Status {
    if (!op) return null_argument("op");
    const pfrt_custom_op given = abi::known(op);
    keep = lifetime(given.release, given.user);
    PFRT_TRY(abi::check(*op));
    if (!env) return null_argument("env");
    return env->state->registry().add_operator(given, keep);
  });
}

pfrt_status* unregister_operator(pfrt_env* env, pfrt_string domain, pfrt_string name) {
  return guard([&]() -> Status {
    if (!env) return null_argument("env");
    return env->state->registry().remove_operator(view(domain), view(name));
  });
}

pfrt_status* custom_operator_count(pfrt_env* env, size_t* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_count" : "env");
    *out = 0;
    PFRT_TRY(env->state->registry().open_operators());
    if (const auto set = env->state->registry().operators()) *out = set->all().size();
    return {};
  });
}

pfrt_status* custom_operator_at(pfrt_env* env, size_t index, pfrt_operator_info* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_info" : "env");
    const auto set = env->state->registry().operators();
    const size_t count = set ? set->all().size() : 0;
    if (index >= count)
      return error(Code::kINVALID_ARGUMENT, "registered operator ", index, " of ", count);
    const CustomOperator& op = *set->all()[index];
    const OperatorDef& row = op.row();
    pfrt_operator_info info{};
    info.since = static_cast<uint32_t>(row.since);
    info.until = static_cast<uint32_t>(row.until);
    info.op = to_c(row.name);
    info.domain = to_c(row.domain);
    info.runs_in = to_c("host");
    if (op.types() != OperatorTypes()) info.types = to_c(op.types_text());
    return write(out, info);
  });
}

pfrt_status* register_provider(pfrt_env* env, const pfrt_client_provider* provider) {
  std::shared_ptr<void> keep;
  return guard([&]() -> Status {
    if (!provider) return null_argument("provider");
    const pfrt_client_provider given = abi::known(provider);
    keep = lifetime(given.release, given.user);
    PFRT_TRY(abi::check(*provider));
    if (!env) return null_argument("env");
    PFRT_TRY(check_registered("provider", given.abi, view(given.name)));
    ProviderSource source;
    source.name = view(given.name);
    if (source.name.empty() || !given.table)
      return error(Code::kINVALID_ARGUMENT, "registering provider '", source.name, "': it has no ",
                   given.table ? "name" : "table");
    if (const uint64_t bits = unknown_features(PFRT_PLUGIN_PROVIDER, given.features))
      return abi::unknown_flags("pfrt_client_provider", bits);
    const std::string fault = provider_table_fault(*given.table, given.features, given.open);
    if (!fault.empty())
      return error(Code::kINVALID_ARGUMENT, "registering provider '", source.name, "': ", fault);
    const std::string_view devices = view(given.table->devices);
    source.device = devices.substr(0, devices.find(','));
    source.table = given.table;
    source.features = given.features;
    source.open = given.open;
    source.user = given.user;
    source.library = keep;
    return env->state->registry().add_provider(std::move(source));
  });
}

pfrt_status* register_pass(pfrt_env* env, const pfrt_custom_pass* pass) {
  std::shared_ptr<void> keep;
  return guard([&]() -> Status {
    if (!pass) return null_argument("pass");
    const pfrt_custom_pass given = abi::known(pass);
    keep = lifetime(given.release, given.user);
    PFRT_TRY(abi::check(*pass));
    if (!env) return null_argument("env");
    PFRT_ASSIGN(auto made, client_pass(given, keep, env->state->logger(), "registering"));
    return env->state->registry().add_pass(std::move(made), view(given.after));
  });
}

}  // namespace pfrt::capi
