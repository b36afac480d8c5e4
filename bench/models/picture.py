#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the newest figures of bench/results/*.tsv on one thread in fp32, sets A and B, as bench/results/figures.svg.

Models stand side by side, each kind of machine has a line, and its height is ONNX Runtime's time over ours.
"""
import math
import sys
from xml.sax.saxutils import escape

from results import FOLDER, newest

LEFT, TOP, WIDTH, HEIGHT, BELOW = 52, 64, 1040, 330, 128
COLOURS = ("#1f6fb4", "#d1602a", "#2c8c55", "#8a4fa8", "#a8822c", "#b03a5b")
KINDS = {"amx": "AMX", "avx512_bf16": "AVX-512", "avx512_vnni": "AVX-512", "avx512": "AVX-512", "avx_vnni": "AVX2",
         "avx2": "AVX2", "generic": "no vectors"}
SETS = {"a": "set A, large models", "b": "set B, small models"}
LOWEST, HIGHEST = 0.7, 6.0


def lines_of(figures):
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


def drawn(lines):
    models = [m for name in SETS for m in dict.fromkeys(k for ratios in lines.values() for k in ratios if k[0] == name)]
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
    for row, (label, ratios) in enumerate(lines.items()):
        colour = COLOURS[row % len(COLOURS)]
        for name in SETS:
            points = [(x_of(i), y_of(ratios[key])) for i, key in enumerate(models) if key[0] == name and key in ratios]
            out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="'
                       + " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
        means = "; ".join(f"{name.upper()} {math.exp(sum(map(math.log, found)) / len(found)):.2f}" for name in SETS
                          if (found := [r for key, r in ratios.items() if key[0] == name]))
        out.append(f'<circle cx="{LEFT + 8}" cy="{14 * row + 12}" r="4" fill="{colour}"/>')
        out.append(text(LEFT + 18, 14 * row + 16, f"{label}: means {means}"))
    return "\n".join([*out, "</svg>\n"])


def main():
    lines = lines_of(newest())
    if not lines:
        sys.exit("picture.py: bench/results has no figures of sets A and B on one thread; run.sh --record adds them")
    path = FOLDER / "figures.svg"
    path.write_text(drawn(lines), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
