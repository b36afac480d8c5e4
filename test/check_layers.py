# SPDX-License-Identifier: Apache-2.0
"""Holds every #include of the tree against cmake/layers.txt, and looks for circles.

Prints each include that goes the wrong way, and each circle of folders or of files (a header and the
source of its name are one). Argument: the root of the tree.
"""

import os
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.MULTILINE)
FOLDERS = ("include", "core", "providers", "plugins", "capi", "cxxapi", "samples")
LEAST_INCLUDES = 500  # fewer mean that the check itself is broken


class Layers:
    """The lines of layers.txt."""

    def __init__(self, path):
        self.allowed, self.libraries, self.tests = {}, {}, {}
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                line = line.strip()
                if not line or line.startswith("#"):
                    continue
                key, _, value = line.partition(":")
                if key.startswith("library "):
                    self.libraries[key.removeprefix("library ")] = value.split()
                elif key.startswith("tests "):
                    self.tests[key.removeprefix("tests ")] = tuple(part.split() for part in value.split("|"))
                else:
                    self.allowed[key] = value.split()

    def folder(self, file):
        """The folder with rules of its own that |file| is in, and its rules; "a/*" is each folder of a."""
        best, rules = "", None
        for key, value in self.allowed.items():
            name = key
            if key.endswith("/*"):
                parent = key.removesuffix("*")
                below = file.removeprefix(parent).split("/")
                if not file.startswith(parent) or len(below) < 2:
                    continue
                name = parent + below[0]
            if file.startswith(name + "/") and (len(name), key == name) > (len(best), False):
                best, rules = name, value
        return best, rules


def read(root):
    """(file, line, header, whether it is quoted) of every include."""
    for top in FOLDERS:
        for folder, _, names in sorted(os.walk(os.path.join(root, top))):
            for name in sorted(names):
                if not name.endswith((".cc", ".h", ".hpp")):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    text = file.read()
                for match in INCLUDE.finditer(text):
                    line = text.count("\n", 0, match.start()) + 1
                    yield os.path.relpath(path, root), line, match[2], match[1] == '"'


def is_in(header, places):
    return any(header == place or header.startswith(place + "/") for place in places)


def fault(layers, file, header, quoted):
    """What is wrong with the include; None when nothing is."""
    for prefix, places in layers.libraries.items():
        if header.startswith(prefix) and not any(file.startswith(place) for place in places):
            return f"only {' '.join(places)} may include it"
    if not quoted and not header.startswith("pyflame_rt/"):
        return None
    own, allowed = layers.folder(file)
    if allowed is None:
        return "cmake/layers.txt has no line for this folder"
    if own == "include/pyflame_rt" and ("/" not in header or header.startswith("pyflame_rt/")):
        return None
    if header.startswith(own + "/") or is_in(header, allowed):
        return None
    return f"{own} may include only itself and {' '.join(allowed)}"


def circles(edges):
    """The strongly connected parts of a graph that are more than one node (Tarjan, 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(part) > 1:
                found.append(part)

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def main(root):
    sys.setrecursionlimit(10000)
    layers = Layers(os.path.join(root, "cmake", "layers.txt"))
    faults, count, files, folders = [], 0, {}, {}
    for file, line, header, quoted in read(root):
        count += 1
        why = fault(layers, file, header, quoted)
        if why:
            faults.append(f"{file}:{line}: {header}: {why}")
        if os.path.isfile(os.path.join(root, header)):
            unit, other = os.path.splitext(file)[0], os.path.splitext(header)[0]
            folder, other_folder = os.path.dirname(file), os.path.dirname(header)
            if unit != other:
                files.setdefault(unit, set()).add(other)
            if folder != other_folder:
                folders.setdefault(folder, set()).add(other_folder)
    if count < LEAST_INCLUDES:
        faults.append(f"only {count} includes were read: the check itself is broken")
    for circle in circles(files) + circles(folders):
        faults.append(f"a circle of {len(circle)}: {' '.join(sorted(circle))}")
    print("\n".join(faults) or f"{count} includes point the right way, in no circle")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
