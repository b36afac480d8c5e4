// SPDX-License-Identifier: Apache-2.0
// A target that owns a precompiled header needs a source.
