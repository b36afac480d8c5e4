// SPDX-License-Identifier: Apache-2.0
//
// A host that has the standard's messages registered with the full protobuf library and uses them:
// its own, compiled in, or (with PFRT_ONNX_LIBRARY) those of Debian's ONNX library.
#include <dlfcn.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "test/hosts/host.h"
#ifndef PFRT_ONNX_LIBRARY
#include "onnx/onnx-ml.pb.h"
#endif

namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::Message;

// Reads the digits model with the host's messages and writes it again.
int use_messages(const char* when) {
  const Descriptor* type =
      DescriptorPool::generated_pool()->FindMessageTypeByName("onnx.ModelProto");
  if (!type) {
    std::fprintf(stderr, "%s: onnx.ModelProto is not registered\n", when);
    return 1;
  }
  std::ifstream file(PFRT_DIGITS, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<Message> model(factory.GetPrototype(type)->New());
  if (!model->ParseFromString(bytes)) return 1;
  std::string again;
  if (!model->SerializeToString(&again) || again.size() != bytes.size()) {
    std::fprintf(stderr, "%s: %zu bytes became %zu\n", when, bytes.size(), again.size());
    return 1;
  }
  return model->ShortDebugString().find("op_type") == std::string::npos ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
#ifdef PFRT_ONNX_LIBRARY
  if (!dlopen("libonnx.so.1", RTLD_NOW | RTLD_GLOBAL)) {
    std::printf("skipped: %s\n", dlerror());
    return host::kSkip;
  }
#else
  if (onnx::ModelProto::descriptor()->file()->name() != "onnx/onnx-ml.proto") return 1;
#endif
  int failed = use_messages("before");
  failed |= host::check("onnx messages", argc, argv);
  return failed | use_messages("after");
}
