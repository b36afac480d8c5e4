// SPDX-License-Identifier: Apache-2.0
//
// Members of a session's handle.
#pragma once

#include <memory>
#include <vector>

#include "capi/handle/counted.h"
#include "capi/handle/info.h"
#include "capi/handle/model.h"
#include "core/session/session.h"
#include "pyflame_rt/pyflame_rt.h"

struct pfrt_session : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  pfrt_model* model_handle = nullptr;
  std::shared_ptr<pfrt::Session> session;
  std::vector<std::unique_ptr<pfrt::capi::InfoStorage>> storage;
  std::vector<pfrt_value_info> inputs, outputs;
  ~pfrt_session() { pfrt::capi::release(model_handle); }
};
