// SPDX-License-Identifier: Apache-2.0
#include "core/provider/client_operator_state.h"

#include <vector>

namespace pfrt {
namespace {

// A call of a create_state callback: its arguments, and the message of its failure.
class CreateCall {
 public:
  CreateCall(const pfrt_snapshot& snapshot, uint32_t node, const pfrt_sink& sink) : sink_(sink) {
    const auto& n =
        *static_cast<const pfrt_snapshot_node*>(pfrt_at(snapshot.nodes, snapshot.node_size, node));
    const auto list = [&](const uint32_t* values, uint32_t count,
                          std::vector<pfrt_snapshot_value>& to) {
      for (uint32_t i = 0; i < count; ++i) {
        pfrt_snapshot_value& value = to.emplace_back();
        value.rank = -1;
        value.producer = PFRT_NO_INDEX;
        if (values[i] == PFRT_NO_INDEX) continue;
        const auto& known = *static_cast<const pfrt_snapshot_value*>(
            pfrt_at(snapshot.values, snapshot.value_size, values[i]));
        if (known.consumer_count > 0) value = known;
      }
    };
    list(n.inputs, n.input_count, inputs_);
    list(n.outputs, n.output_count, outputs_);
    context_.struct_size = sizeof context_;
    context_.abi = PFRT_ABI_VERSION;
    context_.host = this;
    context_.node = &n;
    context_.attr_size = snapshot.attr_size;
    context_.value_size = sizeof(pfrt_snapshot_value);
    context_.input_count = n.input_count;
    context_.output_count = n.output_count;
    context_.inputs = inputs_.data();
    context_.outputs = outputs_.data();
    context_.stop = [](const pfrt_op_create* c) { return of(c).sink_.stop(&of(c).sink_); };
    context_.fail = [](const pfrt_op_create* c, pfrt_code code, pfrt_string text) -> pfrt_code {
      try {
        if (of(c).text_.empty()) of(c).text_ = view(text);
      } catch (const std::bad_alloc&) {
        return PFRT_CODE_OUT_OF_MEMORY;
      }
      return code;
    };
  }

  const pfrt_op_create& context() const { return context_; }
  const std::string& text() const { return text_; }

 private:
  static CreateCall& of(const pfrt_op_create* c) { return *static_cast<CreateCall*>(c->host); }

  const pfrt_sink& sink_;
  pfrt_op_create context_{};
  std::vector<pfrt_snapshot_value> inputs_, outputs_;
  std::string text_;
};

}  // namespace

Result<OperatorState> OperatorState::create(const ClientOperator& op, const pfrt_snapshot& snapshot,
                                            uint32_t node, const std::string& label,
                                            const pfrt_sink& sink) {
  if (!op.has_states()) return OperatorState(op);
  CreateCall call(snapshot, node, sink);
  void* state = nullptr;
  const Code code = static_cast<Code>(op.create_state(call.context(), &state));
  if (code == Code::kOK) return OperatorState(op, state);
  return error(code, label, ": ",
               call.text().empty() ? message("its create_state callback failed: ", code_text(code))
                                   : call.text());
}

}  // namespace pfrt
