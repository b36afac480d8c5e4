// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/program/options.h"

#include <charconv>

#include "core/base/os/file.h"

namespace pfrt::wse {
namespace {

constexpr pfrt_string str(std::string_view s) { return {s.data(), s.size()}; }

constexpr pfrt_option_info option(pfrt_option_type type, std::string_view key,
                                  std::string_view fallback, std::string_view choices,
                                  std::string_view doc) {
  pfrt_option_info out{};
  out.struct_size = sizeof out;
  out.type = type;
  out.key = str(key);
  out.default_value = str(fallback);
  out.choices = str(choices);
  out.doc = str(doc);
  return out;
}

constexpr pfrt_option_info kOptions[] = {
    option(PFRT_OPTION_STRING, "arithmetic", "fp16", "fp16 bf16 fp32 f32_fast",
           "Type of a PE's numbers; f32_fast adds up in any order"),
    option(PFRT_OPTION_STRING, "fabric", "", "",
           "Columns and rows of PEs that may be used, as 750x994; empty: all that the machine has"),
    option(PFRT_OPTION_FLOAT, "clock", "0", "", "Cycles a second; 0: those of the machine file"),
    option(PFRT_OPTION_BOOL, "timing_only", "false", "",
           "Count cycles without computing values; runs are refused"),
    option(PFRT_OPTION_STRING, "chips", "1x1", "", "Wafers, as columns x rows of a grid of them"),
    option(PFRT_OPTION_FLOAT, "inter_chip_bandwidth", "0", "",
           "Bytes a second between neighbouring wafers; 0: 150e9"),
    option(PFRT_OPTION_FLOAT, "inter_chip_latency", "0", "",
           "Nanoseconds of a link between wafers; 0 is reported as an assumption"),
    option(PFRT_OPTION_INT, "chip_memory_bytes", "0", "",
           "Bytes of a wafer that may be used; 0: all PEs'"),
    option(PFRT_OPTION_STRING, "execution", "auto", "auto pipelined streaming",
           "Layers side by side, or one after another with weights from the host"),
    option(PFRT_OPTION_BOOL, "silicon", "false", "",
           "Take numbers measured on the machine over those of the vendor's simulator"),
    option(PFRT_OPTION_STRING, "machine_file", "", "",
           "Path of a machine file; empty: the device's own"),
};

Status wrong(std::string_view key, std::string_view value, std::string_view wanted) {
  return error(Code::kINVALID_ARGUMENT, "the option '", key, "' of the wafer-scale provider is '",
               value, "'; ", wanted);
}

Result<double> number(std::string_view key, std::string_view value) {
  double out = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (fault != std::errc() || end != value.data() + value.size() || !(out >= 0) || out > 1e18)
    return wrong(key, value, "it is a number of 0 or more");
  return out;
}

// An option's place to be put, as text; empty where it was not given.
class Given {
 public:
  Given(const pfrt_key_value* options, size_t count) : options_(options), count_(count) {}
  std::string_view text(std::string_view key) const {
    std::string_view out;
    for (size_t i = 0; i < count_; ++i)
      if (view(options_[i].key) == key) out = view(options_[i].value);
    return out;
  }
  Result<double> positive(std::string_view key) const {
    const std::string_view value = text(key);
    return value.empty() ? Result<double>(0.0) : number(key, value);
  }
  Result<bool> flag(std::string_view key) const {
    const std::string_view value = text(key);
    if (value.empty() || value == "false" || value == "0") return false;
    if (value == "true" || value == "1") return true;
    return wrong(key, value, "it is true or false");
  }
  Status check_keys() const {
    for (size_t i = 0; i < count_; ++i) {
      bool known = false;
      std::string keys;
      for (const pfrt_option_info& o : kOptions) {
        known = known || view(o.key) == view(options_[i].key);
        keys += message(keys.empty() ? "" : ", ", view(o.key));
      }
      if (!known)
        return error(Code::kINVALID_ARGUMENT, "the wafer-scale provider has no option '",
                     view(options_[i].key), "'; it has ", keys);
    }
    return {};
  }

 private:
  const pfrt_key_value* options_;
  size_t count_;
};

Result<Machine> machine_of(std::string_view device, const Given& given) {
  PFRT_ASSIGN(const bool silicon, given.flag("silicon"));
  PFRT_ASSIGN(const double clock, given.positive("clock"));
  std::vector<Change> changes;
  if (clock > 0) changes.push_back({"clock_hz", clock});
  const std::string path(given.text("machine_file"));
  const auto checked = [&](Result<Machine> machine) -> Result<Machine> {
    if (machine.ok() && silicon && !machine.value().silicon)
      return wrong("silicon", given.text("silicon"),
                   message("for '", machine.value().name,
                           "' no numbers measured on the machine are known: leave the option out, "
                           "or take wse3 or a machine_file with \"silicon\""));
    return machine;
  };
  if (path.empty()) return checked(find_machine(device, silicon, changes));
  const auto file = os::MappedFile::open(path, false);
  if (!file.ok())
    return error(Code::kNOT_FOUND, "the machine file '", path,
                 "' cannot be opened for reading: give the path of a file; ",
                 file.status().message());
  const std::string_view text{static_cast<const char*>(file.value()->data()),
                              static_cast<size_t>(file.value()->size())};
  Result<Machine> out = parse_machine(text, silicon, changes);
  if (!out.ok()) {
    Status status = out.take_status();
    return status.prepend(path);
  }
  return checked(std::move(out));
}

Status read_fabric(const Given& given, Target& target) {
  const auto columns = static_cast<int64_t>(target.machine.usable_columns);
  const auto rows = static_cast<int64_t>(target.machine.usable_rows);
  target.fabric = {0, 0, columns, rows};
  const std::string_view text = given.text("fabric");
  if (text.empty()) return {};
  if (!read_sizes(text, &target.fabric.columns, &target.fabric.rows))
    return wrong("fabric", text, "it is written as 750x994");
  if (target.fabric.columns > columns || target.fabric.rows > rows)
    return wrong(
        "fabric", text,
        message("a program on ", target.machine.name, " has ", columns, "x", rows, " PEs at most"));
  return {};
}

Status read_chips(const Given& given, Chips& chips) {
  const std::string_view text = given.text("chips");
  if (!text.empty() && (!read_sizes(text, &chips.columns, &chips.rows) || chips.count() > 4096))
    return wrong("chips", text, "it is written as 2x2, 4,096 wafers at most");
  PFRT_ASSIGN(const double bandwidth, given.positive("inter_chip_bandwidth"));
  if (bandwidth > 0) chips.bytes_per_second = bandwidth;
  PFRT_ASSIGN(const double latency, given.positive("inter_chip_latency"));
  chips.latency_seconds = latency * 1e-9;
  chips.latency_given = latency > 0;
  PFRT_ASSIGN(const double memory, given.positive("chip_memory_bytes"));
  chips.memory_bytes = static_cast<int64_t>(memory);
  if (static_cast<double>(chips.memory_bytes) != memory)
    return wrong("chip_memory_bytes", given.text("chip_memory_bytes"), "it is a whole number");
  return {};
}

}  // namespace

bool read_sizes(std::string_view text, int64_t* columns, int64_t* rows) {
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, *columns);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != 'x') return false;
  const auto second = std::from_chars(first.ptr + 1, end, *rows);
  return second.ec == std::errc() && second.ptr == end && *columns > 0 && *rows > 0 &&
         *columns <= 65535 && *rows <= 65535;
}

Result<Arithmetic> read_arithmetic(std::string_view text) {
  for (const Arithmetic a :
       {Arithmetic::kFp16, Arithmetic::kBf16, Arithmetic::kFp32, Arithmetic::kFp32Fast})
    if (name_of(a) == text) return a;
  return wrong("arithmetic", text, "it is fp16, bf16, fp32 or f32_fast");
}

std::span<const pfrt_option_info> option_list() { return kOptions; }

Result<Settings> read_settings(std::string_view device, const pfrt_key_value* options,
                               size_t count) {
  const Given given(options, count);
  PFRT_TRY(given.check_keys());
  Settings out;
  PFRT_ASSIGN(out.target.machine, machine_of(device, given));
  if (const std::string_view text = given.text("arithmetic"); !text.empty()) {
    PFRT_ASSIGN(out.target.arithmetic, read_arithmetic(text));
  }
  PFRT_TRY(read_fabric(given, out.target));
  PFRT_TRY(read_chips(given, out.target.chips));
  PFRT_ASSIGN(out.timing_only, given.flag("timing_only"));
  const std::string_view execution = given.text("execution");
  if (execution == "pipelined")
    out.target.execution = Execution::kPipelined;
  else if (execution == "streaming")
    out.target.execution = Execution::kStreaming;
  else if (!execution.empty() && execution != "auto")
    return wrong("execution", execution, "it is auto, pipelined or streaming");
  const Target& t = out.target;
  out.text =
      message("WSEExecutionProvider ", PFRT_VERSION_TEXT, ", simulated ", t.machine.identity(),
              ", ", name_of(t.arithmetic), ", fabric ", t.fabric.columns, "x", t.fabric.rows,
              ", chips ", t.chips.columns, "x", t.chips.rows, ", links ", t.chips.bytes_per_second,
              " B/s ", t.chips.latency_seconds, " s, memory ", t.chips.memory_bytes, ", execution ",
              static_cast<int>(t.execution), out.timing_only ? ", timing only" : "");
  return out;
}

}  // namespace pfrt::wse
