// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>

#include <algorithm>
#include <memory>
#include <new>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {
namespace {

constexpr size_t kPart = 8192;  // bytes between looks at the run

struct Delete {
  void operator()(WebPIDecoder* decoder) const { WebPIDelete(decoder); }
};

}  // namespace

std::optional<Image> decode_webp(Job& job) {
  const Bytes bytes = job.bytes;
  int width = 0, height = 0;
  if (!WebPGetInfo(bytes.data(), bytes.size(), &width, &height)) return std::nullopt;
  std::optional<Image> image = make_image(job, height, width);
  if (!image) return std::nullopt;
  const std::unique_ptr<WebPIDecoder, Delete> decoder(
      WebPINewRGB(MODE_RGB, image->rgb.data(), image->rgb.size(), width * 3));
  if (!decoder) throw std::bad_alloc();
  VP8StatusCode status = VP8_STATUS_SUSPENDED;
  for (size_t end = 0; end < bytes.size() && status == VP8_STATUS_SUSPENDED;) {
    if (job.stopped()) return std::nullopt;
    end = std::min(bytes.size(), end + kPart);
    status = WebPIUpdate(decoder.get(), bytes.data(), end);
  }
  if (status == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();
  if (status != VP8_STATUS_OK) return std::nullopt;
  return image;
}

}  // namespace pfrt::image
