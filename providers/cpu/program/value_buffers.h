// SPDX-License-Identifier: Apache-2.0
//
// The buffers of a program, and which of them each value of the region lies in. A value gets its
// buffer when it is first asked for; where nodes only rename, divide or join values, these lie in
// one another's buffers (kernel/in_place.h). Not thread-safe. Must not outlive executable and
// shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "providers/cpu/compile/executable.h"

namespace pfrt::cpu {

class ValueBuffers {
 public:
  ValueBuffers(const Executable& executable, const pfrt_shapes& shapes);

  // The dimensions of a value by the signature; nullopt when only the run can tell.
  std::optional<std::span<const int64_t>> dims(uint32_t value) const;
  int64_t elements(uint32_t value) const;  // -1 when unknown
  uint64_t bytes(uint32_t value) const;    // PFRT_BYTES_UNKNOWN when unknown

  uint32_t of(uint32_t value);  // PFRT_NO_INDEX for PFRT_NO_INDEX
  // PFRT_NO_INDEX where nobody has asked for it.
  uint32_t known(uint32_t value) const { return of_[value]; }
  uint32_t add(const Home& home, uint64_t bytes);
  uint32_t add_temporary(uint64_t bytes) { return add({PFRT_BUFFER_TEMP, 0}, bytes); }
  const std::vector<pfrt_buffer>& list() const { return buffers_; }

  // The following are false, and change nothing, where values have to stay where they are.

  // Lets output 0 live in input 0's buffer, where nothing but the name changes.
  bool rename(const SnapshotNode& node);
  // Lets the outputs live in input 0's buffer.
  bool outputs_in_input(const SnapshotNode& node, const std::vector<uint64_t>& offsets);
  // Lets the inputs live in output 0's buffer from the start. Inputs that cannot are added to
  // |copies|, to be copied there; with |no_copies| there must be none.
  struct Copies {
    std::vector<uint32_t> from, to;
    std::vector<uint64_t> bytes;
  };
  bool inputs_in_output(const SnapshotNode& node, const std::vector<uint64_t>& offsets,
                        bool no_copies, Copies& copies);

  // The buffers at the end, a sub-buffer of a sub-buffer as one of the buffer that holds both.
  std::vector<pfrt_buffer> take();

 private:
  bool is_temporary(uint32_t value) const {
    return executable_.home(value).kind == PFRT_BUFFER_TEMP;
  }
  void make_sub_buffer(uint32_t buffer, uint32_t whole, uint64_t offset);

  const Executable& executable_;
  const SnapshotCopy& snapshot_;
  const pfrt_shapes& shapes_;
  std::vector<pfrt_buffer> buffers_;
  std::vector<uint32_t> of_;  // by value; PFRT_NO_INDEX until it is asked for
};

}  // namespace pfrt::cpu
