// SPDX-License-Identifier: Apache-2.0
//
// Lists the options that providers add to a session's.
#include "capi/handle/options.h"

#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/report.h"
#include "capi/handle/slots.h"
#include "core/base/provider_name.h"
#include "core/options/provider_options.h"

namespace pfrt::capi {
namespace {

Result<pfrt_env::OptionList*> option_list(pfrt_env* env, std::string_view provider) {
  for (const auto& list : env->options)
    if (list->provider == provider) return list.get();
  PFRT_ASSIGN(const ProviderSource source, env->state->provider_source(provider));
  auto list = std::make_unique<pfrt_env::OptionList>();
  list->provider = provider;
  if (source.features & PFRT_PROVIDER_OPTIONS) {
    PFRT_ASSIGN(list->rows, provider_options(*source.table, source.name));
    for (pfrt_option_info& row : list->rows) {
      list->keys.push_back(
          message("provider.", provider_word(source.name), ".", std::string(view(row.key))));
      row.key = to_c(list->keys.back());
    }
  }
  env->options.push_back(std::move(list));
  return env->options.back().get();
}

}  // namespace

pfrt_status* provider_option_count(pfrt_env* env, pfrt_string provider, size_t* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_count" : "env");
    *out = 0;
    std::lock_guard lock(env->mutex);
    PFRT_ASSIGN(const pfrt_env::OptionList* list, option_list(env, view(provider)));
    *out = list->rows.size();
    return {};
  });
}

pfrt_status* provider_option_at(pfrt_env* env, pfrt_string provider, size_t index,
                                pfrt_option_info* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_info" : "env");
    std::lock_guard lock(env->mutex);
    PFRT_ASSIGN(const pfrt_env::OptionList* list, option_list(env, view(provider)));
    if (index >= list->rows.size())
      return error(Code::kINVALID_ARGUMENT, "reading option ", index, " of ", list->rows.size(),
                   " of ", view(provider));
    return write(out, list->rows[index]);
  });
}

}  // namespace pfrt::capi
