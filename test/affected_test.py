# SPDX-License-Identifier: Apache-2.0
"""Holds test/affected.py against changes whose reach is known. Argument: the root of the tree."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import affected  # noqa: E402
from check_layers import Layers  # noqa: E402

EVERY = "every test"
# A case is what changed, whether a sanitizer asks, tests that have to run, and tests that may be left out.
CASES = [
    (["core/exec/loops.cc"], False, {"pfrt_core_test", "pfrt_capi_test", "pfrt_optimise_test", "pfrt_cli_test"},
     {"pfrt_provider_cpu_test", "wse_tests"}),
    (["core/exec/loops.cc"], True, {"pfrt_core_test", "pfrt_capi_test"}, {"pfrt_provider_cpu_test", "pfrt_cli_test"}),
    (["providers/cpu/kernels/conv/conv.cc"], True, {"pfrt_provider_cpu_test", "pfrt_empty_test"}, {"wse_tests"}),
    (["capi/value.cc"], True, {"pfrt_capi_test", "pfrt_cxxapi_test"}, {"pfrt_pass_test", "wse_tests"}),
    (["core/pass/rules/fusion.cc"], False, {"pfrt_pass_test", "pfrt_optimise_test"}, {"wse_tests"}),
    (["core/base/status.h"], False, {"pfrt_provider_cpu_test", "wse_tests", "pfrt_core_test"}, {"public_headers"}),
    (["include/pyflame_rt/types.h"], False, {"pfrt_provider_cpu_test", "public_headers", "pfrt_core_test"}, set()),
    (["test/providers/wse/engine_test.cc"], True, {"wse_tests"}, {"pfrt_provider_cpu_test"}),
    (["README.md", ".ci/base"], False, set(), {"pfrt_core_test", "wse_tests"}),
    (["cmake/pfrt.cmake"], False, EVERY, set()),
    (["README.md", "nobody/knows/this.cc"], False, EVERY, set()),
]


def main(root):
    layers = Layers(Path(root) / "cmake" / "layers.txt")
    faults = []
    for files, about, runs, left in CASES:
        out = set(affected.untouched(layers, files, about))
        wrong = out if runs == EVERY else out & runs
        faults += [f"{files}: {name} is left out" for name in sorted(wrong)]
        faults += [f"{files}: {name} is not left out" for name in sorted(left - out)]
    stale = [name for name in layers.tests for place in (*layers.tests[name][0], *layers.tests[name][2])
             if place != "*" and not (Path(root) / place).exists()]
    faults += [f"cmake/layers.txt: {name} is about a folder that is not there" for name in stale]
    found = affected.changed_sources("providers/kit", {"providers/kit/node.h"})
    if found != ["providers/kit/node.cc"]:
        faults.append(f"sources that include providers/kit/node.h: {found}")
    found = affected.changed_sources("providers/cpu", {"core/base/nothing.h"})
    for source, by in [("measure/team.cc", "its own barrier"), ("program/varying_step.cc", "core/base/made_once.h")]:
        if "providers/cpu/" + source not in found:
            faults.append(f"threads wait for each other in {source}, by {by}, but it is not made anew")
    if unneeded := [source for source in found if not affected.synchronises(source)]:
        faults.append(f"sources of kernels are made anew although none changed: {unneeded}")
    print("\n".join(faults) or f"{len(CASES)} changes reach what they should")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
