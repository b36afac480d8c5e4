// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/tensors/npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

#include "cxxapi/cli/line/usage_error.h"
#include "cxxapi/cli/tensors/elements.h"

namespace cli {
namespace {

using pyflame_rt::DType;
using pyflame_rt::Tensor;

struct NpyType {
  const char* code;  // kind and bytes
  DType dtype;
};
constexpr NpyType kTypes[] = {
    {"f4", DType::Float32},   {"f8", DType::Float64},     {"f2", DType::Float16},
    {"b1", DType::Bool},      {"i1", DType::Int8},        {"i2", DType::Int16},
    {"i4", DType::Int32},     {"i8", DType::Int64},       {"u1", DType::UInt8},
    {"u2", DType::UInt16},    {"u4", DType::UInt32},      {"u8", DType::UInt64},
    {"c8", DType::Complex64}, {"c16", DType::Complex128},
};

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
  size_t data_at = 0;
};

[[noreturn]] void malformed(const std::string& path, const std::string& why) {
  throw UsageError("'" + path + "' is not a .npy file that can be read: " + why);
}

// Returns the text that follows 'key': in the header's dictionary.
std::string entry(const std::string& dict, const std::string& key, const std::string& path) {
  const size_t at = dict.find("'" + key + "'");
  const size_t colon = at == std::string::npos ? at : dict.find(':', at);
  if (colon == std::string::npos) malformed(path, "its header has no " + key);
  const size_t begin = dict.find_first_not_of(' ', colon + 1);
  return begin == std::string::npos ? std::string() : dict.substr(begin);
}

Header read_header(const std::string& file, const std::string& path) {
  if (file.size() < 10 || file.compare(0, 6, "\x93NUMPY") != 0)
    malformed(path, "it lacks the magic bytes");
  if (file[6] < 1 || file[6] > 3)
    malformed(path, "its version is " + std::to_string(file[6]) + ", and those known are 1 to 3");
  const bool wide = file[6] != 1;
  size_t length = 0;
  for (size_t i = 0; i < (wide ? 4u : 2u); ++i) {
    if (8 + i >= file.size()) malformed(path, "it is truncated");
    length |= static_cast<size_t>(static_cast<uint8_t>(file[8 + i])) << (8 * i);
  }
  Header header;
  header.data_at = (wide ? 12 : 10) + length;
  if (header.data_at > file.size()) malformed(path, "it is truncated");
  const std::string dict = file.substr(wide ? 12 : 10, length);
  const std::string descr = entry(dict, "descr", path);
  const size_t close = descr.find('\'', 1);
  if (descr.empty() || descr[0] != '\'' || close == std::string::npos)
    malformed(path, "a structured dtype");
  header.descr = descr.substr(1, close - 1);
  header.fortran = entry(dict, "fortran_order", path).compare(0, 4, "True") == 0;
  const std::string shape = entry(dict, "shape", path);
  const size_t close_shape = shape.find(')');
  if (shape.empty() || shape[0] != '(' || close_shape == std::string::npos)
    malformed(path, "its shape is no tuple");
  const char* at = shape.data() + 1;
  const char* const end = shape.data() + close_shape;
  const auto skip_blanks = [&] { at = std::find_if(at, end, [](char c) { return c != ' '; }); };
  for (skip_blanks(); at < end; skip_blanks()) {
    int64_t dim = 0;
    const auto parsed = std::from_chars(at, end, dim);
    if (parsed.ec == std::errc::result_out_of_range) malformed(path, "its shape is too large");
    if (parsed.ec != std::errc() || dim < 0)
      malformed(path, "its shape has '" + std::string(at, std::find(at, end, ',')) +
                          "', which is no dimension");
    header.shape.push_back(dim);
    at = parsed.ptr;
    if (at < end && *at == 'L') ++at;  // Python 2 writes one
    skip_blanks();
    if (at < end && *at++ != ',')
      malformed(path, "its shape has dimensions without a comma between");
  }
  return header;
}

void append_utf8(uint32_t c, std::string* out) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xc0 | (c >> 6));
    *out += static_cast<char>(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    *out += static_cast<char>(0xe0 | (c >> 12));
    *out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    *out += static_cast<char>(0x80 | (c & 0x3f));
  } else {
    *out += static_cast<char>(0xf0 | (c >> 18));
    *out += static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    *out += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    *out += static_cast<char>(0x80 | (c & 0x3f));
  }
}

// Decodes UTF-8 into code points; a malformed byte stands for itself.
std::vector<uint32_t> code_points(const std::string& text) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    uint32_t c = length == 1 ? lead : lead & (0x7fu >> length);
    for (size_t k = 1; k < length && i + k < text.size(); ++k) {
      c = (c << 6) | (static_cast<uint8_t>(text[i + k]) & 0x3fu);
    }
    out.push_back(c);
    i += length;
  }
  return out;
}

// Returns the text of fixed-width cells of |unit| bytes a character, padded with zeros.
std::string cell_text(const char* cell, size_t width, size_t unit, bool swap) {
  std::string text;
  std::string trimmed;
  for (size_t i = 0; i < width; ++i) {
    uint32_t c = 0;
    for (size_t k = 0; k < unit; ++k) {
      const auto byte = static_cast<uint8_t>(cell[i * unit + (swap ? unit - 1 - k : k)]);
      c |= static_cast<uint32_t>(byte) << (8 * k);
    }
    if (unit == 1) {
      text += static_cast<char>(c);
    } else {
      append_utf8(c, &text);
    }
    if (c != 0) trimmed = text;
  }
  return trimmed;
}

// Returns the row-major index of each element in the file's column-major order.
std::vector<int64_t> fortran_order(const std::vector<int64_t>& shape, int64_t count) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t& target : order) {
    target = 0;
    for (size_t d = 0; d < shape.size(); ++d) target += at[d] * strides[d];
    for (size_t d = 0; d < shape.size() && ++at[d] == shape[d]; ++d) at[d] = 0;
  }
  return order;
}

}  // namespace

std::string read_file(const std::string& path) {
  // Opening a pipe or device must neither wait nor change it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const auto fail = [&](const std::string& why) {
    if (fd >= 0) ::close(fd);
    throw UsageError("cannot read '" + path + "': " + why);
  };
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0) fail(std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail("it is no regular file; copy its bytes to a file first");
  std::string bytes;
  for (char piece[1 << 16];;) {
    const ssize_t got = ::read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(std::strerror(errno));
    if (got == 0) break;
    bytes.append(piece, static_cast<size_t>(got));
  }
  ::close(fd);
  return bytes;
}

Tensor read_npy(const std::string& path) {
  const std::string file = read_file(path);
  const Header header = read_header(file, path);
  if (header.descr.size() < 3) malformed(path, "dtype '" + header.descr + "'");
  const char order = header.descr[0];
  const bool swap = order == '>';
  const std::string code = header.descr.substr(1);
  const int64_t count = pyflame_rt::detail::count_of(header.shape);
  const size_t available = file.size() - header.data_at;
  const bool text = code[0] == 'U' || code[0] == 'S';

  size_t size = 0;
  DType dtype = DType::String;
  const size_t unit = code[0] == 'U' ? 4 : 1;
  if (text) {
    size_t width = 0;
    std::from_chars(code.data() + 1, code.data() + code.size(), width);
    if (width > available) width = available + 1;
    size = width * unit;
  } else {
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&code](const NpyType& t) { return code == t.code; });
    if (type == std::end(kTypes)) malformed(path, "dtype '" + header.descr + "'");
    dtype = type->dtype;
    size = pyflame_rt::dtype_bits(dtype) / 8;
  }
  const bool fits = count >= 0 && (size == 0 || static_cast<uint64_t>(count) <= available / size);
  if (!fits) malformed(path, "it is shorter than its shape says");
  if (text && size == 0 && count > (int64_t{1} << 24)) malformed(path, "its shape is too large");

  Tensor tensor(header.shape, dtype);
  const std::vector<int64_t> places =
      header.fortran ? fortran_order(header.shape, count) : std::vector<int64_t>();
  const size_t part = is_complex(dtype) ? size / 2 : size;
  const char* from = file.data() + header.data_at;
  for (int64_t i = 0; i < count; ++i, from += size) {
    const int64_t at = header.fortran ? places[static_cast<size_t>(i)] : i;
    if (text) {
      tensor.set_string(at, cell_text(from, size / unit, unit, swap));
      continue;
    }
    char* to = static_cast<char*>(tensor.data()) + static_cast<size_t>(at) * size;
    std::memcpy(to, from, size);
    for (size_t p = 0; swap && p < size; p += part) std::reverse(to + p, to + p + part);
  }
  return tensor;
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const int64_t count = tensor.num_elements();
  std::string descr;
  std::string data;
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes),
                   [&tensor](const NpyType& t) { return tensor.dtype() == t.dtype; });
  if (type != std::end(kTypes)) {
    descr = std::string(type->code).back() == '1' ? "|" : "<";
    descr += type->code;
    data.assign(static_cast<const char*>(tensor.data()), tensor.size_bytes());
  } else if (tensor.dtype() == DType::String) {
    std::vector<std::vector<uint32_t>> cells;
    size_t width = 1;
    for (const std::string& s : tensor.strings()) {
      cells.push_back(code_points(s));
      width = std::max(width, cells.back().size());
    }
    for (auto& cell : cells) {
      cell.resize(width, 0);
      data.append(reinterpret_cast<const char*>(cell.data()), width * sizeof(uint32_t));
    }
    descr = "<U" + std::to_string(width);
  } else if (is_float(tensor.dtype())) {
    descr = "<f4";
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(number_at(tensor, i));
      data.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  } else {
    const bool is_signed = tensor.dtype() == DType::Int4 || tensor.dtype() == DType::Int2;
    descr = is_signed ? "|i1" : "|u1";
    for (int64_t i = 0; i < count; ++i) data += static_cast<char>(integer_at(tensor, i));
  }

  std::string shape;
  for (const int64_t dim : tensor.shape()) shape += std::to_string(dim) + ", ";
  std::string dict =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  const bool wide = dict.size() > 65000;
  const size_t prefix = wide ? 12 : 10;
  while ((prefix + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string head = std::string("\x93NUMPY") + static_cast<char>(wide ? 2 : 1) + '\0';
  for (size_t i = 0; i < (wide ? 4u : 2u); ++i)
    head += static_cast<char>((dict.size() >> (8 * i)) & 0xff);

  std::ofstream out(path, std::ios::binary);
  out << head << dict << data;
  out.flush();
  if (!out) throw UsageError("cannot write '" + path + "'");
}

}  // namespace cli
