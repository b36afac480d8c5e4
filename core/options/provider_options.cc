// SPDX-License-Identifier: Apache-2.0
#include "core/options/provider_options.h"

#include "core/base/abi/sized.h"
#include "core/options/options.h"

namespace pfrt {

Result<std::vector<pfrt_option_info>> declared_options(size_t (*option_count)(void),
                                                       pfrt_code (*option_at)(size_t,
                                                                              pfrt_option_info*),
                                                       std::string_view name) {
  std::vector<pfrt_option_info> out;
  const size_t count = option_count();
  for (size_t i = 0; i < count; ++i) {
    pfrt_option_info info{};
    info.struct_size = sizeof info;
    const pfrt_code code = option_at(i, &info);
    if (code != PFRT_CODE_OK)
      return error(static_cast<Code>(code), "listing options of ", name, ": row ", i, " failed");
    if (info.type > PFRT_OPTION_STRINGS)
      return abi::unknown_number(message("listing options of ", name, ": row ", i), "type",
                                 info.type);
    out.push_back(info);
  }
  return out;
}

Status check_option(const std::vector<pfrt_option_info>& schema, std::string_view doing,
                    std::string_view key, std::string_view name, std::string_view text) {
  std::vector<OptionRow> rows;
  std::vector<std::string> names;
  for (const pfrt_option_info& info : schema) {
    names.emplace_back(view(info.key));
    rows.push_back({view(info.key), info.type, view(info.default_value), view(info.choices), {}});
  }
  for (const OptionRow& row : rows)
    if (row.key == name) return std::move(check_text(row, key, text).prepend(doing));
  const std::string near = nearest_name(name, names);
  std::string all;
  for (const std::string& known : names) all += message(all.empty() ? "" : ", ", known);
  return error(Code::kINVALID_ARGUMENT, doing, ": there is no option '", key, "'",
               near.empty() ? "" : "; the nearest is '",
               near.empty() ? "" : std::string(key.substr(0, key.size() - name.size())) + near,
               near.empty() ? "" : "'", "; there are ", all.empty() ? "none" : all);
}

}  // namespace pfrt
