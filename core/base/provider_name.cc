// SPDX-License-Identifier: Apache-2.0
#include "core/base/provider_name.h"

namespace pfrt {

std::string provider_word(std::string_view name) {
  std::string word(name);
  for (char& c : word)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const std::string_view ending : {"executionprovider", "provider"}) {
    if (word.size() <= ending.size() || !word.ends_with(ending)) continue;
    word.resize(word.size() - ending.size());
    break;
  }
  return word;
}

bool names_provider(std::string_view asked, std::string_view name) {
  return asked == name || provider_word(asked) == provider_word(name);
}

}  // namespace pfrt
