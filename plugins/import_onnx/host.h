// SPDX-License-Identifier: Apache-2.0
//
// The host as this plug-in meets it: statuses of the client tables turned into Status, handles that
// give their reference back, and a sink that keeps a message so that context can be put before it.
// Nothing here is shared between threads.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::onnx {

using ValueRef = std::unique_ptr<pfrt_value, void (*)(pfrt_value*)>;
using GraphRef = std::unique_ptr<pfrt_graph, void (*)(pfrt_graph*)>;

// Takes |status| over.
Status take_status(const pfrt_api& api, pfrt_status* status);

// The tables start with their size; a struct for them is zero but for its own.
template <typename T>
T sized() {
  T out{};
  out.struct_size = sizeof(T);
  return out;
}

// A sink for one call into the host. All but failures goes on to the sink it was made from.
class MessageSink {
 public:
  explicit MessageSink(const pfrt_sink& outer);
  MessageSink(const MessageSink&) = delete;
  MessageSink& operator=(const MessageSink&) = delete;

  const pfrt_sink* get() const { return &sink_; }
  // The failure that the call that returned |code| reported.
  Status status(pfrt_code code) const;

 private:
  const pfrt_sink& outer_;
  pfrt_sink sink_;
  std::string message_;
};

}  // namespace pfrt::onnx
