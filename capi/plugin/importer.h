// SPDX-License-Identifier: Apache-2.0
//
// An importer plug-in as core calls it: what crosses the plug-in's table is translated here.
#pragma once

#include <memory>

#include "core/environment/plugin_source.h"
#include "plugins/loader/loader.h"

namespace pfrt::capi {

// |plugin| is of kind import and accepted.
std::shared_ptr<const Importer> importer_of(std::shared_ptr<const Plugin> plugin);

}  // namespace pfrt::capi
