#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the newest figures of bench/results/*.tsv on one thread in fp32, sets A and B, as bench/results/figures.svg.

Models stand side by side in columns. In each, a kind of machine has a point of its colour and shape, whose height is
ONNX Runtime's time over ours. Models have nothing to do with each other, so that no line joins them.
"""
import math
import sys
from xml.sax.saxutils import escape

from results import FOLDER, newest

LEFT, TOP, WIDTH, HEIGHT, BELOW = 52, 64, 1040, 330, 128
# Colours of Okabe and Ito, which tell apart for colour-blind readers, and a shape of each around the origin.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#444444")
SHAPES = ("M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z", "M-3.2 -3.2h6.4v6.4h-6.4z", "M0 -4.4L4.4 0L0 4.4L-4.4 0z",
          "M0 -4L4 3.2h-8z", "M0 4L4 -3.2h-8z", "M-1.3 -4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z")
KINDS = {"amx": "AMX", "avx512_bf16": "AVX-512", "avx512_vnni": "AVX-512", "avx512": "AVX-512", "avx_vnni": "AVX2",
         "avx2": "AVX2", "generic": "no vectors"}
SETS = {"a": "set A, large models", "b": "set B, small models"}
LOWEST, HIGHEST = 0.7, 6.0


def machines_of(figures):
    """Of each machine: its name, date and {(set, model): ratio}."""
    out = {}
    for (processor, isa, name, threads, precision), models in figures.items():
        if name not in SETS or threads != "1" or precision != "fp32":
            continue
        label, ratios = out.setdefault((KINDS[isa], processor), ([], {}))
        for model, line in models.items():
            label.append(line["date"])
            ratios[name, model] = float(line["ratio"])
    return {f"{kind} ({processor}, {max(dates)})": ratios for (kind, processor), (dates, ratios) in out.items()}


def text(x, y, what, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {extra}>{escape(what)}</text>'


def mark(row, x, y, title=""):
    inside = f"<title>{escape(title)}</title>" if title else ""
    return (f'<path class="{"point" if title else "key"}" d="{SHAPES[row % len(SHAPES)]}" '
            f'transform="translate({x:.1f} {y:.1f})" fill="{COLOURS[row % len(COLOURS)]}">{inside}</path>')


def drawn(machines):
    models = [m for name in SETS
              for m in dict.fromkeys(k for ratios in machines.values() for k in ratios if k[0] == name)]
    step = WIDTH / max(len(models), 1)
    bottom = TOP + HEIGHT

    def x_of(i):
        return LEFT + step * (i + 0.5)

    def y_of(ratio):
        part = math.log(min(max(ratio, LOWEST), HIGHEST) / LOWEST) / math.log(HIGHEST / LOWEST)
        return bottom - HEIGHT * part

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 12} {bottom + BELOW}" '
           'font-family="sans-serif" font-size="11" fill="#333">',
           "<title>ONNX Runtime 1.30's time over ours</title>",
           f'<rect width="{LEFT + WIDTH + 12}" height="{bottom + BELOW}" fill="#fff"/>']
    for i in range(1, len(models), 2):
        out.append(f'<rect x="{x_of(i) - step / 2:.1f}" y="{TOP}" width="{step:.1f}" height="{HEIGHT}" fill="#f4f4f4"/>')
    for ratio in (0.7, 1, 1.5, 2, 3, 4, 6):
        y, bold = y_of(ratio), ratio == 1
        out.append(f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{"#333" if bold else "#ddd"}"/>')
        out.append(text(LEFT - 6, y + 4, f"{ratio:g}x", 'text-anchor="end"'))
    out.append(text(LEFT + 4, y_of(1) + 14, "above this line: faster than ONNX Runtime", 'fill="#777"'))
    for i, (name, model) in enumerate(models):
        out.append(text(0, 0, model, f'text-anchor="end" transform="translate({x_of(i) + 4:.1f} {bottom + 12}) rotate(-50)"'))
        if i > 0 and models[i - 1][0] != name:
            x = x_of(i) - step / 2
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}" stroke="#bbb" stroke-dasharray="4 3"/>')
    for name, title in SETS.items():
        at = [i for i, key in enumerate(models) if key[0] == name]
        if at:
            out.append(text((x_of(at[0]) + x_of(at[-1])) / 2, TOP - 8, title, 'text-anchor="middle" font-weight="bold"'))
    apart = min(9.0, 0.8 * step / max(len(machines), 1))  # points of a model stand side by side
    for row, (label, ratios) in enumerate(machines.items()):
        aside = apart * (row - (len(machines) - 1) / 2)
        for i, key in enumerate(models):
            if key in ratios:
                out.append(mark(row, x_of(i) + aside, y_of(ratios[key]), f"{key[1]}, {label}: {ratios[key]:.2f}"))
        means = "; ".join(f"{name.upper()} {math.exp(sum(map(math.log, found)) / len(found)):.2f}" for name in SETS
                          if (found := [r for key, r in ratios.items() if key[0] == name]))
        out.append(mark(row, LEFT + 8, 14 * row + 12))
        out.append(text(LEFT + 18, 14 * row + 16, f"{label}: means {means}"))
    return "\n".join([*out, "</svg>\n"])


def main():
    machines = machines_of(newest())
    if not machines:
        sys.exit("picture.py: bench/results has no figures of sets A and B on one thread; run.sh --record adds them")
    path = FOLDER / "figures.svg"
    path.write_text(drawn(machines), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
