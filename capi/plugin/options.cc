// SPDX-License-Identifier: Apache-2.0
//
// Lists the options that providers add to a session's, and importers to a load's.
#include "capi/handle/options.h"

#include <algorithm>

#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/report.h"
#include "capi/handle/slots.h"
#include "core/base/provider_name.h"
#include "core/options/provider_options.h"

namespace pfrt::capi {
namespace {

using OptionList = pfrt_env::OptionList;

// Keeps |rows| for |of|, with |prefix| before their keys.
OptionList* keep_list(pfrt_env* env, std::string of, std::vector<pfrt_option_info> rows,
                      const std::string& prefix) {
  auto list = std::make_unique<OptionList>();
  list->of = std::move(of);
  list->rows = std::move(rows);
  for (pfrt_option_info& row : list->rows) {
    list->keys.push_back(prefix + std::string(view(row.key)));
    row.key = to_c(list->keys.back());
  }
  env->options.push_back(std::move(list));
  return env->options.back().get();
}

OptionList* kept_list(pfrt_env* env, std::string_view of) {
  for (const auto& list : env->options)
    if (list->of == of) return list.get();
  return nullptr;
}

Result<OptionList*> provider_list(pfrt_env* env, std::string_view provider) {
  if (OptionList* const kept = kept_list(env, provider)) return kept;
  PFRT_ASSIGN(const ProviderSource source, env->state->provider_source(provider));
  std::vector<pfrt_option_info> rows;
  if (source.features & PFRT_PROVIDER_OPTIONS) {
    PFRT_ASSIGN(rows,
                declared_options(source.table->option_count, source.table->option_at, source.name));
  }
  return keep_list(env, std::string(provider), std::move(rows),
                   message("provider.", provider_word(source.name), "."));
}

Result<OptionList*> importer_list(pfrt_env* env, std::string_view importer) {
  const std::string of = message("import.", importer);
  if (OptionList* const kept = kept_list(env, of)) return kept;
  std::vector<std::string> names;
  for (const auto& there : env->state->plugins().importers()) {
    std::string word = there->name();
    std::ranges::transform(word, word.begin(),
                           [](unsigned char c) { return static_cast<char>(tolower(c)); });
    if (importer == there->name() || importer == word) {
      PFRT_ASSIGN(auto rows, there->options());
      return keep_list(env, of, std::move(rows), "import." + word + ".");
    }
    names.push_back(there->name());
  }
  std::string listed;
  for (const std::string& name : names) listed += message(listed.empty() ? "" : ", ", name);
  const std::string near = nearest_name(importer, names);
  return error(Code::kNOT_FOUND, "listing the options of importer '", importer,
               "': there is none of that name; there are ", listed.empty() ? "none" : listed,
               near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
}

using FindList = Result<OptionList*> (*)(pfrt_env* env, std::string_view name);

pfrt_status* count_in(FindList find, pfrt_env* env, pfrt_string name, size_t* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_count" : "env");
    *out = 0;
    std::lock_guard lock(env->mutex);
    PFRT_ASSIGN(const OptionList* list, find(env, view(name)));
    *out = list->rows.size();
    return {};
  });
}

pfrt_status* option_in(FindList find, pfrt_env* env, pfrt_string name, size_t index,
                       pfrt_option_info* out) {
  return guard([&]() -> Status {
    if (!env || !out) return null_argument(env ? "out_info" : "env");
    std::lock_guard lock(env->mutex);
    PFRT_ASSIGN(const OptionList* list, find(env, view(name)));
    if (index >= list->rows.size())
      return error(Code::kINVALID_ARGUMENT, "reading option ", index, " of ", list->rows.size(),
                   " of ", view(name));
    return write(out, list->rows[index]);
  });
}

}  // namespace

pfrt_status* provider_option_count(pfrt_env* env, pfrt_string provider, size_t* out) {
  return count_in(provider_list, env, provider, out);
}

pfrt_status* provider_option_at(pfrt_env* env, pfrt_string provider, size_t index,
                                pfrt_option_info* out) {
  return option_in(provider_list, env, provider, index, out);
}

pfrt_status* importer_option_count(pfrt_env* env, pfrt_string importer, size_t* out) {
  return count_in(importer_list, env, importer, out);
}

pfrt_status* importer_option_at(pfrt_env* env, pfrt_string importer, size_t index,
                                pfrt_option_info* out) {
  return option_in(importer_list, env, importer, index, out);
}

}  // namespace pfrt::capi
