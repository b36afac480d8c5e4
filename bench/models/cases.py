# SPDX-License-Identifier: Apache-2.0
"""The models that are measured, in sets, each with what it is fed.

A: made by make_models.py, the transformers at batch 1 and 8. B: SqueezeNet and ShuffleNet, also made, and the models
of ../shared/zoo (or the folder PFRT_ZOO names), where every folder has model.onnx and, as ONNX's backend tests do, a
test_data_set_0. Of that data only shapes and what is not float32 (rates, masks, token ids) are used: floats are random.
Half: made too, in float16; the peer does not run bfloat16. Models in integers are made by integer_models.py, and
measured line by line (integer_tables.py). C: networks as PyTorch exports them today (exports/make.py).
"""
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from element_type import TYPES
from exports.networks import exports

HERE = Path(__file__).resolve().parent
A = ("resnet50", "vgg19", "densenet121", "inception", "inception_v2", "zfnet512", "alexnet", "encoder", "decoder",
     "encoder*8", "decoder*8")
B = ("squeezenet", "shufflenet")
DECODE = ("decoder_step",)
AXES = ("encoder", "decoder", "bert")  # each with symbolic axes and of one size
HALF = ("resnet50_float16", "squeezenet_float16", "encoder_float16", "decoder_step_float16")
PAST = 127
LLAMA_GGUF = "llama_q4_0.gguf"
FLOAT_WRITERS = ("make_models.py", "network.py", "topologies.py", "transformers.py", "element_type.py")
INTEGER_WRITERS = ("integer_models.py", "integer_chains.py", "nbits_models.py", "quantize.py", "network.py",
                   "topologies.py", "transformers.py")


@dataclass
class Case:
    name: str
    path: Path
    dims: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)  # inputs that are not random, by name
    refused: str = ""  # why there is no model
    about: str = ""  # a note of its row

    def options(self):
        """As `pfrt` takes them."""
        return [word for option, pairs in (("--dim", self.dims), ("--input", self.files))
                for name, value in pairs.items() for word in (option, f"{name}={value}")]


def zoo_folder():
    return Path(os.environ.get("PFRT_ZOO") or HERE.parents[2] / "shared" / "zoo")


def topology_and_type(name):
    topology, _, kind = name.rpartition("_")
    return (topology, kind) if kind in TYPES else (name, "float32")


def stale(folder, names, writers):
    """Of |names|, the files that are not there or older than the programs that write them."""
    newest = max((HERE / writer).stat().st_mtime for writer in writers)
    return [n for n in names if not (p := folder / n).exists() or p.stat().st_mtime < newest]


def write(folder, program, names, *options):
    print("writing " + ", ".join(names), file=sys.stderr)
    subprocess.run([sys.executable, str(HERE / program), str(folder), *options, "--only", ",".join(names)], check=True)


def write_models(folder, names):
    old = [f.removesuffix(".onnx") for f in stale(folder, [f"{n}.onnx" for n in names], FLOAT_WRITERS)]
    for kind in TYPES:
        topologies = [topology for topology, of in map(topology_and_type, old) if of == kind]
        if topologies:
            write(folder, "make_models.py", topologies, "--type", kind)


def write_integer_models(folder, names):
    old = [f.removesuffix(".onnx") for f in stale(folder, [f"{n}.onnx" for n in names], INTEGER_WRITERS)]
    if old:
        write(folder, "integer_models.py", old)


def write_gguf(folder):
    """The decoder of nbits_models.py for llama.cpp."""
    if stale(folder, [LLAMA_GGUF], ("llama_gguf.py", "nbits_models.py")):
        print(f"writing {LLAMA_GGUF}", file=sys.stderr)
        subprocess.run([sys.executable, str(HERE / "llama_gguf.py"), str(folder / LLAMA_GGUF)], check=True)
    return folder / LLAMA_GGUF


def made(folder, names):
    write_models(folder, dict.fromkeys(n.split("*")[0] for n in names))
    cases = []
    for name in names:
        model, _, batch = name.partition("*")
        dims = {"N": batch} if batch else {}
        if model.startswith("decoder_step"):
            dims["past"] = PAST
        cases.append(Case(name, folder / f"{model}.onnx", dims))
    return cases


def integers(folder, name, **dims):
    write_integer_models(folder, [name])
    return Case(name, folder / f"{name}.onnx", dims)


def fed_inputs(graph):
    constants = {t.name for t in graph.initializer}
    return [i for i in graph.input if i.name not in constants]


def zoo_inputs(model, scratch):
    """Files for the inputs of a folder of the zoo: random float32 in the recorded shape, the recorded rest."""
    graph = onnx.load(str(model / "model.onnx"), load_external_data=False).graph
    files = {}
    for index, value in enumerate(fed_inputs(graph)):
        recorded = model / "test_data_set_0" / f"input_{index}.pb"
        if not recorded.exists():
            continue
        files[value.name] = recorded
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            shape = numpy_helper.to_array(onnx.load_tensor(str(recorded))).shape
            files[value.name] = scratch / f"{model.name}.{index}.npy"
            np.save(files[value.name], np.random.default_rng(index).standard_normal(shape, dtype=np.float32))
    return files


def zoo(scratch):
    folder = zoo_folder()
    if not folder.is_dir():
        print(f"{folder} is not here: its models are left out of set B", file=sys.stderr)
        return []
    scratch.mkdir(parents=True, exist_ok=True)
    return [Case(model.name, model / "model.onnx", files=zoo_inputs(model, scratch))
            for model in sorted(folder.iterdir()) if (model / "model.onnx").exists()]


def axes_cases(folder):
    """Pairs: with symbolic axes, as the other is."""
    write_models(folder, [f"{name}_{form}" for name in AXES for form in ("axes", "fixed")])
    return [(Case(name, folder / f"{name}_axes.onnx", {"N": 1, "T": 128}),
             Case(name, folder / f"{name}_fixed.onnx", {"N": 1, "T": 128})) for name in AXES]


def exported(folder, form, names, exporter):
    """Of set c in a form. |exporter|: an interpreter with PyTorch, which makes what is not there; may be None."""
    jobs = exports(folder / "exports", [form], names)
    absent = [job.network.name for job in jobs if job.made() is None]
    if absent and exporter:
        subprocess.run([exporter, str(HERE / "exports" / "make.py"), str(folder / "exports"), "--form", form, "--only",
                        *absent], check=True)
    found = [(job, job.made() or {"refused": "there is no PyTorch to export it with"}) for job in jobs]
    return [Case(job.network.name, job.model, refused=about.get("refused", ""), about=about.get("about", ""),
                 files={name: job.folder / file for name, file in about.get("inputs", {}).items()})
            for job, about in found]


def cases(name, folder):
    """Of set a, b, decode or half."""
    if name == "b":
        return made(folder, B) + zoo(folder / "zoo_inputs")
    return made(folder, {"a": A, "decode": DECODE, "half": HALF}[name])
