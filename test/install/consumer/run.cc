// SPDX-License-Identifier: Apache-2.0
//
// Does what run.c does, through the C++ API.
#include <iostream>
#include <pyflame_rt/pyflame_rt.hpp>

int main(int argc, char** argv) try {
  if (argc < 2) return 2;
  pyflame_rt::InferenceSession session(argv[1]);
  pyflame_rt::Tensor image({1, 1, 8, 8}, pyflame_rt::DType::Float32);
  std::cout << session.run({}, {{"image", image}})[0].shape()[1] << " classes\n";
} catch (const std::exception& e) {
  std::cerr << "run_cxx: " << e.what() << "\n";
  return 1;
}
