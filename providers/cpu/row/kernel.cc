// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/row/kernel.h"

namespace pfrt::cpu {

void add_change(std::string& text, std::string_view what, int64_t from, int64_t to) {
  if (from != to) text += message(text.empty() ? "" : ", ", what, " ", from, " -> ", to);
}

}  // namespace pfrt::cpu
