// SPDX-License-Identifier: Apache-2.0
#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <string>

#include "core/exec/host/call.h"

namespace pfrt::host {
namespace {

locale_t utf8_locale() {
  static const locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

// Code points of |text|; a byte that is not UTF-8 stands for itself above the code space.
std::u32string decode(std::string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    const unsigned char lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80       ? 1
                          : lead >> 5 == 6  ? 2
                          : lead >> 4 == 14 ? 3
                          : lead >> 3 == 30 ? 4
                                            : 0;
    char32_t point = length == 1 ? lead : length ? lead & (0x7fu >> length) : 0x110000u + lead;
    size_t used = 1;
    for (; used < length && i + used < text.size() && (text[i + used] & 0xc0) == 0x80; ++used)
      point = (point << 6) | static_cast<unsigned char>(text[i + used] & 0x3f);
    if (length > 1 && used != length) {
      point = 0x110000u + lead;
      used = 1;
    }
    out.push_back(point);
    i += used;
  }
  return out;
}

std::string encode(const std::u32string& points) {
  std::string out;
  for (const char32_t p : points) {
    const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (p >= 0x110000) {
      put(p - 0x110000);
    } else if (p < 0x80) {
      put(p);
    } else if (p < 0x800) {
      put(0xc0 | p >> 6);
      put(0x80 | (p & 0x3f));
    } else if (p < 0x10000) {
      put(0xe0 | p >> 12);
      put(0x80 | (p >> 6 & 0x3f));
      put(0x80 | (p & 0x3f));
    } else {
      put(0xf0 | p >> 18);
      put(0x80 | (p >> 12 & 0x3f));
      put(0x80 | (p >> 6 & 0x3f));
      put(0x80 | (p & 0x3f));
    }
  }
  return out;
}

std::string change_case(std::string_view text, std::string_view action) {
  if (action != "UPPER" && action != "LOWER") return std::string(text);
  const locale_t locale = utf8_locale();
  std::u32string points = decode(text);
  for (char32_t& p : points) {
    if (p >= 0x110000) continue;
    if (!locale) {
      if (p < 0x80)
        p = static_cast<char32_t>(action == "UPPER" ? toupper(static_cast<int>(p))
                                                    : tolower(static_cast<int>(p)));
      continue;
    }
    p = static_cast<char32_t>(action == "UPPER" ? towupper_l(static_cast<wint_t>(p), locale)
                                                : towlower_l(static_cast<wint_t>(p), locale));
  }
  return encode(points);
}

Status string_normalizer(const Call& call) {
  PFRT_ASSIGN(const Tensor* input, need_tensor(call, 0, PFRT_DTYPE_STRING));
  const Tensor& t = *input;
  const bool rows = t.dims.size() == 2 && t.dims[0] == 1;
  if (t.dims.size() != 1 && !rows)
    return error(Code::kSHAPE_MISMATCH, "input must be [C] or [1,C], its rank is ", t.dims.size());
  const std::string_view action = call.node.attr_string("case_change_action", "NONE");
  const bool sensitive = call.node.attr_int("is_case_sensitive", 0) != 0;
  const Attribute* list = call.node.attr("stopwords");
  std::vector<std::string> stop = list ? list->strings : std::vector<std::string>();
  if (!sensitive)
    for (std::string& s : stop) s = change_case(s, "LOWER");
  std::vector<std::string> kept;
  for (const pfrt_string& s : t.strings()) {
    const std::string compared = sensitive ? std::string(view(s)) : change_case(view(s), "LOWER");
    if (std::find(stop.begin(), stop.end(), compared) == stop.end())
      kept.push_back(change_case(view(s), action));
  }
  if (kept.empty()) kept.emplace_back();  // the standard asks for one empty string
  Dims dims = t.dims;
  dims.back() = static_cast<int64_t>(kept.size());
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_STRING, dims));
  for (size_t i = 0; i < kept.size(); ++i) PFRT_TRY(out.buffer->set_string(i, kept[i]));
  call.out[0] = Value::of(std::move(out));
  return {};
}

constexpr HostOp kRows[] = {
    {"", "StringNormalizer", string_normalizer},
};

}  // namespace

std::span<const HostOp> text_ops() { return kRows; }

}  // namespace pfrt::host
