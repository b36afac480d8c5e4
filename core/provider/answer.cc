// SPDX-License-Identifier: Apache-2.0
//
#include "core/provider/answer.h"

#include "core/base/abi/sized.h"
#include "core/base/foreign.h"
#include "core/base/rank.h"

namespace pfrt {
namespace {

pfrt_tensor view_of(const Tensor& tensor) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = tensor.dtype;
  t.rank = static_cast<uint32_t>(tensor.dims.size());
  t.data = tensor.data();
  t.bytes = tensor.bytes();
  t.dims = tensor.dims.data();
  return t;
}

// The reason why the host does not take |t| as a part of an answer, or empty.
std::string fault_of(const pfrt_tensor& t) {
  if (t.dtype == PFRT_DTYPE_UNSET) return "has no dtype";
  if (t.rank > kMaxRank)
    return message("has rank ", t.rank, ", at most ", kMaxRank, " is possible");
  if (t.rank && !t.dims) return message("has rank ", t.rank, " and no dims");
  if (t.memory != PFRT_MEMORY_HOST || t.strides || t.quantization || t.extension)
    return "is not plain row-major host memory";
  const uint64_t needed = tensor_bytes(t.dtype, element_count(t.dims, t.rank));
  if (needed == UINT64_MAX) return "has a negative or an overflowing dimension";
  if (t.bytes != needed) return message("has ", t.bytes, " bytes, its shape needs ", needed);
  return needed && !t.data ? "has no data" : "";
}

// Keeps the answer, and the first fault in it.
struct Collector {
  Code blame;  // of faults
  Answer answer;
  Status fault;
  bool no_memory = false;

  Status outcome() {
    if (no_memory) return error(Code::kOUT_OF_MEMORY, "no memory is left for the answer");
    return std::move(fault);
  }
  void add(std::string_view name, const pfrt_tensor* tensor) {
    if (!fault.ok()) return;
    fault = take(name, tensor);
  }

 private:
  Status take(std::string_view name, const pfrt_tensor* tensor) {
    const auto wrong = [&](std::string_view what) {
      return error(blame, "its tensor '", name, "' ", what);
    };
    if (name.empty() || !tensor) return wrong(tensor ? "has no name" : "is NULL");
    for (const auto& [given, unused] : answer.tensors)
      if (given == name) return wrong("was given before");
    const std::string which = message("its tensor '", name, "'");
    PFRT_TRY(abi::by_plugin(abi::check(*tensor), blame).prepend(which));
    if (tensor->dtype != PFRT_DTYPE_UNSET && !dtype_known(tensor->dtype))
      return abi::unknown_number(which, "dtype", tensor->dtype);
    const std::string what = fault_of(*tensor);
    if (!what.empty()) return wrong(what);
    const char* data = static_cast<const char*>(tensor->data);
    PFRT_ASSIGN(Tensor copy,
                Tensor::copy_of(tensor->dtype, Dims(tensor->dims, tensor->dims + tensor->rank),
                                data ? data + tensor->offset : data));
    answer.tensors.emplace_back(name, std::move(copy));
    return {};
  }
};

template <typename Fn>
void collect(const pfrt_answer* table, Fn&& fn) {
  auto& collector = *static_cast<Collector*>(table->host);
  if (!call_foreign([&] { fn(collector); })) collector.no_memory = true;
}

}  // namespace

Result<Answer> ask_plugin(const Question& question, const AskedPlugin& asked, Sink& sink,
                          std::string_view doing) {
  std::vector<pfrt_tensor> tensors;
  tensors.reserve(question.tensors.size());
  for (const Tensor& tensor : question.tensors) tensors.push_back(view_of(tensor));
  pfrt_question in_c{};
  in_c.struct_size = sizeof in_c;
  in_c.abi = PFRT_ABI_VERSION;
  in_c.verb = to_c(question.verb);
  in_c.request = to_c(question.request);
  in_c.tensors = tensors.data();
  in_c.tensor_size = sizeof(pfrt_tensor);
  in_c.tensor_count = tensors.size();
  in_c.threads = question.threads;
  const bool service = asked.kind == PFRT_PLUGIN_SERVICE;
  const pfrt_code blame = service ? PFRT_CODE_PLUGIN : PFRT_CODE_PROVIDER;
  Collector collector{static_cast<Code>(blame), {}, {}, false};
  pfrt_answer table{};
  table.struct_size = sizeof table;
  table.abi = PFRT_ABI_VERSION;
  table.host = &collector;
  table.text = [](const pfrt_answer* t, pfrt_string text) {
    collect(t, [&](Collector& c) { c.answer.text += view(text); });
  };
  table.tensor = [](const pfrt_answer* t, pfrt_string name, const pfrt_tensor* tensor) {
    collect(t, [&](Collector& c) { c.add(view(name), tensor); });
  };
  const pfrt_code code = sink.call([&] { return asked.ask(&in_c, &table, sink.get()); }, blame,
                                   service ? "plug-in" : "provider");
  PFRT_TRY(sink.status(code, doing));
  if (Status fault = collector.outcome(); !fault.ok()) return fault.prepend(std::string(doing));
  return std::move(collector.answer);
}

}  // namespace pfrt
