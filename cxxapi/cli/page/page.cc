// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/page/page.h"

#include <algorithm>
#include <set>

#include "cxxapi/cli/page/assets.h"
#include "cxxapi/cli/page/categories.h"
#include "cxxapi/cli/page/markup.h"
#include "cxxapi/cli/page/svg.h"
#include "cxxapi/cli/print/text.h"

namespace cli {
namespace {

constexpr size_t kSummaryLines = 60;

void write_summary(const PageContents& contents, Markup* out) {
  out->raw("<details><summary>Summary</summary><div class=\"columns\"><dl>\n");
  size_t lines = 0;
  for (const auto& [name, text] : contents.summary) {
    if (++lines > kSummaryLines) break;
    out->raw("<dt>").text(name).raw("</dt><dd>").text(text, 300).raw("</dd>\n");
  }
  if (lines > kSummaryLines) {
    out->raw("<dt>more</dt><dd>").count(contents.summary.size() - kSummaryLines);
    out->raw(" lines, which inspect prints</dd>\n");
  }
  out->raw("</dl><table><tr><th>operator</th><th>before</th><th>after</th></tr>\n");
  OperatorCounts before = contents.before.operators, after;
  if (contents.after) after = contents.after->operators;
  for (const auto& [name, count] : after) before.emplace(name, 0);
  for (const auto& [name, count] : ranked(before)) {
    out->raw("<tr><td>").text(name, 80).raw("</td><td>").count(count).raw("</td><td>");
    if (contents.after) out->count(after[name]);
    out->raw("</td></tr>\n");
  }
  out->raw("</table></div></details>\n");
}

void write_bar(Markup* out) {
  out->raw(R"(<div class="bar"><b>Show</b>
<label><input type="radio" name="tab" id="tab-both" checked> both</label>
<label><input type="radio" name="tab" id="tab-before"> before</label>
<label><input type="radio" name="tab" id="tab-passes"> passes</label>
<label><input type="radio" name="tab" id="tab-after"> after</label>
<input type="search" id="search" placeholder="operator or name" aria-label="search">
<span id="hits"></span></div>
)");
}

void write_legend(const PageContents& contents, Markup* out) {
  std::set<std::string_view> used;
  const auto collect = [&](const PageGraph& graph) {
    for (const Drawing& drawing : graph.drawings) {
      for (const Box& box : drawing.boxes) used.insert(box.category);
    }
  };
  collect(contents.before);
  if (contents.after) collect(*contents.after);
  out->raw("<div class=\"legend\">");
  for (const Category& category : categories()) {
    if (used.count(category.name) == 0) continue;
    out->raw("<span><i class=\"k-").text(category.name).raw("\"></i>").text(category.text);
    out->raw("</span>\n");
  }
  out->raw("<span><i class=\"only\"></i>in this graph only</span></div>\n");
}

void write_view(const Drawing& drawing, std::string_view section, size_t index, Markup* out) {
  out->raw(R"(<p><button data-zoom="1.4">+</button> <button data-zoom="0.71">&minus;</button>
<button data-zoom="fit">fit</button> <button data-zoom="one">1:1</button>
<small>Ctrl and the wheel zoom, dragging moves</small></p><div class="view">)");
  write_svg(drawing, section, index, out);
  out->raw("</div>\n");
}

void write_graph(const PageGraph& graph, std::string_view section, std::string_view title,
                 Markup* out) {
  out->raw("<section id=\"").text(section).raw("\"><h2>").text(title).raw(": ");
  out->count(graph.nodes).raw(" nodes</h2>\n");
  if (graph.left_out > 0) {
    out->raw("<p>The graph is too large for a page: its last ").count(graph.left_out);
    out->raw(" boxes are not drawn. inspect prints all.</p>\n");
  }
  write_view(graph.drawings[0], section, 0, out);
  for (size_t i = 1; i < graph.drawings.size(); ++i) {
    out->raw("<details id=\"").text(section).raw("-body-").count(i).raw("\"><summary>");
    out->text(graph.drawings[i].title).raw("</summary>\n");
    write_view(graph.drawings[i], section, i, out);
    out->raw("</details>\n");
  }
  out->raw("<script type=\"application/json\" id=\"data-").text(section).raw("\">");
  write_data(graph.drawings, out);
  out->raw("</script></section>\n");
}

void write_report(const pyflame_rt::opt::PassReport& report, Markup* out) {
  const auto cell = [out](uint64_t count) { out->raw("<td>").count(count).raw("</td>"); };
  out->raw("<tr><td>").text(report.pass, 80).raw("</td>");
  cell(report.runs);
  cell(report.nodes_before);
  cell(report.nodes_after);
  cell(report.stats.nodes_removed);
  cell(report.stats.nodes_added);
  cell(report.stats.nodes_fused);
  cell(report.stats.constants_folded);
  cell(report.stats.initializers_removed);
  out->raw("<td>").text(time_text(report.milliseconds / 1e3)).raw("</td><td>");
  std::string rules;
  for (const auto& [rule, count] : report.stats.rules) {
    rules += (rules.empty() ? "" : ", ") + rule + " \u00d7 " + std::to_string(count);
  }
  out->text(rules).raw("</td></tr>\n");
}

void write_passes(const PageContents& contents, Markup* out) {
  out->raw("<section id=\"passes\"><h2>Passes, level ").text(contents.level).raw("</h2>\n");
  if (!contents.failure.empty()) {
    out->raw("<p>The passes failed: ").text(contents.failure, 1000).raw("</p>\n");
  } else if (contents.passes.reports.empty()) {
    out->raw("<p>This level has none: the second graph is the first one.</p>\n");
  } else {
    out->raw("<table><tr><th>pass</th><th>runs</th><th>nodes before</th><th>after</th>");
    out->raw("<th>removed</th><th>added</th><th>fused</th><th>folded</th>");
    out->raw("<th>initializers removed</th><th>time</th><th>rewrites</th></tr>\n");
    for (const auto& report : contents.passes.reports) write_report(report, out);
    out->raw("</table>\n");
  }
  for (const std::string& warning : contents.passes.warnings) {
    out->raw("<p>Warning: ").text(warning, 1000).raw("</p>\n");
  }
  out->raw("</section>\n");
}

}  // namespace

PageGraph page_graph(const pyflame_rt::Graph& graph) {
  PageGraph out;
  out.drawings = draw(graph);
  out.operators = count_operators(graph);
  out.nodes = count_nodes(graph);
  return out;
}

std::string write_html(const PageContents& contents) {
  Markup out;
  begin_page(out, contents.model, "", kStyle);
  out.raw("\n");
  write_summary(contents, &out);
  write_bar(&out);
  write_legend(contents, &out);
  out.raw("<main>\n");
  write_graph(contents.before, "before", "Before", &out);
  write_passes(contents, &out);
  if (contents.after) write_graph(*contents.after, "after", "After", &out);
  out.raw("</main><aside id=\"panel\" hidden></aside>\n<script>").raw(kScript);
  out.raw("</script></body></html>\n");
  return out.str();
}

}  // namespace cli
