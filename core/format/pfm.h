// SPDX-License-Identifier: Apache-2.0
//
// The .pfm file: "PFM\0", a version, the file's size, a checksum of all this and of the
// size-prefixed FlatBuffer (pfm.fbs) that follows, and 64-byte-aligned payload sections, each with
// a checksum. Files of version 1, without size and first checksum, are read too. Loading makes
// initializers views of the given bytes; only small payloads that a foreign writer left unaligned
// are copied. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/os/progress.h"
#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

using InfoList = std::vector<std::pair<std::string, std::string>>;

struct PfmModel {
  std::shared_ptr<Graph> graph;
  InfoList info;  // producer_name, model_version, ... as importers give them
  uint32_t version = 0;
};

// Whether |data| starts like a .pfm file.
bool is_pfm(const void* data, uint64_t size);

// |keep| owns |data| and is held by every initializer that is a view of it. Corrupt, truncated or
// newer files are INVALID_MODEL or UNSUPPORTED_FORMAT; a wrong checksum is DATA_LOSS, which names
// the graph or the initializer.
Result<PfmModel> load_pfm(const void* data, uint64_t size, std::shared_ptr<void> keep,
                          Progress& progress);

// Writes the file front to back through |write|.
Status save_pfm(const Graph& graph, const InfoList& info,
                const std::function<Status(const void*, uint64_t)>& write, Progress& progress);

}  // namespace pfrt
