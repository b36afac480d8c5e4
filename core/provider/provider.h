// SPDX-License-Identifier: Apache-2.0
//
// A provider as the runtime holds it: its table, an opened device, and the library that must stay
// loaded while either lives. Calls go through here so that every failure becomes a Status naming
// the provider. Calls of claim, compile, specialise, report, ask, exporting and importing are
// serialised for each provider; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/foreign.h"
#include "core/base/os/log.h"
#include "core/base/status.h"
#include "core/memory/tensor.h"
#include "core/provider/answer.h"
#include "core/provider/sink.h"
#include "core/provider/tuning.h"
#include "pyflame_rt/custom.h"
#include "pyflame_rt/plugin.h"

namespace pfrt {

// A provider to be opened.
struct ProviderSource {
  std::string name;
  std::string path;  // of its file; empty where a client registered it
  std::string device;
  std::vector<std::pair<std::string, std::string>> options;
  const pfrt_provider_table* table = nullptr;
  uint64_t features = 0;
  std::shared_ptr<void> library;
  std::shared_ptr<void> keep;  // called back into; values may outlive a session
  // Called instead of table->open where it is set, with |user| first.
  decltype(pfrt_client_provider::open) open = nullptr;
  void* user = nullptr;
};

struct Claim {
  bool accepted = false;
  double est_ns = 0;
  uint64_t est_bytes = 0;
  std::string reason;  // for a refusal
};

// Nodes that a provider runs only together, and the cost saved against running them one by one.
struct ClaimGroup {
  std::vector<uint32_t> nodes;  // snapshot indices, each once, ascending
  double saved_ns = 0;
};

// Cost of moving a value to or from a provider.
struct TransferCost {
  double ns = 0, ns_per_byte = 0;
  double of(double bytes) const { return ns + ns_per_byte * bytes; }
};

struct Claims {
  std::vector<Claim> nodes;  // one for each node of the snapshot
  std::vector<ClaimGroup> groups;
  TransferCost transfer;
};

// A region that could not be compiled, by its place in the list, and the node at fault.
struct CompileFault {
  size_t region = 0;
  uint32_t node = PFRT_NO_INDEX;
};

// A program as this host reads it: |buffers| and |steps| point to arrays of this host's own
// structs, copied from the provider's, whose elements may be smaller or larger. Movable.
struct ProgramTable : pfrt_program {
  pfrt_program given{};  // as the provider filled it in, for release_program
  std::vector<pfrt_buffer> buffer_copies;
  std::vector<pfrt_step> step_copies;
};

// A figure that a device counted in a program's last run.
struct Counter {
  std::string name, unit;
  double value = 0;               // of any size and sign
  uint32_t step = PFRT_NO_INDEX;  // index in the program; PFRT_NO_INDEX = the whole program
};

class Executable;

class Provider : public Device, public std::enable_shared_from_this<Provider> {
 public:
  static Result<std::shared_ptr<Provider>> open(const ProviderSource& source, Logger* logger,
                                                const Stop& stop = {});
  ~Provider() override;
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  const std::string& name() const { return source_.name; }
  // A text of its name and fingerprint or, where it has none, its name, table, device and options.
  // Providers with the same text answer alike.
  std::string identity() const;
  // A text that is equal for providers that answer alike in other processes too; empty where the
  // provider has no fingerprint.
  std::string lasting_identity() const;
  bool simulated() const { return (source_.features & PFRT_PROVIDER_SIMULATED) != 0; }
  bool folds() const { return (source_.features & PFRT_PROVIDER_NO_FOLD) == 0; }
  const pfrt_provider_table& table() const { return *source_.table; }
  uint64_t features() const { return source_.features; }
  pfrt_provider* handle() const { return handle_; }

  Result<Claims> claim(const pfrt_snapshot& snapshot, const Stop& stop = {});
  // The reason why the provider does not run |node| and |epilogue| as one step; empty when it does.
  // It may be asked about any canonical operator. CANCELLED and DEADLINE, by |stop|, are failures.
  Result<std::string> refuses(const pfrt_snapshot& snapshot, uint32_t node,
                              const std::vector<uint32_t>& epilogue, const Stop& stop = {});
  // Whether the snapshots it gets may have large constants without their data.
  bool takes_deferred() const { return (features() & PFRT_PROVIDER_DEFERRED) != 0; }
  // Whether the Device functions below may be called: the provider has memory of its own.
  bool has_memory() const { return (features() & PFRT_PROVIDER_MEMORY) != 0; }
  Result<void*> allocate_memory(uint64_t bytes, uint32_t alignment, uint64_t work,
                                const Stop& stop) override;
  void release_memory(void* memory) override;
  Status begin(uint64_t work, const Stop& stop) override;
  Status copy(uint64_t work, Direction direction, const std::vector<Copy>& copies,
              const Stop& stop) override;
  Status wait(uint64_t work, const Stop& stop) override;
  void end(uint64_t work) override;
  bool keeps_rows_apart() const { return (features() & PFRT_PROVIDER_BATCH) != 0; }
  // Whether its programs may be for dimensions that vary.
  bool has_ranges() const { return (features() & PFRT_PROVIDER_RANGES) != 0; }
  // Whether its steps are told which run they belong to, and may still be at work when they have
  // returned.
  bool has_runs() const { return (features() & (PFRT_PROVIDER_MEMORY | PFRT_PROVIDER_RUNS)) != 0; }
  // Copies of constants on the device, kept while somebody holds them. Constants may overlap in a
  // file, so the size is part of the key.
  using HostBytes = std::pair<const void*, uint64_t>;
  std::shared_ptr<Buffer> uploaded(const HostBytes& host);
  void set_uploaded(const HostBytes& host, const std::shared_ptr<Buffer>& buffer);

  // Makes an executable for each region. On failure |out_fault| says which region and node, as far
  // as the provider has told.
  Result<std::vector<std::shared_ptr<Executable>>> compile(const std::vector<pfrt_region>& regions,
                                                           const Stop& stop,
                                                           CompileFault* out_fault);
  // Asks the device. UNSUPPORTED where it takes no questions or does not know the verb.
  Result<Answer> ask(const Question& question, const Stop& stop,
                     const std::function<void(double)>& progress);

 private:
  friend class Executable;
  Provider() = default;
  // Serialises calls of claim, compile, specialise and supports; |stop| is asked while waiting for
  // another call.
  Result<std::unique_lock<std::timed_mutex>> turn(const Stop& stop);
  Status read_fingerprint(const Stop& stop);
  // |release| calls the provider's |function|, which gives something back.
  template <typename Fn>
  void give_back(const char* function, Fn&& release) noexcept {
    if (call_foreign(release) || !logger_) return;
    call_foreign([&] {
      logger_->log(PFRT_LOG_WARNING, name(), ": an exception escaped its function ", function);
    });
  }
  ProviderSource source_;
  pfrt_provider* handle_ = nullptr;
  Logger* logger_ = nullptr;
  std::string fingerprint_;  // empty where it has none
  std::timed_mutex mutex_;
  std::mutex uploaded_mutex_;
  std::map<HostBytes, std::weak_ptr<Buffer>> uploaded_;
};

// A compiled region. Keeps its provider alive.
class Executable {
 public:
  explicit Executable(std::shared_ptr<Provider> provider) : provider_(std::move(provider)) {}
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  Provider& provider() const { return *provider_; }
  // Allows specialise to tune as |tuning| says; null: not at all. |tuning| outlives this object.
  void set_tuning(Tuning* tuning) { tuning_ = tuning; }
  // The caller releases the program with release_program. |stop| is asked also while waiting for
  // other calls of the provider.
  Result<ProgramTable> specialise(const pfrt_shapes& shapes, const Stop& stop, uint32_t* out_node);
  void release_program(ProgramTable& program);
  Result<std::vector<pfrt_packed_constant>> constants(const Stop& stop);
  // Figures that the device counted in the last run of |program|; none where it does not count.
  Result<std::vector<Counter>> report(const ProgramTable& program);

 private:
  friend class Provider;
  Status read_program(ProgramTable* program) const;
  std::shared_ptr<Provider> provider_;
  Tuning* tuning_ = nullptr;
  pfrt_executable* handle_ = nullptr;
};

// A provider of a session's list, in order of preference.
struct Candidate {
  std::string name;
  std::shared_ptr<Provider> provider;  // null: not to be used
  std::string reason;                  // why not
};

}  // namespace pfrt
