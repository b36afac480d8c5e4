// SPDX-License-Identifier: Apache-2.0
//
// libpyflamert_ops_image.so: ImageDecoder. Bytes that are no image give an empty one, [0, 0,
// channels], which the standard wants; images of more pixels than the session allows are refused.
#include <cstddef>
#include <exception>
#include <new>
#include <string>

#include "plugins/ops/onnx_op.h"
#include "plugins/ops_image/decode.h"
#include "providers/kit/describe.h"

namespace {

using pfrt::image::Image;
using pfrt::image::Job;
using pfrt::ops::text;
using pfrt::ops::view;

enum class Pixels { kRgb, kBgr, kGrey, kUnknown };

Pixels pixels_of(const pfrt_snapshot_node& node, uint32_t attr_size) {
  const pfrt_snapshot_attr* attr =
      pfrt::ops::attribute(node, attr_size, "pixel_format", PFRT_ATTR_STRING);
  if (attr == nullptr || view(attr->s) == "RGB") return Pixels::kRgb;
  if (view(attr->s) == "BGR") return Pixels::kBgr;
  return view(attr->s) == "Grayscale" ? Pixels::kGrey : Pixels::kUnknown;
}

pfrt_code infer(void*, const pfrt_op_infer* context) {
  const pfrt_snapshot_value& x = context->inputs[0];
  if (x.rank >= 0 && x.rank != 1)
    return context->fail(context, PFRT_CODE_SHAPE_MISMATCH, text("the stream must have rank 1"));
  const Pixels pixels = pixels_of(*context->node, context->attr_size);
  if (pixels == Pixels::kUnknown)
    return context->fail(context, PFRT_CODE_INVALID_MODEL,
                         text("attribute 'pixel_format' must be RGB, BGR or Grayscale"));
  const int64_t dims[] = {-1, -1, pixels == Pixels::kGrey ? 1 : 3};
  return context->set_output(context, 0, PFRT_DTYPE_UINT8, 3, dims);
}

// Luma of ITU-R BT.601 in 16 bits of fraction.
uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

std::string too_large(const Job& job) {
  return "the image is " + std::to_string(job.refused_width) + " x " +
         std::to_string(job.refused_height) + " pixels, more than the " +
         std::to_string(job.max_pixels) +
         " that session option 'image.max_pixels' allows; give the session a higher number, or "
         "scale the image down";
}

void write(const uint8_t* from, const uint8_t* end, Pixels pixels, uint8_t* to) {
  for (; from != end; from += 3) {
    if (pixels == Pixels::kGrey) {
      *to++ = luma(from);
    } else {
      for (int c = 0; c < 3; ++c) *to++ = from[pixels == Pixels::kBgr ? 2 - c : c];
    }
  }
}

pfrt_code decode(const pfrt_op_compute* context) {
  const pfrt_tensor& x = context->inputs[0];
  Job job{};
  job.bytes = {static_cast<const uint8_t*>(x.data), static_cast<size_t>(x.bytes)};
  job.max_pixels = static_cast<int64_t>(context->max_pixels);
  job.asked_to_stop = [](const void* who) {
    const auto* const c = static_cast<const pfrt_op_compute*>(who);
    return c->stop(c) != PFRT_CODE_OK;
  };
  job.who = context;
  const std::optional<Image> image = pfrt::image::decode(job);
  if (const pfrt_code code = context->stop(context)) return code;
  if (job.refused_height > 0)
    return context->fail(context, PFRT_CODE_INVALID_ARGUMENT, text(too_large(job)));
  const Pixels pixels = pixels_of(*context->node, context->attr_size);
  const int64_t channels = pixels == Pixels::kGrey ? 1 : 3;
  const int64_t dims[] = {image ? image->height : 0, image ? image->width : 0, channels};
  void* out = nullptr;
  if (const pfrt_code code = context->alloc_output(context, 0, PFRT_DTYPE_UINT8, dims, 3, &out);
      code != PFRT_CODE_OK || !out || !image)
    return code;
  for (int64_t y = 0; y < image->height; ++y) {
    if (const pfrt_code code = context->stop(context)) return code;
    const uint8_t* const row = image->rgb.data() + y * image->width * 3;
    write(row, row + image->width * 3, pixels,
          static_cast<uint8_t*>(out) + y * image->width * channels);
  }
  return PFRT_CODE_OK;
}

pfrt_code compute(void*, const pfrt_op_compute* context) {
  try {
    return decode(context);
  } catch (const std::bad_alloc&) {
    return PFRT_CODE_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    return context->fail(context, PFRT_CODE_PLUGIN, text(error.what()));
  }
}

constexpr pfrt_dtype kBytes = PFRT_DTYPE_UINT8;

pfrt_custom_op image_decoder() {
  pfrt_custom_op op =
      pfrt::ops::onnx_op("ImageDecoder", 20, 1, PFRT_OP_DATA_DEPENDENT, infer, compute);
  pfrt::ops::set_types(op, kBytes, kBytes);
  return op;
}

const pfrt_custom_op kImageDecoder = image_decoder();
const pfrt_custom_op* const kOps[] = {&kImageDecoder};
const pfrt_ops_table kTable = {sizeof(pfrt_ops_table), PFRT_ABI_VERSION, kOps, 1};

}  // namespace

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out_desc) {
  return pfrt::describe_plugin(host, PFRT_PLUGIN_OPS, "ImageOperators", 0, &kTable, out_desc);
}
