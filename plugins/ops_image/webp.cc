// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {

std::optional<Image> decode_webp(Bytes bytes) {
  int width = 0, height = 0;
  if (!WebPGetInfo(bytes.data(), bytes.size(), &width, &height)) return std::nullopt;
  std::optional<Image> image = make_image(height, width);
  if (!image || !WebPDecodeRGBInto(bytes.data(), bytes.size(), image->rgb.data(), image->rgb.size(),
                                   width * 3))
    return std::nullopt;
  return image;
}

}  // namespace pfrt::image
