// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/environment/import.h"
#include "core/session/declared_pairs.h"

namespace pfrt {

Result<ImportCall::Bytes> ImportCall::open_beside(std::string_view location) {
  if (source_.read_beside) {
    reads_beside = true;
    PFRT_ASSIGN(const auto bytes, source_.read_beside(location, progress_));
    return Bytes{bytes, bytes->data(), bytes->bytes()};
  }
  if (source_.path.empty())
    return error(Code::kUNSUPPORTED, "opening external data '", location,
                 "': the model was given as memory, so it has no folder; load it from its file");
  PFRT_ASSIGN(const auto file,
              os::MappedFile::open_beside(source_.path, std::string(location), confine_,
                                          environment_.guard_mapped_files()));
  if (file->health()) files.push_back(file->health());
  model_files.push_back({file->path(), file->stamp(), file});
  return Bytes{file, file->data(), file->size()};
}

Result<size_t> ImportCall::choose_entry(std::vector<std::string> names) {
  attempt.entries = std::move(names);
  const auto& all = attempt.entries;
  if (all.empty())
    return error(Code::kPLUGIN, "choosing an entry: the importer names none; it has to name one");
  attempt.entry = 0;
  if (entry.empty()) return attempt.entry;
  const auto at = std::ranges::find(all, entry);
  if (at != all.end()) return attempt.entry = static_cast<size_t>(at - all.begin());
  std::string listed;
  for (const std::string& name : all) listed += message(listed.empty() ? "" : ", ", name);
  const std::string near = nearest_name(entry, all);
  return error(Code::kINVALID_ARGUMENT, "the file has no entry '", entry, "'; it has ", listed,
               near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
}

Status ImportCall::add_state(Graph& graph, const pfrt_state_pair& pair) {
  PFRT_TRY(declare_pair(graph, pair));
  attempt.pairs.emplace_back(view(pair.input), view(pair.output));
  return {};
}

}  // namespace pfrt
