// SPDX-License-Identifier: Apache-2.0
//
// Names of execution providers, as people write them: "CPUExecutionProvider", "CPUProvider", "CPU"
// and "cpu" are one. Pure.
#pragma once

#include <string>
#include <string_view>

namespace pfrt {

// The part that these forms share: "cpu".
std::string provider_word(std::string_view name);

// Whether |asked| may stand for the provider |name|. A provider of exactly that name is preferred.
bool names_provider(std::string_view asked, std::string_view name);

// The index in |items| of the provider that |asked| stands for, or their number where there is
// none. |name_of(item)| gives an item's name.
template <typename Items, typename NameOf>
size_t find_provider(const Items& items, std::string_view asked, const NameOf& name_of) {
  size_t found = items.size();
  for (size_t i = 0; i < items.size(); ++i) {
    if (name_of(items[i]) == asked) return i;
    if (found == items.size() && names_provider(asked, name_of(items[i]))) found = i;
  }
  return found;
}

}  // namespace pfrt
