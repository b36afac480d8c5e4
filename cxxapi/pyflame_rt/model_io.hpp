// SPDX-License-Identifier: Apache-2.0
//
// Models: graphs with their constants, loaded from files or memory, immutable and shared.
// load_model and save_model are the short way between a file and a Graph. Copies of a Model are
// shallow; safe to use from many threads.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <pyflame_rt/graph.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {

// Weights of a file without a graph, as a definer gets them. Tensors share the file's memory, and
// may be kept.
class Weights {
 public:
  // Copies the names, and shares the tensors, of a definer's argument.
  explicit Weights(const pfrt_weights& c) {
    for (size_t i = 0; i < c.count; ++i) {
      tensors_.emplace(detail::str(c.names[i]),
                       Tensor::from_handle(detail::Handle<pfrt_value>::share(c.values[i])));
    }
    for (size_t i = 0; i < c.meta_count; ++i)
      meta_.emplace(detail::str(c.meta[i].key), detail::str(c.meta[i].value));
  }
  // Throws NotFoundError, which lists some of the names, where there is none of that name.
  const Tensor& operator[](const std::string& name) const;
  // Whether there is a tensor of that name.
  bool contains(const std::string& name) const { return tensors_.count(name) != 0; }
  // All tensors by name.
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  // What the file says besides, as text: a checkpoint's epoch, for example.
  const std::map<std::string, std::string>& meta() const { return meta_; }

 private:
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> meta_;
};

inline const Tensor& Weights::operator[](const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  constexpr size_t kListed = 20;
  std::string listed;
  size_t count = 0;
  for (const auto& [known, tensor] : tensors_) {
    if (++count > kListed) break;
    listed += (listed.empty() ? "" : ", ") + known;
  }
  throw NotFoundError("there is no tensor '" + name + "' among the " +
                      std::to_string(tensors_.size()) + " of the file: " + listed +
                      (count > kListed ? ", ..." : ""));
}

// Options of a load or save.
struct LoadOptions {
  // Hears the progress of a load or save, from 0 to 1, and its present stage. Returning false, or
  // throwing, stops it: CancelledError, or what was thrown.
  using Progress = std::function<bool(double fraction, const std::string& stage)>;
  // Builds the graph of a file that has weights alone. An exception that it throws comes out of the
  // load. |graph| refuses edits once the load is over.
  using Definer = std::function<void(Graph& graph, const Weights& weights)>;

  // Checks the graph's structure.
  bool validate = true;
  // Fills in types and shapes of inner values.
  bool infer_shapes = true;
  // Called with the progress; none = nobody hears.
  Progress progress;
  // Folders where files beside the model may be: "links" = its own folder or, where its path is a
  // symbolic link, the folder of the link's target; "strict" = the folder that the path names,
  // which no link may leave.
  std::string confine = "links";
  // Bytes of host memory that the model's constants may take, mapped files not counted; 0 = no
  // limit but the environment's.
  int64_t memory_limit = 0;
  // SessionOptions::cache_dir of the session that the model is for.
  std::string cache_dir;
  // Called for a file that has weights alone; none = such a file is an UnsupportedFormatError.
  // With one, a file that has a graph is an InvalidArgumentError.
  Definer definer;
  // Method to load of a file that may have several; empty = the one that its format takes for the
  // first.
  std::string entry;
  // Options of importers as text, by "import.<word>.<key>"; Environment::importer_options lists
  // them.
  std::map<std::string, std::string> extra;
};

// Reader of a model's bytes, written by the caller. The loading thread calls it, only during the
// load; an exception that it throws comes out of Model::load.
class Reader {
 public:
  virtual ~Reader() = default;
  // Number of all bytes.
  virtual uint64_t size() const = 0;
  // Writes up to |bytes| (at least 1) bytes from |offset| on to |out| and returns their number; 0
  // at the end.
  virtual uint64_t read_at(uint64_t offset, void* out, uint64_t bytes) = 0;
  // Name for messages; its extension tells the format.
  virtual std::string name() const { return {}; }
  // Opens the file that the model calls |location|; returns null when there is none.
  virtual std::unique_ptr<Reader> open_beside(const std::string& location) {
    (void)location;
    return nullptr;
  }
};

namespace detail {

// Holds the callbacks of one load or save, and their exception.
struct LoadCall {
  explicit LoadCall(const LoadOptions& from) : options(from) {
    check(api().options->create(PFRT_OPTIONS_LOAD, c.out()));
    check(api().options->set_bool(c.get(), text("validate"), from.validate));
    check(api().options->set_bool(c.get(), text("infer_shapes"), from.infer_shapes));
    check(api().options->set_string(c.get(), text("confine"), text(from.confine)));
    check(api().options->set_int(c.get(), text("memory_limit"), from.memory_limit));
    if (!from.cache_dir.empty())
      check(api().options->set_string(c.get(), text("cache_dir"), text(from.cache_dir)));
    if (!from.entry.empty())
      check(api().options->set_string(c.get(), text("entry"), text(from.entry)));
    for (const auto& [key, value] : from.extra)
      check(api().options->set_text(c.get(), text(key), text(value)));
    if (from.progress) check(api().options->set_progress(c.get(), &hear, this));
    if (from.definer) check(api().options->set_definer(c.get(), &define, this));
  }
  LoadCall(const LoadCall&) = delete;
  LoadCall& operator=(const LoadCall&) = delete;

  // Takes over |status|.
  void finish(PFRT_OWN pfrt_status* status) const {
    if (thrown) {
      api().status->release(status);
      std::rethrow_exception(thrown);
    }
    check(status);
  }
  template <class Work>
  pfrt_code guarded(Work work) noexcept {
    try {
      return work();
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
      return PFRT_CODE_CANCELLED;
    }
  }
  static pfrt_code define(void* user, const pfrt_definition* definition) {
    auto* self = static_cast<LoadCall*>(user);
    return self->guarded([&]() -> pfrt_code {
      Graph graph(GraphHandle::share(definition->graph));
      self->options.definer(graph, Weights(*definition->weights));
      return PFRT_CODE_OK;
    });
  }
  static void hear(void* user, double fraction, pfrt_string stage) {
    auto* self = static_cast<LoadCall*>(user);
    const pfrt_code code = self->guarded([&]() -> pfrt_code {
      return self->options.progress(fraction, str(stage)) ? PFRT_CODE_OK : PFRT_CODE_CANCELLED;
    });
    if (code != PFRT_CODE_OK) api().options->cancel(self->c.get());
  }

  const LoadOptions& options;
  Handle<pfrt_options> c;
  std::exception_ptr thrown;
};

// Makes a C argument of a Reader. |own| owns it when it is to be deleted with the argument.
struct ReaderCall {
  static pfrt_reader make(Reader& reader, std::unique_ptr<Reader> own, LoadCall& call) {
    auto user = std::make_unique<ReaderCall>(ReaderCall{reader, std::move(own), call, {}});
    user->name = reader.name();
    pfrt_reader c{};
    c.struct_size = sizeof(c);
    c.size = reader.size();
    c.name = text(user->name);
    c.read_at = &read_at;
    c.open_beside = &open_beside;
    c.release = [](void* self) { delete static_cast<ReaderCall*>(self); };
    c.user = user.release();
    return c;
  }
  static pfrt_code read_at(void* user, uint64_t offset, uint64_t bytes, void* out,
                           uint64_t* out_read) {
    auto* self = static_cast<ReaderCall*>(user);
    return self->call.guarded([&]() -> pfrt_code {
      *out_read = self->reader.read_at(offset, out, bytes);
      return PFRT_CODE_OK;
    });
  }
  static pfrt_code open_beside(void* user, pfrt_string location, pfrt_reader* out_reader) {
    auto* self = static_cast<ReaderCall*>(user);
    return self->call.guarded([&]() -> pfrt_code {
      std::unique_ptr<Reader> beside = self->reader.open_beside(str(location));
      if (beside == nullptr) return PFRT_CODE_NOT_FOUND;
      Reader& source = *beside;
      *out_reader = make(source, std::move(beside), self->call);
      return PFRT_CODE_OK;
    });
  }

  Reader& reader;
  std::unique_ptr<Reader> own;
  LoadCall& call;
  std::string name;
};

}  // namespace detail

// Facts about a model; empty where the model has none.
struct ModelMetadata {
  // Name and description of the graph.
  std::string graph_name, description;
  // Program that wrote the file, its version, and the model's own domain.
  std::string producer_name, producer_version, domain;
  // Version of the model; 0 where the file has none.
  int64_t version = 0;
  // The model's own keys.
  std::map<std::string, std::string> custom_metadata;
};

// Statistics of an import. Counts include the bodies of nodes. Parameters are the elements of
// initializers and of Constant nodes.
struct ImportStats {
  // Nodes of the graph and its bodies.
  size_t node_count = 0;
  // Initializers of the graph and its bodies.
  size_t initializer_count = 0;
  // Elements of initializers and of Constant nodes.
  size_t parameter_count = 0;
  // Bytes of these elements.
  size_t parameter_bytes = 0;
  // Time of the import in milliseconds.
  double import_time_ms = 0;
  // A sentence for each thing that was read otherwise than the file has it.
  std::vector<std::string> warnings;
};

// A model: immutable, hence safe to share between threads and sessions.
class Model {
 public:
  // Loads a file. The format is found by the file's extension, then by its content. Throws
  // ModelNotFoundError when there is no such file.
  static Model load(const std::string& path, const LoadOptions& options = {}) {
    Model model;
    detail::LoadCall call(options);
    pfrt_status* status = api().model->load_file(
        Environment::instance().handle(), detail::text(path), call.c.get(), model.model_.out());
    try {
      call.finish(status);
    } catch (const NotFoundError& missing) {
      throw ModelNotFoundError(missing.what());
    }
    return model;
  }
  // Loads a model from bytes. Copies what it needs of |data|.
  static Model load(const void* data, size_t size, const LoadOptions& options = {}) {
    Model model;
    detail::LoadCall call(options);
    call.finish(api().model->load_memory(Environment::instance().handle(), data, size, PFRT_COPY,
                                         nullptr, nullptr, call.c.get(), model.model_.out()));
    return model;
  }
  // Reads all bytes of |reader| once, in order.
  static Model load(Reader& reader, const LoadOptions& options = {}) {
    Model model;
    detail::LoadCall call(options);
    const pfrt_reader c = detail::ReaderCall::make(reader, nullptr, call);
    call.finish(api().model->load_reader(Environment::instance().handle(), &c, call.c.get(),
                                         model.model_.out()));
    return model;
  }
  // Copies the graph (constants are shared), which stays usable.
  static Model from_graph(const Graph& graph, const LoadOptions& options = {}) {
    Model model;
    detail::LoadCall call(options);
    call.finish(api().model->from_graph(Environment::instance().handle(), graph.handle(),
                                        call.c.get(), model.model_.out()));
    return model;
  }
  // Takes over a model of the C API.
  static Model from_handle(detail::Handle<pfrt_model> handle) {
    Model model;
    model.model_ = std::move(handle);
    return model;
  }

  // Writes the model as it was loaded, in the format of the extension. Only the progress of
  // |options| is used; a save that is stopped leaves the old file.
  void save(const std::string& path, const LoadOptions& options = {}) const {
    detail::LoadCall call(options);
    call.finish(api().model->save(Environment::instance().handle(), handle(), detail::text(path),
                                  call.c.get()));
  }
  // Returns an editable copy of the graph.
  Graph graph() const {
    GraphHandle graph;
    detail::check(api().model->graph(handle(), graph.out()));
    return Graph(std::move(graph));
  }
  // Facts that the model's file states about it.
  ModelMetadata metadata() const;
  // Statistics of the import.
  ImportStats stats() const;
  // Format of the model: "onnx", "pfm" or "graph".
  std::string format() const { return detail::str(info().format); }
  // Method of the file that was loaded; empty where the format has none.
  std::string entry() const { return detail::str(info().entry); }
  // All methods of the file; empty where the format has none.
  std::vector<std::string> entries() const;

  pfrt_model* handle() const noexcept { return model_.get(); }

 private:
  Model() = default;
  pfrt_model_info info() const {
    pfrt_model_info c{};
    c.struct_size = sizeof(c);
    detail::check(api().model->info(handle(), &c));
    return c;
  }

  detail::Handle<pfrt_model> model_;
};

inline std::vector<std::string> Model::entries() const {
  std::vector<std::string> out;
  const std::string all = detail::str(info().entries);
  for (size_t at = 0; !all.empty() && at != std::string::npos;) {
    const size_t comma = all.find(',', at);
    out.push_back(all.substr(at, comma == std::string::npos ? comma : comma - at));
    at = comma == std::string::npos ? comma : comma + 1;
  }
  return out;
}

inline ModelMetadata Model::metadata() const {
  const pfrt_model_info c = info();
  ModelMetadata out;
  out.graph_name = detail::str(c.graph_name);
  out.description = detail::str(c.description);
  out.producer_name = detail::str(c.producer_name);
  out.producer_version = detail::str(c.producer_version);
  out.domain = detail::str(c.domain);
  out.version = c.model_version;
  for (size_t i = 0; i < api().model->metadata_count(handle()); ++i) {
    pfrt_key_value entry{};
    detail::check(api().model->metadata_at(handle(), i, &entry));
    out.custom_metadata[detail::str(entry.key)] = detail::str(entry.value);
  }
  return out;
}

inline ImportStats Model::stats() const {
  const pfrt_model_info c = info();
  ImportStats out;
  out.node_count = static_cast<size_t>(c.node_count);
  out.initializer_count = static_cast<size_t>(c.initializer_count);
  out.parameter_count = static_cast<size_t>(c.parameter_count);
  out.parameter_bytes = static_cast<size_t>(c.parameter_bytes);
  out.import_time_ms = c.import_ms;
  for (size_t i = 0; i < api().model->warning_count(handle()); ++i) {
    pfrt_string warning{};
    detail::check(api().model->warning_at(handle(), i, &warning));
    out.warnings.push_back(detail::str(warning));
  }
  return out;
}

// Returns the graph of a file, to be edited. Throws what Model::load throws.
inline Graph load_model(const std::string& path, const LoadOptions& options = {}) {
  return Model::load(path, options).graph();
}

// Writes a graph to a file. The old file stays until the new one is whole. Throws ValidationError
// when the graph is not well formed.
inline void save_model(const Graph& graph, const std::string& path) {
  Model::from_graph(graph).save(path);
}

}  // namespace pyflame_rt
