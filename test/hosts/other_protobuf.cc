// SPDX-License-Identifier: Apache-2.0
//
// A host that exports another protobuf: every symbol of the library that the ONNX importer needs is
// there first, for all to see, and wrong.
#include <dlfcn.h>

#include <cstdio>

#include "test/hosts/host.h"

extern "C" const unsigned pfrt_wrong_symbols;

int main(int argc, char** argv) {
  // Any user of messages has this symbol.
  const bool there =
      dlsym(RTLD_DEFAULT,
            "_ZN6google8protobuf11MessageLite20ParseFromCodedStreamEPNS0_2io16CodedInputStreamE") !=
      nullptr;
  std::printf("%u symbols are in the way\n", pfrt_wrong_symbols);
  if (!there || pfrt_wrong_symbols < 20) return 1;
  return host::check("another protobuf", argc, argv);
}
