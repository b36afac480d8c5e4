// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
// jpeglib.h wants stdio's types.
#include <jpeglib.h>

#include <csetjmp>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {
namespace {

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf back;
};

[[noreturn]] void leave(j_common_ptr info) {
  std::longjmp(reinterpret_cast<Errors*>(info->err)->back, 1);
}

// Leaves by longjmp in between: nothing here may have a destructor. |image| and |inverted| are the
// caller's.
bool read(jpeg_decompress_struct* jpeg, Errors* errors, Bytes bytes, std::optional<Image>* image,
          uint8_t* line, size_t line_bytes) {
  if (setjmp(errors->back)) return false;
  jpeg_mem_src(jpeg, bytes.data(), static_cast<unsigned long>(bytes.size()));
  if (jpeg_read_header(jpeg, TRUE) != JPEG_HEADER_OK) return false;
  const bool inks = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
  jpeg->out_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(jpeg);
  *image = make_image(jpeg->output_height, jpeg->output_width);
  if (!*image || size_t{jpeg->output_width} * 4 > line_bytes) return false;
  while (jpeg->output_scanline < jpeg->output_height) {
    uint8_t* to = (*image)->rgb.data() + size_t{jpeg->output_scanline} * jpeg->output_width * 3;
    uint8_t* row = inks ? line : to;
    jpeg_read_scanlines(jpeg, &row, 1);
    // Adobe stores inks inverted: what is there is the light that remains.
    for (size_t x = 0; inks && x < jpeg->output_width; ++x)
      for (size_t c = 0; c < 3; ++c)
        to[x * 3 + c] = static_cast<uint8_t>(line[x * 4 + c] * line[x * 4 + 3] / 255);
  }
  jpeg_finish_decompress(jpeg);
  return true;
}

}  // namespace

std::optional<Image> decode_jpeg(Bytes bytes) {
  jpeg_decompress_struct jpeg{};
  Errors errors{};
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = [](j_common_ptr, int) {};
  std::optional<Image> image;
  std::vector<uint8_t> line(size_t{JPEG_MAX_DIMENSION} * 4);
  jpeg_create_decompress(&jpeg);
  const bool whole = read(&jpeg, &errors, bytes, &image, line.data(), line.size());
  jpeg_destroy_decompress(&jpeg);
  return whole ? std::move(image) : std::nullopt;
}

}  // namespace pfrt::image
