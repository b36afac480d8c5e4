#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a profile is what those who draw traces expect: an object with "traceEvents" of the Trace Event format.

Arguments: the file, then names of tags, or TAG=COUNT, whose runs must be there.
"""
import json
import sys
from collections import Counter, defaultdict

PHASES = set("XMCbe")


def nanoseconds(event, key):
    return round(event[key] * 1000)


def faults_of(profile):
    """One sentence a fault."""
    if not isinstance(profile, dict) or not isinstance(profile.get("traceEvents"), list):
        return ["the file is no object with a list 'traceEvents'"]
    faults, events = [], profile["traceEvents"]
    spans, begun, named = defaultdict(list), Counter(), {"process_name": set(), "thread_name": set()}
    for at, event in enumerate(events):
        missing = [key for key in ("name", "ph", "ts", "pid", "tid") if key not in event]
        if missing:
            faults.append(f"event {at} has no {', '.join(missing)}: {event}")
            continue
        if not isinstance(event["name"], str) or not event["name"]:
            faults.append(f"event {at} has no name")
        if event["ph"] not in PHASES:
            faults.append(f"event {at} is of the unknown phase {event['ph']!r}")
        if event["ts"] < 0:
            faults.append(f"event {at} is before the profile's start")
        if event["ph"] == "X":
            if not event.get("dur", -1) >= 0:
                faults.append(f"event {at} lasts {event.get('dur')}")
                continue
            begin = nanoseconds(event, "ts")
            spans[event["tid"]].append((begin, -nanoseconds(event, "dur"), event["name"]))
        elif event["ph"] == "M" and event["name"] in named:
            named[event["name"]].add(event["tid"])
            if not event["args"]["name"]:
                faults.append(f"event {at} names nothing")
        elif event["ph"] == "C" and not all(value >= 0 for value in event["args"].values()):
            faults.append(f"event {at} counts below zero: {event['args']}")
        elif event["ph"] in "be":
            begun[event["cat"], event["id"], event["name"]] += 1 if event["ph"] == "b" else -1
    faults += [f"async event {key} has no other end" for key, count in begun.items() if count]
    if not named["process_name"]:
        faults.append("the process has no name")
    faults += [f"thread {tid} has no name" for tid in spans if tid not in named["thread_name"]]
    for tid, of_thread in spans.items():
        open_ends = []
        for begin, minus_dur, name in sorted(of_thread):
            end = begin - minus_dur
            while open_ends and open_ends[-1][0] <= begin:
                open_ends.pop()
            if open_ends and end > open_ends[-1][0]:
                last, outer = open_ends[-1]
                faults.append(f"on thread {tid} '{name}' ends {end - last} ns after '{outer}', in which it began")
            open_ends.append((end, name))
    return faults


def runs_by_tag(profile):
    return Counter(e["args"]["tag"] for e in profile["traceEvents"] if e["name"] == "model_run" and e["ph"] == "X")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        profile = json.load(file)
    faults, tags = faults_of(profile), runs_by_tag(profile)
    for wanted in sys.argv[2:]:
        tag, _, count = wanted.partition("=")
        if not tags[tag] or (count and tags[tag] != int(count)):
            faults.append(f"{tags[tag]} runs have the tag '{tag}'")
    print("\n".join(faults) or f"{len(profile['traceEvents'])} events, {sum(tags.values())} runs: as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
