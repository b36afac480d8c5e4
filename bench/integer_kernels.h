// SPDX-License-Identifier: Apache-2.0
//
// The tables that kernels.cc prints at precision int8.
#pragma once

namespace bench {

class Dnn;
struct Settings;

// Prints the tables that |settings| asks for.
void integer_kernels(const Settings& settings, Dnn& dnn);

}  // namespace bench
