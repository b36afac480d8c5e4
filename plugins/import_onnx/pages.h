// SPDX-License-Identifier: Apache-2.0
//
// Copying out of a mapped file without keeping the file's pages in memory. Pure functions;
// thread-safe.
#pragma once

#include <cstddef>

namespace pfrt::onnx {

// Lets the whole pages inside [data, data + size) leave memory. They must belong to a read-only
// file mapping, from which they come back when touched again.
void drop_mapped_pages(const void* data, size_t size);

}  // namespace pfrt::onnx
