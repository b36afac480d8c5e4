// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
// jpeglib.h wants stdio's types.
#include <jpeglib.h>
// Its codes are of the types above.
#include <jerror.h>

#include <csetjmp>
#include <memory>
#include <new>

#include "plugins/ops_image/decode.h"

namespace pfrt::image {
namespace {

// A block of 8 x 8 pixels takes a bit at least in Huffman codes; arithmetic codes may take less.
constexpr int64_t kPixelsPerByte = 8 * 64;
// Each scan of a progressive image goes through all of its blocks. Encoders write about ten.
constexpr int kMostScans = 500;
constexpr int64_t kMostScansOfLargest = 16;

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf back;
  bool out_of_memory;
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* const errors = reinterpret_cast<Errors*>(info->err);
  errors->out_of_memory = errors->base.msg_code == JERR_OUT_OF_MEMORY;
  std::longjmp(errors->back, 1);
}

// Called for each row of blocks of each scan.
struct Watch {
  jpeg_progress_mgr base;
  const Job* job;
};

void look(j_common_ptr info) {
  const auto* const jpeg = reinterpret_cast<j_decompress_ptr>(info);
  const Job& job = *reinterpret_cast<Watch*>(info->progress)->job;
  const int64_t pixels = int64_t{jpeg->image_width} * jpeg->image_height;
  if (job.stopped() || jpeg->input_scan_number > kMostScans ||
      jpeg->input_scan_number / kMostScansOfLargest > job.max_pixels / pixels)
    leave(info);
}

// Whether the bytes can hold what the header announces.
bool plausible(const jpeg_decompress_struct& jpeg, Bytes bytes) {
  const int64_t pixels = int64_t{jpeg.image_width} * jpeg.image_height;
  return jpeg.arith_code || pixels / kPixelsPerByte <= static_cast<int64_t>(bytes.size());
}

// False when there is no memory for it; there is nothing to destroy then.
bool create(jpeg_decompress_struct* jpeg, Errors* errors) {
  if (setjmp(errors->back)) return false;
  jpeg_create_decompress(jpeg);
  return true;
}

// Leaves by longjmp in between: nothing here may have a destructor. |image| and |line| are the
// caller's.
bool read(jpeg_decompress_struct* jpeg, Errors* errors, Job* job, std::optional<Image>* image,
          uint8_t* line, size_t line_bytes) {
  if (setjmp(errors->back)) return false;
  const Bytes bytes = job->bytes;
  jpeg_mem_src(jpeg, bytes.data(), static_cast<unsigned long>(bytes.size()));
  if (jpeg_read_header(jpeg, TRUE) != JPEG_HEADER_OK) return false;
  const bool inks = jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK;
  jpeg->out_color_space = inks ? JCS_CMYK : JCS_RGB;
  if (!job->allows(jpeg->image_height, jpeg->image_width) || !plausible(*jpeg, bytes)) return false;
  *image = make_image(*job, jpeg->image_height, jpeg->image_width);
  if (!*image || size_t{jpeg->image_width} * 4 > line_bytes) return false;
  jpeg_start_decompress(jpeg);
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

std::optional<Image> decode_jpeg(Job& job) {
  jpeg_decompress_struct jpeg{};
  Errors errors{};
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.emit_message = [](j_common_ptr, int) {};
  std::optional<Image> image;
  std::vector<uint8_t> line(size_t{JPEG_MAX_DIMENSION} * 4);
  Watch watch{};
  watch.base.progress_monitor = look;
  watch.job = &job;
  if (!create(&jpeg, &errors)) throw std::bad_alloc();
  const std::unique_ptr<jpeg_decompress_struct, decltype(&jpeg_destroy_decompress)> owner(
      &jpeg, jpeg_destroy_decompress);
  jpeg.progress = &watch.base;
  const bool whole = read(&jpeg, &errors, &job, &image, line.data(), line.size());
  if (errors.out_of_memory) throw std::bad_alloc();
  return whole ? std::move(image) : std::nullopt;
}

}  // namespace pfrt::image
