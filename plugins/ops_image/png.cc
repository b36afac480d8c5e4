// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {

std::optional<Image> decode_png(Bytes bytes) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  std::optional<Image> image;
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size())) {
    png.format = PNG_FORMAT_RGBA;  // transparency is dropped, not blended
    image = make_image(png.height, png.width);
    if (image) {
      std::vector<uint8_t> rgba(PNG_IMAGE_SIZE(png));
      if (png_image_finish_read(&png, nullptr, rgba.data(), 0, nullptr)) {
        for (size_t i = 0; i < rgba.size() / 4; ++i)
          for (size_t c = 0; c < 3; ++c) image->rgb[i * 3 + c] = rgba[i * 4 + c];
      } else {
        image.reset();
      }
    }
  }
  png_image_free(&png);
  return image;
}

}  // namespace pfrt::image
