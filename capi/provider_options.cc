// SPDX-License-Identifier: Apache-2.0
//
// Options that providers add to a session's: read from their tables, checked against them, listed.
#include <algorithm>
#include <cctype>

#include "capi/handles.h"

namespace pfrt::capi {

std::string provider_word(std::string_view name) {
  constexpr std::string_view kEnding = "ExecutionProvider";
  if (name.size() > kEnding.size() && name.substr(name.size() - kEnding.size()) == kEnding)
    name.remove_suffix(kEnding.size());
  std::string word(name);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

Result<std::vector<pfrt_option_info>> provider_options(const pfrt_provider_table& table,
                                                       std::string_view name) {
  std::vector<pfrt_option_info> out;
  const size_t count = table.option_count();
  for (size_t i = 0; i < count; ++i) {
    pfrt_option_info info{};
    info.struct_size = sizeof info;
    const pfrt_code code = table.option_at(i, &info);
    if (code != PFRT_CODE_OK)
      return error(static_cast<Code>(code), "listing options of ", name, ": row ", i, " failed");
    out.push_back(info);
  }
  return out;
}

Status check_option(const std::vector<pfrt_option_info>& schema, std::string_view key,
                    std::string_view name, std::string_view text) {
  std::vector<OptionRow> rows;
  std::vector<std::string> names;
  for (const pfrt_option_info& info : schema) {
    names.emplace_back(view(info.key));
    rows.push_back({view(info.key), info.type, view(info.default_value), view(info.choices), {}});
  }
  for (const OptionRow& row : rows)
    if (row.key == name) return check_text(row, key, text);
  const std::string near = nearest_name(name, names);
  return error(Code::kINVALID_ARGUMENT, "creating a session: there is no option '", key, "'",
               near.empty() ? "" : "; the nearest is '",
               near.empty() ? "" : std::string(key.substr(0, key.size() - name.size())) + near,
               near.empty() ? "" : "'");
}

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
    write(out, list->rows[index]);
    return {};
  });
}

}  // namespace pfrt::capi
