// SPDX-License-Identifier: Apache-2.0
//
// libpyflamert_ops_text.so: operators with regular expressions, which are RE2's.
#include "plugins/ops_text/operators.h"
#include "providers/kit/describe.h"

namespace {

const pfrt_custom_op kRegexFullMatch = pfrt::ops::regex_full_match();
const pfrt_custom_op kTokenizer = pfrt::ops::tokenizer();
const pfrt_custom_op* const kOps[] = {&kRegexFullMatch, &kTokenizer};
const pfrt_ops_table kTable = {sizeof(pfrt_ops_table), PFRT_ABI_VERSION, kOps, 2};

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  return pfrt::describe_plugin(host, PFRT_PLUGIN_OPS, "TextOperators", 0, &kTable, out_desc);
}
