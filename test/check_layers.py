# SPDX-License-Identifier: Apache-2.0
"""Holds every #include, and every import of the Python package, against cmake/layers.txt, and looks for circles.

Prints each include or import that goes the wrong way, and each circle of folders or of files (a header and the source
of its name are one), and folders of many sources without a reason. Argument: the root of the tree.

An import counts wherever it stands, inside a function and under TYPE_CHECKING too. There it only hides a circle from
the interpreter: whoever reads the one module still has to know the other, and the circle breaks the package once the
import moves to the top. A module that needs a type from above says by a protocol what it needs of it.
"""

import ast
import os
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">]', re.MULTILINE)
FOLDERS = ("include", "core", "providers", "plugins", "capi", "cxxapi", "samples")
PACKAGE = "capi/python/pyflame_rt"
# There are far more of both: with fewer the check itself is broken.
LEAST_INCLUDES = 500
LEAST_IMPORTS = 200
MOST_SOURCES = 25  # of a folder without a sentence in layers.txt


class Layers:
    """The lines of layers.txt."""

    def __init__(self, path):
        self.allowed, self.libraries, self.tests, self.many = {}, {}, {}, {}
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                line = line.strip()
                if not line or line.startswith("#"):
                    continue
                key, _, value = line.partition(":")
                if key.startswith("library "):
                    self.libraries[key.removeprefix("library ")] = value.split()
                elif key.startswith("many "):
                    self.many[key.removeprefix("many ")] = value.strip()
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


def check_includes(layers, root):
    """The faults of the #includes, and how many there are."""
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
    return faults + circle_faults(files, folders), count


def modules(root):
    """The modules of the package by path without ".py"; a package itself is the module __init__ of its folder."""
    found = {}
    for folder, _, names in sorted(os.walk(os.path.join(root, PACKAGE))):
        for name in sorted(names):
            if name.endswith(".py"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    tree = ast.parse(file.read())
                found[os.path.relpath(os.path.join(folder, name.removesuffix(".py")), root)] = tree
    return found


def imports(module, tree):
    """(line, path) of each name that a module imports from the package: the path of "from ..a import b" ends in a/b."""
    above = os.path.dirname(PACKAGE)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            paths = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            folder = os.path.relpath(module, above).split("/")[:-node.level] if node.level else []
            paths = [[*folder, *(node.module or "").split("."), alias.name] for alias in node.names]
        else:
            continue
        for path in paths:
            full = os.path.join(above, *filter(None, path))
            if full == PACKAGE or full.startswith(PACKAGE + "/"):
                yield node.lineno, full


def imported(path, module, known):
    """The modules that run when |module| imports |path|, but for the packages that |module| itself is in."""
    parts = path.split("/")
    for length in range(len(PACKAGE.split("/")), len(parts) + 1):
        part = "/".join(parts[:length])
        if part in known:
            yield part
            return
        if f"{part}/__init__" not in known:
            return
        following = "/".join(parts[:length + 1])
        if not module.startswith(part + "/") or not (following in known or f"{following}/__init__" in known):
            yield f"{part}/__init__"


def import_fault(layers, module, other):
    """What is wrong with the import of one module by another; None when nothing is."""
    own, allowed = layers.folder(module + "/")
    if allowed is None or (own == PACKAGE and module != f"{PACKAGE}/__init__"):
        return "cmake/layers.txt has no line for this folder or module"
    if is_in(other, [own, *allowed]):
        return None
    return f"{own} may import only itself and {' '.join(allowed)}"


def check_imports(layers, root):
    """The faults of the Python package's imports, and how many there are."""
    known = modules(root)
    faults, count, files, folders = [], 0, {}, {}
    for module, tree in known.items():
        for line, path in imports(module, tree):
            count += 1
            for other in imported(path, module, known):
                if other == module:
                    continue
                why = import_fault(layers, module, other)
                if why:
                    faults.append(f"{module}.py:{line}: {other}: {why}")
                files.setdefault(module, set()).add(other)
                folder, other_folder = os.path.dirname(module), os.path.dirname(other)
                # The __init__ of a package shows what is in its folders, which is no need of the folder's modules.
                shows = module == f"{folder}/__init__" and other_folder.startswith(folder + "/")
                if folder != other_folder and not shows:
                    folders.setdefault(folder, set()).add(other_folder)
    return faults + circle_faults(files, folders), count


def circle_faults(files, folders):
    return [f"a circle of {len(circle)}: {' '.join(sorted(circle))}" for circle in circles(files) + circles(folders)]


def check_sizes(layers, root):
    """A fault for each folder with many sources for which layers.txt has no sentence, and the other way round."""
    counts = {}
    for top in (*FOLDERS, "bench", "test"):
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = [name for name in folders if name not in ("node_modules", "__pycache__")]
            counts[os.path.relpath(folder, root)] = sum(name.endswith((".cc", ".c", ".py")) for name in names)
    faults = [f"{folder}: {count} sources in one folder: divide it, or say in cmake/layers.txt why they are together"
              for folder, count in sorted(counts.items()) if count > MOST_SOURCES and folder not in layers.many]
    return faults + [f"cmake/layers.txt: {folder} has at most {MOST_SOURCES} sources: its sentence can go"
                     for folder in layers.many if counts.get(folder, 0) <= MOST_SOURCES]


def main(root):
    sys.setrecursionlimit(10000)
    layers = Layers(os.path.join(root, "cmake", "layers.txt"))
    faults, includes = check_includes(layers, root)
    more, imports_read = check_imports(layers, root)
    faults += more + check_sizes(layers, root)
    if includes < LEAST_INCLUDES or imports_read < LEAST_IMPORTS:
        faults.append(f"only {includes} includes and {imports_read} imports were read: the check itself is broken")
    print("\n".join(faults) or f"{includes} includes and {imports_read} imports point the right way, in no circle")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
