// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <pyflame_rt/session.hpp>

int main(int, char** arguments) {
  pyflame_rt::InferenceSession session(arguments[1]);
  const auto results =
      session.run({}, {{"image", pyflame_rt::Tensor({1, 1, 8, 8}, pyflame_rt::DType::Float32)}});
  std::printf("%.4f\n", results[0].data_ptr<float>()[5]);
}
