// SPDX-License-Identifier: Apache-2.0
//
// Files that people give by mistake where a model is wanted, told by their content.
#pragma once

#include <cstdint>
#include <string>

namespace pfrt {

// What the |size| bytes at |data| are, and the way from there to a model, as the end of a sentence
// that begins with the file's name; empty where that is not known. Reads only the beginning, the
// end and, of a ZIP archive, the directory, whatever these contain. Pure; thread-safe.
std::string foreign_file(const void* data, uint64_t size);

}  // namespace pfrt
