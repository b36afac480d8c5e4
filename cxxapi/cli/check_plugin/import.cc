// SPDX-License-Identifier: Apache-2.0
//
// Tests of importers: junk, damaged files, and files that the importer itself saves, over the real
// client tables.
#include <algorithm>
#include <cstring>

#include "cxxapi/cli/check_plugin/counting_api.h"
#include "cxxapi/cli/check_plugin/host_sink.h"
#include "cxxapi/cli/check_plugin/kinds.h"

// The host's file, which counts references.
struct pfrt_file {
  long references = 1;
};

namespace cli::check {
namespace {

constexpr Guards kBytes = {"read-only-arguments", "damaged-file", "read-only-arguments"};

const pfrt_api& api() { return *pfrt_get_api(PFRT_ABI_VERSION, nullptr); }

void must(pfrt_status* status) {
  if (!status) return;
  const std::string text = text_of(api().status->message(status));
  api().status->release(status);
  throw std::runtime_error("the test's own model: " + text);
}

struct Graph {
  pfrt_graph* handle = nullptr;
  Graph() { must(api().graph->create(pfrt_string{"g", 1}, &handle)); }
  ~Graph() { api().graph->release(handle); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
};

// Describes a graph as text, by all that getters tell of it.
std::string outline(const pfrt_graph* graph) {
  std::string out = std::to_string(api().graph->input_count(graph)) + " inputs, " +
                    std::to_string(api().graph->output_count(graph)) + " outputs;";
  for (size_t i = 0; i < api().graph->node_count(graph); ++i) {
    pfrt_node node{};
    node.struct_size = sizeof node;
    must(api().graph->node_at(graph, i, &node));
    out += " " + text_of(node.op) + "(";
    for (size_t k = 0; k < node.input_count; ++k) out += (k ? "," : "") + text_of(node.inputs[k]);
    out += ")";
  }
  for (size_t i = 0; i < api().graph->initializer_count(graph); ++i) {
    pfrt_string name{};
    pfrt_value* value = nullptr;
    must(api().graph->initializer_at(graph, i, &name, &value));
    pfrt_tensor t{};
    t.struct_size = sizeof t;
    must(api().value->tensor(value, &t));
    out += "; " + text_of(name) + " dtype " + std::to_string(t.dtype) + " of";
    for (uint32_t d = 0; d < t.rank; ++d) out += " " + std::to_string(t.dims[d]);
    uint64_t hash = 0xcbf29ce484222325u;
    for (uint64_t b = 0; b < t.bytes; ++b)
      hash = (hash ^ static_cast<const unsigned char*>(t.data)[b]) * 0x100000001b3u;
    out += " with bytes " + std::to_string(hash);
  }
  return out;
}

// Builds Relu(x W + b), x float32 [batch, 4].
void fill(pfrt_graph* graph) {
  const auto str = [](const char* s) { return pfrt_string{s, std::strlen(s)}; };
  const auto port = [&](const char* name, int64_t width) {
    static int64_t dims[2];
    static pfrt_string names[2];
    dims[0] = -1;
    dims[1] = width;
    names[0] = str("batch");
    names[1] = {};
    pfrt_value_info info{};
    info.struct_size = sizeof info;
    info.kind = PFRT_VALUE_TENSOR;
    info.dtype = PFRT_DTYPE_FLOAT32;
    info.rank = 2;
    info.name = str(name);
    info.dims = dims;
    info.dim_names = names;
    return info;
  };
  const auto constant = [&](const char* name, std::vector<int64_t> dims) {
    std::vector<float> data;
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    for (int64_t i = 0; i < count; ++i) data.push_back(static_cast<float>(i) / 8 - 1);
    pfrt_tensor t{};
    t.struct_size = sizeof t;
    t.dtype = PFRT_DTYPE_FLOAT32;
    t.rank = static_cast<uint32_t>(dims.size());
    t.data = data.data();
    t.bytes = data.size() * sizeof(float);
    t.dims = dims.data();
    must(api().graph->add_initializer(graph, str(name), &t, 0, nullptr, nullptr));
  };
  const auto node = [&](const char* op, std::vector<pfrt_string> in, const char* out) {
    const pfrt_string output = str(out);
    pfrt_node n{};
    n.struct_size = sizeof n;
    n.op = str(op);
    n.name = output;
    n.inputs = in.data();
    n.input_count = in.size();
    n.outputs = &output;
    n.output_count = 1;
    must(api().graph->add_node(graph, &n, nullptr));
  };
  must(api().graph->set_opset(graph, {}, 21));
  const pfrt_value_info x = port("x", 4);
  must(api().graph->add_input(graph, &x));
  constant("w", {4, 3});
  constant("b", {3});
  node("MatMul", {str("x"), str("w")}, "product");
  node("Add", {str("product"), str("b")}, "sum");
  node("Relu", {str("sum")}, "y");
  const pfrt_value_info y = port("y", 3);
  must(api().graph->add_output(graph, &y));
}

using Files = std::vector<std::pair<std::string, std::string>>;  // name, bytes; the model first

// A load with all references counted.
class Import {
 public:
  Import(Trial& trial, const pfrt_importer_table& table, const Files& files, Age age)
      : trial_(trial), table_(table), files_(files), age_(age), sink_(age) {
    for (const auto& [name, bytes] : files) {
      auto memory = std::make_unique<Guarded>(bytes.size(), "the file's bytes", kBytes);
      if (!bytes.empty()) std::memcpy(memory->data(), bytes.data(), bytes.size());
      memory->allow(Guarded::Access::kRead);
      bytes_.push_back(std::move(memory));
    }
  }

  pfrt_code load(const std::string& doing) {
    graph_ = std::make_unique<Graph>();
    opened_.push_back(std::make_unique<pfrt_file>());
    pfrt_import_request request{};
    request.host = this;
    request.api = counting_.table();
    request.graph = graph_->handle;
    request.path = {"/nowhere/model", 14};
    request.data = bytes_[0]->data();
    request.size = bytes_[0]->size();
    request.file = opened_[0].get();
    request.file_retain = [](pfrt_file* file) { ++file->references; };
    request.file_release = [](void* file, void*) { --static_cast<pfrt_file*>(file)->references; };
    request.open_beside = open_beside;
    request.warn = [](const pfrt_import_request*, pfrt_string) {};
    request.set_info = [](const pfrt_import_request*, pfrt_string, pfrt_string) {};
    request.choose_entry = choose_entry;
    request.add_state = [](const pfrt_import_request*, const pfrt_state_pair*,
                           const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
    request_ = std::make_unique<Sized<pfrt_import_request>>(age_, request, "the request");
    request_->make_read_only();
    return call(trial_, "damaged-file", doing,
                [&] { return table_.load(request_->get(), sink_.get()); });
  }
  uint32_t probe() {
    return call(trial_, "probe", "probe was asked",
                [&] { return table_.probe(bytes_[0]->data(), bytes_[0]->size()); });
  }
  std::string loaded() const { return outline(graph_->handle); }
  const HostSink& sink() const { return sink_; }

  // Releases everything of the host's; references that remain are the plug-in's.
  void finish() {
    trial_.at("double-release", "the graph it filled was released");
    graph_.reset();
    for (size_t i = 0; i < opened_.size(); ++i) {
      const long left = opened_[i]->references - (i == 0 ? 1 : 0);  // the host holds one
      const std::string what = i == 0 ? "the model's file" : "a file beside the model";
      trial_.expect(left >= 0, "double-release",
                    "it released " + what + " " + std::to_string(-left) +
                        " times more often than it retained it");
      trial_.expect(
          left <= 0, "unload-with-values",
          what + " is still retained " + std::to_string(left) + " times when it is unloaded");
    }
    counting_.expect_nothing_left(trial_);
  }

 private:
  static pfrt_code choose_entry(const pfrt_import_request*, const pfrt_string*, size_t,
                                const pfrt_sink*, size_t* out_index) {
    *out_index = 0;
    return PFRT_CODE_OK;
  }
  static pfrt_code open_beside(const pfrt_import_request* request, pfrt_string location,
                               const pfrt_sink* sink, pfrt_file** out_file, const void** out_data,
                               uint64_t* out_size) {
    auto& self = *static_cast<Import*>(request->host);
    *out_file = nullptr;
    *out_data = nullptr;
    *out_size = 0;
    for (size_t i = 1; i < self.files_.size(); ++i) {
      if (self.files_[i].first != text_of(location)) continue;
      self.opened_.push_back(std::make_unique<pfrt_file>());
      *out_file = self.opened_.back().get();
      *out_data = self.bytes_[i]->data();
      *out_size = self.bytes_[i]->size();
      return PFRT_CODE_OK;
    }
    return sink->fail(sink, PFRT_CODE_NOT_FOUND, PFRT_NO_INDEX, {"no such file", 12});
  }

  Trial& trial_;
  const pfrt_importer_table& table_;
  const Files& files_;
  Age age_;
  CountingApi counting_;
  HostSink sink_;
  std::vector<std::unique_ptr<Guarded>> bytes_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::unique_ptr<pfrt_file>> opened_;  // the model's first
  std::unique_ptr<Sized<pfrt_import_request>> request_;
};

std::vector<std::string> junk() {
  std::vector<std::string> out = {"",
                                  "x",
                                  "PK\x03\x04",
                                  std::string(64, '\0'),
                                  std::string(4096, '\xff'),
                                  "{\"this\": \"is no model\"}"};
  uint64_t state = 7;
  for (size_t size : {5u, 33u, 4096u, 70000u}) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes += static_cast<char>(state >> 56);
    }
    out.push_back(std::move(bytes));
  }
  return out;
}

const pfrt_importer_table& table_of(Trial& trial, const PluginFile& file) {
  return *static_cast<const pfrt_importer_table*>(file.describe(trial).table);
}

void check_junk(Trial& trial, const std::string& path) {
  const ProcessState before;
  const size_t threads = thread_count();
  PluginFile file(trial, path);
  const pfrt_importer_table& table = table_of(trial, file);
  for (const std::string& bytes : junk()) {
    const Files files = {{"model", bytes}};
    Import import(trial, table, files, Age::kNow);
    const uint32_t score = import.probe();
    trial.expect(score <= 100, "probe", "probe answered " + std::to_string(score));
    const pfrt_code code = import.load(std::to_string(bytes.size()) + " bytes of junk were loaded");
    trial.expect(code != PFRT_CODE_OK, "damaged-file",
                 "it loaded " + std::to_string(bytes.size()) + " bytes of junk");
    trial.expect(code == PFRT_CODE_OK || !import.sink().text().empty(), "refusal",
                 "load refused junk without a reason");
    import.finish();
  }
  trial.expect(threads_are(threads), "starts-threads", "threads run after a load");
  const std::string changed = before.changed();
  trial.expect(changed.empty(), "process-state", changed + " is not what it was");
  trial.keep("throws");
  trial.keep("read-only-arguments");
  file.close(trial);
  trial.keep("unload");
}

pfrt_code save(Trial& trial, const pfrt_importer_table& table, const pfrt_graph* graph,
               HostSink& sink, Age age, Files* files) {
  files->assign(1, {"model", ""});
  CountingApi counting;
  pfrt_export_request request{};
  request.host = files;
  request.api = counting.table();
  request.graph = graph;
  request.path = {"/nowhere/model", 14};
  request.write = [](const pfrt_export_request* r, uint32_t index, const void* data, uint64_t size,
                     const pfrt_sink* s) -> pfrt_code {
    Files& all = *static_cast<Files*>(r->host);
    if (index >= all.size() || (size && !data))
      return s->fail(s, PFRT_CODE_INVALID_ARGUMENT, PFRT_NO_INDEX, {"no such file", 12});
    all[index].second.append(static_cast<const char*>(data), size);
    return PFRT_CODE_OK;
  };
  request.add_sidecar = [](const pfrt_export_request* r, pfrt_string name, const pfrt_sink*,
                           uint32_t* out) -> pfrt_code {
    Files& all = *static_cast<Files*>(r->host);
    *out = static_cast<uint32_t>(all.size());
    all.emplace_back(text_of(name), "");
    return PFRT_CODE_OK;
  };
  Sized<pfrt_export_request> sized(age, request, "the request");
  sized.make_read_only();
  const pfrt_code code = call(trial, "round-trip", "a small model was saved",
                              [&] { return table.save(sized.get(), sink.get()); });
  counting.expect_nothing_left(trial);
  return code;
}

// Saves the model; returns nothing (with findings) when it cannot be saved.
Files saved(Trial& trial, const pfrt_importer_table& table, Age age, std::string* want) {
  const Graph graph;
  fill(graph.handle);
  *want = outline(graph.handle);
  Files files;
  HostSink sink(age);
  const pfrt_code code = save(trial, table, graph.handle, sink, age, &files);
  if (!trial.expect(code == PFRT_CODE_OK, "round-trip",
                    "saving Relu(x W + b) failed: " + sink.reason(code)))
    throw Broken("not saved");
  return files;
}

void check_round_trip(Trial& trial, const std::string& path, Age age) {
  PluginFile file(trial, path);
  const pfrt_importer_table& table = table_of(trial, file);
  std::string want;
  const Files files = saved(trial, table, age, &want);
  Import import(trial, table, files, age);
  const uint32_t score = import.probe();
  trial.expect(score > 0 && score <= 100, "probe",
               "probe answered " + std::to_string(score) + " for what it saved itself");
  const pfrt_code code = import.load(std::string("its own file was loaded ") + age_text(age));
  if (trial.expect(code == PFRT_CODE_OK, "round-trip",
                   "loading what it saved failed: " + import.sink().reason(code)))
    trial.expect(import.loaded() == want, "round-trip",
                 "it saved '" + want + "' and loaded '" + import.loaded() + "'");
  import.finish();
  trial.keep("struct-size-host");
  file.close(trial);
  trial.keep("unload");
}

void check_damage(Trial& trial, const std::string& path) {
  const PluginFile file(trial, path);
  const pfrt_importer_table& table = table_of(trial, file);
  std::string want;
  const Files files = saved(trial, table, Age::kNow, &want);
  const std::string& whole = files[0].second;
  const auto try_load = [&](const std::string& bytes, const std::string& what) {
    Files damaged = files;
    damaged[0].second = bytes;
    Import import(trial, table, damaged, Age::kNow);
    (void)import.probe();
    const pfrt_code code = import.load(what);
    if (code != PFRT_CODE_OK && import.sink().text().empty())
      trial.fail("refusal", "load refused without a reason when " + what);
    import.finish();
  };
  const size_t step = std::max<size_t>(1, whole.size() / 97);
  for (size_t cut = 0; cut < whole.size(); cut += step)
    try_load(whole.substr(0, cut), "a file cut to " + std::to_string(cut) + " of " +
                                       std::to_string(whole.size()) + " bytes was loaded");
  uint64_t state = 11;
  for (int round = 0; round < 400; ++round) {
    std::string bytes = whole;
    for (int flips = 0; flips < 3; ++flips) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      bytes[(state >> 33) % bytes.size()] ^= static_cast<char>(1u << (state >> 60 & 7));
    }
    try_load(bytes, "a file with damaged bytes was loaded, round " + std::to_string(round));
  }
  trial.keep("damaged-file");
}

}  // namespace

std::vector<NamedTrial> import_trials(const PluginFacts& facts) {
  const std::string path = facts.path;
  std::vector<NamedTrial> out = {{"junk", [path](Trial& t) { check_junk(t, path); }}};
  if (!(facts.features & PFRT_IMPORTER_SAVE)) return out;
  for (Age age : {Age::kNow, Age::kNewer}) {
    out.push_back({"round trip", [path, age](Trial& t) { check_round_trip(t, path, age); }});
  }
  out.push_back({"damage", [path](Trial& t) { check_damage(t, path); }});
  return out;
}

}  // namespace cli::check
