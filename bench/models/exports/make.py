#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the networks of set C (networks.py) as PyTorch's present exporter does, with seeded random weights.

    make.py OUT_DIR [--only NAME ...] [--form FORM ...] [--jobs N] [--again]

OUT_DIR/NAME/FORM gets model.onnx, a file for each input, and made.json, which names them; where PyTorch does not export
a network made.json has the reason. What is there is kept until the network changes. Each is made in a process of its
own, whose words are in export.log. Needs the packages of test/clients/python.bash, and test/clients on PYTHONPATH.
"""
import argparse
import inspect
import os
import re
import shutil
import sys
import time
from pathlib import Path

import numpy as np

from networks import FORMS, NETWORKS, SMALL, exports
from torch_exports import in_children

SECONDS = 900  # for one export


def vary(model):
    """Makes constant parameters random: scales and biases of 0 or 1 would let exporters and runtimes leave work out."""
    import torch
    for value in model.parameters():
        first = value.flatten()[0]
        if value.numel() > 1 and bool((value == first).all()):
            value.copy_(torch.empty_like(value).uniform_(0.5, 1.5) if first >= 0.5 else 0.1 * torch.randn_like(value))


def settle(model, inputs):
    """Gives batch norms the mean and variance of what reaches them, so that values keep their size as if trained."""
    import torch
    norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    kept = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    if norms:
        model(*inputs)
    for norm, momentum in zip(norms, kept):
        norm.momentum = momentum
        norm.eval()


def open_axes(model, inputs, axes):
    """What torch.export takes for dynamic_shapes: a tuple of one entry an argument of forward."""
    import torch
    shapes = tuple({axis: torch.export.Dim.DYNAMIC for axis in axes} for _ in inputs)
    parameters = inspect.signature(model.forward).parameters.values()
    fixed = sum(parameter.kind != parameter.VAR_POSITIONAL for parameter in parameters)
    return shapes if fixed >= len(inputs) else (*shapes[:fixed], shapes[fixed:])


def export(job):
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dynamic, half = job.form == "dynamic", job.form == "half"
    with torch.no_grad():
        model = job.network.make(SMALL if job.form == "small" else job.network.size).eval()
        vary(model)
        settle(model, [torch.from_numpy(value) for value in job.inputs(batch=job.network.settled).values()])
        # Sizes of 1 and sizes that are equal would be taken for fixed ones.
        examples = job.inputs(batch=2 if dynamic or job.form == "pair" else 1,
                              more=32 if dynamic and 3 in job.network.axes else 0)
        fed = job.inputs() if dynamic else examples
        if half:
            model = model.half()
            examples = fed = {name: value.astype(np.float16) if value.dtype.kind == "f" else value
                              for name, value in fed.items()}
        values = tuple(torch.from_numpy(value) for value in examples.values())
        about = _write(job, model, values, list(fed))
    import onnx
    graph = onnx.load(str(job.model), load_external_data=False).graph
    names = [port.name for port in graph.input]  # fewer than are fed where the network does not read one
    for index, name in enumerate(names):
        np.save(job.folder / f"{index}.npy", fed[name])
    job.note(inputs={name: f"{index}.npy" for index, name in enumerate(names)}, **about)


def _write(job, model, values, names):
    """Writes the model; what made.json says besides."""
    import torch
    shapes = open_axes(model, values, job.network.axes) if job.form == "dynamic" else None
    try:
        torch.onnx.export(model, values, str(job.model), input_names=names, dynamo=True, dynamic_shapes=shapes,
                          verbose=False, external_data=False)
        return {}
    except torch.onnx.errors.OnnxExporterError as fault:
        if not job.network.older:
            raise
        why = reason(str(fault))
    torch.onnx.export(model, values, str(job.model), input_names=names, dynamo=False)
    return {"about": f"by PyTorch's older exporter; the present one: {why}"}


def reason(text):
    """What is wrong, of a message or log in which an exporter says it among much advice; "" where it does not."""
    found = re.search(r"^<class '[\w.]*?(\w+)'>: (.*?)(?: \(unhinted.*)?$", text, re.MULTILINE)
    caused = re.search(r"^Caused by: (.*)", text, re.MULTILINE)
    return " ".join([f"{found[1]}: {found[2]}", *([caused[1]] if caused else [])]) if found else ""


def make(jobs, limit):
    """Makes what is not there."""
    wanted = [job for job in jobs if job.made() is None]
    for job in wanted:
        shutil.rmtree(job.folder, ignore_errors=True)
        job.folder.mkdir(parents=True)
    started, done = time.monotonic(), 0
    for job, fault in in_children(wanted, export, limit, SECONDS, lambda job: job.folder / "export.log"):
        done += 1
        if fault:
            fault = reason((job.folder / "export.log").read_text(errors="replace")) or fault
            job.model.unlink(missing_ok=True)
            job.note(refused=fault)
        print(f"[{done}/{len(wanted)}, {time.monotonic() - started:.0f} s] {job.name}: " +
              (f"NOT EXPORTED: {fault}" if fault else "exported"), file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description="Write networks as PyTorch exports them, with seeded random weights.")
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=list(NETWORKS), choices=list(NETWORKS),
                        help="networks, of " + ", ".join(NETWORKS))
    parser.add_argument("--form", nargs="+", choices=FORMS, default=["full"], help="default: full")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once; default 2")
    parser.add_argument("--again", action="store_true", help="make again what is there")
    args = parser.parse_args()
    if args.jobs < 1:
        parser.error("--jobs takes more than 0")
    jobs = exports(args.out, args.form, args.only)
    if args.again:
        for job in jobs:
            job.forget()
    if any(job.made() is None for job in jobs):
        os.environ.update(HF_HUB_OFFLINE="1", PYTHONWARNINGS="ignore")
        import timm, torch, torchvision, transformers  # noqa: E401,F401  once, before processes are forked
    make(jobs, args.jobs)


if __name__ == "__main__":
    main()
