// SPDX-License-Identifier: Apache-2.0
//
// Constants in providers' own layouts, made once and shared by every session of the environment
// while any uses them. Thread-safe; packing of different constants runs at the same time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/exec/contents.h"
#include "core/memory/staging.h"
#include "core/memory/tensor.h"
#include "core/provider/sink.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

class PackedStore {
 public:
  // The packed bytes of |constant|, made of |sources|; deferred sources stay so and are made in
  // |staging|. |key| names provider, recipe and contents. The provider reports to |sink|.
  Result<std::shared_ptr<Buffer>> get(const std::string& key, const pfrt_packed_constant& constant,
                                      const std::vector<const Tensor*>& sources, Staging& staging,
                                      Sink& sink);
  // Texts of sources, for keys.
  Contents& contents() { return contents_; }

 private:
  struct Entry {
    std::mutex mutex;
    std::weak_ptr<Buffer> buffer;
  };
  Contents contents_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
};

}  // namespace pfrt
