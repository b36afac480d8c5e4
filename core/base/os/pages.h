// SPDX-License-Identifier: Apache-2.0
//
// Memory by the page. Advice that the system does not follow changes nothing else. Thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::os {

// Maps |bytes| of zeroed memory, above 0, on large pages where the system has them; nullptr when
// there is none.
void* map_memory(uint64_t bytes);
void unmap_memory(void* data, uint64_t bytes);

// Gives back the memory of the pages wholly inside |data|. Memory of map_memory is zero when
// touched again, and a mapped file is read anew; other memory would lose its contents.
void drop_pages(const void* data, uint64_t bytes);

// Makes the C library give back what it keeps of freed memory; takes milliseconds.
void return_freed_memory();

// Lets the large pages wholly inside memory that was not written to yet be taken at once, where it
// is large enough to gain by that.
void prefer_large_pages(void* data, uint64_t bytes);

// The most bytes that this program has had in memory at a time; 0 where the system does not tell.
// (The number of getrusage includes the process before it became this program.)
uint64_t peak_resident_bytes();

}  // namespace pfrt::os
