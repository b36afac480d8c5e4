# SPDX-License-Identifier: Apache-2.0
"""Says whether all sources that are compiled by the size of a struct that may grow are compiled for the newer library.

Such a source, or a header that it includes, names one of these structs. What is linked into that library as it is may name
only frozen ones: else both would mean other structs by one name. Arguments: the root, and the folders that are compiled.
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "abi"))
import complete  # noqa: E402

LINKED = ("core", "plugins/loader", "capi")
LEAST = 200  # sources: fewer were never there, and the check itself would be broken


def main(root, folders):
    root = Path(root)
    headers = "".join((root / f"include/pyflame_rt/{name}.h").read_text(encoding="utf-8") for name in complete.HEADERS)
    may_grow = {name for name, _ in complete.struct_bodies(complete.without_comments(headers))}
    may_grow -= complete.frozen_structs(headers)
    texts = {}

    def read(path):
        if path not in texts:
            text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
            included = [root / name for name in re.findall(r'#include "([^"]+)"', text)]
            texts[path] = set(re.findall(r"\bpfrt_\w+", text)) & may_grow, [p for p in included if p.exists()]
        return texts[path]

    sources, faults = 0, []
    for linked in LINKED:
        for source in sorted((root / linked).rglob("*.cc")):
            sources += 1
            if any(source.is_relative_to(root / folder) for folder in folders):
                continue
            seen, waiting = set(), [source]
            while waiting:
                path = waiting.pop()
                if path in seen or path.is_relative_to(root / "include"):
                    continue
                seen.add(path)
                names, included = read(path)
                waiting += included
                # The table of first versions has no object, and no code of its own.
                if names and path.name != "first_version.h":
                    faults.append(f"{source.relative_to(root)}: {path.relative_to(root)} has {sorted(names)[0]}")
    if sources < LEAST:
        faults.append(f"only {sources} sources were found: the check itself is broken")
    print("\n".join(faults) or f"{sources} sources: what is not compiled again knows frozen structs alone")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
