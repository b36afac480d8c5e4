// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/report.h"

#include "capi/handle/guard.h"
#include "capi/handle/slots.h"

namespace pfrt::capi {
namespace {

void release_report(pfrt_report* report) { delete report; }

size_t row_count(const pfrt_report* report) { return report ? report->rows.size() : 0; }

pfrt_status* row_at(const pfrt_report* report, size_t index, pfrt_report_row* out) {
  return guard([&]() -> Status {
    if (!report || !out) return null_argument(report ? "out_row" : "report");
    if (index >= report->rows.size())
      return error(Code::kINVALID_ARGUMENT, "reading row ", index, " of ", report->rows.size());
    const StepReport& step = report->rows[index];
    pfrt_report_row row{};
    row.index = static_cast<uint32_t>(index);
    row.nodes = to_c(step.nodes);
    row.ops = to_c(step.ops);
    row.provider = to_c(step.provider);
    row.kernel = to_c(step.kernel);
    row.reason = to_c(step.reason);
    row.refused = to_c(step.refused);
    row.bytes = step.bytes;
    row.flops = step.flops;
    row.estimated_ns = step.estimated_ns;
    row.measured_ns = step.measured_ns;
    row.started_ns = static_cast<double>(step.started_ns);
    row.lane = step.lane;
    row.tuning = to_c(step.tuning);
    return write(out, row);
  });
}

size_t note_count(const pfrt_report* report) { return report ? report->notes.size() : 0; }

pfrt_string note_at(const pfrt_report* report, size_t index) {
  return report && index < report->notes.size() ? to_c(report->notes[index]) : to_c("");
}

size_t counter_count(const pfrt_report* report) { return report ? report->counters.size() : 0; }

pfrt_status* counter_at(const pfrt_report* report, size_t index, pfrt_report_counter* out) {
  return guard([&]() -> Status {
    if (!report || !out) return null_argument(report ? "out_counter" : "report");
    if (index >= report->counters.size())
      return error(Code::kINVALID_ARGUMENT, "reading counter ", index, " of ",
                   report->counters.size());
    const CounterReport& from = report->counters[index];
    pfrt_report_counter counter{};
    counter.first_row = static_cast<uint32_t>(from.first_row);
    counter.row_count = static_cast<uint32_t>(from.row_count);
    counter.provider = to_c(from.provider);
    counter.name = to_c(from.name);
    counter.unit = to_c(from.unit);
    counter.value = from.value;
    return write(out, counter);
  });
}

}  // namespace

const pfrt_report_api kReportApi = {
    sizeof(pfrt_report_api),
    PFRT_ABI_VERSION,
    last_call<release_report, pfrt_report>,
    row_count,
    row_at,
    note_count,
    note_at,
    counter_count,
    counter_at,
};

}  // namespace pfrt::capi
