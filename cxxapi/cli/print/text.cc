// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/print/text.h"

#include <cstdio>

namespace cli {
namespace {

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), pattern, value);
  return text;
}

}  // namespace

std::string shape_text(const std::vector<int64_t>& shape) {
  return pyflame_rt::detail::shape_text(shape);
}

std::string shape_text(const pyflame_rt::TensorInfo& info) {
  if (info.unranked) return "[...]";
  std::string out = "[";
  for (size_t i = 0; i < info.shape.size(); ++i) {
    if (i != 0) out += ",";
    if (info.shape[i]) {
      out += std::to_string(*info.shape[i]);
    } else {
      const bool named = i < info.dim_names.size() && !info.dim_names[i].empty();
      out += named ? info.dim_names[i] : "?";
    }
  }
  return out + "]";
}

std::string describe(const pyflame_rt::NodeArg& arg) { return arg.type() + " " + shape_text(arg); }

std::string bytes_text(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1024) return std::to_string(bytes) + " B";
  if (value < 1024.0 * 1024) return format("%.1f KiB", value / 1024);
  if (value < 1024.0 * 1024 * 1024) return format("%.1f MiB", value / (1024.0 * 1024));
  return format("%.2f GiB", value / (1024.0 * 1024 * 1024));
}

std::string time_text(double seconds) {
  if (seconds < 1e-6) return format("%.0f ns", seconds * 1e9);
  if (seconds < 1e-3) return format("%.2f us", seconds * 1e6);
  if (seconds < 1) return format("%.3f ms", seconds * 1e3);
  return format("%.3f s", seconds);
}

std::string count_text(double count) {
  if (count < 1e3) return format("%.0f", count);
  if (count < 1e6) return format("%.1f k", count / 1e3);
  if (count < 1e9) return format("%.1f M", count / 1e6);
  return format("%.2f G", count / 1e9);
}

std::string number_text(double value) { return format("%.4g", value); }

std::string one_line(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != '\n' && c != '\r') {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += out.back() == ':' ? " " : "; ";
    }
  }
  while (!out.empty() && (out.back() == ' ' || out.back() == ';')) out.pop_back();
  return out;
}

}  // namespace cli
