// SPDX-License-Identifier: Apache-2.0
module pyflamert

go 1.19
