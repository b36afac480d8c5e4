// SPDX-License-Identifier: Apache-2.0
//
// The guide's name for load_model and save_model.
#pragma once

#include <pyflame_rt/model_io.hpp>
