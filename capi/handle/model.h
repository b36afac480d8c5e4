// SPDX-License-Identifier: Apache-2.0
//
// Members of a model's handle.
#pragma once

#include <memory>

#include "capi/handle/counted.h"
#include "core/model/model.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {
class Environment;
}

struct pfrt_model : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  std::shared_ptr<const pfrt::Model> model;
};
