# SPDX-License-Identifier: Apache-2.0
"""What the tool's completion offers, in the shells themselves. Argument: the tool.

Lines are typed into interactive shells with Tab where a person would press it, and what arrives as arguments is
compared. zsh and fish are tested where they are installed.
"""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile

TAB = "\t"
# Words that are typed, and the arguments that arrive.
CASES = [
    (f"insp{TAB}", ["inspect"]),
    (f"check-{TAB}", ["check-plugin"]),
    (f"--vers{TAB}", ["--version"]),
    (f"run mod{TAB}", ["run", "model one.onnx"]),
    (f"run --thr{TAB}4", ["run", "--threads", "4"]),
    (f"run --level ba{TAB}", ["run", "--level", "basic"]),
    (f"explain --level=ext{TAB}", ["explain", "--level=extended"]),
    (f"run --precision=bf{TAB}mod{TAB}", ["run", "--precision=bf16", "model one.onnx"]),
    (f"run m --input x=mod{TAB}", ["run", "m", "--input", "x=model one.onnx"]),
    (f"test fol{TAB}", ["test", "folder/"]),
    (f"doctor --meas{TAB}--sec{TAB}3", ["doctor", "--measure", "--seconds", "3"]),
    (f"completion f{TAB}", ["completion", "fish"]),
]
# Cases for bash alone: a model is no folder, a level is no file, and the value of --threads cannot be completed.
BASH_CASES = [
    (f"test mod{TAB}", ["test", "mod"]),
    (f"run --level mod{TAB}", ["run", "--level", "mod"]),
    (f"run --threads mod{TAB}", ["run", "--threads", "mod"]),
]
faults = []


def typed(shell, start, lines, folder, environment):
    """What an interactive shell prints when |start| and then each of |lines| are typed."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(shell[0], shell, environment)
    output = b""

    def read_until(mark):
        nonlocal output
        while mark not in output:
            if not select.select([terminal], [], [], 300)[0]:
                raise TimeoutError(f"{shell[0]} says nothing; it said {output.decode(errors='replace')}")
            try:
                more = os.read(terminal, 65536)
            except OSError:
                more = b""
            if not more:
                raise EOFError(f"{shell[0]} ended; it said {output.decode(errors='replace')}")
            output += more

    os.write(terminal, start.encode())
    read_until(b"READY-NOW")
    for i, line in enumerate(lines):
        os.write(terminal, f"pfrt {line}\n".encode())
        os.write(terminal, f"echo DONE-$(({i}+1000))\n".encode())
        read_until(f"DONE-{i + 1000}".encode())
    os.write(terminal, b"exit\n")
    os.close(terminal)
    os.waitpid(child, 0)
    return output.decode(errors="replace")


def arguments(output, number):
    """The arguments of the calls, which print <<one|two|...>>."""
    found = re.findall(r"<<([^<>]*)>>", output)
    if len(found) != number:
        faults.append(f"{number} lines were typed, {len(found)} calls arrived: {output}")
    return [text.split("|")[:-1] for text in found]


# Takes the tool's place once its completion is there. Its output has a form that the echo of typed text has not.
CALLED = "pfrt() { printf '<%s' '<'; printf '%s|' \"$@\"; printf '>%s\\n' '>'; }; echo READY-$(echo NOW)\n"


def apart(words):
    """--threads=4 and --threads 4 are the same to the tool; zsh types the first, bash the second."""
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]


def check(shell, cases, output):
    for (line, expected), got in zip(cases, arguments(output, len(cases))):
        if shell == "zsh":
            expected, got = apart(expected), apart(got)
        if got != expected:
            faults.append(f"{shell}: {line!r} gives {got}, not {expected}")


def listed(tool, command):
    """The options in the help of a command."""
    text = subprocess.run([tool, *command, "--help"], capture_output=True, text=True, check=True).stdout
    text = text[:text.index("Example")]
    return set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.MULTILINE)), re.findall(
        r"^  ([a-z-]+) ", text[text.find("Subcommands:"):], re.MULTILINE)


def offered(script, line):
    """What bash offers after |line|, by calling the function as bash does."""
    words = line.split(" ")
    program = (f"source {script}; COMP_WORDS=(pfrt {' '.join(words)}); COMP_CWORD={len(words)}; "
               "_pfrt; printf '%s\\n' \"${COMPREPLY[@]}\"")
    return set(subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout.split())


def check_all_are_offered(tool, script):
    options, commands = listed(tool, [])
    if len(commands) < 14:
        faults.append(f"the help lists only {commands}")
    missing = (options | set(commands)) - offered(script, "''") - {"--help"}
    for command in commands:
        known, _ = listed(tool, [command])
        if len(known) < 1:
            faults.append(f"the help of {command} lists no option")
        missing |= {f"{command} {option}" for option in known - offered(script, f"{command} --")}
    if missing:
        faults.append(f"not offered: {sorted(missing)}")


def main(tool):
    with tempfile.TemporaryDirectory() as folder:
        scripts = {}
        for shell in ("bash", "zsh", "fish"):
            scripts[shell] = os.path.join(folder, f"script.{shell}")
            with open(scripts[shell], "wb") as file:
                subprocess.run([tool, "completion", shell], stdout=file, check=True)
        work = os.path.join(folder, "work")
        os.makedirs(os.path.join(work, "folder"))
        open(os.path.join(work, "model one.onnx"), "wb").close()
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "dumb", "PS1": "$ ", "HISTFILE": "/dev/null",
                       "INPUTRC": "/dev/null", "COLUMNS": "400"}

        cases = CASES + BASH_CASES
        start = (f"bind 'set enable-bracketed-paste off'; source {scripts['bash']}; " + CALLED)
        check("bash", cases,
              typed(["bash", "--norc", "--noprofile", "-i"], start, [c[0] for c in cases], work, environment))
        check_all_are_offered(tool, scripts["bash"])
        if shutil.which("zsh"):
            start = (f"autoload -Uz compinit; compinit -u -D; source {scripts['zsh']}; unsetopt zle_bracketed_paste; "
                     "unset zle_bracketed_paste; setopt no_beep; " + CALLED)
            # zsh takes the slash off a folder when the line ends.
            cases = [(line, [word.rstrip("/") for word in expected]) for line, expected in CASES]
            check("zsh", cases, typed(["zsh", "-f", "-i"], start, [c[0] for c in CASES], work, environment))
        if shutil.which("fish"):
            for line, expected in CASES:
                if line.count(TAB) > 1 or not line.endswith(TAB):
                    continue
                program = f"source {scripts['fish']}; complete -C 'pfrt {line.rstrip(TAB)}'"
                out = subprocess.run(["fish", "--no-config", "-c", program], capture_output=True, text=True, cwd=work,
                                     env=environment, check=True).stdout
                got = {row.split("\t")[0].replace("\\", "") for row in out.splitlines()}
                if expected[-1] not in got | {line.split()[-1]}:
                    faults.append(f"fish: {line!r} offers {sorted(got)}, not {expected[-1]}")
    print("\n".join(faults) or "completed as typed: bash"
          + "".join(f", {shell}" for shell in ("zsh", "fish") if shutil.which(shell)))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
