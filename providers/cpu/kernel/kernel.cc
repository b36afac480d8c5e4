// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernel/kernel.h"

#include <algorithm>

namespace pfrt::cpu {

bool Alternatives::lacks(const Parameters& parameters) const {
  return parameters != own &&
         std::ranges::find(others, parameters, &Alternative::parameters) == others.end();
}

}  // namespace pfrt::cpu
