#!/usr/bin/env python3
"""The plan of an hour on many GPUs, simulated from recorded times: how long they stand idle, and why.

    python3 tests/cluster/plan.py target/release/polystep --gpus 1000 --minutes 60

The runs and their order are those of `polystep reproduce --all --dry-run`. A run takes as long as its record in results/runs says;
one without a record takes the time of its plan in reproduce/. Each GPU takes the next run that nobody has claimed. It writes the
record of a run that is done, and then the ledgers, unless another process is writing them. The other times are flags. Start-up was
measured (docs/performance.md), evaluation is that of the plans; claims, records, ledgers and Slurm's start are assumed. `cluster.py entry` measures the first three where you are.
"""

import argparse
import heapq
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def runs(polystep, seeds):
    """Every run of every table with its seconds on one GPU, in the order in which they are made."""
    recorded = {}
    for path in (ROOT / "results/runs").glob("*/metrics.json"):
        metrics = json.loads(path.read_text())
        if metrics.get("device") == "NVIDIA H200":
            recorded[path.parent.name] = metrics["seconds"]
    with tempfile.TemporaryDirectory() as empty:
        words = [Path(polystep).resolve(), "reproduce", "--all", "--dry-run", "--device", "cpu", "--seeds", str(seeds)]
        environment = os.environ | {"POLYSTEP_MODELS": "none"}
        said = subprocess.run(words, cwd=empty, env=environment, check=True, capture_output=True, text=True).stdout
    found, known = [], 0
    for line in said.splitlines():
        part = re.match(r"train +([0-9:]+) +(\S+)$", line)
        if part:
            clock, name = part.groups()
            planned = sum(int(n) * 60**i for i, n in enumerate(reversed(clock.split(":"))))
            seconds = recorded.get(re.sub(r"-seed\d+$", "", name))
            known += seconds is not None
            found.append(planned if seconds is None else seconds)
    return found, known


def simulate(times, options):
    """Gives the runs made, how often ledgers were written, and the GPU-seconds of work and of idleness, by their cause."""
    end = 60 * options.minutes
    work = dict.fromkeys(["training", "testing"], 0.0)
    idle = dict.fromkeys(["not started by Slurm yet", "start-up and claims", "entering a run", "nothing left to take"], 0.0)
    idle["not started by Slurm yet"] = sum(options.stagger * gpu / options.gpus for gpu in range(options.gpus))
    free = [(options.stagger * gpu / options.gpus, gpu) for gpu in range(options.gpus)]
    heapq.heapify(free)
    books, made, written, queue, entering = 0.0, 0, 0, list(reversed(times)), []
    while free or entering:
        # What happens next: a GPU takes a run, or a run that is ready is entered.
        if entering and (not free or entering[0][0] <= free[0][0]):
            ready, gpu = heapq.heappop(entering)
            done = ready + options.record_ms / 1e3
            made += done <= end
            if books <= done:
                books = done = done + (options.ledgers_ms + options.ledgers_ms_per_record * made) / 1e3
                written += 1
            idle["entering a run"] += max(0.0, min(done, end) - min(ready, end))
            heapq.heappush(free, (done, gpu))
            continue
        now, gpu = heapq.heappop(free)
        if now >= end:
            continue
        if not queue:
            idle["nothing left to take"] += end - now
            continue
        at = now + options.claim_ms / 1e3 + options.start_up
        idle["start-up and claims"] += min(at, end) - now
        stop = at + queue.pop()
        work["training"] += max(0.0, min(stop, end) - at)
        ready = stop + options.evaluation
        work["testing"] += max(0.0, min(ready, end) - min(stop, end))
        if ready < end:
            heapq.heappush(entering, (ready, gpu))
    return made, written, work, idle


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("polystep", help="the program")
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--stagger", type=float, default=30, help="seconds until Slurm has started all tasks (assumed)")
    parser.add_argument("--start-up", type=float, default=3.4, help="seconds until a process trains, kernels compiled")
    parser.add_argument("--evaluation", type=float, default=6, help="seconds of testing a model on all its sets")
    parser.add_argument("--claim-ms", type=float, default=CLAIM_MS)
    parser.add_argument("--record-ms", type=float, default=RECORD_MS, help="of writing a record")
    parser.add_argument("--ledgers-ms", type=float, default=LEDGERS_MS, help="of bringing the ledgers up to date, beside no records")
    parser.add_argument("--ledgers-ms-per-record", type=float, default=LEDGERS_MS_PER_RECORD)
    options = parser.parse_args()
    once, known = runs(options.polystep, 1)
    whole = options.gpus * 60 * options.minutes
    print(f"The campaign once: {len(once)} runs, {sum(once) / 3600:.1f} GPU-hours, the longest {max(once):.0f} s; "
          f"{known} of them from records")
    for name, seeds in [("one seed", 1), ("as many seeds as fill the time", None)]:
        seeds = seeds or int(whole / sum(once)) + 1
        times = once * seeds
        made, written, work, idle = simulate(times, options)
        print(f"\n{options.gpus} GPUs for {options.minutes:g} minutes, {name} ({seeds}): {made} of {len(times)} runs entered; "
              f"ledgers written {written} times")
        for title, parts in [("busy", work), ("idle", idle)]:
            print(f"  {title:<28}{100 * sum(parts.values()) / whole:6.1f} %")
            for cause, seconds in sorted(parts.items(), key=lambda pair: -pair[1]):
                print(f"    {cause:<26}{100 * seconds / whole:6.1f} %")


CLAIM_MS = 5.0
RECORD_MS = 5.0
LEDGERS_MS = 20.0
LEDGERS_MS_PER_RECORD = 0.02

if __name__ == "__main__":
    main()
