// SPDX-License-Identifier: Apache-2.0
//
// Parts of questions that devices and services have in common. Thread-safe.
#pragma once

#include <memory>
#include <string_view>

#include "core/environment/environment.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt::capi {

// The question of |desc| but for its provider; |doing| begins messages.
Result<Question> question_of(const pfrt_ask_desc& desc, std::string_view doing);
// The options of a call, which are of kind ASK, or |defaults| where there are none.
Result<const Options*> ask_options(const pfrt_options* options, const Options& defaults,
                                   std::string_view doing);
// A handle of |answer|, which keeps |env|.
std::unique_ptr<pfrt_reply, void (*)(pfrt_reply*)> reply_of(std::shared_ptr<Environment> env,
                                                            Answer answer);

}  // namespace pfrt::capi
