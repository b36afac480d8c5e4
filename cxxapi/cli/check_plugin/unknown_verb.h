// SPDX-License-Identifier: Apache-2.0
//
// A question with a verb that no plug-in knows, to a provider's device or a service.
#pragma once

#include <functional>

#include "cxxapi/cli/check_plugin/host_sink.h"

namespace cli::check {

// Holds that |ask| answers UNSUPPORTED, with a message.
void expect_unknown_verb(Trial& trial, Age age,
                         const std::function<pfrt_code(const pfrt_question*, const pfrt_answer*,
                                                       const pfrt_sink*)>& ask);

}  // namespace cli::check
