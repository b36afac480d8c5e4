// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/machine/machine.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace pfrt::wse {
namespace {

using Json = nlohmann::json;

struct Number {
  const char* name;
  double least;  // a smaller value is refused
  double* (*in)(Machine&);
};

#define PFRT_NUMBER(name, least)                      \
  {                                                   \
#name, least, [](Machine & m) { return &m.name; } \
  }
#define PFRT_RATE(rate)                                                           \
  {#rate "_group", 1, [](Machine& m) { return &m.rate.group; }}, {                \
#rate "_group_cycles", 0.01, [](Machine & m) { return &m.rate.group_cycles; } \
  }

constexpr Number kNumbers[] = {
    PFRT_NUMBER(fabric_columns, 1),
    PFRT_NUMBER(fabric_rows, 1),
    PFRT_NUMBER(usable_columns, 1),
    PFRT_NUMBER(usable_rows, 1),
    PFRT_NUMBER(clock_hz, 1),
    PFRT_NUMBER(sram_bytes, 1024),
    PFRT_NUMBER(program_bytes, 0),
    PFRT_NUMBER(colors, 1),
    PFRT_NUMBER(reserved_colors, 0),
    PFRT_NUMBER(input_queues, 1),
    PFRT_NUMBER(output_queues, 1),
    PFRT_NUMBER(reserved_queues, 0),
    PFRT_NUMBER(input_queue_words, 1),
    PFRT_NUMBER(output_queue_words, 1),
    PFRT_NUMBER(router_words, 1),
    PFRT_NUMBER(max_extent, 1),
    PFRT_NUMBER(hop, 0),
    PFRT_NUMBER(turn, 0),
    PFRT_NUMBER(ramp, 0),
    PFRT_NUMBER(wavelet, 0.01),
    PFRT_NUMBER(dispatch, 0),
    PFRT_NUMBER(completion, 0),
    PFRT_NUMBER(exchange_floor, 0),
    PFRT_NUMBER(task, 0),
    PFRT_NUMBER(async, 0),
    PFRT_NUMBER(role_test, 0),
    PFRT_NUMBER(dsd_setup, 0),
    PFRT_NUMBER(send_setup, 0),
    PFRT_NUMBER(loop_call, 0),
    PFRT_NUMBER(map_setup, 0),
    PFRT_NUMBER(map_call, 0),
    PFRT_NUMBER(dependent, 0),
    PFRT_RATE(fp16_fmac),
    PFRT_RATE(fp16_op),
    PFRT_RATE(fp16_copy),
    PFRT_RATE(fp32_fmac),
    PFRT_RATE(fp32_op),
    PFRT_RATE(fp32_copy),
    PFRT_NUMBER(register_element, 0),
    PFRT_NUMBER(scalar, 0),
    PFRT_NUMBER(divide, 0),
    PFRT_NUMBER(square_root, 0),
    PFRT_NUMBER(exponential, 0),
    PFRT_NUMBER(h2d_words, 0.0001),
    PFRT_NUMBER(d2h_words, 0.0001),
    PFRT_NUMBER(channels, 1),
    PFRT_NUMBER(host_bytes_per_second, 1),
};
#undef PFRT_NUMBER
#undef PFRT_RATE

// Cycles, sizes and counts; and what is told a second.
constexpr double kMost = 1e6, kMostASecond = 1e15;

double most_of(std::string_view name) {
  const bool rate = name == "clock_hz" || name == "host_bytes_per_second";
  return rate ? kMostASecond : kMost;
}

const Number* find_number(std::string_view name) {
  for (const Number& number : kNumbers)
    if (name == number.name) return &number;
  return nullptr;
}

Status set(Machine& machine, std::string_view name, double value) {
  const Number* const number = find_number(name);
  if (number == nullptr)
    return Status(Code::kINVALID_ARGUMENT,
                  message("a machine file has no number '", name,
                          "'; those that it has are listed in providers/wse/machine/wse2.json"));
  const double most = most_of(name);
  if (!(value >= number->least && value <= most))
    return Status(Code::kINVALID_ARGUMENT,
                  message("the number '", name, "' of a machine file is ", value, "; it is from ",
                          number->least, " to ", most));
  *number->in(machine) = value;
  return {};
}

// [value, "source"]
Status take(Machine& machine, const std::string& name, const Json& entry) {
  if (!entry.is_array() || entry.size() != 2 || !entry[0].is_number() || !entry[1].is_string())
    return Status(
        Code::kINVALID_ARGUMENT,
        message("the number '", name, "' of a machine file is not written as [value, \"source\"]"));
  PFRT_TRY(set(machine, name, entry[0].get<double>()));
  machine.sources[name] = entry[1].get<std::string>();
  return {};
}

// FNV-1a
std::string hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; hash >>= 4) out[i] = "0123456789abcdef"[hash & 15];
  return out;
}

std::vector<std::string> held_of(const Json& file, const char* list) {
  std::vector<std::string> out;
  if (!file.contains(list) || !file[list].is_array()) return out;
  for (const Json& program : file[list])
    if (program.is_string()) out.push_back(program.get<std::string>());
  return out;
}

Status check_geometry(const Machine& m) {
  if (m.usable_columns > m.fabric_columns || m.usable_rows > m.fabric_rows ||
      m.fabric_columns > 2048 || m.fabric_rows > 2048)
    return Status(Code::kINVALID_ARGUMENT,
                  "the usable rectangle of a machine file lies in its fabric, which has 2,048 "
                  "columns and rows at most");
  if (m.program_bytes >= m.sram_bytes || m.reserved_colors >= m.colors)
    return Status(Code::kINVALID_ARGUMENT,
                  "a machine file leaves memory and colors to programs: program_bytes is below "
                  "sram_bytes, reserved_colors below colors");
  return {};
}

}  // namespace

double Rate::cycles(int64_t n) const {
  return n <= 0 ? 0 : std::ceil(static_cast<double>(n) / group) * group_cycles;
}

std::string Machine::identity() const {
  char clock[32];
  std::snprintf(clock, sizeof clock, "%.3f", clock_hz / 1e9);
  return message(name, " ", hash, silicon ? " (silicon)" : "", ", ", clock, " GHz",
                 held.empty() ? ", not validated" : "");
}

Result<Machine> parse_machine(std::string_view text, bool silicon,
                              const std::vector<Change>& changes) {
  const Json file = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !file.contains("numbers") || !file["numbers"].is_object() ||
      !file.contains("name") || !file["name"].is_string())
    return Status(Code::kINVALID_ARGUMENT,
                  "this is not a machine file: a JSON object with \"name\" and \"numbers\"");
  Machine machine;
  machine.name = file["name"].get<std::string>();
  if (file.contains("title") && file["title"].is_string())
    machine.title = file["title"].get<std::string>();
  for (const auto& [name, entry] : file["numbers"].items()) PFRT_TRY(take(machine, name, entry));
  for (const Number& number : kNumbers)
    if (machine.sources.find(number.name) == machine.sources.end())
      return Status(Code::kINVALID_ARGUMENT, message("the machine file of '", machine.name,
                                                     "' lacks the number '", number.name, "'"));
  machine.silicon = silicon && file.contains("silicon") && file["silicon"].is_object();
  if (machine.silicon)
    for (const auto& [name, entry] : file["silicon"].items()) PFRT_TRY(take(machine, name, entry));
  std::string identity(text);
  if (machine.silicon) identity += "silicon";
  for (const Change& change : changes) {
    PFRT_TRY(set(machine, change.number, change.value));
    machine.sources[change.number] = "changed by the caller";
    machine.changed.push_back(change.number);
    identity += message(change.number, "=", change.value, ";");
  }
  PFRT_TRY(check_geometry(machine));
  if (changes.empty() && text == machine_text(machine.name))
    machine.held = held_of(file, machine.silicon ? "held_silicon" : "held");
  machine.hash = hash_of(identity);
  return machine;
}

Result<Machine> find_machine(std::string_view name, bool silicon,
                             const std::vector<Change>& changes) {
  const std::string_view text = machine_text(name);
  if (text.empty()) {
    std::string known;
    for (const std::string_view other : machine_names())
      known += message(known.empty() ? "" : ", ", other);
    return Status(Code::kNOT_FOUND,
                  message("there is no wafer-scale machine '", name, "'; there are ", known));
  }
  return parse_machine(text, silicon, changes);
}

std::vector<std::pair<std::string, double>> numbers_of(const Machine& machine) {
  Machine copy = machine;
  std::vector<std::pair<std::string, double>> out;
  for (const Number& number : kNumbers) out.emplace_back(number.name, *number.in(copy));
  return out;
}

}  // namespace pfrt::wse
