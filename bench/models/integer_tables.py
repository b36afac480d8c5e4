# SPDX-License-Identifier: Apache-2.0
"""`run.sh --set integer`: tables of arithmetic in integers and in 16 bits, numbered lines of which each asks something
of each kind of machine. tables.py calls it.

A line is measured against ONNX Runtime (its time over ours), against llama.cpp (the same, processes in turns),
against our own fp32 (pair.py), or against the rate at which the machine reads memory. Medians; threads are 1 except
where a line is about two.
"""
import contextlib
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass

import onnx

import work
from cases import A, integers, made, write_gguf, write_integer_models
from integer_chains import CONVOLUTIONS, DEPTHWISE, PRODUCTS
from results import machine_isa, used_isa

# The column of the requirements that applies to each word of PFRT_ISA. AVX-512 without VNNI has no requirement.
COLUMNS = {"amx": "amx", "avx512_bf16": "vnni", "avx512_vnni": "vnni", "avx_vnni": "vnni", "avx2": "avx2"}
BACKENDS = {"amx": "sapphirerapids", "avx512_bf16": "zen4", "avx512_vnni": "icelake", "avx512": "skylakex",
            "avx_vnni": "alderlake", "avx2": "haswell", "generic": "x64"}
LLAMA_PAST = 16
PROMPTS = (128, 512)
ROUNDS = 3  # the processes take turns
READ = "read memory"

WIDTH = 40
LATENCY = {"width": WIDTH, "ours_ms": ("ours ms", ".4g"), "peer_ms": ("peer ms", ".4g"), "ratio": ("ratio", ".3f"),
           "asked": ("asked", "g")}
COMPARED = {**LATENCY, "ours_gops": ("ours GOP/s", ".1f"), "of_peak": ("of peak", ".0%"), "max_difference": ("max differ", ".1e"), "rms_difference": ("differ", ".1e")}
OWN = {**LATENCY, "ours_ms": ("ours ms", ".4g"), "peer_ms": ("ours fp32", ".4g")}
LLAMA = {**LATENCY, "peer_ms": ("llama.cpp", ".4g")}
ONE_ROW = {key: column for key, column in COMPARED.items() if key not in ("ours_gops", "of_peak")}
SHARE = {"width": WIDTH, "ours_ms": ("ours ms", ".4g"), "ours_gbs": ("GB/s", ".1f"), "read_gbs": ("read GB/s", ".1f"),
         "ratio": ("share", ".3f"), "asked": ("asked", "g")}


@dataclass
class Asked:
    vnni: float = None
    avx2: float = None
    amx: float = None

    def of(self, column):
        return getattr(self, column) if column else None


def one(value):
    return Asked(value, value, value)


def judged(row, asked):
    """|row| with what is asked of it, and whether that is met."""
    row["asked"] = asked
    if asked is not None and "ratio" in row:
        row["met"] = row["ratio"] >= asked
    return row


def column_of(machine, peer_isa, with_peer):
    """None where nothing is asked; and where the peer uses more instructions than ours may."""
    used = used_isa(machine)
    if with_peer and used not in (machine_isa(machine), peer_isa):
        return None
    return COLUMNS.get(used)


# ---- the lines


def size_text(shape):
    return "x".join(map(str, shape))


def products(*forms):
    return [f"{form}_{size_text(shape)}" for form in forms for shape in PRODUCTS]


def product_asked(machine):
    """Exact sums cost Intel's AVX2 1.5 times what fp32 does."""
    return Asked(0.95, 0.75 if "intel" in machine["cpu"].lower() else 0.95, 2.0)


def lines_against_peer(machine):
    """Of each line: its title and (name of the model, what is asked of it)."""
    first = product_asked(machine)
    u8u8, s8s8 = Asked(2.2, 1.25, 4.0), Asked(10, 8, 20)
    spatial, pointwise, depthwise = Asked(1.1, 1.25, 2.0), Asked(0.95, 0.95, 2.0), one(1.8)
    dynamic = {"u8u8": Asked(2.5, 1.6, 4.0), "u8s8": Asked(10, 7, 15)}

    def chain_asked(name):
        return depthwise if name in DEPTHWISE else pointwise if name.startswith("1x1") else spatial

    return {
        1: ("u8s8 products", [(m, first) for m in products("matmul_integer_u8s8", "qdq_matmul_u8s8", "qdq_matmul_s8s8",
                                                           "dynamic_matmul_u8s8")]),
        2: ("u8u8 and s8s8 products", [(m, u8u8) for m in products("matmul_integer_u8u8")]
            + [(m, s8s8) for m in products("matmul_integer_s8s8")]),
        3: ("QDQ chains of six convolutions", [(f"qdq_chain_{name}", chain_asked(name))
                                               for name in (*CONVOLUTIONS, *DEPTHWISE)]),
        4: ("dynamic chains of six convolutions",
            [(f"dynamic_chain_{form}_{name}", asked) for form, asked in dynamic.items() for name in CONVOLUTIONS]
            + [(f"dynamic_chain_u8u8_{name}", one(5)) for name in DEPTHWISE]),
        9: ("exact products of one row", [("nbits4_b32_l0_1x4096x4096", Asked(2.0, 1.5, 2.0)),
                                          ("nbits8_b128_l0_1x4096x4096", one(20))]),
    }


NETWORKS = ("resnet50_qdq", "mobilenet_v2_qdq", "encoder_dynamic", "encoder_qdq")
NETWORKS_ASKED = {"vnni": (1.15, 0.95), "avx2": (1.2, 0.95), "amx": (1.8, 1.2)}
# Least ratio of our integers to our fp32, by the float model; other models must not be slower.
OWN_ASKED = {"resnet50": Asked(3.0, 1.7, 3.0), "mobilenet_v2": Asked(1.8, 1.3, 1.8), "encoder": Asked(2.8, 1.5, 2.5)}
OTHERS = ("squeezenet_qdq", "shufflenet_qdq", "inception_qdq", "densenet121_qdq")
SHARE_ASKED, LOADED_ASKED = one(0.85), one(3.0)
DECODE_ASKED = {"llama_4b32": one(1.5), "llama_4b128": one(1.3), "llama_8b32": one(1.25)}
LLAMA_DECODE_ASKED = one(1.2)
PROMPT_ASKED, LLAMA_PROMPT_ASKED = Asked(2.0, 1.6, 3.0), Asked(1.7, 1.6, 1.3)
BF16_ASKED = 1.35
LINES = tuple(range(1, 13))


# ---- what measures


class Peers:
    """The sides of a line, each an answer of the tool or a row."""

    def __init__(self, bench, machine, args):
        self.bench, self.machine, self.args = bench, machine, args

    def against_peer(self, name, case):
        answer = self.bench.run(case, 1, "fp32")
        if "refused" in answer:
            return {"model": name, "refused": answer["refused"]}
        return {"model": name, "ours_ms": answer["ours"]["median_s"] * 1e3, "peer_ms": answer["peer"]["median_s"] * 1e3,
                "ratio": answer["ratio"], "max_difference": answer["max_relative_difference"],
                "rms_difference": answer["rms_relative_difference"], "notes": list(answer["notes"])}

    def against_own(self, name, case, precision, other, other_precision="fp32"):
        answer = self.bench.pair(case, precision, other, other_precision)
        if "refused" in answer:
            return {"model": name, **answer}
        ours, theirs = (seconds * 1e3 for seconds in answer["median_s"])
        return {"model": name, "ours_ms": ours, "peer_ms": theirs, "ratio": answer["ratio"]}

    def alone(self, case, threads, seconds):
        return self.bench.run(case, threads, "fp32", seconds=seconds, alone=True)

    def read_rate(self):
        """GB/s on one thread from beyond the caches."""
        command = [self.bench.tool, "doctor", "--measure", "--only", READ, "--threads", "1", "--seconds",
                   str(min(1.0, self.bench.seconds / ROUNDS)), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows = [r for r in json.loads(done.stdout)["measured"] if r["name"] == READ and r["threads"] == 1]
        if not rows:
            raise RuntimeError(f"doctor --measure gives no '{READ}'")
        return rows[0]["median"]

    def peak(self):
        """GOP/s of bytes on one thread, of vectors or tiles; None where the machine gives none."""
        command = [self.bench.tool, "doctor", "--measure", "--only", "int8", "--threads", "1", "--seconds", "0.5", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return max((r["median"] for r in json.loads(done.stdout)["measured"] if r["threads"] == 1), default=None)

    def share(self, name, case, size):
        """Of the read rate that is measured before and after, each round."""
        rounds = []
        for _ in range(ROUNDS):
            before = self.read_rate()
            answer = self.alone(case, 1, self.bench.seconds / ROUNDS)
            if "refused" in answer:
                return {"model": name, "refused": answer["refused"]}
            rounds.append((answer["ours"]["median_s"], (before + self.read_rate()) / 2))
        return share_row(name, rounds, size)

    def against_llama(self, name, case, threads, past, prompt, busy=False):
        if self.args.llama is None:
            return {"model": name, "refused": "no llama.cpp here: LLAMA=FOLDER of its shared libraries"}
        program, libraries = self.args.llama
        command = [program, libraries, BACKENDS[used_isa(self.machine)], str(write_gguf(self.args.models)), "--threads",
                   str(threads), "--past", str(past), "--prompt", str(prompt), "--seconds",
                   str(self.bench.seconds / ROUNDS)]
        rounds = []
        with busy_process() if busy else contextlib.nullcontext():
            for _ in range(ROUNDS):
                ours = self.alone(case, threads, self.bench.seconds / ROUNDS)
                if "refused" in ours:
                    return {"model": name, "refused": ours["refused"]}
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    return {"model": name, "refused": " ".join(done.stderr.split())}
                rounds.append((ours["ours"]["median_s"], json.loads(done.stdout)["median_s"]))
        return llama_row(name, rounds)


def token_bytes(path):
    """Of weights, scales and zero points that products read."""
    graph = onnx.load(str(path)).graph
    read = {name for node in graph.node if node.op_type == "MatMulNBits" for name in node.input[1:]}
    return sum(len(t.raw_data) for t in graph.initializer if t.name in read)


def with_rate(row, operations, peak):
    """|row| with its GOP/s, and what part of |peak| that is."""
    if "ours_ms" in row:
        row["ours_gops"] = operations / row["ours_ms"] / 1e6
        row["of_peak"] = row["ours_gops"] / peak if peak else None
    return row


def share_row(name, rounds, size):
    """|rounds|: seconds of a token and the read rate in GB/s; |size| bytes are read a token."""
    ours, read = (statistics.median(values) for values in zip(*rounds))
    return {"model": name, "ours_ms": ours * 1e3, "ours_gbs": size / ours / 1e9, "read_gbs": read,
            "ratio": statistics.median(size / seconds / 1e9 / rate for seconds, rate in rounds),
            "notes": [f"{size / 1e6:.0f} MB of weights and scales a token; {1 / ours:.1f} tokens/s"]}


def llama_row(name, rounds):
    """|rounds|: seconds of ours and of llama.cpp."""
    ours, theirs = (statistics.median(values) * 1e3 for values in zip(*rounds))
    return {"model": name, "ours_ms": ours, "peer_ms": theirs,
            "ratio": statistics.median(b / a for a, b in rounds)}


# Ends by itself when whoever started it is gone.
BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"


@contextlib.contextmanager
def busy_process():
    """Keeps a processor busy, whichever the system gives it."""
    child = subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())])
    try:
        yield child
    finally:
        child.kill()
        child.wait()


# ---- the tables


class Tables:
    def __init__(self, bench, report, machine, args):
        self.peers, self.report, self.machine, self.args = Peers(bench, machine, args), report, machine, args
        self.isa = used_isa(machine)

    def column(self, with_peer=True):
        return column_of(self.machine, self.args.peer_isa, with_peer)

    def table(self, line, title, columns, rows, asked=(None, None), kind="integer", threads=1, precision="fp32"):
        return self.report.table(f"line {line}, {self.isa}: {title}",
                                 {"set": kind, "line": line, "isa": self.isa, "threads": threads, "precision": precision,
                                  "recorded": kind != "integer_share"}, columns, rows, asked)

    def integers(self, name, **dims):
        return integers(self.args.models, name, **dims)

    def floats(self, name):
        return made(self.args.models, [name])[0]

    def decoder(self, model, tokens=1, past=LLAMA_PAST):
        return self.integers(model, tokens=tokens, past=past)

    def simple(self, line):
        title, models = lines_against_peer(self.machine)[line]
        column = self.column()
        write_integer_models(self.args.models, [name for name, _ in models])
        if line == 9:
            self.table(line, f"{title} beside ONNX Runtime", ONE_ROW, (
                judged(self.peers.against_peer(name, self.integers(name)), asked.of(column)) for name, asked in models))
            return
        peak = self.peers.peak()
        self.table(line, f"{title} beside ONNX Runtime", COMPARED, (
            judged(self.rated(name, peak), asked.of(column)) for name, asked in models))

    def rated(self, name, peak):
        """Beside ONNX Runtime, with the share of the peak."""
        case = self.integers(name)
        return with_rate(self.peers.against_peer(name, case), work.operations(onnx.load(str(case.path)), case.dims), peak)

    def networks(self):
        column = self.column()
        write_integer_models(self.args.models, NETWORKS)
        peak = self.peers.peak()
        self.table(5, "models beside ONNX Runtime", COMPARED, (judged(self.rated(name, peak), None) for name in NETWORKS),
                   NETWORKS_ASKED.get(column, (None, None)))

    def own(self):
        column = self.column(with_peer=False)
        write_integer_models(self.args.models, (*NETWORKS, *OTHERS))

        def rows():
            for name in (*NETWORKS, *OTHERS):
                topology = name.rpartition("_")[0]
                asked = OWN_ASKED.get(topology, one(1.0)).of(column)
                yield judged(self.peers.against_own(name, self.integers(name), "fp32", self.floats(topology)), asked)

        self.table(6, "our integers by our fp32", OWN, rows(), kind="integer_own")

    def share(self):
        column = self.column(with_peer=False)

        def rows():
            for model in DECODE_ASKED:
                case = self.decoder(model)
                size = token_bytes(case.path)
                large = model == "llama_4b32"  # the one of 4 bits that has 240 MB
                yield judged(self.peers.share(model, case, size), SHARE_ASKED.of(column) if large else None)

        self.table(7, f"a token after {LLAMA_PAST}: share of the rate of reading memory", SHARE, rows(),
                   kind="integer_share")

    def decode(self):
        column = self.column()
        self.table(8, f"a token after {LLAMA_PAST} beside ONNX Runtime at accuracy level 4", ONE_ROW, (
            judged(self.peers.against_peer(f"{model} token", self.decoder(model)), asked.of(column))
            for model, asked in DECODE_ASKED.items()))
        asked = LLAMA_DECODE_ASKED.of(self.column(with_peer=False))
        self.table(8, f"a token after {LLAMA_PAST} beside llama.cpp Q4_0", LLAMA, (judged(self.peers.against_llama(
            f"{model} token", self.decoder(model), 1, LLAMA_PAST, 1), asked) for model in ("llama_4b32",)),
            kind="integer_llama")

    def prompts(self):
        cases = [(f"llama_4b32 prompt {tokens}", tokens) for tokens in PROMPTS]
        asked, peak = PROMPT_ASKED.of(self.column()), self.peers.peak()
        work_of = {tokens: work.decoder_operations(onnx.load(str(self.decoder("llama_4b32").path)), tokens)
                   for tokens in PROMPTS}
        self.table(10, "prompts beside ONNX Runtime at accuracy level 4", COMPARED, (judged(with_rate(
            self.peers.against_peer(name, self.decoder("llama_4b32", tokens, 0)), work_of[tokens], peak), asked)
            for name, tokens in cases))
        asked = LLAMA_PROMPT_ASKED.of(self.column(with_peer=False))
        self.table(10, "prompts beside llama.cpp Q4_0", LLAMA, (judged(self.peers.against_llama(
            name, self.decoder("llama_4b32", tokens, 0), 1, 0, tokens), asked) for name, tokens in cases),
            kind="integer_llama")

    def loaded(self):
        asked = LOADED_ASKED.of(self.column(with_peer=False))
        self.table(11, f"a token after {LLAMA_PAST} on two threads beside a busy process, and llama.cpp Q4_0", LLAMA,
                   (judged(self.peers.against_llama(f"{model} token", self.decoder(model), 2, LLAMA_PAST, 1, busy=True), asked)
                    for model in ("llama_4b32",)), kind="integer_loaded", threads=2)

    def bf16(self):
        """Set A by our own fp32; asked of AVX-512 alone, as tiles are the business of set A."""
        cases = made(self.args.models, A)
        self.table(12, "set A with precision bf16 by our fp32", OWN,
                   (judged(self.peers.against_own(case.name, case, "bf16", case), None) for case in cases),
                   (BF16_ASKED if self.isa == "avx512_bf16" else None, None), kind="integer_own", precision="bf16")

    def print(self, lines):
        others = {5: self.networks, 6: self.own, 7: self.share, 8: self.decode, 10: self.prompts, 11: self.loaded,
                  12: self.bf16}
        if self.column() is None and COLUMNS.get(self.isa):
            self.report.say(f"\nPFRT_ISA holds ours to {self.isa} and not the peer (PEER=LIBRARY and --peer-isa {self.isa} "
                            "would): of ratios to it nothing is asked")
        for line in lines:
            if line in others:
                others[line]()
            else:
                self.simple(line)
