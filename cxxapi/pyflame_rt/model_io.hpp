// SPDX-License-Identifier: Apache-2.0
//
// Models: graphs with their constants, loaded from files or memory, immutable and shared.
// load_model and save_model are the short way between a file and a Graph. Copies of a Model are
// shallow; safe to use from many threads.
#pragma once

#include <map>
#include <pyflame_rt/graph.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt {

struct LoadOptions {
  bool validate = true;
  bool infer_shapes = true;
};

struct ModelMetadata {
  std::string graph_name, description;
  std::string producer_name, producer_version, domain;
  int64_t version = 0;
  std::map<std::string, std::string> custom_metadata;
};

// What the import did; times in milliseconds.
struct ImportStats {
  size_t node_count = 0;
  size_t initializer_count = 0;
  size_t parameter_count = 0;
  size_t parameter_bytes = 0;
  double import_time_ms = 0;
  std::vector<std::string> warnings;
};

class Model {
 public:
  // The format is found by the file's extension, then by its content.
  static Model load(const std::string& path, const LoadOptions& options = {}) {
    Model model;
    detail::check(api().model->load_file(Environment::instance().handle(), detail::text(path),
                                         make_options(options).get(), model.model_.out()));
    return model;
  }
  // Copies what it needs of |data|.
  static Model load(const void* data, size_t size, const LoadOptions& options = {}) {
    Model model;
    detail::check(api().model->load_memory(Environment::instance().handle(), data, size, PFRT_COPY,
                                           nullptr, nullptr, make_options(options).get(),
                                           model.model_.out()));
    return model;
  }
  static Model from_graph(const Graph& graph, const LoadOptions& options = {}) {
    Model model;
    detail::check(api().model->from_graph(Environment::instance().handle(), graph.handle(),
                                          make_options(options).get(), model.model_.out()));
    return model;
  }
  static Model from_handle(detail::Handle<pfrt_model> handle) {
    Model model;
    model.model_ = std::move(handle);
    return model;
  }

  // Writes the model as it was loaded; the format is that of the extension.
  void save(const std::string& path) const {
    detail::check(
        api().model->save(Environment::instance().handle(), handle(), detail::text(path)));
  }
  // An editable copy.
  Graph graph() const {
    GraphHandle graph;
    detail::check(api().model->graph(handle(), graph.out()));
    return Graph(std::move(graph));
  }
  ModelMetadata metadata() const;
  ImportStats stats() const;
  // "onnx", "pfm" or "graph"
  std::string format() const { return detail::str(info().format); }

  pfrt_model* handle() const noexcept { return model_.get(); }

 private:
  Model() = default;
  static detail::Handle<pfrt_options> make_options(const LoadOptions& options) {
    detail::Handle<pfrt_options> c;
    detail::check(api().options->create(PFRT_OPTIONS_LOAD, c.out()));
    detail::check(api().options->set_bool(c.get(), detail::text("validate"), options.validate));
    detail::check(
        api().options->set_bool(c.get(), detail::text("infer_shapes"), options.infer_shapes));
    return c;
  }
  pfrt_model_info info() const {
    pfrt_model_info c{};
    c.struct_size = sizeof(c);
    detail::check(api().model->info(handle(), &c));
    return c;
  }

  detail::Handle<pfrt_model> model_;
};

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

inline Graph load_model(const std::string& path, const LoadOptions& options = {}) {
  return Model::load(path, options).graph();
}

// ValidationError when the graph is not well formed. The old file stays until the new one is whole.
inline void save_model(const Graph& graph, const std::string& path) {
  Model::from_graph(graph).save(path);
}

}  // namespace pyflame_rt
