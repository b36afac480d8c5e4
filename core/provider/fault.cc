// SPDX-License-Identifier: Apache-2.0
#include "core/provider/fault.h"

namespace pfrt {

Fault fault_of(Code code) {
  switch (code) {
    case Code::kOK:
    case Code::kINVALID_ARGUMENT:
    case Code::kINPUT:
    case Code::kSHAPE_MISMATCH:
    case Code::kDTYPE_MISMATCH:
    case Code::kINVALID_MODEL:
    case Code::kVALIDATION:
    case Code::kCANCELLED:
    case Code::kDEADLINE:
    case Code::kDATA_LOSS:
    case Code::kBUSY:
      return Fault::kNone;
    case Code::kOUT_OF_MEMORY:
      return Fault::kMemory;
    case Code::kDEVICE_LOST:
      return Fault::kDevice;
    default:
      return Fault::kProvider;
  }
}

}  // namespace pfrt
