// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/line/completion.h"

#include <algorithm>
#include <vector>

namespace cli {
namespace {

using Words = std::vector<std::string>;

enum class Takes { kNothing, kWord, kChoice, kFile, kFolder };

struct Argument {
  Words names;  // "-o", "--output"; of a positional one: "model"
  std::string text;
  std::string value;  // name of the value in the help
  Takes takes = Takes::kNothing;
  Words choices;
  bool positional = false;
  bool repeats = false;
};

struct Command {
  std::string name, text;
  std::vector<Argument> arguments;
};

// Returns the words of "TEXT:{none,basic,all}".
Words choices_of(const std::string& type) {
  Words words;
  const size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return words;
  for (size_t at = open + 1; at < close;) {
    const size_t end = std::min(type.find(',', at), close);
    words.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Argument read(const CLI::Option& option) {
  Argument out;
  out.text = option.get_description();
  const std::string type = option.get_type_name();
  out.value = type.substr(0, type.find(':'));
  out.choices = choices_of(type);
  out.positional = option.get_positional();
  out.repeats = option.get_items_expected_max() > 1;
  if (out.positional) out.names.push_back(option.get_single_name());
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  const bool file = out.value == "FILE" || out.value == "PATH" || out.value == "NAME=FILE";
  if (!out.choices.empty()) {
    out.takes = Takes::kChoice;
  } else if (file || out.value == "FOLDER") {
    out.takes = file ? Takes::kFile : Takes::kFolder;
  } else if (option.get_items_expected_max() > 0) {
    out.takes = Takes::kWord;
  }
  return out;
}

Command read(const CLI::App& app) {
  Command out{app.get_name(), app.get_description(), {}};
  for (const CLI::Option* option : app.get_options()) out.arguments.push_back(read(*option));
  return out;
}

std::vector<Command> read_commands(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(read(*command));
  return commands;
}

std::string join(const Words& words, const std::string& between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// Puts the text in single quotes, for bash and zsh.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

Words option_names(const Command& command) {
  Words names;
  for (const Argument& a : command.arguments)
    if (!a.positional) names.insert(names.end(), a.names.begin(), a.names.end());
  return names;
}

// Writes the bash command that offers the values of |argument|.
std::string bash_action(const Argument& argument) {
  switch (argument.takes) {
    case Takes::kChoice:
      return "_pfrt_words " + quoted(join(argument.choices, " "));
    case Takes::kFile:
      return "_pfrt_files -f";
    case Takes::kFolder:
      return "_pfrt_files -d";
    default:
      return "return";
  }
}

void write_bash_command(const Command& command, std::string* out) {
  std::string values, positional = "return";
  for (const Argument& a : command.arguments) {
    if (a.positional) {
      positional = bash_action(a);
    } else if (a.takes != Takes::kNothing) {
      values += "        " + join(a.names, "|") + ") " + bash_action(a) + "; return ;;\n";
    }
  }
  *out += "    " + quoted(command.name) + ")\n";
  if (!values.empty()) *out += "      case $option in\n" + values + "      esac\n";
  *out += "      if [[ $cur == -* ]]; then _pfrt_words " +
          quoted(join(option_names(command), " ")) + "; else " + positional + "; fi ;;\n";
}

// The script for bash. |option| is the one whose value is typed. Bash takes the "=" of --level=all
// and of --input x=x.npy for a word.
constexpr char kBash[] = R"(# Completion of pfrt in bash; printed by: pfrt completion bash
_pfrt_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_pfrt_files() {
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

_pfrt() {
  local cur=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) equals= option command= i
  COMPREPLY=()
  if [[ $cur == = ]]; then
    cur= equals=1
  elif [[ ${COMP_WORDS[at]} == = ]]; then
    at=$((at - 1)) equals=1
  fi
  if [[ $equals && ${COMP_WORDS[at]} != -* ]]; then at=$((at - 1)); fi
  option=${COMP_WORDS[at]}
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then command=${COMP_WORDS[i]}; break; fi
  done
  case $command in
)";

std::string bash_script(const CLI::App& app, const std::vector<Command>& commands) {
  Words names = option_names(read(app));
  for (const Command& command : commands) names.push_back(command.name);
  std::string out = kBash;
  out += "    '') _pfrt_words " + quoted(join(names, " ")) + " ;;\n";
  for (const Command& command : commands) write_bash_command(command, &out);
  return out + "  esac\n}\n\ncomplete -F _pfrt pfrt\n";
}

// Writes ":VALUE:action" for _arguments.
std::string zsh_value(const Argument& argument) {
  const std::string name = ":" + (argument.value.empty() ? argument.names.back() : argument.value);
  switch (argument.takes) {
    case Takes::kNothing:
      return {};
    case Takes::kChoice:
      return name + ":(" + join(argument.choices, " ") + ")";
    case Takes::kFile:
      // The file of NAME=FILE is completed after the "=".
      return name + (argument.value == "NAME=FILE" ? ":{compset -P \"*=\"; _files}" : ":_files");
    case Takes::kFolder:
      return name + ":_directories";
    default:
      return name + ":";
  }
}

std::string zsh_text(std::string text) {
  for (const char* special : {"[", "]", ":"})
    text = replaced(text, special, std::string("\\") + special);
  return text;
}

void write_zsh_arguments(const Command& command, std::string* out) {
  for (const Argument& a : command.arguments) {
    if (a.positional) {
      const std::string which = a.repeats ? "*" : "";
      *out += " \\\n        " + quoted(which + zsh_value(a));
      continue;
    }
    for (const std::string& name : a.names) {
      const bool assigned = a.takes != Takes::kNothing && name[1] == '-';  // --level=all too
      *out += " \\\n        " + quoted((a.repeats ? "*" : "") + name + (assigned ? "=" : "") + "[" +
                                       zsh_text(a.text) + "]" + zsh_value(a));
    }
  }
}

std::string zsh_script(const CLI::App& app, const std::vector<Command>& commands) {
  std::string out =
      "#compdef pfrt\n# Completion of pfrt in zsh; printed by: pfrt completion zsh\n_pfrt() {\n"
      "  local -a commands\n  commands=(\n";
  for (const Command& command : commands)
    out += "    " + quoted(command.name + ":" + replaced(command.text, ":", "\\:")) + "\n";
  out +=
      "  )\n  if (( CURRENT == 2 )); then\n    _describe -t commands command commands\n"
      "    _arguments";
  write_zsh_arguments(read(app), &out);
  out +=
      "\n    return\n  fi\n  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const Command& command : commands) {
    out += "    " + command.name + ")\n      _arguments";
    write_zsh_arguments(command, &out);
    out += " ;;\n";
  }
  return out +
         "  esac\n}\n\n"
         "if [[ ${funcstack[1]} == _pfrt ]]; then _pfrt \"$@\"; else compdef _pfrt pfrt; fi\n";
}

std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_values(const Argument& argument) {
  switch (argument.takes) {
    case Takes::kNothing:
      return {};
    case Takes::kChoice:
      return " -x -a " + fish_quoted(join(argument.choices, " "));
    case Takes::kFile:
      return " -r -F";
    case Takes::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    default:
      return " -x";
  }
}

void write_fish_arguments(const std::string& condition, const Command& command, std::string* out) {
  const std::string head = "complete -c pfrt -n " + fish_quoted(condition);
  for (const Argument& a : command.arguments) {
    *out += head;
    for (const std::string& name : a.names) {
      if (a.positional) continue;
      *out += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    // A positional argument has no name: its values alone.
    *out += a.positional && a.takes == Takes::kFile ? " -F" : fish_values(a);
    *out += " -d " + fish_quoted(a.text) + "\n";
  }
}

std::string fish_script(const CLI::App& app, const std::vector<Command>& commands) {
  std::string out =
      "# Completion of pfrt in fish; printed by: pfrt completion fish\n"
      "complete -c pfrt -f\n";
  write_fish_arguments("__fish_use_subcommand", read(app), &out);
  for (const Command& command : commands)
    out += "complete -c pfrt -n __fish_use_subcommand -a " + command.name + " -d " +
           fish_quoted(command.text) + "\n";
  for (const Command& command : commands)
    write_fish_arguments("__fish_seen_subcommand_from " + command.name, command, &out);
  return out;
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  const std::vector<Command> commands = read_commands(app);
  if (shell == "bash") return bash_script(app, commands);
  return shell == "zsh" ? zsh_script(app, commands) : fish_script(app, commands);
}

}  // namespace cli
