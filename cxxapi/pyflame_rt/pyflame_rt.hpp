// SPDX-License-Identifier: Apache-2.0
//
// The whole C++ API: header-only, C++17, over the C library (link pyflame_rt::cxx).
//
//   pyflame_rt::InferenceSession session("model.onnx");
//   std::vector<pyflame_rt::Tensor> results = session.run({}, {{"input", tensor}});
//
// Objects of this API are cheap handles of the library's objects. Failures are exceptions
// (error.hpp).
#pragma once

#include <pyflame_rt/api.hpp>
#include <pyflame_rt/ask.hpp>
#include <pyflame_rt/backend.hpp>
#include <pyflame_rt/benchmark.hpp>
#include <pyflame_rt/cpu_executor.hpp>
#include <pyflame_rt/custom/custom_op.hpp>
#include <pyflame_rt/env.hpp>
#include <pyflame_rt/error.hpp>
#include <pyflame_rt/executor.hpp>
#include <pyflame_rt/graph.hpp>
#include <pyflame_rt/import/onnx_importer.hpp>
#include <pyflame_rt/io_binding.hpp>
#include <pyflame_rt/measure.hpp>
#include <pyflame_rt/memory/memory_pool.hpp>
#include <pyflame_rt/model_io.hpp>
#include <pyflame_rt/node.hpp>
#include <pyflame_rt/opt/pass.hpp>
#include <pyflame_rt/opt/passes.hpp>
#include <pyflame_rt/opt/pattern_matcher.hpp>
#include <pyflame_rt/options.hpp>
#include <pyflame_rt/partition/wse.hpp>
#include <pyflame_rt/quantization/half_types.hpp>
#include <pyflame_rt/registry.hpp>
#include <pyflame_rt/service.hpp>
#include <pyflame_rt/session.hpp>
#include <pyflame_rt/state.hpp>
#include <pyflame_rt/tensor.hpp>
#include <pyflame_rt/tuning/auto_tuner.hpp>
#include <pyflame_rt/types.hpp>
#include <pyflame_rt/value.hpp>
