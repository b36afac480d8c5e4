// SPDX-License-Identifier: Apache-2.0
#include "core/pass/engine/editors.h"

namespace pfrt {

Status Editors::visit(Graph& graph, const std::function<Status(Editor&)>& fn) {
  if (root_ != &graph) close();
  root_ = &graph;
  Status status = visit(graph, nullptr, fn);
  if (!status.ok()) close();
  return status;
}

void Editors::close() {
  open_.clear();
  root_ = nullptr;
}

Result<Editor*> Editors::open(Graph& graph, const InferState* outer) {
  Open& entry = open_[&graph];
  if (!entry.editor || (outer && entry.at != edits_)) {
    PFRT_ASSIGN(Editor editor, Editor::open(graph, outer, progress_));
    entry.editor = std::make_unique<Editor>(std::move(editor));
    entry.at = edits_;
  } else {
    PFRT_TRY(entry.editor->refresh());
  }
  return entry.editor.get();
}

Status Editors::visit(Graph& graph, const InferState* outer,
                      const std::function<Status(Editor&)>& fn) {
  PFRT_ASSIGN(Editor* const editor, open(graph, outer));
  const uint64_t before = editor->edits();
  for (NodeId id : graph.node_ids()) {
    // A node that only a body used is removed with the use, wherever it is in this order.
    if (!graph.node(id)) continue;
    Node& node = *graph.node(id);
    if (!has_bodies(node)) continue;
    const std::vector<ValueId> used = graph.used_by(node);
    const uint64_t edits = edits_;
    PFRT_TRY(for_each_body(node, [&](Graph& body) { return visit(body, &editor->state(), fn); }));
    if (edits_ != edits) editor->forget_uses(node, used);
  }
  PFRT_TRY(fn(*editor));
  if (graph.depth > 0) editor->drop_captures();
  edits_ += editor->edits() - before;
  return {};
}

}  // namespace pfrt
