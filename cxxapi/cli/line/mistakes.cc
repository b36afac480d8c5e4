// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/line/mistakes.h"

#include <algorithm>
#include <numeric>

namespace cli {
namespace {

// Returns the fewest steps that turn |a| into |b|; a step inserts, deletes or replaces a letter, or
// swaps two neighbours.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({row[j - 1] + 1, last[j] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string positional_names(const CLI::App& app) {
  std::string names;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) names += (names.empty() ? "" : ", ") + option->get_name();
  return names.empty() ? "none" : names;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string found = nearest(word, known);
  return found.empty() ? "" : "did you mean '" + found + "'? ";
}

// Returns the names of the commands that have |option|.
std::string owners(const CLI::App& app, const std::string& option) {
  std::string out;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::vector<std::string> names = option_names(*command);
    if (std::find(names.begin(), names.end(), option) != names.end())
      out += (out.empty() ? "" : ", ") + command->get_name();
  }
  return out;
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64, kShortestBeginning = 2;
  if (word.size() > kLongest) return {};
  const size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  const size_t letters = word.size() - dashes;
  std::string best;
  // A name that differs by this many letters or more is not meant: one, two or three may be wrong.
  size_t limit = letters < 4 ? 2 : letters < 8 ? 3 : 4;
  for (const std::string& name : known) {
    const bool begins = letters >= kShortestBeginning && name.compare(0, word.size(), word) == 0;
    const size_t distance = begins ? 1 : edit_distance(word, name);
    if (distance >= limit) continue;
    limit = distance;
    best = name;
  }
  return best;
}

bool has_command(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> names = command_names(app);
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string explain_command(const CLI::App& app, const std::string& name) {
  constexpr const char* kPlanned[] = {"chat",     "gradcheck", "partition", "prune",
                                      "quantize", "serve",     "train"};
  if (std::find(std::begin(kPlanned), std::end(kPlanned), name) != std::end(kPlanned))
    return "'" + name + "' is not in this version: pfrt --help lists what is";
  return "'" + name + "' is no command of pfrt: " + did_you_mean(name, command_names(app)) +
         "pfrt --help lists them";
}

std::string explain(const CLI::ParseError& error, const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  // remaining() has the words that could not be parsed. Those before a command are |app|'s, those
  // after it the command's.
  const bool before = chosen.empty() || !app.remaining().empty();
  const CLI::App& command = before ? app : *chosen.back();
  const std::string called = before ? "pfrt" : "pfrt " + command.get_name();
  const std::string help = called + " --help lists them";
  const std::vector<std::string> left = command.remaining();
  const auto is_option = [](const std::string& word) {
    return word.size() > 1 && word[0] == '-' && word != "--";
  };
  if (before && !left.empty() && !is_option(left[0])) return explain_command(app, left[0]);
  const auto option = std::find_if(left.begin(), left.end(), is_option);
  if (option != left.end()) {
    const std::string name = option->substr(0, option->find('='));
    const std::string belongs = before ? owners(app, name) : std::string();
    if (!belongs.empty())
      return "'" + name + "' is an option of " + belongs + ": give it after the command";
    return "'" + name + "' is no option of " + called + ": " +
           did_you_mean(name, option_names(command)) + help;
  }
  if (left.empty()) return error.what();
  return "'" + left[0] + "' is one argument too many for " + called +
         ", whose arguments are: " + positional_names(command);
}

}  // namespace cli
