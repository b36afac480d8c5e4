// SPDX-License-Identifier: Apache-2.0
#include "core/provider/client_operator.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "core/base/dtype.h"
#include "core/base/foreign.h"
#include "core/base/lock.h"
#include "core/base/rank.h"
#include "core/provider/snapshot.h"

namespace pfrt {
namespace {

// The code for the result of a callback; kPROVIDER where a callback may not return it.
Code failure(pfrt_code code) {
  const bool known = code > PFRT_CODE_OK && code <= PFRT_CODE_INTERNAL;
  const bool stopped = code == PFRT_CODE_CANCELLED || code == PFRT_CODE_DEADLINE;
  return known && !stopped ? static_cast<Code>(code) : Code::kPROVIDER;
}

// What a callback with |context| that ended with |code| makes of it: a stop counts only where the
// host wants one.
template <typename Context>
pfrt_code checked(const Context& context, pfrt_code code) {
  if (code == PFRT_CODE_OK) return code;
  const bool stopped = code == PFRT_CODE_CANCELLED || code == PFRT_CODE_DEADLINE;
  if (stopped && context.stop(&context) != PFRT_CODE_OK) return context.stop(&context);
  return static_cast<pfrt_code>(failure(code));
}

// A call of a shape callback: its arguments and its answer.
class InferCall {
 public:
  InferCall(Inference& inference, const OperatorTypes& types)
      : inference_(inference), types_(types) {
    for (size_t i = 0; i < inference.input_count(); ++i) inputs_.push_back(input(i));
    const Node& node = inference.node();
    for (ValueId out : node.outputs)
      output_names_.push_back(out == kNoId ? pfrt_string{} : to_c(inference.graph().at(out).name));
    for (const Attribute& attr : node.attrs) {
      pfrt_snapshot_attr one{};
      if (view_attribute(attr, strings_, &one)) attrs_.push_back(one);
    }
    node_.name = to_c(node.name);
    node_.op = to_c(node.op);
    node_.domain = to_c(node.domain);
    node_.id = node.id;
    node_.canonical = 1;
    node_.opset = snapshot_opset(inference.graph(), node);
    node_.inputs = node.inputs.data();
    node_.input_count = static_cast<uint32_t>(node.inputs.size());
    node_.outputs = node.outputs.data();
    node_.output_count = static_cast<uint32_t>(node.outputs.size());
    node_.attrs = attrs_.data();
    node_.attr_count = attrs_.size();
    set_.resize(node.outputs.size(), false);

    context_.struct_size = sizeof context_;
    context_.abi = PFRT_ABI_VERSION;
    context_.host = this;
    context_.node = &node_;
    context_.attr_size = sizeof(pfrt_snapshot_attr);
    context_.value_size = sizeof(pfrt_snapshot_value);
    context_.input_count = static_cast<uint32_t>(inputs_.size());
    context_.output_count = static_cast<uint32_t>(node.outputs.size());
    context_.inputs = inputs_.data();
    context_.output_names = output_names_.data();
    context_.set_output = [](const pfrt_op_infer* c, uint32_t index, pfrt_dtype dtype, int32_t rank,
                             const int64_t* dims) -> pfrt_code {
      InferCall& self = *static_cast<InferCall*>(c->host);
      try {
        Status status = self.set_output(index, dtype, rank, dims);
        if (status.ok()) return PFRT_CODE_OK;
        if (self.fault_.ok()) self.fault_ = std::move(status);
        return static_cast<pfrt_code>(self.fault_.code());
      } catch (const std::bad_alloc&) {
        return PFRT_CODE_OUT_OF_MEMORY;
      }
    };
    context_.fail = [](const pfrt_op_infer* c, pfrt_code code, pfrt_string text) -> pfrt_code {
      InferCall& self = *static_cast<InferCall*>(c->host);
      try {
        if (self.fault_.ok()) self.fault_ = self.fault(failure(code), view(text));
      } catch (const std::bad_alloc&) {
        return PFRT_CODE_OUT_OF_MEMORY;
      }
      return code;
    };
  }

  const pfrt_op_infer& context() const { return context_; }
  bool was_set(size_t i) const { return set_[i]; }

  Status finish(pfrt_code code) {
    if (!fault_.ok()) return std::move(fault_);
    if (code == PFRT_CODE_OK) return {};
    return fault(failure(code),
                 message("its shape callback failed: ", code_text(static_cast<Code>(code))));
  }

  Status fault(Code code, std::string_view text) const {
    return error(code, describe(inference_.graph(), inference_.node()), ": ", text);
  }

 private:
  // Unknown dimensions are numbered: -1 - index.
  int64_t number_of(const Dim& dim) {
    if (dim.known()) return dim.value();
    for (size_t i = 0; i < open_.size(); ++i)
      if (open_[i] == dim) return -1 - static_cast<int64_t>(i);
    open_.push_back(dim);
    return -static_cast<int64_t>(open_.size());
  }

  pfrt_snapshot_value input(size_t i) {
    pfrt_snapshot_value to{};
    to.rank = -1;
    to.producer = PFRT_NO_INDEX;
    if (!inference_.has_input(i)) return to;
    const Graph& graph = inference_.graph();
    const ValueId id = inference_.node().inputs[i];
    const Type& type = inference_.input(i);
    to.name = to_c(graph.at(id).name);
    to.dtype = type.dtype;
    if (type.has_shape) {
      std::vector<int64_t>& dims = dims_.emplace_back();
      for (const Dim& d : type.shape) dims.push_back(number_of(d));
      to.rank = static_cast<int32_t>(dims.size());
      to.dims = dims.data();
    }
    if (const Tensor* constant = inference_.constant(i)) {
      to.flags |= PFRT_SNAPSHOT_CONSTANT;
      to.data = constant->data();
      to.bytes = constant->bytes();
    } else if (const auto numbers = inference_.numbers(i); numbers && dtype_size(type.dtype)) {
      // These contents follow from other shapes: integers of the input's own width.
      const size_t size = dtype_size(type.dtype);
      std::vector<char>& bytes = contents_.emplace_back(numbers->size() * size);
      for (size_t k = 0; k < numbers->size(); ++k)
        std::memcpy(bytes.data() + k * size, &(*numbers)[k], size);
      to.data = bytes.data();
      to.bytes = bytes.size();
    }
    return to;
  }

  Status set_output(uint32_t index, pfrt_dtype dtype, int32_t rank, const int64_t* dims) {
    const auto wrong = [&](const auto&... parts) {
      return fault(Code::kPROVIDER,
                   message("its shape callback says that output ", index, parts...));
    };
    if (index >= set_.size()) return wrong(" exists; the node has ", set_.size());
    if (dtype == PFRT_DTYPE_UNSET) return wrong(" has no dtype");
    if (!dtype_known(dtype))
      return fault(Code::kUNSUPPORTED, message("its shape callback gives output ", index, " dtype ",
                                               dtype, ", which this version does not have"));
    if (const pfrt_dtype named = types_.output(index); named && named != dtype)
      return wrong(" is ", dtype_name(dtype), "; the operator is registered for ",
                   dtype_name(named));
    if (rank < -1 || rank > static_cast<int32_t>(kMaxRank)) return wrong(" has rank ", rank);
    if (rank > 0 && !dims) return wrong(" has rank ", rank, ", and gives no dimensions");
    const ValueId out = inference_.node().outputs[index];
    if (out == kNoId) return {};
    const Type& declared = inference_.graph().at(out).type;
    if (declared.is_tensor() && declared.dtype != PFRT_DTYPE_UNSET && declared.dtype != dtype)
      return fault(Code::kDTYPE_MISMATCH,
                   message("its shape callback says that output ", index, " is ", dtype_name(dtype),
                           ", the graph says ", dtype_name(declared.dtype)));
    set_[index] = true;
    if (rank < 0) {
      inference_.set_output_unknown_shape(index, dtype);
      return {};
    }
    Shape shape;
    std::vector<int64_t> numbers;
    for (int32_t d = 0; d < rank; ++d) {
      const int64_t n = dims[d];
      if (n >= 0) numbers.push_back(n);
      const bool known = n < 0 && static_cast<uint64_t>(-1 - n) < open_.size();
      shape.push_back(n >= 0 ? Dim(n) : known ? open_[static_cast<size_t>(-1 - n)] : Dim());
    }
    // An impossible number of elements is an error even where a zero makes the tensor empty.
    std::erase(numbers, 0);
    if (tensor_bytes(dtype, element_count(numbers.data(), numbers.size())) == UINT64_MAX)
      return wrong(" has more elements than an address space");
    inference_.set_output(index, dtype, std::move(shape));
    return {};
  }

  Inference& inference_;
  const OperatorTypes& types_;
  pfrt_op_infer context_{};
  pfrt_snapshot_node node_{};
  std::vector<pfrt_snapshot_value> inputs_;
  std::vector<pfrt_string> output_names_;
  std::vector<pfrt_snapshot_attr> attrs_;
  std::deque<std::vector<pfrt_string>> strings_;
  std::deque<std::vector<int64_t>> dims_;
  std::deque<std::vector<char>> contents_;
  std::vector<Dim> open_;
  std::vector<bool> set_;
  Status fault_;
};

bool passable(const Attribute& attr) {
  std::deque<std::vector<pfrt_string>> strings;
  pfrt_snapshot_attr view{};
  return view_attribute(attr, strings, &view);
}

// Whether everything that decides the outputs' dimensions is known.
bool inputs_are_known(const Inference& inference, const OperatorDef& row) {
  for (size_t i = 0; i < inference.input_count(); ++i) {
    if (!inference.has_input(i)) continue;
    if (!inference.input(i).fixed()) return false;
    if (i < 32 && (row.shape_inputs >> i & 1u) && !inference.constant(i) && !inference.numbers(i))
      return false;
  }
  return true;
}

// Reads the types of at most |most| inputs or outputs (PFRT_ANY_NUMBER = any number). The text says
// what is wrong with them; it is empty when nothing is.
std::string read_types(const pfrt_dtype* given, uint32_t count, uint32_t most,
                       std::string_view what, std::vector<pfrt_dtype>& out) {
  if (count && !given) return message("it counts types of ", count, " ", what, "s and lists none");
  if (count > std::max(most, 1u))
    return message("it names types of ", count, " ", what, "s and has at most ", most);
  out.assign(given, given + count);
  const auto wrong = std::ranges::find_if(
      out, [](pfrt_dtype type) { return type != PFRT_DTYPE_UNSET && !dtype_known(type); });
  if (wrong == out.end()) return {};
  return message("the type of ", what, " ", wrong - out.begin(), " is ", *wrong,
                 ", which is no element type");
}

}  // namespace

Result<std::shared_ptr<const ClientOperator>> ClientOperator::create(const pfrt_custom_op& op,
                                                                     std::string origin,
                                                                     std::shared_ptr<void> keep) {
  const auto wrong = [&](const auto&... parts) {
    return error(Code::kINVALID_ARGUMENT, "registering operator '", view(op.name), "' of ", origin,
                 ": ", parts...);
  };
  constexpr uint32_t kMany = 1u << 16;
  if (op.name.size == 0) return wrong("it has no name");
  if (!op.compute) return wrong("it has no compute function");
  if (op.release_state && !op.create_state)
    return wrong("it has release_state and no create_state; set both or neither");
  OperatorDef row{};
  const uint32_t since = std::max(op.since_version, 1u);
  if (since > INT32_MAX) return wrong("it is known since version ", since);
  if (op.until_version && (op.until_version < since || op.until_version > INT32_MAX))
    return wrong("it is known from version ", since, " to ", op.until_version);
  row.since = static_cast<int>(since);
  row.until = static_cast<int>(op.until_version);
  const auto range = [&](uint32_t least, uint32_t most, int& out_least, int& out_most) {
    if (most == 0) most = least;
    if (least > kMany || (most != PFRT_ANY_NUMBER && (most > kMany || most < least))) return false;
    out_least = static_cast<int>(least);
    out_most = most == PFRT_ANY_NUMBER ? -1 : static_cast<int>(most);
    return true;
  };
  if (!range(op.min_inputs, op.max_inputs, row.min_inputs, row.max_inputs))
    return wrong("it takes ", op.min_inputs, " to ", op.max_inputs, " inputs");
  if (!range(std::max(op.min_outputs, 1u), op.max_outputs, row.min_outputs, row.max_outputs))
    return wrong("it has ", op.min_outputs, " to ", op.max_outputs, " outputs");
  if (!op.infer || (op.flags & PFRT_OP_DATA_DEPENDENT)) row.flags = kOpDataDependent;
  row.shape_inputs = op.content_inputs;
  OperatorTypes types;
  std::string fault = read_types(op.input_types, op.input_type_count,
                                 row.max_inputs < 0 ? kMany : static_cast<uint32_t>(row.max_inputs),
                                 "input", types.inputs);
  if (fault.empty())
    fault = read_types(op.output_types, op.output_type_count,
                       row.max_outputs < 0 ? kMany : static_cast<uint32_t>(row.max_outputs),
                       "output", types.outputs);
  if (!fault.empty()) return wrong(fault);
  return std::shared_ptr<const ClientOperator>(std::make_shared<ClientOperator>(
      op, std::move(origin), row, std::move(types), std::move(keep)));
}

ClientOperator::ClientOperator(const pfrt_custom_op& op, std::string origin, OperatorDef row,
                               OperatorTypes types, std::shared_ptr<void> keep)
    : CustomOperator(std::string(view(op.domain)), std::string(view(op.name)), std::move(origin),
                     row, std::move(types)),
      keep_(std::move(keep)),
      op_(op) {}

Status ClientOperator::infer(Inference& inference) const {
  const Node& node = inference.node();
  for (const Attribute& attr : node.attrs)
    if (!passable(attr))
      return error(Code::kUNSUPPORTED, describe(inference.graph(), node), ": attribute '",
                   attr.name,
                   "' is a graph, a type or a sparse tensor; registered operators take "
                   "numbers, texts, dense tensors and lists of numbers and texts");
  InferCall call(inference, types());
  if (op_.infer) {
    pfrt_code code = PFRT_CODE_PROVIDER;
    try {
      code = op_.infer(op_.user, &call.context());
    } catch (const std::bad_alloc&) {
      code = PFRT_CODE_OUT_OF_MEMORY;
    } catch (...) {
      return call.fault(Code::kPROVIDER, "its shape callback threw an exception");
    }
    PFRT_TRY(call.finish(code));
  }
  const bool known = inputs_are_known(inference, row());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoId) continue;
    if (!call.was_set(i)) {
      const Type& declared = inference.graph().at(node.outputs[i]).type;
      const bool typed = declared.is_tensor() && declared.dtype != PFRT_DTYPE_UNSET;
      const pfrt_dtype named = types().output(i);
      inference.set_output_unknown_shape(i, named   ? named
                                            : typed ? declared.dtype
                                                    : inference.input(0).dtype);
    }
    if (known && !(row().flags & kOpDataDependent) && !inference.output(i).fixed())
      return call.fault(Code::kPROVIDER,
                        message("its shape callback leaves dimensions of output ", i,
                                " open though those of all inputs are known; register the "
                                "operator with PFRT_OP_DATA_DEPENDENT if only a run can tell"));
  }
  return {};
}

pfrt_code ClientOperator::compute(const pfrt_op_compute& context) const {
  std::unique_lock<std::recursive_timed_mutex> lock;
  if (op_.flags & PFRT_OP_SERIAL) {
    lock = lock_unless(serial_, [&] { return context.stop(&context) != PFRT_CODE_OK; });
    if (!lock.owns_lock()) return context.stop(&context);
  }
  try {
    return checked(context, op_.compute(op_.user, &context));
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (...) {
    return context.fail(&context, PFRT_CODE_PROVIDER,
                        to_c("its compute callback threw an exception"));
  }
}

pfrt_code ClientOperator::create_state(const pfrt_op_create& context, void** out_state) const {
  try {
    return checked(context, op_.create_state(op_.user, &context, out_state));
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (...) {
    return context.fail(&context, PFRT_CODE_PROVIDER,
                        to_c("its create_state callback threw an exception"));
  }
}

void ClientOperator::release_state(void* state) const noexcept {
  if (state && op_.release_state) call_foreign([&] { op_.release_state(op_.user, state); });
}

}  // namespace pfrt
