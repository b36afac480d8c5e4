// SPDX-License-Identifier: Apache-2.0
module digits

go 1.19

require pyflamert v0.0.0

replace pyflamert => ../../capi/go
