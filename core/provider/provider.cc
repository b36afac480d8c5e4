// SPDX-License-Identifier: Apache-2.0
#include "core/provider/provider.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/abi/sized.h"
#include "core/base/lock.h"
#include "core/base/os/folder.h"

namespace pfrt {
namespace {

constexpr uint64_t kMostScratch = uint64_t{1} << 40;  // bytes of a step, for each thread

// Copies structs of a provider's, which are |stride| bytes apart; members that they lack are zero.
template <typename T>
Status copy_elements(const T* from, size_t stride, size_t count, std::vector<T>* out) {
  PFRT_TRY(abi::by_plugin(abi::check_elements(from, stride, count), Code::kPROVIDER));
  out->resize(count);
  const size_t bytes = std::min(stride, sizeof(T));
  for (size_t i = 0; i < count; ++i)
    std::memcpy(static_cast<void*>(&(*out)[i]), pfrt_at(from, stride, i), bytes);
  return {};
}

}  // namespace

Result<std::shared_ptr<Provider>> Provider::open(const ProviderSource& source, Logger* logger,
                                                 const Stop& stop) {
  auto provider = std::shared_ptr<Provider>(new Provider);
  provider->source_ = source;
  provider->logger_ = logger;
  std::vector<pfrt_key_value> options;
  options.reserve(source.options.size());
  for (const auto& [key, value] : source.options) options.push_back({to_c(key), to_c(value)});
  Sink sink(logger, stop);
  const pfrt_string device = to_c(source.device);
  const pfrt_code code = sink.call([&] {
    return source.open ? source.open(source.user, device, options.data(), options.size(),
                                     sink.get(), &provider->handle_)
                       : source.table->open(device, options.data(), options.size(), sink.get(),
                                            &provider->handle_);
  });
  PFRT_TRY(sink.status(code, source.name, " opening its device"));
  if (!provider->handle_)
    return error(Code::kPROVIDER, source.name, " opening its device: no handle was returned");
  PFRT_TRY(provider->read_fingerprint(stop));
  return provider;
}

Provider::~Provider() {
  if (handle_) give_back("close", [&] { source_.table->close(handle_); });
}

Status Provider::read_fingerprint(const Stop& stop) {
  constexpr size_t kMost = 65536;
  if (!(features() & PFRT_PROVIDER_FINGERPRINT)) return {};
  Sink sink(logger_, stop);
  pfrt_string given{};
  const pfrt_code code =
      sink.call([&] { return source_.table->fingerprint(handle_, sink.get(), &given); });
  PFRT_TRY(sink.status(code, name(), " giving its fingerprint"));
  if (!given.data || given.size == 0 || given.size > kMost)
    return error(Code::kPROVIDER, name(), " giving its fingerprint: it has ", given.size,
                 " bytes; 1 to ", kMost, " are needed");
  fingerprint_ = view(given);
  return {};
}

std::string Provider::identity() const {
  if (!fingerprint_.empty()) return message(source_.name, "/", fingerprint_);
  auto options = source_.options;
  std::ranges::sort(options);
  std::string out =
      message(source_.name, "/", reinterpret_cast<uintptr_t>(source_.table), "/", source_.device);
  for (const auto& [key, value] : options)
    out += message("/", key.size(), ":", key, "=", value.size(), ":", value);
  return out;
}

std::string Provider::lasting_identity() const {
  if (fingerprint_.empty()) return {};
  std::string out = identity();
  if (source_.path.empty()) return out;
  const auto file = os::stamp_of(source_.path);
  if (!file.ok()) return {};
  return out + message("/", file->bytes, "/", file->modified_ns);
}

Result<std::unique_lock<std::timed_mutex>> Provider::turn(const Stop& stop) {
  Status stopped;
  auto lock = lock_unless(mutex_, [&] { return !(stopped = stop ? stop() : Status()).ok(); });
  if (!lock.owns_lock()) return stopped.prepend(message("waiting for ", name()));
  return lock;
}

Result<Claims> Provider::claim(const pfrt_snapshot& snapshot, const Stop& stop) {
  struct Collector {
    Claims claims;
    bool out_of_memory = false;
    static Collector& of(const pfrt_claims* table) { return *static_cast<Collector*>(table->host); }
    // Times are compared and added up. So a negative time or NaN counts as 0, which says nothing,
    // and infinity as a very long time.
    static double time_of(double ns) {
      constexpr double kLongest = 1e18;  // 30 years
      return ns > 0 ? std::min(ns, kLongest) : 0;
    }
    void set(uint32_t node, bool accepted, double ns, uint64_t bytes, pfrt_string reason) {
      if (node >= claims.nodes.size()) return;
      try {
        claims.nodes[node] = {accepted, time_of(ns), bytes, std::string(view(reason))};
      } catch (const std::bad_alloc&) {
        out_of_memory = true;
      }
    }
    void add_group(const uint32_t* nodes, uint32_t count, double saved_ns) {
      try {
        if (!nodes) return;
        ClaimGroup group{{nodes, nodes + count}, time_of(saved_ns)};
        std::sort(group.nodes.begin(), group.nodes.end());
        group.nodes.erase(std::unique(group.nodes.begin(), group.nodes.end()), group.nodes.end());
        if (group.nodes.empty() || group.nodes.back() >= claims.nodes.size()) return;
        claims.groups.push_back(std::move(group));
      } catch (const std::bad_alloc&) {
        out_of_memory = true;
      }
    }
  };
  Collector collector;
  collector.claims.nodes.resize(snapshot.node_count);
  for (Claim& c : collector.claims.nodes) c.reason = name() + " said nothing about it";
  pfrt_claims table{};
  table.struct_size = sizeof table;
  table.abi = PFRT_ABI_VERSION;
  table.host = &collector;
  table.accept = [](const pfrt_claims* t, uint32_t node, double ns, uint64_t bytes) {
    Collector::of(t).set(node, true, ns, bytes, {});
  };
  table.refuse = [](const pfrt_claims* t, uint32_t node, pfrt_string reason) {
    Collector::of(t).set(node, false, 0, 0, reason);
  };
  table.group = [](const pfrt_claims* t, const uint32_t* nodes, uint32_t count, double saved_ns) {
    Collector::of(t).add_group(nodes, count, saved_ns);
  };
  table.transfer = [](const pfrt_claims* t, double ns, double ns_per_byte) {
    Collector::of(t).claims.transfer = {Collector::time_of(ns), Collector::time_of(ns_per_byte)};
  };
  Sink sink(logger_, stop);
  PFRT_ASSIGN(const auto lock, turn(stop));
  const pfrt_code code =
      sink.call([&] { return source_.table->claim(handle_, &snapshot, &table, sink.get()); });
  PFRT_TRY(sink.status(code, name(), " claiming nodes"));
  if (collector.out_of_memory)
    return error(Code::kOUT_OF_MEMORY, name(), " claiming nodes: out of memory");
  return std::move(collector.claims);
}

Result<std::vector<std::shared_ptr<Executable>>> Provider::compile(
    const std::vector<pfrt_region>& regions, const Stop& stop, CompileFault* out_fault) {
  *out_fault = {};
  Sink sink(logger_, stop);
  std::vector<pfrt_executable*> handles(regions.size());
  // They are made before the call that returns the handles: if memory ran out after it, nobody
  // would release them.
  std::vector<std::shared_ptr<Executable>> executables;
  for (size_t i = 0; i < regions.size(); ++i)
    executables.push_back(std::make_shared<Executable>(shared_from_this()));
  PFRT_ASSIGN(const auto lock, turn(stop));
  const pfrt_code code = sink.call([&] {
    return source_.table->compile(handle_, regions.data(), sizeof(pfrt_region), regions.size(),
                                  sink.get(), handles.data(), &out_fault->region);
  });
  out_fault->node = sink.node();
  PFRT_TRY(sink.status(code, name(), " compiling a region"));
  for (size_t i = 0; i < handles.size(); ++i) executables[i]->handle_ = handles[i];
  if (std::ranges::find(handles, nullptr) == handles.end()) return executables;
  return error(Code::kPROVIDER, name(), " compiling ", handles.size(),
               " regions: no executable was returned for one of them");
}

Result<std::string> Provider::refuses(const pfrt_snapshot& snapshot, uint32_t node,
                                      const std::vector<uint32_t>& epilogue, const Stop& stop) {
  if ((features() & PFRT_PROVIDER_SUPPORTS) == 0) return name() + " does not say what it supports";
  pfrt_op_query query{};
  query.struct_size = sizeof query;
  query.abi = PFRT_ABI_VERSION;
  query.snapshot = &snapshot;
  query.node = node;
  query.tail = epilogue.data();
  query.tail_count = static_cast<uint32_t>(epilogue.size());
  Sink sink(logger_, stop);
  PFRT_ASSIGN(const auto lock, turn(stop));
  const pfrt_code code =
      sink.call([&] { return source_.table->supports(handle_, &query, sink.get()); });
  Status status = sink.status(code, name(), " asked what it supports");
  if (code == PFRT_CODE_CANCELLED || code == PFRT_CODE_DEADLINE) return status;
  return status.message();
}

Executable::~Executable() {
  if (!handle_) return;
  provider_->give_back("release_executable",
                       [&] { provider_->table().release_executable(handle_); });
}

Result<ProgramTable> Executable::specialise(const pfrt_shapes& shapes, const Stop& stop,
                                            uint32_t* out_node) {
  PFRT_ASSIGN(const auto lock, provider_->turn(stop));
  pfrt_program program{};
  program.struct_size = sizeof program;
  program.abi = PFRT_ABI_VERSION;
  Sink sink(provider_->logger_, stop);
  std::optional<Tuning::Call> tuning;
  if (tuning_)
    sink.set_tuning(
        tuning.emplace(*tuning_, provider_->name(), provider_->lasting_identity()).get());
  const pfrt_code code = sink.call(
      [&] { return provider_->table().specialise(handle_, &shapes, sink.get(), &program); });
  *out_node = sink.node();
  PFRT_TRY(sink.status(code, provider_->name(), " preparing a region for these shapes"));
  ProgramTable out;
  static_cast<pfrt_program&>(out) = program;
  out.given = program;
  const auto give_back = [this](ProgramTable* table) { release_program(*table); };
  std::unique_ptr<ProgramTable, decltype(give_back)> unread(&out, give_back);
  PFRT_TRY(read_program(&out));
  (void)unread.release();
  return out;
}

// Copies the provider's arrays into structs of this host, with the members that both sides know.
// Refuses a program that could not be run.
Status Executable::read_program(ProgramTable* program) const {
  ProgramTable& p = *program;
  const auto fault = [&](const auto&... parts) {
    return error(Code::kPROVIDER, provider_->name(), " returned a program ", parts...);
  };
  if ((p.buffer_count && !p.buffers) || (p.step_count && !p.steps))
    return fault("of ", p.buffer_count, " buffers and ", p.step_count,
                 " steps without the array of one of them");
  const std::string doing = message(provider_->name(), " returned a program");
  PFRT_TRY(copy_elements(p.given.buffers, p.buffer_size, p.buffer_count, &p.buffer_copies)
               .prepend(doing));
  PFRT_TRY(copy_elements(p.given.steps, p.step_size, p.step_count, &p.step_copies).prepend(doing));
  for (uint32_t i = 0; i < p.step_count; ++i) {
    const pfrt_step& step = p.step_copies[i];
    if (!step.run) return fault("whose step ", i, " has no run function");
    if ((step.read_count && !step.reads) || (step.write_count && !step.writes) ||
        (step.node_count && !step.nodes))
      return fault("whose step ", i, " counts buffers or nodes that it does not list");
    // The provider only tells what these dimensions need. So the code is one that blames the
    // request: the provider is not replaced by another.
    if (step.scratch_bytes > kMostScratch)
      return error(Code::kSHAPE_MISMATCH, "the dimensions at hand are too large: step '",
                   step.kernel, "' needs ", step.scratch_bytes,
                   " bytes of memory for each thread, at most ", kMostScratch, " are possible");
  }
  p.buffers = p.buffer_copies.data();
  p.steps = p.step_copies.data();
  p.buffer_size = sizeof(pfrt_buffer);
  p.step_size = sizeof(pfrt_step);
  return {};
}

void Executable::release_program(ProgramTable& program) {
  provider_->give_back("release_program",
                       [&] { provider_->table().release_program(handle_, &program.given); });
}

Result<std::vector<pfrt_packed_constant>> Executable::constants(const Stop& stop) {
  if (!(provider_->features() & PFRT_PROVIDER_CONSTANTS))
    return std::vector<pfrt_packed_constant>();
  const pfrt_packed_constant* list = nullptr;
  size_t size = 0, count = 0;
  Sink sink(provider_->logger_, stop);
  const pfrt_code code = sink.call(
      [&] { return provider_->table().constants(handle_, sink.get(), &list, &size, &count); });
  PFRT_TRY(sink.status(code, provider_->name(), " listing packed constants"));
  if (count && !list)
    return error(Code::kPROVIDER, provider_->name(), " counts ", count,
                 " packed constants and lists none");
  std::vector<pfrt_packed_constant> out;
  PFRT_TRY(copy_elements(list, size, count, &out)
               .prepend(message(provider_->name(), " listing packed constants")));
  return out;
}

Result<Answer> Provider::ask(const Question& question, const Stop& stop,
                             const std::function<void(double)>& progress) {
  Sink sink(logger_, stop);
  if (progress) sink.set_progress(progress);
  PFRT_ASSIGN(const auto lock, turn(stop));
  const AskedPlugin self{
      PFRT_PLUGIN_PROVIDER,
      [this](const pfrt_question* asked, const pfrt_answer* answer, const pfrt_sink* to) {
        return source_.table->ask(handle_, asked, answer, to);
      }};
  return ask_plugin(question, self, sink, message("asking ", name(), " to '", question.verb, "'"));
}

// ---- the device: its memory and its runs ----

Result<void*> Provider::allocate_memory(uint64_t bytes, uint32_t alignment, uint64_t work,
                                        const Stop& stop) {
  Sink sink(logger_, stop);
  void* memory = nullptr;
  const pfrt_code code = sink.call(
      [&] { return table().allocate(handle_, work, bytes, alignment, sink.get(), &memory); });
  PFRT_TRY(sink.status(code, name(), " allocating ", bytes, " bytes on its device"));
  if (!memory)
    return error(Code::kPROVIDER, name(), " allocating ", bytes,
                 " bytes on its device: no address was returned");
  return memory;
}

std::shared_ptr<Buffer> Provider::uploaded(const HostBytes& host) {
  std::lock_guard lock(uploaded_mutex_);
  const auto it = uploaded_.find(host);
  return it == uploaded_.end() ? nullptr : it->second.lock();
}

void Provider::set_uploaded(const HostBytes& host, const std::shared_ptr<Buffer>& buffer) {
  std::lock_guard lock(uploaded_mutex_);
  std::erase_if(uploaded_, [](const auto& entry) { return entry.second.expired(); });
  uploaded_[host] = buffer;
}

void Provider::release_memory(void* memory) {
  give_back("release_memory", [&] { table().release_memory(handle_, memory); });
}

Status Provider::begin(uint64_t work, const Stop& stop) {
  if (!(features() & PFRT_PROVIDER_RUNS)) return {};
  Sink sink(logger_, stop);
  const pfrt_code code = sink.call([&] { return table().run_begin(handle_, work, sink.get()); });
  return sink.status(code, name(), " beginning a run");
}

void Provider::end(uint64_t work) {
  if (features() & PFRT_PROVIDER_RUNS)
    give_back("run_end", [&] { table().run_end(handle_, work); });
}

Status Provider::copy(uint64_t work, Direction direction, const std::vector<Copy>& copies,
                      const Stop& stop) {
  const pfrt_direction to = direction == Direction::kToDevice ? PFRT_TO_DEVICE
                            : direction == Direction::kToHost ? PFRT_TO_HOST
                                                              : PFRT_ON_DEVICE;
  std::vector<pfrt_device_copy> list;
  list.reserve(copies.size());
  for (const Copy& c : copies) list.push_back({c.to, c.from, c.bytes, to, 0});
  Sink sink(logger_, stop);
  const pfrt_code code = sink.call([&] {
    return table().copy(handle_, work, list.data(), sizeof list[0], list.size(), sink.get());
  });
  return sink.status(code, name(), " copying between host and device");
}

Status Provider::wait(uint64_t work, const Stop& stop) {
  if (!(features() & PFRT_PROVIDER_FENCES)) return {};
  Sink sink(logger_, stop);
  pfrt_fence* fence = nullptr;
  pfrt_code code = sink.call([&] { return table().signal(handle_, work, sink.get(), &fence); });
  PFRT_TRY(sink.status(code, name(), " marking its work"));
  if (!fence) return error(Code::kPROVIDER, name(), " marking its work: no fence was returned");
  code = sink.call([&] { return table().wait(handle_, fence, sink.get()); });
  give_back("release_fence", [&] { table().release_fence(handle_, fence); });
  return sink.status(code, name(), " finishing its work");
}

}  // namespace pfrt
