// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/inspect_page.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <pyflame_rt/opt/passes.hpp>

#include "cxxapi/cli/page/page.h"
#include "cxxapi/cli/print/json.h"
#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

using pyflame_rt::Graph;

constexpr size_t kMostBoxes = 8000;  // of a graph; browsers take long for more

// Infers shapes, for people; a graph that contradicts itself is shown without them.
void infer(Graph* graph) {
  try {
    graph->infer_shapes();
  } catch (const pyflame_rt::PyFlameRTError&) {
  }
}

void write_file(const std::string& path, const std::string& bytes) {
  const auto fail = [&path] {
    throw UsageError("cannot write the page to '" + path + "': " + std::strerror(errno));
  };
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail();
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const int reason = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) errno = reason;
  if (!written || !closed) fail();
}

}  // namespace

int write_page(const InspectArgs& args, const pyflame_rt::Model& model, const Graph& graph) {
  PageContents contents;
  contents.model = args.model;
  contents.level = args.session.level;
  contents.summary = summarise(model, graph);
  Graph before = graph.clone();
  infer(&before);
  contents.before = page_graph(before);
  try {
    Graph after = graph.clone();
    contents.passes =
        pyflame_rt::opt::optimize(after, session_options(args.session).optimization_level);
    infer(&after);
    contents.after = page_graph(after);
    compare(&contents.before.drawings, &contents.after->drawings);
  } catch (const pyflame_rt::PyFlameRTError& error) {
    contents.failure = error.what();
    std::fprintf(stderr, "pfrt: the page has no optimised graph: %s\n",
                 one_line(error.what()).c_str());
  }
  contents.before.left_out = shorten(&contents.before.drawings, kMostBoxes);
  if (contents.after) contents.after->left_out = shorten(&contents.after->drawings, kMostBoxes);
  const std::string html = write_html(contents);
  write_file(args.html, html);
  if (args.json) {
    Json json;
    json.object().field("model", args.model).field("html", args.html).field("bytes", html.size());
    json.field("level", contents.level).field("nodes_before", contents.before.nodes);
    if (contents.after) json.field("nodes_after", contents.after->nodes);
    json.end().print();
  } else {
    std::printf("wrote %s: %zu nodes, %s after level %s, %s\n", args.html.c_str(),
                contents.before.nodes,
                contents.after ? std::to_string(contents.after->nodes).c_str() : "unknown",
                contents.level.c_str(), bytes_text(html.size()).c_str());
  }
  return 0;
}

}  // namespace cli
