// SPDX-License-Identifier: Apache-2.0
#include "core/session/compiled_cache.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "core/base/digest.h"
#include "core/base/os/cpu.h"
#include "core/base/os/library.h"
#include "core/cache/stored_values.h"
#include "core/pass/engine/pipeline.h"

namespace pfrt {
namespace {

// Each model has one small file here, so more of them are worth keeping. They are read rather than
// mapped, so that the bytes that are used are those that were checked.
constexpr uint64_t kModelsPerEntry = 10;

CacheLimits limits_of_models(CacheLimits limits) {
  limits.max_entries *= kModelsPerEntry;
  limits.max_bytes = 0;
  limits.use_mmap = false;
  return limits;
}

// Measurements are small, and do not grow old. They are read rather than mapped, too.
constexpr CacheLimits kTuningLimits{
    .max_bytes = 0, .max_entries = 32, .ttl_s = 0, .use_mmap = false};

std::string key_of(const ModelFile& file, std::string_view load_key) {
  Digest digest;
  digest.add(std::string_view("model"));
  digest.add(load_key);
  digest.add(file.path);
  digest.add(&file.stamp, sizeof file.stamp);
  return digest.hex();
}

// Numbers and texts of a ModelInfo, by name.
template <typename Info, typename Fn>
void each_field(Info& info, Fn fn) {
  fn("producer_name", info.producer_name);
  fn("producer_version", info.producer_version);
  fn("domain", info.domain);
  fn("description", info.description);
  fn("format", info.format);
  fn("entry", info.entry);
  fn("entries", info.entries);
  fn("model_version", info.model_version);
  fn("ir_version", info.ir_version);
  fn("node_count", info.node_count);
  fn("initializer_count", info.initializer_count);
  fn("parameter_count", info.parameter_count);
  fn("parameter_bytes", info.parameter_bytes);
}

struct PutField {
  TextPairs& out;
  void operator()(const char* name, const std::string& value) { out.emplace_back(name, value); }
  template <typename T>
  void operator()(const char* name, T value) {
    out.emplace_back(name, std::to_string(value));
  }
};

struct TakeField {
  const TextPairs& from;
  const std::string* find(const char* name) const {
    const auto at = std::ranges::find(from, name, &TextPairs::value_type::first);
    return at == from.end() ? nullptr : &at->second;
  }
  void operator()(const char* name, std::string& value) const {
    if (const std::string* text = find(name)) value = *text;
  }
  template <typename T>
  void operator()(const char* name, T& value) const {
    if (const std::string* text = find(name))
      std::from_chars(text->data(), text->data() + text->size(), value);
  }
};

// A graph without nodes that has what sessions ask of a model before they run it.
std::shared_ptr<Graph> signature_of(const Graph& graph) {
  auto signature = std::make_shared<Graph>(graph.name);
  signature->doc = graph.doc;
  signature->opsets = graph.opsets;
  signature->metadata = graph.metadata;
  signature->symbols = graph.symbols;
  const auto mirror = [&](const std::vector<ValueId>& from, std::vector<ValueId>& to) {
    for (const ValueId id : from) {
      const GraphValue& value = graph.at(id);
      const ValueId made = signature->value(value.name);
      if (value.constant) signature->set_constant(made, value.constant);
      signature->at(made).type = value.type;
      signature->at(made).declared = value.declared;
      to.push_back(made);
    }
  };
  mirror(graph.inputs, signature->inputs);
  mirror(graph.outputs, signature->outputs);
  return signature;
}

// A copy without what need not be kept, and with bodies that name the values they capture.
std::shared_ptr<const Graph> for_writing(const Graph& graph) {
  auto copy = graph.clone();
  name_captures(*copy);
  return copy;
}

template <typename Write>
Status write_pieces(const char* data, uint64_t bytes, const Write& write, const Stop& stop) {
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  for (uint64_t at = 0; at < bytes; at += kPiece) {
    if (stop) PFRT_TRY(stop());
    PFRT_TRY(write(data + at, std::min(kPiece, bytes - at)));
  }
  return {};
}

CompiledBody body_of(const CacheStore::EntryPtr& entry) {
  return {entry->body, entry->body_bytes, std::const_pointer_cast<CacheStore::Entry>(entry)};
}

}  // namespace

const std::string CompiledCache::kModel = ".model";
const std::string CompiledCache::kCompiled = ".compiled";
const std::string CompiledCache::kGraph = ".graph";
const std::string CompiledCache::kTuned = ".tuned";

const std::string& library_identity() {
  static const std::string identity = [] {
    const std::string path = os::path_of_code(reinterpret_cast<const void*>(&library_identity));
    const auto file = os::stamp_of(path);
    return message(PFRT_VERSION_TEXT, "/", file.ok() ? file->bytes : 0, "/",
                   file.ok() ? file->modified_ns : 0);
  }();
  return identity;
}

CompiledCache::CompiledCache(const std::string& folder, const CacheLimits& limits, Logger* logger,
                             const CompiledCache* former)
    : logger_(logger),
      entries_(folder, {kCompiled, kGraph}, limits, logger, former ? &former->entries_ : nullptr),
      models_(folder, {kModel}, limits_of_models(limits), logger),
      tunings_(folder, {kTuned}, kTuningLimits, logger) {}

void CompiledCache::say(const std::string& doing, const Status& why) {
  if (logger_) logger_->log(PFRT_LOG_WARNING, "cache: ", doing, ": ", why.message());
}

std::shared_ptr<Model> CompiledCache::known_model(const ModelFile& file, std::string_view load_key,
                                                  const Model::Import& import) {
  const auto entry = models_.find(key_of(file, load_key), kModel);
  if (!entry) return nullptr;
  ModelFiles files{file.mapped};
  const auto open = [&](size_t number) -> Result<std::shared_ptr<os::MappedFile>> {
    if (number == 0) return file.mapped;
    return error(Code::kINVALID_MODEL, "its inputs have no bytes of other files");
  };
  auto known = read_known(entry->head, body_of(entry), open);
  if (!known.ok()) {
    say(message("what is known of '", file.path, "' is not used"), known.status());
    return nullptr;
  }
  std::vector<ModelFile> all{file};
  for (size_t i = 1; i < known->files.size(); ++i) {
    const KnownFile& other = known->files[i];
    const auto now = os::stamp_of(other.path);
    if (!now.ok() || !(now.value() == other.stamp)) return nullptr;
    all.push_back({other.path, other.stamp, nullptr});
  }
  ModelInfo info;
  each_field(info, TakeField{known->info});
  return Model::known({std::move(known->signature), std::move(info), std::move(known->warnings),
                       std::move(known->content), std::move(all), import});
}

void CompiledCache::remember(const Model& model, std::string_view load_key,
                             const RunControl& control) {
  const std::vector<ModelFile>& files = model.files();
  if (files.empty() || !model.built_in_only()) return;
  KnownModel known;
  for (const ModelFile& file : files) {
    if (!file.mapped || !settled(file.stamp)) return;
    known.files.push_back({file.path, file.stamp});
  }
  known.content = model.content(control);
  if (known.content.empty()) return;
  known.signature = signature_of(model.signature());
  each_field(model.info(), PutField{known.info});
  known.warnings = model.warnings();
  std::vector<CompiledSection> sections;
  auto head = write_known(known, {files.front().mapped}, sections);
  Status status = head.ok() ? store(models_, key_of(files.front(), load_key), kModel,
                                    files.front().path, head.value(), sections, nullptr)
                            : head.take_status();
  if (!status.ok()) say(message("'", files.front().path, "' is not remembered"), status);
}

std::shared_ptr<const StoredModel> CompiledCache::find(const std::string& key, const Model& model,
                                                       const Remake& remake) {
  const auto entry = entries_.find(key, kCompiled);
  if (!entry) return nullptr;
  auto stored = std::make_shared<StoredModel>();
  stored->file = entry->file->health();
  auto compiled = read_compiled(
      entry->head, body_of(entry), [&](size_t number) { return model.mapped(number); }, remake);
  if (!compiled.ok()) {
    say(message("entry ", key, " of ", std::string(entry->of), " is not used and made again"),
        compiled.status());
    return nullptr;
  }
  stored->compiled = compiled.take();
  return stored;
}

void CompiledCache::put(const std::string& key, const Compiled& compiled, const Model& model,
                        const Stop& stop) {
  Compiled out = compiled;
  out.graph = for_writing(*compiled.graph);
  ModelFiles files;
  for (const ModelFile& file : model.files()) {
    out.files.push_back({file.path, file.stamp});
    if (file.mapped) files.push_back(file.mapped);
  }
  if (files.size() != model.files().size()) files.clear();  // numbers would be others
  std::vector<CompiledSection> sections;
  auto head = write_compiled(out, files, sections);
  const std::string of =
      model.files().empty() ? model.signature().name : model.files().front().path;
  Status status = head.ok() ? store(entries_, key, kCompiled, of, head.value(), sections, stop)
                            : head.take_status();
  if (!status.ok()) say(message("'", of, "' is not kept"), status);
}

Result<std::shared_ptr<Graph>> CompiledCache::graph(const std::string& key) {
  const auto entry = entries_.find(key, kGraph);
  if (!entry) return std::shared_ptr<Graph>();
  PFRT_ASSIGN(auto read, read_compiled(entry->head, body_of(entry), nullptr, nullptr));
  auto copy = read.graph->clone();
  return copy;
}

bool CompiledCache::has(const std::string& key) {
  return entries_.find(key, kGraph) || entries_.find(key, kCompiled) || tunings_.find(key, kTuned);
}

bool CompiledCache::remove(const std::string& key) {
  const bool tuned = tunings_.remove(key);
  return entries_.remove(key) || tuned;
}

std::vector<CacheStore::Info> CompiledCache::list(bool check) {
  std::vector<CacheStore::Info> out = entries_.list(check), more = tunings_.list(check);
  std::ranges::move(more, std::back_inserter(out));
  std::ranges::stable_sort(out, std::ranges::greater(), &CacheStore::Info::used_ns);
  return out;
}

std::unique_ptr<KeyValues> CompiledCache::tunings(const std::string& provider,
                                                  const std::string& identity) {
  const std::string machine = os::processor_text();
  Digest digest;
  digest.add(std::string_view("tunings"));
  digest.add(std::string_view(identity));
  digest.add(std::string_view(machine));
  return std::make_unique<StoredValues>(tunings_, digest.hex(), kTuned,
                                        message("measurements of ", provider, " on ", machine),
                                        logger_);
}

std::string CompiledCache::model_of(const std::string& key) {
  const auto entry = entries_.find(key, kCompiled);
  if (!entry) return {};
  const auto files = read_compiled_files(entry->head);
  if (!files.ok() || files->empty()) return {};
  const bool same = std::ranges::all_of(files.value(), [](const KnownFile& file) {
    const auto now = os::stamp_of(file.path);
    return now.ok() && now.value() == file.stamp;
  });
  return same ? files->front().path : std::string();
}

Status CompiledCache::put_graph(const std::string& key, const Graph& graph) {
  Compiled out;
  out.graph = for_writing(graph);
  std::vector<CompiledSection> sections;
  PFRT_ASSIGN(const std::string head, write_compiled(out, {}, sections));
  return store(entries_, key, kGraph, graph.name, head, sections, nullptr);
}

Status CompiledCache::store(CacheStore& to, const std::string& key, const std::string& suffix,
                            const std::string& of, const std::string& head,
                            const std::vector<CompiledSection>& from, const Stop& stop) {
  std::vector<CacheStore::Section> sections;
  sections.reserve(from.size());
  for (const CompiledSection& s : from)
    sections.push_back({s.offset, s.bytes, [&stop, &s](const auto& write) -> Status {
                          Tensor all;
                          all.dtype = PFRT_DTYPE_UINT8;
                          all.dims = {static_cast<int64_t>(s.buffer->bytes())};
                          all.buffer = s.buffer;
                          Status status;
                          PFRT_TRY(all.read([&](const void* data) {
                            status = write_pieces(static_cast<const char*>(data) + s.from, s.bytes,
                                                  write, stop);
                          }));
                          return status;
                        }});
  return to.put(key, suffix, of, head, sections);
}

}  // namespace pfrt
