// SPDX-License-Identifier: Apache-2.0
//
// Requests to batchers and streams as the ABI has them: reads what a client gives, and gives the
// answers.
#pragma once

#include <cstddef>

#include "core/base/status.h"
#include "core/flow/request.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {
class Session;
}

namespace pfrt::capi {

// Reads a request to |session| without its |done|. |stream| gets the desc's own.
Status read_request(const Session& session, const pfrt_io* inputs, size_t count,
                    const pfrt_request_desc* desc, Request& out, uint32_t& stream);
// Has |request| answered by a call of |done|; what is needed for that is made now. What |done|
// throws goes to the log of |session|, which lives until then.
void set_done(Request& request, const Session& session, pfrt_response_fn done, void* user);
// Gives an answer to a caller that waited for it. |outputs| [count, the session's] and |out|, which
// may be null, are written.
Status hand_out(Response&& answer, pfrt_value** outputs, size_t count, pfrt_response* out);

}  // namespace pfrt::capi
