// SPDX-License-Identifier: Apache-2.0
//
// Puts convolutions and pools into the form with channels last, for providers that have it.
#pragma once

#include "core/pass/engine/config.h"
#include "core/pass/engine/editor.h"
#include "core/pass/engine/pass.h"

namespace pfrt {

// Exchanges Conv and MaxPool for com.microsoft's NhwcConv and NhwcMaxPool between transposes where
// the target takes them; |result| has a warning for each reason why others stay. Without
// |config.insert_transposes| only nodes that already are between such transposes.
Status put_channels_last(Editor& editor, const LayoutConfig& config, PassContext& context,
                         PassResult& result);

}  // namespace pfrt
