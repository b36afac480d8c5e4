// SPDX-License-Identifier: Apache-2.0
//
// Members of the handles of batchers and streams.
#pragma once

#include <memory>
#include <utility>

#include "capi/handle/counted.h"
#include "core/environment/environment.h"
#include "core/flow/batcher.h"
#include "core/flow/streams.h"
#include "pyflame_rt/pyflame_rt.h"

struct pfrt_batcher : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  std::shared_ptr<pfrt::Batcher> batcher;
  ~pfrt_batcher() {
    if (batcher) pfrt::Batcher::end(std::move(batcher));
  }
};

struct pfrt_streams : pfrt::capi::Counted {
  std::shared_ptr<pfrt::Environment> env;
  std::shared_ptr<pfrt::Streams> streams;
  ~pfrt_streams() {
    if (streams) pfrt::Streams::end(std::move(streams));
  }
};
