// SPDX-License-Identifier: Apache-2.0
#include "capi/handle/guard.h"
#include "capi/handle/slots.h"

namespace pfrt::capi {

const pfrt_api kApi = {
    sizeof(pfrt_api), PFRT_ABI_VERSION, &kStatusApi,  &kOptionsApi, &kEnvApi,       &kValueApi,
    &kGraphApi,       &kModelApi,       &kSessionApi, &kReportApi,  &kOptimizerApi, &kPatternApi,
    &kStateApi,       &kCacheApi,       &kMemoryApi,  &kBatcherApi, &kStreamsApi,
};

}  // namespace pfrt::capi

extern "C" const pfrt_api* pfrt_get_api(uint32_t abi_version, pfrt_abi_info* out_info) {
  using pfrt::to_c;
  static constexpr char kMajor[] =
      "this library implements another major version of the ABI than the caller was compiled for; "
      "use the library "
      "that belongs to the caller's headers";
  static constexpr char kMinor[] =
      "this library is older than the headers the caller was compiled with; install a newer "
      "library";
  pfrt_abi_info info{};
  info.abi = PFRT_ABI_VERSION;
  info.version = to_c(PFRT_VERSION_TEXT);
  const bool same_major = abi_version >> 16 == PFRT_ABI_MAJOR;
  const bool old_enough = (abi_version & 0xffffu) <= PFRT_ABI_MINOR;
  if (!same_major) {
    info.message = to_c(kMajor);
  } else if (!old_enough) {
    info.message = to_c(kMinor);
  }
  if (out_info && !pfrt::abi::is_size(pfrt::abi::kFirst<pfrt_abi_info>, out_info->struct_size))
    return nullptr;
  if (out_info) (void)pfrt::capi::write(out_info, info);
  return same_major && old_enough ? &pfrt::capi::kApi : nullptr;
}
