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
pfrt_status* with(const pfrt_streams* streams, Fn fn) {
  return guard([&]() -> Status {
    if (!streams) return null_argument("streams");
    return fn(*streams->streams);
  });
}

pfrt_status* create(pfrt_session* session, const pfrt_options* options, pfrt_streams** out) {
  return guard([&]() -> Status {
    if (!session || !out) return null_argument(session ? "out_streams" : "session");
    *out = nullptr;
    if (options && options->options.kind() != PFRT_OPTIONS_STREAMS)
      return error(Code::kINVALID_ARGUMENT, "making streams: the options are of kind ",
                   options_kind_name(options->options.kind()), ", not streams");
    const Options defaults(PFRT_OPTIONS_STREAMS);
    PFRT_ASSIGN(const Streams::Config config,
                Streams::config_of(options ? options->options : defaults));
    auto made = std::make_unique<pfrt_streams>();
    made->env = session->env;
    made->streams = std::make_shared<Streams>(session->session, config);
    *out = made.release();
    return {};
  });
}

pfrt_status* start(pfrt_streams* streams) {
  return with(streams, [](Streams& s) { return s.start(); });
}

pfrt_status* stop(pfrt_streams* streams) {
  return with(streams, [](Streams& s) -> Status {
    const os::ForkPause forks;
    s.stop();
    return {};
  });
}

pfrt_status* submit(pfrt_streams* streams, const pfrt_io* inputs, size_t count,
                    const pfrt_request_desc* desc, pfrt_response_fn done, void* user,
                    uint64_t* out_id) {
  return with(streams, [&](Streams& s) -> Status {
    if (!done) return null_argument("done");
    Request request;
    uint32_t stream = 0;
    PFRT_TRY(read_request(*s.session(), inputs, count, desc, request, stream));
    set_done(request, *s.session(), done, user);
    return s.submit(std::move(request), stream == 0 ? Streams::kLeastBusy : stream - 1, out_id);
  });
}

pfrt_status* cancel(pfrt_streams* streams, uint64_t id) {
  return with(streams, [&](Streams& s) { return s.cancel(id); });
}

pfrt_status* synchronize(pfrt_streams* streams, uint32_t stream) {
  return with(streams, [&](Streams& s) {
    const os::ForkPause forks;
    return s.synchronize(stream == 0 ? OpenRequests::kAnyStream : stream - 1);
  });
}

uint32_t count(const pfrt_streams* streams) { return streams ? streams->streams->count() : 0; }

uint32_t select(const pfrt_streams* streams) {
  if (!streams) return 0;
  const os::ForkScope scope;
  return streams->streams->least_busy();
}

pfrt_status* statistics(const pfrt_streams* streams, pfrt_streams_statistics* out) {
  return with(streams, [&](const Streams& own) -> Status {
    if (!out) return null_argument("out_statistics");
    const Streams::Statistics s = own.statistics();
    pfrt_streams_statistics c{};
    c.submitted = s.submitted;
    c.completed = s.completed;
    c.failed = s.failed;
    c.cancelled = s.cancelled;
    c.late = s.late;
    c.refused = s.refused;
    c.pending = s.pending;
    c.latency_ns = s.latency_ns;
    c.queued_ns = s.queued_ns;
    c.ran_ns = s.ran_ns;
    c.seconds = s.seconds;
    return write(out, c);
  });
}

pfrt_status* reset_statistics(pfrt_streams* streams) {
  return with(streams, [](Streams& s) -> Status {
    s.reset_statistics();
    return {};
  });
}

pfrt_status* utilization(const pfrt_streams* streams, double* shares, size_t count) {
  return with(streams, [&](const Streams& s) -> Status {
    if (count && !shares) return null_argument("shares");
    const std::vector<double> all = s.utilization();
    std::copy_n(all.begin(), std::min(count, all.size()), shares);
    std::fill_n(shares + std::min(count, all.size()), count - std::min(count, all.size()), 0.0);
    return {};
  });
}

}  // namespace

const pfrt_streams_api kStreamsApi = {
    sizeof(pfrt_streams_api),
    PFRT_ABI_VERSION,
    create,
    retain<pfrt_streams>,
    last_call<release<pfrt_streams>, pfrt_streams>,
    start,
    stop,
    submit,
    cancel,
    synchronize,
    count,
    select,
    statistics,
    reset_statistics,
    utilization,
};

}  // namespace pfrt::capi
