// SPDX-License-Identifier: Apache-2.0
//
// Contents of the cache of compiled models, as bytes: a head of FlatBuffers (compiled.fbs) and
// sections. A KnownModel describes a model without reading it; a Compiled is a graph after the
// passes, with its constants and those that providers have packed. Constants whose bytes are in a
// file of the model's stay there, except those that runs read and could not map, since their
// elements are not aligned. Constants that passes have computed and only packing has read are not
// stored; they are computed again where something else reads them. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/os/file.h"
#include "core/base/status.h"
#include "core/ir/graph.h"

namespace pfrt {

using Texts = std::vector<std::string>;
using TextPairs = std::vector<std::pair<std::string, std::string>>;
using ModelFiles = std::vector<std::shared_ptr<os::MappedFile>>;

// A section of an entry's body: |bytes| at |offset|, copied from |buffer| at |from|.
struct CompiledSection {
  uint64_t offset = 0, bytes = 0;
  std::shared_ptr<Buffer> buffer;
  uint64_t from = 0;
};

struct KnownFile {
  std::string path;  // of the model for the first; of others as the model names them
  os::FileStamp stamp;
};

struct KnownModel {
  std::vector<KnownFile> files;
  std::string content;          // a digest of all their bytes
  std::shared_ptr<Graph> face;  // without nodes: inputs, outputs and descriptions
  TextPairs info;
  Texts warnings;
};

struct CompiledReport {
  std::string name;
  uint64_t nodes_before = 0, nodes_after = 0;
  TextPairs rules;
  Texts warnings;
};

struct Compiled {
  std::shared_ptr<const Graph> graph;
  std::vector<CompiledReport> reports;
  Texts notes;
  std::vector<std::pair<uint64_t, std::string>> precisions;  // by node id; empty = one for all
  std::map<std::string, std::shared_ptr<Buffer>> packed;
  // For writing: identities of the buffers that |packed| is made of.
  std::set<const void*> packed_from;
  std::vector<KnownFile> files;  // of the model
};

// Write the head, and append to |sections| the parts of the body it needs. |files| are the model's.
Result<std::string> write_known(const KnownModel& model, const ModelFiles& files,
                                std::vector<CompiledSection>& sections);
Result<std::string> write_compiled(const Compiled& compiled, const ModelFiles& files,
                                   std::vector<CompiledSection>& sections);

// An entry's body, and the owner of its bytes.
struct CompiledBody {
  const char* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<void> keep;
};

// Results are views of |body| and of the model's files, which |open| maps by number when they are
// needed. INVALID_MODEL where the bytes are not of this form.
using OpenFile = std::function<Result<std::shared_ptr<os::MappedFile>>(size_t number)>;
// Writes the bytes of the graph's initializer |name|, computed again, to |out|. May throw
// std::bad_alloc.
using Remake = std::function<void(const std::string& name, uint64_t bytes, void* out)>;
Result<KnownModel> read_known(std::string_view head, const CompiledBody& body,
                              const OpenFile& open);
Result<Compiled> read_compiled(std::string_view head, const CompiledBody& body,
                               const OpenFile& open, const Remake& remake);

// Reads Compiled::files alone.
Result<std::vector<KnownFile>> read_compiled_files(std::string_view head);

}  // namespace pfrt
