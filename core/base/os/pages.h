// SPDX-License-Identifier: Apache-2.0
//
// Memory by the page. Advice that the system does not follow changes nothing else. Thread-safe.
#pragma once

#include <cstdint>

namespace pfrt::os {

// |bytes| of zeroed memory, above 0, on large pages where the system has them; nullptr when there
// is none.
void* map_memory(uint64_t bytes);
void unmap_memory(void* data, uint64_t bytes);

// Gives the memory of the whole pages inside |data| back. Memory of map_memory is zero when touched
// again, a mapped file is read anew; any other would lose its contents.
void drop_pages(const void* data, uint64_t bytes);

// Has the C library give back what it keeps of freed memory; takes milliseconds.
void return_freed_memory();

// Lets the whole large pages inside memory that nothing was written to yet be taken at once, where
// it is large enough to gain by that.
void prefer_large_pages(void* data, uint64_t bytes);

// The most that this program has had in memory at a time; 0 where the system does not tell. (What
// getrusage says begins with what the process was before it became this program.)
uint64_t peak_resident_bytes();

}  // namespace pfrt::os
