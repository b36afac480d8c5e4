// SPDX-License-Identifier: Apache-2.0
//
// A machine file: each number of the model in ../README.md, with its source. The files of the
// machines that have a name are in the library; others are read from a path. Immutable once made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace pfrt::wse {

// Elements that pass at a time, and the cycles that they take.
struct Rate {
  double group = 1, group_cycles = 1;
  double cycles(int64_t n) const;  // whole groups
};

struct Machine {
  std::string name, title;
  // Kinds of programs, "MeshGEMM fp16", of which published figures were held against these very
  // numbers; none for a file that the library does not have, or where the caller changed a number.
  std::vector<std::string> held;
  std::vector<std::string> changed;  // numbers that the caller gave
  bool silicon = false;  // numbers of the machine, where the file has those beside the simulator's
  std::string hash;      // of the file's text and all changes, 16 hexadecimal digits

  // The mesh. "usable" is what programs get.
  double fabric_columns = 0, fabric_rows = 0, usable_columns = 0, usable_rows = 0;
  double clock_hz = 0;
  // A PE's memory, in bytes, and its routes.
  double sram_bytes = 0, program_bytes = 0, colors = 0, reserved_colors = 0;
  double input_queues = 0, output_queues = 0, reserved_queues = 0, max_extent = 0;
  // Wavelets that a queue of a core, and a router of a color and side, have room for.
  double input_queue_words = 0, output_queue_words = 0, router_words = 0;
  // Cycles of the fabric.
  double hop = 0, turn = 0, ramp = 0, wavelet = 0, dispatch = 0, completion = 0;
  // Cycles of a PE.
  double task = 0, async = 0, exchange_floor = 0, role_test = 0, dsd_setup = 0, send_setup = 0,
         loop_call = 0;
  double map_setup = 0, map_call = 0, dependent = 0;
  Rate fp16_fmac, fp16_op, fp16_copy, fp32_fmac, fp32_op, fp32_copy;
  double register_element = 0, scalar = 0, divide = 0, square_root = 0, exponential = 0;
  // The host's side.
  double h2d_words = 0, d2h_words = 0, channels = 0, host_bytes_per_second = 0;

  std::map<std::string, std::string, std::less<>> sources;  // by number

  int64_t usable_pes() const { return static_cast<int64_t>(usable_columns * usable_rows); }
  // Bytes of a PE's memory that data may have.
  int64_t data_bytes() const { return static_cast<int64_t>(sram_bytes - program_bytes); }
  int64_t free_colors() const { return static_cast<int64_t>(colors - reserved_colors); }
  // Names the machine in the head of each report: "wse2 0123456789abcdef, 0.850 GHz".
  std::string identity() const;
};

// Words of the machines that the library has.
std::vector<std::string_view> machine_names();
// The text of a machine's file; empty where there is none of that name.
std::string_view machine_text(std::string_view name);

// A number of the file put in place of another: "hop" and 2.
struct Change {
  std::string number;
  double value;
};

// Reads |text|, a machine file; |silicon| takes the numbers that were measured on the machine over
// those of the vendor's simulator. Fails with the number that is missing, unknown or out of range.
Result<Machine> parse_machine(std::string_view text, bool silicon,
                              const std::vector<Change>& changes);
// A machine of the library.
Result<Machine> find_machine(std::string_view name, bool silicon = false,
                             const std::vector<Change>& changes = {});
// All numbers of |machine| by name, in the order of the file's table.
std::vector<std::pair<std::string, double>> numbers_of(const Machine& machine);

}  // namespace pfrt::wse
