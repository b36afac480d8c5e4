// SPDX-License-Identifier: Apache-2.0
//
// The commands of the tool: the arguments of each, and the function that does it. A command returns
// the exit code: 0 done, 1 the work failed, 130 interrupted; bad input is thrown as UsageError or a
// PyFlameRTError.
#pragma once

#include <pyflame_rt/options.hpp>
#include <string>
#include <vector>

#include "cxxapi/cli/line/usage_error.h"

namespace cli {

// Arguments of all commands that open a session.
struct SessionArgs {
  std::vector<std::string> providers;
  std::string device;                // empty = the default
  std::vector<std::string> options;  // WORD.KEY=VALUE, of providers
  std::string level;                 // empty = the default
  std::string precision, max_error;  // empty = the default
  std::string mode;                  // of execution; empty = the default
  std::string cache_dir;             // of compiled models; empty = that of PFRT_CACHE_DIR
  int threads = 0;
  bool verify = false, tune = false;
  std::vector<std::string> skip;  // optimisation passes
};
pyflame_rt::SessionOptions session_options(const SessionArgs& args);

struct RunArgs {
  bool json = false;
  std::string model, output;
  std::vector<std::string> inputs, dims;  // NAME=SOURCE, NAME=N
  SessionArgs session;
  int repeat = 1;
};
int run_command(const RunArgs& args);

struct TestArgs {
  bool json = false;
  std::vector<std::string> dirs;
  double rtol = 1e-3, atol = 1e-5;
  std::string report;
  SessionArgs session;
  int timeout_seconds = 120;
};
int test_command(const TestArgs& args);

struct BenchArgs {
  bool json = false;
  std::string model, peer;
  std::vector<std::string> inputs, dims;  // NAME=FILE, NAME=N
  SessionArgs session;
  double seconds = 5;
};
int bench_command(const BenchArgs& args);

struct InspectArgs {
  bool json = false;
  bool memory = false;      // reports the memory of a session, too
  std::string model, html;  // html: the file that receives the page
  SessionArgs session;      // its level: of the page's second graph
};
int inspect_command(const InspectArgs& args);

struct CacheArgs {
  bool json = false, check = false;  // check: reads files as a whole
  std::string action, folder;        // list, clear or warm
  std::vector<std::string> models;   // of warm
  SessionArgs session;               // for warm
};
int cache_command(const CacheArgs& args);

struct TuneArgs {
  bool json = false;
  std::string model, folder;               // folder: empty = that of PFRT_CACHE_DIR
  std::string budget, search, iterations;  // empty = the session's defaults
  std::vector<std::string> inputs, dims;
  SessionArgs session;
};
int tune_command(const TuneArgs& args);

struct ExplainArgs {
  bool json = false;
  std::string model;
  std::vector<std::string> inputs, dims;
  SessionArgs session;
};
int explain_command(const ExplainArgs& args);

struct ProfileArgs {
  bool json = false;
  std::string model, output = "trace.json", html;
  int runs = 10;
  bool measure = true;  // measures the machine, for the page
  std::vector<std::string> inputs, dims;
  SessionArgs session;
};
int profile_command(const ProfileArgs& args);

struct ConvertArgs {
  bool json = false;
  std::string in, out;
  bool force = false;  // |out| may be |in|
};
int convert_command(const ConvertArgs& args);

struct OptimizeArgs {
  bool json = false;
  std::string in, out;
  bool force = false;             // |out| may be |in|
  std::vector<std::string> skip;  // passes
  bool verify = false;
  SessionArgs session;  // its level
};
int optimize_command(const OptimizeArgs& args);

struct CheckPluginArgs {
  bool json = false;
  std::string file;
};
int check_plugin_command(const CheckPluginArgs& args);

struct ListArgs {
  bool json = false;
  bool kernels = false;  // lists kernels of providers
  bool notes = false;    // lists notes on operators
};
int providers_command(const ListArgs& args);
int ops_command(const ListArgs& args);
int plugins_command(const ListArgs& args);

struct WseArgs {
  bool json = false;
  std::string what;                       // a model's file, or "validate", or "machine"
  std::string machine = "wse2";           // a device's word, or a machine file
  std::string chips, arithmetic, fabric;  // empty = the provider's defaults
  bool silicon = false;
  std::vector<std::string> dims, options;  // NAME=N, KEY=VALUE
  std::string picture;                     // path of the picture's file
  std::vector<std::string> changes;        // of validate: NUMBER=VALUE
  std::string gemm, gemv, grid, algorithm, group;
  bool values = false;  // for --gemm: computes values too
  bool language_model = false;
  std::vector<std::string> sizes;  // of a language model: KEY=VALUE
};
int wse_command(const WseArgs& args);

struct DoctorArgs {
  bool json = false;
  bool measure = false;  // measures the machine's peaks; the rest says how
  double seconds = 10;
  int threads = 0;
  std::string only;      // prefix of the names to measure
  std::string executor;  // the environment's option; empty = the library's own threads
};
int doctor_command(const DoctorArgs& args);

struct AskArgs {
  bool json = false;
  std::string provider, verb, request;
  std::string device;  // word of one of the provider's devices; empty = the first
};
int ask_command(const AskArgs& args);

struct PassesArgs {
  bool json = false, markdown = false;
};
int passes_command(const PassesArgs& args);

}  // namespace cli
