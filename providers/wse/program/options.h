// SPDX-License-Identifier: Apache-2.0
//
// Settings that a session may ask of the wafer: the provider's options, read once when it is
// opened.
#pragma once

#include <span>
#include <string>

#include "providers/wse/place/placement.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::wse {

struct Settings {
  Target target;
  bool timing_only = false;  // runs that ask for values are refused
  std::string text;          // all that answers depend on, for the fingerprint
};

// The machine of |device| ("wse2") with |options| by key. Fails with the option that is wrong.
Result<Settings> read_settings(std::string_view device, const pfrt_key_value* options,
                               size_t count);
std::span<const pfrt_option_info> option_list();

// "3x4": two sizes of 1 or more; false where |text| is something else.
bool read_sizes(std::string_view text, int64_t* columns, int64_t* rows);
Result<Arithmetic> read_arithmetic(std::string_view text);

}  // namespace pfrt::wse
