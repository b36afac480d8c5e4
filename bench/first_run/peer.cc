// SPDX-License-Identifier: Apache-2.0
#include <onnxruntime_cxx_api.h>

#include <array>
#include <cstdio>

int main(int, char** arguments) {
  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "first_run");
  Ort::Session session(env, arguments[1], Ort::SessionOptions());
  std::array<float, 64> pixels{};
  const std::array<int64_t, 4> dims{1, 1, 8, 8};
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeCPU);
  const auto image = Ort::Value::CreateTensor<float>(memory, pixels.data(), pixels.size(),
                                                     dims.data(), dims.size());
  const char* inputs[] = {"image"};
  const char* outputs[] = {"probabilities"};
  auto results = session.Run(Ort::RunOptions(), inputs, &image, 1, outputs, 1);
  std::printf("%.4f\n", results[0].GetTensorData<float>()[5]);
}
