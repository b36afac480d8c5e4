// SPDX-License-Identifier: Apache-2.0
//
// A case as the snapshot, region and shapes that a host passes, in memory that the plug-in may only
// read and, between calls, not even that. Lives as long as what was compiled from it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "cxxapi/cli/check_plugin/ages.h"
#include "cxxapi/cli/check_plugin/cases.h"

namespace cli::check {

class HostSnapshot {
 public:
  // Makes dimensions symbolic in which |c| and |other| differ; |other| may be null.
  HostSnapshot(const Case& c, const Case* other, Age age);

  const pfrt_snapshot* get() const { return snapshot_->get(); }
  const pfrt_region* region() const { return region_->get(); }
  const void* constant(uint32_t value) const;  // null when the value is no constant
  size_t constant_bytes(uint32_t value) const;
  // Takes the arrays away from the plug-in; only the data of constants stay.
  void end_call();

 private:
  Guarded* lend(const void* data, size_t bytes, size_t alignment, const std::string& label);
  template <typename T>
  const T* array(const std::vector<T>& from, const std::string& label);
  // Copies the elements of an array of structs, as far apart as in a host of this age.
  template <typename T>
  const T* strided(const std::vector<T>& elements, const std::string& label);
  pfrt_string text(const std::string& s);
  pfrt_snapshot_value value(const CaseValue& from, const CaseValue* other,
                            const Guarded** constant);
  pfrt_snapshot_node node(const CaseNode& from, uint32_t id);
  void make_region(const Case& c, Age age);

  size_t more_;                    // bytes of a newer host's structs that this build does not know
  std::deque<Guarded> lent_;       // freed by end_call
  std::deque<Guarded> constants_;  // kept after it
  std::vector<const Guarded*> constant_of_;
  std::unique_ptr<Sized<pfrt_snapshot>> snapshot_;
  std::unique_ptr<Sized<pfrt_region>> region_;
};

// Returns the dimensions of each value of |c| that differ in |other|; null for other values.
std::vector<const int64_t*> varying_dims(const Case& c, const Case& other);

// The dimensions of |c| for specialise, or a range from those of |least| to those of |c|.
class HostShapes {
 public:
  HostShapes(const Case& c, Age age, const Case* least = nullptr);
  const pfrt_shapes* get() const { return shapes_->get(); }

 private:
  std::vector<int32_t> ranks_;
  std::vector<std::vector<int64_t>> dims_;
  std::vector<const int64_t*> pointers_, least_;
  std::unique_ptr<Sized<pfrt_shapes>> shapes_;
};

}  // namespace cli::check
