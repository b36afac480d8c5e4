// SPDX-License-Identifier: Apache-2.0
#include "core/model/model.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/base/digest.h"
#include "core/base/lock.h"
#include "core/base/os/pages.h"
#include "core/ir/graph_counts.h"
#include "core/ir/verify.h"
#include "core/op/engine/canonicalise.h"
#include "core/op/engine/check_operators.h"
#include "core/op/engine/lookup.h"
#include "core/op/engine/operator_def.h"
#include "core/op/engine/operator_set.h"

namespace pfrt {
namespace {

constexpr double kCheckUntil = 0.95;  // of a load's progress
// The canonical form of a larger graph is made again for the next session rather than kept.
constexpr size_t kKeptNodes = 100'000;

// Declared types stay where inference knows nothing.
void copy_type(const Type& from, Type& to, const SymbolTable& symbols) {
  const Type declared = std::exchange(to, from);
  if (!declared.has_shape || declared.kind != from.kind) return;
  if (!to.has_shape) {
    to.has_shape = true;
    to.shape = declared.shape;
  }
  if (declared.shape.size() != to.shape.size()) return;
  for (size_t i = 0; i < to.shape.size(); ++i)
    if (to.shape[i].unknown() || (declared.shape[i].symbolic() &&
                                  symbols.given_name(to.shape[i]).empty() && !to.shape[i].known()))
      to.shape[i] = declared.shape[i];
}

void copy_types(const Graph& from, Graph& to) {
  const std::unordered_set<ValueId> inputs(to.inputs.begin(), to.inputs.end());
  for (ValueId id = 0; id < to.value_count(); ++id) {
    const ValueId other = from.find(to.at(id).name);
    if (other != kNoId && from.at(other).type.kind != PFRT_VALUE_UNSET && !to.at(id).constant &&
        !inputs.count(id))
      copy_type(from.at(other).type, to.at(id).type, *to.symbols);
  }
}

// |graph| for any values fed in place of its defaults; null where it has none, or no canonical form
// without them.
std::shared_ptr<const Graph> without_defaults(const Graph& graph, const OperatorSet::Ptr& operators,
                                              const Progress& progress) {
  const auto has_default = [&](ValueId id) { return graph.at(id).constant != nullptr; };
  if (std::ranges::none_of(graph.inputs, has_default)) return nullptr;
  std::shared_ptr<Graph> open = graph.clone();
  for (const ValueId id : open->inputs) open->make_fed(id);
  auto made = make_canonical(std::move(open), operators, &progress);
  return made.ok() ? made.take() : nullptr;
}

bool is_word(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
  };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == ' ' || c == ':';
  });
}

std::string text_of(const Contradicted& contradicted) {
  if (contradicted.count == 1)
    return "a declared type is not what the graph makes and is ignored: " + contradicted.first;
  return message(contradicted.count,
                 " declared types are not what the graph makes and are ignored; the first: ",
                 contradicted.first);
}

void collect_file(const Tensor& tensor, Model::Files& files) {
  if (!tensor.buffer || tensor.buffer->owned()) return;
  auto file = os::health_of(tensor.origin());
  if (!file) return;
  auto& list = tensor.deferred() ? files.copied : files.viewed;
  if (std::find(list.begin(), list.end(), file) == list.end()) list.push_back(std::move(file));
}

// The files that constants of the graph and its bodies are mapped from.
void collect_files(const Graph& graph, Model::Files& files) {
  const auto add = [&](const ValuePtr& value) {
    if (!value) return;
    collect_file(value->tensor, files);
    collect_file(value->indices, files);
  };
  for (ValueId id : graph.initializers()) add(graph.at(id).constant);
  for (NodeId id : graph.node_ids()) {
    for (const Attribute& a : graph.node(id)->attrs) {
      add(a.tensor);
      for (const ValuePtr& value : a.tensors) add(value);
      if (a.graph) collect_files(*a.graph, files);
      for (const auto& body : a.graphs) collect_files(*body, files);
    }
  }
}

}  // namespace

void default_opsets(Graph& graph) {
  for (NodeId id : graph.node_ids()) {
    const Node& node = *graph.node(id);
    const std::string domain = node.domain == "ai.onnx" ? "" : node.domain;
    const OperatorDef* row = find_operator(graph, node, 0);
    const int64_t opset = newest_opset(domain) ? newest_opset(domain) : row ? row->since : 0;
    if (graph.opset(domain) == 0 && opset > 0) graph.opsets[domain] = opset;
    for (const Attribute& a : node.attrs) {
      if (a.graph) default_opsets(*a.graph);
      for (const auto& g : a.graphs) default_opsets(*g);
    }
  }
  if (graph.opsets.empty()) graph.opsets[""] = newest_opset("");
}

// A name that is no word, such as "4" or "a+b", is quoted, since texts of expressions consist of
// such signs: an input named "N+1" need not be one longer than N.
void number_dims(Graph& graph) {
  for (ValueId id : graph.inputs)
    for (Dim& dim : graph.at(id).type.shape) {
      if (dim.unknown()) dim = graph.symbols->fresh();
      if (dim.known()) continue;
      const std::string name = graph.symbols->name(dim.symbol());
      if (is_word(name) || graph.symbols->settled(dim)) continue;
      const bool quotable = name.find_first_of("?'(") == name.npos;
      dim = quotable ? graph.symbols->quoted(name) : graph.symbols->fresh();
    }
}

Result<std::shared_ptr<const Graph>> make_canonical(std::shared_ptr<Graph> graph,
                                                    const OperatorSet::Ptr& operators,
                                                    const Progress* progress,
                                                    Contradicted* contradicted) {
  use_operators(*graph, operators);
  PFRT_TRY(check_operators(*graph));
  number_dims(*graph);
  CanonicaliseWatch watch;
  watch.progress = progress;
  watch.contradicted = contradicted;
  PFRT_TRY(canonicalise(*graph, watch));
  return std::shared_ptr<const Graph>(std::move(graph));
}

Result<std::shared_ptr<Model>> Model::create(std::shared_ptr<Graph> graph, ModelInfo info,
                                             bool validate, bool infer_shapes,
                                             std::vector<std::string> warnings, Progress& progress,
                                             const OperatorSet::Ptr& operators) {
  auto model = std::shared_ptr<Model>(new Model);
  PFRT_TRY(progress.stage("check", kCheckUntil));
  use_operators(*graph, operators);
  default_opsets(*graph);
  graph->captures.clear();  // a model stands alone: what a body took from around it is missing
  PFRT_TRY(graph->bind_captures());
  if (validate) {
    PFRT_TRY(verify(*graph));
  } else {
    PFRT_TRY([&] {  // the planner needs an order in any case
      auto order = graph->topological_order();
      return order.ok() ? Status() : order.take_status();
    }());
  }
  model->graph_ = std::move(graph);
  model->info_ = std::move(info);
  model->warnings_ = std::move(warnings);
  const Graph& g = *model->graph_;
  model->built_in_only_ = !any_node(g, [](const Node& n) { return !is_built_in(n.domain, n.op); });
  const GraphCounts counts = count(g);
  model->info_.node_count = counts.nodes;
  model->info_.initializer_count = counts.initializers;
  model->info_.parameter_count = counts.parameters;
  model->info_.parameter_bytes = counts.parameter_bytes;
  collect_files(g, model->files_);
  if (infer_shapes) {
    PFRT_TRY(progress.stage("infer shapes", 1.0));
    if (auto canonical = model->canonical(operators, progress); canonical.ok()) {
      const auto open = without_defaults(*model->graph_, operators, progress);
      copy_types(open ? *open : *canonical.value(), *model->graph_);
      if (!model->contradicted_.empty()) model->warnings_.push_back(model->contradicted_);
    } else if (progress.stopped()) {
      return canonical.take_status();
    } else {
      model->warnings_.push_back("shapes of inner values are not known: " +
                                 canonical.status().message());
    }
  }
  model->loaded_ = true;
  PFRT_TRY(model->intact(true));
  PFRT_TRY(progress.stage("done", 1.0));
  model->load_stages_ = progress.stages();
  return model;
}

std::shared_ptr<Model> Model::known(Known known) {
  auto model = std::shared_ptr<Model>(new Model);
  model->graph_ = std::move(known.face);
  model->info_ = std::move(known.info);
  model->warnings_ = std::move(known.warnings);
  model->files_of_ = std::move(known.files);
  model->content_ = std::move(known.content);
  model->content_tried_ = true;
  model->import_ = std::move(known.import);
  model->loaded_ = true;
  return model;
}

Result<const Model*> Model::whole(const Progress& progress) const {
  if (!import_) return this;
  const auto lock = lock_unless(importing_, [&] { return progress.stopped(); });
  if (!lock.owns_lock()) return progress.stop();
  if (!whole_) {
    Progress own = progress;
    PFRT_ASSIGN(whole_, import_(own));
  }
  return whole_.get();
}

void Model::set_files(std::vector<ModelFile> files, std::string load_key) {
  files_of_ = std::move(files);
  load_key_ = std::move(load_key);
}

void Model::set_memory(const void* data, uint64_t bytes, std::string_view load_key) {
  Digest digest;
  digest.add(std::string_view("memory"));
  digest.add(load_key);
  digest.add(data, bytes);
  content_ = digest.hex();
  content_tried_ = true;
}

std::string Model::content(const RunControl& control) const {
  const auto lock = lock_unless(files_mutex_, [&] { return control.stop() != Code::kOK; });
  if (!lock.owns_lock()) return {};
  if (content_tried_ || files_of_.empty()) return content_;
  auto content = content_of_files(control);
  if (content.ok()) content_ = content.take();
  content_tried_ = control.stop() == Code::kOK;
  return content_;
}

// The digest is made of hashes of pieces, which threads compute.
Result<std::string> Model::content_of_files(const RunControl& control) const {
  constexpr uint64_t kPiece = uint64_t{4} << 20;
  struct Piece {
    const os::MappedFile* file;
    uint64_t at, bytes;
    Blake3::Hash hash;
  };
  struct Work {
    const RunControl& control;
    std::vector<Piece> pieces;
  } work{control, {}};
  Digest digest;
  digest.add(load_key_);
  for (const ModelFile& file : files_of_) {
    const uint64_t bytes = file.mapped->size();
    digest.add(&bytes, sizeof bytes);
    for (uint64_t at = 0; at < bytes; at += kPiece)
      work.pieces.push_back({file.mapped.get(), at, std::min(kPiece, bytes - at), {}});
  }
  const auto body = [](void* arg, uint64_t i, uint32_t) {
    Work& all = *static_cast<Work*>(arg);
    if (all.control.stop() != Code::kOK) return;
    Piece& piece = all.pieces[i];
    const char* const data = static_cast<const char*>(piece.file->data()) + piece.at;
    Blake3 hash;
    hash.add(data, piece.bytes);
    piece.hash = hash.hash();
    if (piece.file->health()) os::drop_pages(data, piece.bytes);
  };
  control.loop(control.width, work.pieces.size(), body, &work);
  PFRT_TRY(control.stopped());
  for (const ModelFile& file : files_of_)
    if (file.mapped->health() && file.mapped->health()->check())
      return file.mapped->health()->status();
  for (const Piece& piece : work.pieces) digest.add(piece.hash.data(), piece.hash.size());
  return digest.hex();
}

Result<std::shared_ptr<os::MappedFile>> Model::mapped(size_t number) const {
  const std::lock_guard lock(files_mutex_);
  if (number >= files_of_.size())
    return error(Code::kINVALID_MODEL, "the model has no file ", number);
  ModelFile& file = files_of_[number];
  if (!file.mapped) {
    PFRT_ASSIGN(auto opened,
                os::MappedFile::open(file.path, files_of_.front().mapped->health() != nullptr));
    if (!(opened->stamp() == file.stamp))
      return error(Code::kDATA_LOSS, "file '", file.path, "' is another than it was");
    file.mapped = std::move(opened);
  }
  return file.mapped;
}

Status Model::intact(bool ask) const {
  for (const auto& file : files_.viewed)
    if (ask ? file->check() : file->lost()) return file->status();
  for (const auto& file : files_.copied)
    if (file->lost()) return file->status();
  if (!import_) return {};
  const std::lock_guard lock(files_mutex_);
  for (const ModelFile& file : files_of_) {
    if (!file.mapped || !file.mapped->health()) continue;
    os::FileHealth& health = *file.mapped->health();
    if (ask ? health.check() : health.lost()) return health.status();
  }
  return {};
}

Result<std::shared_ptr<const Graph>> Model::canonical(const OperatorSet::Ptr& operators,
                                                      const Progress& progress) const {
  if (import_) {
    PFRT_ASSIGN(const Model* model, whole(progress));
    return model->canonical(operators, progress);
  }
  const OperatorSet::Ptr wanted = built_in_only_ ? nullptr : operators;
  const auto lock = lock_unless(mutex_, [&] { return progress.stopped(); });
  if (!lock.owns_lock()) return progress.stop();
  if (!canonical_tried_ || canonical_for_ != wanted) {
    Contradicted contradicted;
    auto made = make_canonical(graph_->clone(), wanted, &progress, &contradicted);
    if (!made.ok() && progress.stopped()) return made.take_status();
    canonical_tried_ = true;
    canonical_for_ = wanted;
    canonical_.reset();
    contradicted_ = contradicted.count ? text_of(contradicted) : std::string();
    if (made.ok()) {
      canonical_ = made.take();
    } else {
      canonical_status_ = made.take_status();
    }
  }
  if (!canonical_) return canonical_status_;
  if (!loaded_ || canonical_->node_count() <= kKeptNodes) return canonical_;
  canonical_tried_ = false;
  return std::exchange(canonical_, nullptr);
}

Result<std::shared_ptr<const Model::Optimised>> Model::optimised(
    const std::string& key, const Progress& progress,
    const std::function<Result<Optimised>()>& make) const {
  std::shared_ptr<OptimisedSlot> slot;
  {
    std::lock_guard lock(optimised_mutex_);
    std::erase_if(optimised_, [&](const auto& e) {
      if (e.first == key || e.second.use_count() != 1) return false;
      const std::lock_guard last(e.second->making);  // nobody has the slot, so this does not wait
      return e.second->value.expired();
    });
    std::shared_ptr<OptimisedSlot>& place = optimised_[key];
    if (!place) place = std::make_shared<OptimisedSlot>();
    slot = place;
  }
  const auto lock = lock_unless(slot->making, [&] { return progress.stopped(); });
  if (!lock.owns_lock()) return progress.stop();
  if (auto there = slot->value.lock()) return there;
  PFRT_ASSIGN(Optimised made, make());
  auto kept = std::make_shared<const Optimised>(std::move(made));
  slot->value = kept;
  return kept;
}

Status infer_types(Graph& graph) {
  default_opsets(graph);
  PFRT_TRY(graph.bind_captures());
  PFRT_TRY(verify(graph));
  PFRT_ASSIGN(auto canonical, make_canonical(graph.clone(), graph.operators));
  copy_types(*canonical, graph);
  return {};
}

Status validate_all(Graph& graph) {
  PFRT_TRY(graph.bind_captures());
  std::vector<Status> faults;
  const auto take = [&](Status status) {
    for (const Status& child : status.children()) faults.push_back(child);
    return status.ok() || !status.children().empty() ? Status() : std::move(status);
  };
  PFRT_TRY(take(verify(graph)));
  std::shared_ptr<Graph> copy = graph.clone();
  default_opsets(*copy);
  PFRT_TRY(take(check_operators(*copy)));
  for (Status& fault : attribute_faults(*copy)) faults.push_back(std::move(fault));
  if (copy->topological_order().ok()) {
    CanonicaliseWatch watch;
    watch.faults = &faults;
    PFRT_TRY(canonicalise(*copy, watch));
  }
  if (faults.empty()) return {};
  Status all =
      error(Code::kVALIDATION, "validating graph '", graph.name, "': ", faults.size(),
            faults.size() == 1 ? " fault: " : " faults, the first: ", faults.front().message());
  for (Status& fault : faults) all.add_child(std::move(fault));
  return all;
}

}  // namespace pfrt
