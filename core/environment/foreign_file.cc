// SPDX-License-Identifier: Apache-2.0
#include "core/environment/foreign_file.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

#include "core/base/status.h"

namespace pfrt {
namespace {

constexpr uint64_t kLooked = 4096;  // bytes of the beginning
constexpr uint32_t kMostNames = 4096;

constexpr std::string_view kExport =
    "export the model to ONNX with PyTorch: torch.onnx.export(model, inputs, 'model.onnx', "
    "dynamo=True)";

template <typename T>
T number_at(std::string_view bytes, uint64_t at) {
  T number{};
  if (at + sizeof number <= bytes.size()) std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

bool has_at(std::string_view bytes, uint64_t at, std::string_view part) {
  return at <= bytes.size() && bytes.substr(at).starts_with(part);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// The text without a mark of UTF-8 and white space in front.
std::string_view trimmed(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

std::string of_pointer(std::string_view text) {
  std::string bytes;
  if (const size_t at = text.find("\nsize "); at != std::string_view::npos) {
    const std::string_view digits = text.substr(at + 6);
    bytes = message(" of ", digits.substr(0, digits.find_first_not_of("0123456789")), " bytes");
  }
  return message("it is a Git LFS pointer to a file", bytes,
                 ", not the file: fetch that with 'git lfs pull'");
}

// What a ZIP archive is by the names in its directory, which stands at its end.
std::string of_archive(std::string_view bytes) {
  constexpr std::string_view kEnd("PK\5\6", 4), kEntry("PK\1\2", 4);
  constexpr uint64_t kEndBytes = 22, kEntryBytes = 46;
  const uint64_t tail = bytes.size() - std::min<uint64_t>(bytes.size(), kEndBytes + UINT16_MAX);
  const size_t found = bytes.substr(tail).rfind(kEnd);
  bool pickled = false, code = false, program = false, keras = false;
  if (found != std::string_view::npos) {
    uint64_t at = number_at<uint32_t>(bytes, tail + found + 16);
    for (uint32_t i = 0; i < kMostNames && has_at(bytes, at, kEntry); ++i) {
      const uint64_t length = number_at<uint16_t>(bytes, at + 28);
      const std::string_view rest = bytes.substr(std::min(at + kEntryBytes, bytes.size()));
      const std::string_view name = rest.substr(0, length);
      pickled |= name.ends_with("/data.pkl") || name == "data.pkl";
      code |= name.find("/code/") != std::string_view::npos;
      program |= name.ends_with("archive_format") || name.ends_with("exported_program.json");
      keras |= name == "model.weights.h5";
      at += kEntryBytes + length + number_at<uint16_t>(bytes, at + 30) +
            number_at<uint16_t>(bytes, at + 32);
    }
  }
  if (program)
    return "it is a program that torch.export saved (.pt2), which this version does not read: load "
           "it "
           "with torch.export.load and give it to torch.onnx.export(program, f='model.onnx')";
  if (pickled && code)
    return "it is a TorchScript file, which this version does not read: export the model that it "
           "was made from: torch.onnx.export(model, inputs, 'model.onnx')";
  if (pickled)
    return message("it is a file of PyTorch's (torch.save), which this version does not read: ",
                   kExport);
  if (keras)
    return "it is a Keras file, which this version does not read: model.export('model.onnx', "
           "format='onnx') writes ONNX";
  return "it is a ZIP archive: unpack it and give the model inside";
}

struct Kind {
  uint64_t at;
  std::string_view magic, what;
};
using namespace std::string_view_literals;
constexpr Kind kKinds[] = {
    {0, "GGUF"sv,
     "it is a GGUF file, which this version does not read: export the model that it was made from "
     "to ONNX"},
    {4, "TFL3"sv,
     "it is a TensorFlow Lite file, which is not read here: python3 -m tf2onnx.convert --tflite "
     "FILE --output model.onnx makes ONNX of it"},
    {0, "\x89HDF\r\n\x1a\n"sv,
     "it is an HDF5 file, as Keras writes: model.export('model.onnx', format='onnx') writes ONNX"},
    {0, "\x93NUMPY"sv, "it is a NumPy array, not a model: an input, perhaps"},
    {0, "\x1f\x8b"sv, "it is packed by gzip: unpack it first"},
    {0, "\x28\xb5\x2f\xfd"sv, "it is packed by zstd: unpack it first"},
    {0, "\3757zXZ\0"sv, "it is packed by xz: unpack it first"},
    {0, "BZh"sv, "it is packed by bzip2: unpack it first"},
    {257, "ustar"sv, "it is a tar archive: unpack it and give the model inside"},
    {0, "\177ELF"sv,
     "it is a program or library; one of operators or providers is given as a plug-in"},
    {0, "%PDF-"sv, "it is a PDF document"},
    {0, "\x89PNG"sv, "it is an image, not a model: an input, perhaps"},
    {0, "\xff\xd8\xff"sv, "it is an image, not a model: an input, perhaps"},
};

bool is_safetensors(std::string_view bytes, uint64_t size) {
  const uint64_t header = number_at<uint64_t>(bytes, 0);
  return bytes.size() > 10 && header >= 2 && header <= size - 8 && has_at(bytes, 8, "{\"");
}

// A pickle begins with its protocol, and an object or a frame follows.
bool is_pickle(std::string_view bytes) {
  constexpr std::string_view kNext = "\x95}](c\x8a";
  return bytes.size() > 3 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5 &&
         kNext.find(bytes[2]) != std::string_view::npos;
}

}  // namespace

std::string foreign_file(const void* data, uint64_t size) {
  const std::string_view all(static_cast<const char*>(data), size);
  const std::string_view bytes = all.substr(0, kLooked), text = trimmed(bytes);
  if (text.starts_with("version https://git-lfs.github.com/")) return of_pointer(text);
  const std::string small = lower(text.substr(0, 64));
  if (small.starts_with("<!doctype html") || small.starts_with("<html"))
    return "it is a web page, as downloads leave that meet an error or a sign-in: download the "
           "model itself";
  if (small.starts_with("<?xml") || small.starts_with("<net "))
    return lower(text).find("<net ") != std::string::npos
               ? "it is an OpenVINO graph, which is not read here: give the ONNX file that it was "
                 "made from"
               : "it is an XML document";
  for (const Kind& kind : kKinds)
    if (has_at(bytes, kind.at, kind.magic)) return std::string(kind.what);
  if (has_at(bytes, 0, "PK\3\4") || has_at(bytes, 0, "PK\5\6")) return of_archive(all);
  if (is_safetensors(bytes, size))
    return message("it is a safetensors file, which has weights but no graph: ", kExport);
  if (is_pickle(bytes))
    return message("it is a pickle, as torch.save of old and scikit-learn write: ", kExport,
                   ", or scikit-learn's with skl2onnx");
  if (size >= 64 && std::ranges::all_of(bytes, [](char c) { return c == 0; }))
    return "it begins with zeros alone, as a download leaves that was cut off: download it again";
  return {};
}

}  // namespace pfrt
