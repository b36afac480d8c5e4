// SPDX-License-Identifier: Apache-2.0
//
// An importer of files of lines, for tests of what the host gives importers: options, definers,
// states, entries, declining. Built twice, as Rows and as Columns, which is surer of each file. The
// first line is "rows"; the others are words:
//   weight NAME NUMBER...   a tensor of the file
//   meta KEY VALUE          what it says besides
//   entry NAME              a method; with any, y = x * (index of the chosen one + 1)
//   only NAME               importers of other names decline the file
//   state [KIND]            next = x + h, and the pair h, next
//   default NUMBER...       an input b with that value, y = x + b
//   body                    y = If(yes) then x * 2
//   keep, poke              retains the graph; the next load edits what was retained
//   swallow                 returns OK although the definer failed
// A file with weights and nothing else has no graph.
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "pyflame_rt/plugin.h"

namespace {

struct Weight {
  std::string name;
  std::vector<float> numbers;
};
struct File {
  std::vector<Weight> weights;
  std::vector<std::pair<std::string, std::string>> meta;
  std::vector<std::string> entries, only;
  std::vector<float> fallback;
  std::string state;
  bool has_state = false, body = false, keep = false, poke = false, swallow = false;
};

constexpr char kName[] = PFRT_ROWS_NAME;
constexpr char kExtension[] = PFRT_ROWS_EXTENSION;

pfrt_string str(const std::string& text) { return {text.data(), text.size()}; }

std::vector<float> numbers_of(std::istringstream& line) {
  std::vector<float> out;
  for (float number = 0; line >> number;) out.push_back(number);
  return out;
}

File parse(const void* data, uint64_t size) {
  File file;
  std::istringstream in(std::string(static_cast<const char*>(data), size));
  for (std::string text; std::getline(in, text);) {
    std::istringstream line(text);
    std::string word, name;
    line >> word;
    if (word == "weight") {
      line >> name;
      file.weights.push_back({name, numbers_of(line)});
    } else if (word == "meta") {
      std::string value;
      line >> name >> value;
      file.meta.emplace_back(name, value);
    } else if (word == "entry" || word == "only") {
      line >> name;
      (word == "entry" ? file.entries : file.only).push_back(name);
    } else if (word == "default") {
      file.fallback = numbers_of(line);
    } else if (word == "state") {
      file.has_state = true;
      line >> file.state;
    }
    file.body |= word == "body";
    file.keep |= word == "keep";
    file.poke |= word == "poke";
    file.swallow |= word == "swallow";
  }
  return file;
}

pfrt_code fail(const pfrt_sink* sink, pfrt_code code, const std::string& text) {
  return sink->fail(sink, code, PFRT_NO_INDEX, str(text));
}

// What an earlier load has retained.
pfrt_graph *kept_graph = nullptr, *kept_body = nullptr;

uint32_t probe(const void* data, uint64_t size) {
  return size >= 5 && std::memcmp(data, "rows\n", 5) == 0 ? PFRT_ROWS_SURE : 0;
}

class Loading {
 public:
  Loading(const pfrt_import_request& request, const pfrt_sink* sink)
      : request_(request), sink_(sink), graphs_(*request.api->graph) {}

  pfrt_code run() {
    if (!probe(request_.data, request_.size))
      return fail(sink_, PFRT_CODE_UNSUPPORTED_FORMAT, "its first line is not 'rows'");
    const File file = parse(request_.data, request_.size);
    if (!file.only.empty() && file.only[0] != kName)
      return fail(sink_, PFRT_CODE_UNSUPPORTED_FORMAT, "it is for " + file.only[0] + " only");
    if (!file.weights.empty()) return weights(file);
    if (file.poke) poke();
    float scale = 1;
    for (size_t i = 0; i < request_.option_count; ++i) {
      const std::string key(request_.options[i].key.data, request_.options[i].key.size);
      const std::string value(request_.options[i].value.data, request_.options[i].value.size);
      if (key == "scale") scale = std::strtof(value.c_str(), nullptr);
      if (key == "describe") request_.warn(&request_, str("described " + value));
    }
    if (!file.entries.empty()) {
      std::vector<pfrt_string> names;
      for (const std::string& name : file.entries) names.push_back(str(name));
      size_t index = 0;
      if (const pfrt_code code =
              request_.choose_entry(&request_, names.data(), names.size(), sink_, &index))
        return code;
      scale *= static_cast<float>(index + 1);
    }
    return build(file, scale);
  }

 private:
  bool good(pfrt_status* status) {
    if (!status) return true;
    const pfrt_string text = request_.api->status->message(status);
    fault_ = std::string(text.data, text.size);
    request_.api->status->release(status);
    return false;
  }

  static pfrt_value_info info(const char* name, const int64_t* dims, const pfrt_string* dim_names) {
    pfrt_value_info out{};
    out.struct_size = sizeof out;
    out.kind = PFRT_VALUE_TENSOR;
    out.dtype = PFRT_DTYPE_FLOAT32;
    out.name = {name, std::strlen(name)};
    out.rank = 1;
    out.dims = dims;
    out.dim_names = dim_names;
    return out;
  }

  bool input(const char* name, const char* dim) {
    const int64_t dims[] = {-1};
    const pfrt_string names[] = {{dim, std::strlen(dim)}};
    const pfrt_value_info i = info(name, dims, names);
    return good(graphs_.add_input(request_.graph, &i));
  }
  bool output(const char* name, const char* dim) {
    const int64_t dims[] = {-1};
    const pfrt_string names[] = {{dim, std::strlen(dim)}};
    const pfrt_value_info i = info(name, dims, names);
    return good(graphs_.add_output(request_.graph, &i));
  }
  bool constant(pfrt_graph* graph, const char* name, const std::vector<float>& numbers) {
    const int64_t dims[] = {static_cast<int64_t>(numbers.size())};
    pfrt_tensor t{};
    t.struct_size = sizeof t;
    t.dtype = PFRT_DTYPE_FLOAT32;
    t.rank = 1;
    t.dims = dims;
    t.data = const_cast<float*>(numbers.data());
    t.bytes = numbers.size() * sizeof(float);
    return good(graphs_.add_initializer(graph, {name, std::strlen(name)}, &t, 0, nullptr, nullptr));
  }
  bool node(pfrt_graph* graph, const char* op, std::vector<std::string> inputs,
            const std::string& out, const pfrt_attr* attrs = nullptr, size_t attr_count = 0) {
    std::vector<pfrt_string> names;
    for (const std::string& name : inputs) names.push_back(str(name));
    const pfrt_string made = str(out);
    pfrt_node n{};
    n.struct_size = sizeof n;
    n.op = {op, std::strlen(op)};
    n.inputs = names.data();
    n.input_count = names.size();
    n.outputs = &made;
    n.output_count = 1;
    n.attrs = attrs;
    n.attr_count = attr_count;
    return good(graphs_.add_node(graph, &n, nullptr));
  }

  pfrt_code weights(const File& file) {
    if (!request_.define)
      return fail(sink_, PFRT_CODE_UNSUPPORTED_FORMAT,
                  "the file holds weights (" + std::to_string(file.weights.size()) +
                      " tensors), no graph: load it with a definer, which builds one");
    std::vector<pfrt_string> names;
    std::vector<pfrt_value*> values;
    std::vector<pfrt_key_value> meta;
    bool made = true;
    for (const Weight& weight : file.weights) {
      const int64_t dims[] = {static_cast<int64_t>(weight.numbers.size())};
      pfrt_value* value = nullptr;
      made = made && good(request_.api->value->create_tensor(PFRT_DTYPE_FLOAT32, dims, 1, &value));
      pfrt_tensor view{};
      view.struct_size = sizeof view;
      made = made && good(request_.api->value->tensor(value, &view));
      if (made) std::memcpy(view.data, weight.numbers.data(), view.bytes);
      names.push_back(str(weight.name));
      values.push_back(value);
    }
    for (const auto& [key, value] : file.meta) meta.push_back({str(key), str(value)});
    pfrt_weights given{};
    given.struct_size = sizeof given;
    given.names = names.data();
    given.values = values.data();
    given.count = names.size();
    given.meta = meta.data();
    given.meta_count = meta.size();
    const pfrt_code code =
        made ? request_.define(&request_, &given, sink_) : fail(sink_, PFRT_CODE_INTERNAL, fault_);
    for (pfrt_value* value : values) request_.api->value->release(value);
    return file.swallow ? pfrt_code{PFRT_CODE_OK} : code;
  }

  // Tells by warnings what became of edits of what was retained.
  void poke() {
    const auto tell = [&](const std::string& what, bool done) {
      request_.warn(&request_, str(what + ": " + (done ? "edited" : fault_)));
    };
    if (kept_graph) {
      tell("node", node(kept_graph, "Relu", {"x"}, "poked"));
      tell("name", good(graphs_.set_name(kept_graph, {"poked", 5})));
      pfrt_graph* copy = nullptr;
      tell("clone", good(graphs_.clone(kept_graph, &copy)));
      graphs_.release(copy);
    }
    if (kept_body) {
      tell("body", constant(kept_body, "two", {3}));
      pfrt_value* two = nullptr;
      tell("write", good(graphs_.initializer_for_write(kept_body, {"two", 3}, &two)));
    }
    graphs_.release(kept_graph);
    graphs_.release(kept_body);
    kept_graph = kept_body = nullptr;
  }

  bool with_body(const File& file) {
    pfrt_graph* bodies[2] = {nullptr, nullptr};
    bool made = true;
    for (int i = 0; i < 2; ++i) {
      made = made &&
             good(graphs_.create_subgraph(request_.graph, {i ? "no" : "yes", i ? 2u : 3u},
                                          &bodies[i])) &&
             constant(bodies[i], "two", {i ? 1.0f : 2.0f}) &&
             node(bodies[i], "Mul", {"x", "two"}, i ? "kept" : "twice");
      pfrt_value_info out{};
      out.struct_size = sizeof out;
      out.rank = -1;
      out.name = i ? pfrt_string{"kept", 4} : pfrt_string{"twice", 5};
      made = made && good(graphs_.add_output(bodies[i], &out));
    }
    pfrt_attr attrs[2] = {};
    for (int i = 0; i < 2; ++i) {
      attrs[i].struct_size = sizeof attrs[i];
      attrs[i].type = PFRT_ATTR_GRAPH;
      attrs[i].name = i ? pfrt_string{"else_branch", 11} : pfrt_string{"then_branch", 11};
      attrs[i].graph = bodies[i];
    }
    pfrt_value_info yes = info("yes", nullptr, nullptr);
    yes.dtype = PFRT_DTYPE_BOOL;
    yes.rank = 0;
    made = made && good(graphs_.add_input(request_.graph, &yes)) &&
           node(request_.graph, "If", {"yes"}, "y", attrs, 2);
    if (made && file.keep) {
      kept_body = bodies[0];
      graphs_.retain(kept_body);
    }
    graphs_.release(bodies[0]);
    graphs_.release(bodies[1]);
    return made;
  }

  pfrt_code state(const std::string& kind) {
    pfrt_state_pair pair{};
    pair.struct_size = sizeof pair;
    pair.input = {"h", 1};
    pair.output = {"following", 9};
    pair.growth = PFRT_STATE_REPLACED;
    if (kind == "grows") pair.growth = PFRT_STATE_GROWS;
    if (kind == "nowhere") pair.output = {"nowhere", 7};
    if (kind == "odd") pair.growth = 77;
    if (kind == "grows" || kind == "roomy") pair.capacity = 8;
    return request_.add_state(&request_, &pair, sink_);
  }

  pfrt_code build(const File& file, float scale) {
    bool made = good(graphs_.set_opset(request_.graph, {"", 0}, 21)) && input("x", "N");
    if (file.has_state && file.state == "grows") {
      pfrt_attr axis{};
      axis.struct_size = sizeof axis;
      axis.type = PFRT_ATTR_INT;
      axis.name = {"axis", 4};
      made = made && input("h", "P") &&
             node(request_.graph, "Concat", {"h", "x"}, "following", &axis, 1) &&
             output("following", "T");
    } else if (file.has_state) {
      made = made && input("h", "N") && node(request_.graph, "Add", {"x", "h"}, "following") &&
             output("following", "N");
    } else if (!file.fallback.empty()) {
      made = made && input("b", "M") && constant(request_.graph, "b", file.fallback) &&
             node(request_.graph, "Add", {"x", "b"}, "y") && output("y", "N");
    } else if (file.body) {
      made = made && with_body(file) && output("y", "N");
    } else {
      made = made && constant(request_.graph, "factor", {scale}) &&
             node(request_.graph, "Mul", {"x", "factor"}, "y") && output("y", "N");
    }
    if (!made) return fail(sink_, PFRT_CODE_INTERNAL, fault_);
    if (file.keep) {
      kept_graph = request_.graph;
      graphs_.retain(kept_graph);
    }
    return file.has_state ? state(file.state) : pfrt_code{PFRT_CODE_OK};
  }

  const pfrt_import_request& request_;
  const pfrt_sink* sink_;
  const pfrt_graph_api& graphs_;
  std::string fault_;
};

pfrt_code load(const pfrt_import_request* request, const pfrt_sink* sink) {
  return Loading(*request, sink).run();
}

size_t option_count() { return 4; }

pfrt_code option_at(size_t index, pfrt_option_info* out) {
  struct Row {
    const char* key;
    pfrt_option_type type;
    const char *fallback, *choices, *doc;
  };
  constexpr Row kRows[] = {
      {"scale", PFRT_OPTION_FLOAT, "1", "", "what x is multiplied by"},
      {"describe", PFRT_OPTION_STRING, "", "short long", "say something"},
      {"strict", PFRT_OPTION_BOOL, "false", "", "nothing"},
      {"most", PFRT_OPTION_INT, "0", "", "nothing"},
  };
  if (index >= 4) return PFRT_CODE_INVALID_ARGUMENT;
  const Row& row = kRows[index];
  const auto text = [](const char* s) { return pfrt_string{s, std::strlen(s)}; };
  out->type = row.type;
  out->key = text(row.key);
  out->default_value = text(row.fallback);
  out->choices = text(row.choices);
  out->doc = text(row.doc);
  return PFRT_CODE_OK;
}

constexpr pfrt_string kExtensions[] = {{kExtension, sizeof kExtension - 1}};
constexpr pfrt_importer_table kTable = {
    sizeof(pfrt_importer_table),
    PFRT_ABI_VERSION,
    kExtensions,
    1,
    probe,
    load,
    nullptr,
    option_count,
    option_at,
};

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info*, pfrt_plugin_desc* out) {
  out->abi = PFRT_ABI_VERSION;
  out->abi_major = PFRT_ABI_MAJOR;
  out->max_minor = PFRT_ABI_MINOR;
  out->kind = PFRT_PLUGIN_IMPORT;
#if defined(PFRT_SANITIZE_ADDRESS)
  out->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out->features = PFRT_IMPORTER_OPTIONS;
  out->name = {kName, sizeof kName - 1};
  out->version = {"1", 1};
  out->table = &kTable;
  return PFRT_CODE_OK;
}
