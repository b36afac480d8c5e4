// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "capi/handle/flow.h"
#include "capi/handle/guard.h"
#include "capi/handle/options.h"
#include "capi/handle/session.h"
#include "capi/handle/slots.h"
#include "capi/request.h"

namespace pfrt::capi {
namespace {

template <typename Fn>
pfrt_status* with(const pfrt_batcher* batcher, Fn fn) {
  return guard([&]() -> Status {
    if (!batcher) return null_argument("batcher");
    return fn(*batcher->batcher);
  });
}

pfrt_status* create(pfrt_session* session, const pfrt_options* options, pfrt_batcher** out) {
  return guard([&]() -> Status {
    if (!session || !out) return null_argument(session ? "out_batcher" : "session");
    *out = nullptr;
    if (options && options->options.kind() != PFRT_OPTIONS_BATCHER)
      return error(Code::kINVALID_ARGUMENT, "making a batcher: the options are of kind ",
                   options_kind_name(options->options.kind()), ", not batcher");
    const Options defaults(PFRT_OPTIONS_BATCHER);
    PFRT_ASSIGN(Batcher::Config config, Batcher::config_of(options ? options->options : defaults));
    auto made = std::make_unique<pfrt_batcher>();
    made->env = session->env;
    made->batcher = std::make_shared<Batcher>(session->session, std::move(config));
    *out = made.release();
    return {};
  });
}

pfrt_status* start(pfrt_batcher* batcher) {
  return with(batcher, [](Batcher& b) { return b.start(); });
}

pfrt_status* stop(pfrt_batcher* batcher) {
  return with(batcher, [](Batcher& b) -> Status {
    const os::ForkPause forks;
    b.stop();
    return {};
  });
}

pfrt_status* flush(pfrt_batcher* batcher) {
  return with(batcher, [](Batcher& b) {
    const os::ForkPause forks;
    return b.flush();
  });
}

Status read(Batcher& b, const pfrt_io* inputs, size_t count, const pfrt_request_desc* desc,
            Request& out) {
  uint32_t stream = 0;
  PFRT_TRY(read_request(*b.session(), inputs, count, desc, out, stream));
  if (stream == 0) return {};
  return error(Code::kINVALID_ARGUMENT, "submitting a request: a batcher has no streams, and ",
               stream, " is asked for; set it to 0");
}

pfrt_status* submit(pfrt_batcher* batcher, const pfrt_io* inputs, size_t count,
                    const pfrt_request_desc* desc, pfrt_response_fn done, void* user,
                    uint64_t* out_id) {
  return with(batcher, [&](Batcher& b) -> Status {
    if (!done) return null_argument("done");
    Request request;
    PFRT_TRY(read(b, inputs, count, desc, request));
    set_done(request, *b.session(), done, user);
    return b.submit(std::move(request), out_id);
  });
}

pfrt_status* infer(pfrt_batcher* batcher, const pfrt_io* inputs, size_t count,
                   const pfrt_request_desc* desc, pfrt_value** outputs, size_t output_count,
                   pfrt_response* out) {
  return with(batcher, [&](Batcher& b) -> Status {
    if (output_count && !outputs) return null_argument("outputs");
    std::fill_n(outputs, output_count, nullptr);
    if (output_count != b.session()->outputs().size())
      return error(Code::kINPUT, "submitting a request: there is room for ", output_count,
                   " outputs, the session has ", b.session()->outputs().size());
    Request request;
    PFRT_TRY(read(b, inputs, count, desc, request));
    return hand_out(b.infer(std::move(request)), outputs, output_count, out);
  });
}

pfrt_status* cancel(pfrt_batcher* batcher, uint64_t id) {
  return with(batcher, [&](Batcher& b) { return b.cancel(id); });
}

pfrt_status* statistics(const pfrt_batcher* batcher, pfrt_batcher_statistics* out) {
  return with(batcher, [&](const Batcher& b) -> Status {
    if (!out) return null_argument("out_statistics");
    const Batcher::Statistics s = b.statistics();
    pfrt_batcher_statistics c{};
    c.submitted = s.submitted;
    c.completed = s.completed;
    c.failed = s.failed;
    c.cancelled = s.cancelled;
    c.late = s.late;
    c.refused = s.refused;
    c.batches = s.batches;
    c.rows = s.rows;
    c.padded_rows = s.padded_rows;
    c.queued = s.queued;
    c.running = s.running;
    c.latency_ns = s.latency_ns;
    c.seconds = s.seconds;
    c.unshared = to_c(b.unshared());
    return write(out, c);
  });
}

pfrt_status* reset_statistics(pfrt_batcher* batcher) {
  return with(batcher, [](Batcher& b) -> Status {
    b.reset_statistics();
    return {};
  });
}

pfrt_status* times(const pfrt_batcher* batcher, pfrt_batch_time* times, size_t count,
                   size_t* out_count) {
  return with(batcher, [&](const Batcher& b) -> Status {
    if (count && !times) return null_argument("times");
    PFRT_TRY(abi::check_array(times, count));
    const std::vector<BatchTimes::Size> all = b.times();
    const size_t size = count ? times->struct_size : 0;
    for (size_t i = 0; i < std::min(count, all.size()); ++i) {
      pfrt_batch_time one{};
      one.rows = all[i].rows;
      one.runs = all[i].runs;
      one.ns = all[i].ns;
      auto* const to = static_cast<pfrt_batch_time*>(const_cast<void*>(pfrt_at(times, size, i)));
      to->struct_size = static_cast<uint32_t>(size);
      PFRT_TRY(write(to, one));
    }
    if (out_count) *out_count = all.size();
    return {};
  });
}

}  // namespace

const pfrt_batcher_api kBatcherApi = {
    sizeof(pfrt_batcher_api),
    PFRT_ABI_VERSION,
    create,
    retain<pfrt_batcher>,
    last_call<release<pfrt_batcher>, pfrt_batcher>,
    start,
    stop,
    flush,
    submit,
    infer,
    cancel,
    statistics,
    reset_statistics,
    times,
};

}  // namespace pfrt::capi
