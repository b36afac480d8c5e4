// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/options.h"

#include "capi/handle/env.h"
#include "capi/handle/guard.h"
#include "capi/handle/slots.h"

namespace pfrt::capi {
namespace {

Status check_kind(const char* doing, pfrt_options_kind kind) {
  if (kind == PFRT_OPTIONS_UNSET)
    return error(Code::kINVALID_ARGUMENT, doing,
                 ": the kind is not set; give that for env, load, session, run, optimizer or ask");
  return option_schema(kind).empty() ? abi::unknown_number(doing, "kind", kind) : Status();
}

pfrt_status* create(pfrt_options_kind kind, pfrt_options** out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_options");
    *out = nullptr;
    PFRT_TRY(check_kind("creating options", kind));
    *out = new pfrt_options(kind);
    return {};
  });
}

template <typename Fn>
pfrt_status* edit(pfrt_options* options, Fn fn) {
  return guard(
      [&]() -> Status { return options ? fn(options->options) : null_argument("options"); });
}

pfrt_status* set_bool(pfrt_options* o, pfrt_string key, uint32_t value) {
  return edit(o, [&](Options& options) { return options.set_bool(view(key), value != 0); });
}
pfrt_status* set_int(pfrt_options* o, pfrt_string key, int64_t value) {
  return edit(o, [&](Options& options) { return options.set_int(view(key), value); });
}
pfrt_status* set_float(pfrt_options* o, pfrt_string key, double value) {
  return edit(o, [&](Options& options) { return options.set_float(view(key), value); });
}
pfrt_status* set_string(pfrt_options* o, pfrt_string key, pfrt_string value) {
  return edit(o, [&](Options& options) { return options.set_string(view(key), view(value)); });
}
pfrt_status* set_strings(pfrt_options* o, pfrt_string key, const pfrt_string* values,
                         size_t count) {
  return edit(o, [&](Options& options) -> Status {
    if (count && !values) return null_argument("values");
    std::vector<std::string> list;
    for (size_t i = 0; i < count; ++i) list.emplace_back(view(values[i]));
    return options.set_strings(view(key), list);
  });
}
pfrt_status* set_text(pfrt_options* o, pfrt_string key, pfrt_string text) {
  return edit(o, [&](Options& options) { return options.set_text(view(key), view(text)); });
}

pfrt_status* get_text(const pfrt_options* o, pfrt_string key, pfrt_string* out) {
  return guard([&]() -> Status {
    if (!o || !out) return null_argument(o ? "out_text" : "options");
    *out = {};
    PFRT_ASSIGN(const std::string_view text, o->options.text(view(key)));
    *out = to_c(text);
    return {};
  });
}

size_t schema_count(pfrt_options_kind kind) { return option_schema(kind).size(); }

pfrt_status* schema_at(pfrt_options_kind kind, size_t index, pfrt_option_info* out) {
  return guard([&]() -> Status {
    if (!out) return null_argument("out_info");
    PFRT_TRY(check_kind("reading the schema", kind));
    const auto rows = option_schema(kind);
    if (index >= rows.size())
      return error(Code::kINVALID_ARGUMENT, "reading the schema: index ", index, " of ",
                   rows.size());
    const OptionRow& row = rows[index];
    pfrt_option_info info{};
    info.type = row.type;
    info.key = to_c(row.key);
    info.default_value = to_c(row.default_text);
    info.choices = to_c(row.choices);
    info.doc = to_c(row.doc);
    return write(out, info);
  });
}

pfrt_status* set_progress(pfrt_options* o, pfrt_progress_fn fn, void* user) {
  return edit(o, [&](Options& options) -> Status {
    if (options.kind() == PFRT_OPTIONS_ENV)
      return error(Code::kINVALID_ARGUMENT,
                   "listening to progress: the options are of kind environment, whose work tells "
                   "none; give those of a load, a session, an optimizer or a question");
    options.set_progress(fn, user);
    return {};
  });
}

pfrt_status* set_definer(pfrt_options* o, pfrt_define_fn fn, void* user) {
  return edit(o, [&](Options& options) -> Status {
    if (options.kind() != PFRT_OPTIONS_LOAD)
      return error(Code::kINVALID_ARGUMENT, "setting a definer: the options are of kind ",
                   options_kind_name(options.kind()), ", not load");
    options.set_definer({fn, user});
    return {};
  });
}

void cancel(pfrt_options* o) {
  if (o) o->options.set_cancelled(true);
}
void reset_cancel(pfrt_options* o) {
  if (o) o->options.set_cancelled(false);
}

}  // namespace

const pfrt_options_api kOptionsApi = {
    sizeof(pfrt_options_api),
    PFRT_ABI_VERSION,
    create,
    retain<pfrt_options>,
    last_call<release<pfrt_options>, pfrt_options>,
    set_bool,
    set_int,
    set_float,
    set_string,
    set_strings,
    set_text,
    get_text,
    schema_count,
    schema_at,
    cancel,
    reset_cancel,
    set_progress,
    set_definer,
};

}  // namespace pfrt::capi
