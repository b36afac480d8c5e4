// SPDX-License-Identifier: Apache-2.0
//
// The validation table as data: a row a published figure, with ours beside it. A row on which a
// number of a machine file was fitted is shown and not judged. Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pfrt::wse {

enum class Verdict {
  kMet,
  kNotMet,
  kFitted,  // a constant was fitted on this row: shown, not judged
  kShown    // nobody published a number that this could be held to
};

// The kind of evidence that a judged row is.
enum class Evidence : uint8_t {
  kPrediction,    // somebody measured it, and nothing was fitted on it or on a part of it
  kScaled,        // its source measured a part and scaled it up
  kFit,           // its source gives a line through its measurements, not the measurements
  kPartlyFitted,  // a sum, parts of which numbers were fitted on
  kConstruction,  // the rules say it whatever the numbers are
  kMedian,        // of rows that are in the table themselves
  kOrder,         // an order: which of several is less
  kInternal       // held against this project's own oracle
};
std::string_view name_of(Evidence evidence);

struct ValidationRow {
  std::string id = {};       // "V1"
  std::string point = {};    // "P=512 B=4096 S=32"
  std::string source = {};   // publisher of the target
  std::string kind = {};     // measured on "simulator" or "silicon"; or "internal"
  std::string machine = {};  // "wse2"
  std::string program = {};  // the kind of program: "MeshGEMM fp16"
  double target = 0, ours = 0;
  double error_percent = 0;  // of ours; where the target is 0, ours is an error in percent itself
  double tolerance_percent = 0;  // of rows that are judged
  Verdict verdict = Verdict::kMet;
  Evidence evidence = Evidence::kPrediction;
  double baseline = 0;  // a naive model's figure, named |baseline_name|; 0: there is none
  std::string baseline_name = {};
  std::string unit = {};
  std::string note = {};  // of a row that is not met: the phases that most cycles went to
};

struct Validation {
  std::vector<ValidationRow> rows;
  // A number of a machine file, "wse2.task", and the rows that it was fitted on.
  std::vector<std::pair<std::string, std::string>> fitted;
  int met = 0, not_met = 0;
  // Rows of Evidence::kPrediction among these.
  int predictions_met = 0, predictions_not_met = 0;
  // Numbers of machine files, "wse2.turn", on which no judged row depends.
  std::vector<std::string> idle;
  std::vector<std::string> machines;  // identities of the machines that the rows were computed with
};

// A table for people; its last line counts the verdicts.
std::string validation_text(const Validation& validation);
// The table as a JSON object.
std::string validation_json(const Validation& validation);

}  // namespace pfrt::wse
