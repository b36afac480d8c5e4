// SPDX-License-Identifier: Apache-2.0
//
// Inputs and outputs bound once for many runs: memory is reused, results may stay on the device
// that makes them and be bound as inputs again without a copy. Used by one thread at a time; the
// session must outlive it.
//
//   IOBinding binding(session);
//   binding.bind_input("x", state);
//   binding.bind_output("y", OutputMemory::Device);
//   binding.run();
//   binding.bind_input("x", binding.output("y"));
#pragma once

#include <pyflame_rt/session.hpp>
#include <string>
#include <vector>

namespace pyflame_rt {

// Memory in which a run allocates an output. Device: that of the device that makes it, or host
// memory when no device does.
enum class OutputMemory { Host, Device };

// Bindings of one session.
class IOBinding {
 public:
  // Starts with nothing bound; the session must outlive the object.
  explicit IOBinding(const InferenceSession& session)
      : session_(&session),
        inputs_(session.get_inputs().size()),
        outputs_(session.get_outputs().size()) {}

  // Binds an input. The value is kept; its elements are read at each run. Throws InputError for a
  // name that the model does not have.
  void bind_input(const std::string& name, const Value& value) {
    if (!value.is_valid()) throw InputError("input '" + name + "' was bound to an empty object");
    inputs_[find(session_->get_inputs(), name, "input")] = value;
  }
  // Binds an output to |tensor|, on the host or a device. Each run writes into it; it must have the
  // result's type and size.
  void bind_output(const std::string& name, const Tensor& tensor) {
    if (!tensor.is_valid()) throw InputError("output '" + name + "' was bound to an empty object");
    Output& output = outputs_[find(session_->get_outputs(), name, "output")];
    output = {true, true, OutputMemory::Host, tensor};
  }
  // Binds an output that each run allocates anew.
  void bind_output(const std::string& name, OutputMemory memory = OutputMemory::Host) {
    outputs_[find(session_->get_outputs(), name, "output")] = {true, false, memory, {}};
  }
  // Unbinds all inputs.
  void clear_inputs() { inputs_.assign(inputs_.size(), Value()); }
  // Unbinds all outputs, and releases the last run's results.
  void clear_outputs() { outputs_.assign(outputs_.size(), Output()); }

  // Computes the bound outputs. Throws what InferenceSession::run throws; outputs are then those of
  // the run before.
  void run() { run_with(nullptr); }
  void run(const RunOptions& options) {
    options.call([&](const pfrt_run_desc* desc) { run_with(desc); });
  }

  // Returns the last run's result; throws InputError when there is none.
  Value output(const std::string& name) const {
    const Output& output = outputs_[find(session_->get_outputs(), name, "output")];
    if (!output.value.is_valid()) throw InputError("output '" + name + "' has no result yet");
    return output.value;
  }
  // Results of the bound outputs, in the model's order.
  std::vector<Value> outputs() const {
    std::vector<Value> out;
    for (const Output& output : outputs_) {
      if (output.bound && output.value.is_valid()) out.push_back(output.value);
    }
    return out;
  }

 private:
  struct Output {
    bool bound = false, given = false;  // wanted; into the caller's tensor
    OutputMemory memory = OutputMemory::Host;
    Value value;
  };

  static size_t find(const std::vector<NodeArg>& args, const std::string& name, const char* what) {
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].name == name) return i;
    }
    throw InputError(std::string("binding: the model has no ") + what + " '" + name + "'");
  }
  static pfrt_io empty_io() {
    pfrt_io io{};
    io.struct_size = sizeof(io);
    io.tensor.struct_size = sizeof(io.tensor);
    return io;
  }
  void run_with(const pfrt_run_desc* desc) {
    std::vector<pfrt_io> in(inputs_.size(), empty_io()), out(outputs_.size(), empty_io());
    for (size_t i = 0; i < in.size(); ++i) in[i].value = inputs_[i].handle();
    for (size_t i = 0; i < out.size(); ++i) {
      const Output& output = outputs_[i];
      if (!output.bound) out[i].flags = PFRT_IO_SKIP;
      if (output.given) out[i].value = output.value.handle();
      if (output.bound && output.memory == OutputMemory::Device) out[i].flags = PFRT_IO_ON_DEVICE;
    }
    detail::check(
        api().session->run(session_->handle(), in.data(), in.size(), out.data(), out.size(), desc));
    for (size_t i = 0; i < out.size(); ++i) {
      if (!outputs_[i].bound || outputs_[i].given) continue;
      outputs_[i].value = Value::from_handle(detail::Handle<pfrt_value>::adopt(out[i].value));
    }
  }

  const InferenceSession* session_;
  std::vector<Value> inputs_;
  std::vector<Output> outputs_;
};

}  // namespace pyflame_rt
