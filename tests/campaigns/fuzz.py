#!/usr/bin/env python3
"""Fuzzing for a number of minutes, shared out over the targets of fuzz/: no panic, no hang, memory bounded.

    cargo install cargo-fuzz --locked
    cargo +nightly fuzz build -s none -a        # no target has unsafe code of ours; -a keeps the checks of a debug build
    python3 tests/campaigns/fuzz.py --minutes 30 --jobs 2

What libFuzzer finds on its way is kept in fuzz/work, so that the next run goes on from there. An input that breaks a target is kept in
fuzz/artifacts; once it is understood, it belongs into fuzz/corpus, which the ordinary tests run. Every run adds its lines to
fuzz/ledger.jsonl: the target, executions, seconds of processor time, the slowest input, the peak of memory, the commit.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import campaign

FUZZ = campaign.ROOT / "fuzz"
# The longest input of a target, in bytes.
LONGEST = {"records": 4096, "tomls": 2048, "safetensors": 2048, "csvs": 2048, "http": 1024}


def arguments():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--minutes", type=float, default=10, help="in all, not for each target (default: 10)")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--jobs", type=int, default=2, help="targets at a time (default: 2)")
    ap.add_argument("--slice", type=float, default=60, help="seconds of one target before the next one's turn (default: 60)")
    ap.add_argument("--hang", type=int, default=60, help="an input that takes so many seconds hangs (default: 60)")
    ap.add_argument("--targets", help="only these, with commas")
    ap.add_argument("--programs", type=pathlib.Path, default=FUZZ / "target/x86_64-unknown-linux-gnu/release", help="where the targets were built")
    ap.add_argument("--work", type=pathlib.Path, default=FUZZ / "work")
    ap.add_argument("--ledger", type=pathlib.Path, default=FUZZ / "ledger.jsonl")
    ap.add_argument("--commit", help="what was built (default: what git says)")
    args = ap.parse_args()
    if not args.commit:
        args.commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=FUZZ, capture_output=True, text=True).stdout.strip()
    return args


def start(args, target, seed):
    found, committed = args.work / target, FUZZ / "corpus" / target
    found.mkdir(parents=True, exist_ok=True)
    artifacts = args.work / "artifacts" / target
    artifacts.mkdir(parents=True, exist_ok=True)
    log = open(args.work / ("%s.log" % target), "wb")
    command = [args.programs / target, found, *([committed] if committed.is_dir() else []), "-seed=%d" % seed, "-max_total_time=%d" % args.slice,
               "-timeout=%d" % args.hang, "-rss_limit_mb=2048", "-max_len=%d" % LONGEST.get(target, 256), "-print_final_stats=1",
               "-artifact_prefix=%s/" % artifacts, "-reload=0"]
    return target, subprocess.Popen(list(map(str, command)), stdout=log, stderr=subprocess.STDOUT), log.name, time.monotonic()


def finished(running):
    """Waits for one of the running targets."""
    while True:
        for one in running:
            pid, status, usage = os.wait4(one[1].pid, os.WNOHANG)
            if pid:
                running.remove(one)
                return one, os.waitstatus_to_exitcode(status), usage
        time.sleep(0.2)


def main():
    args = arguments()
    targets = args.targets.split(",") if args.targets else sorted(p.name for p in (FUZZ / "corpus").iterdir())
    missing = [t for t in targets if not (args.programs / t).exists()]
    if missing:
        raise SystemExit("not built: %s; cargo +nightly fuzz build -s none -a" % ", ".join(missing))
    total = collections.defaultdict(lambda: dict(executions=0, seconds=0.0, slowest=0, memory=0, failed=0))
    end, turn, running = time.monotonic() + 60 * args.minutes, 0, []
    while running or time.monotonic() < end:
        while len(running) < args.jobs and time.monotonic() < end:
            running.append(start(args, targets[turn % len(targets)], args.seed * 100_000 + turn))
            turn += 1
        (target, _, log, _), code, usage = finished(running)
        text = pathlib.Path(log).read_text(errors="replace")
        stat = lambda name: int((re.findall(r"stat::%s:\s+(\d+)" % name, text) or ["0"])[-1])
        row = total[target]
        row["executions"] += stat("number_of_executed_units")
        row["seconds"] += usage.ru_utime + usage.ru_stime
        row["slowest"] = max(row["slowest"], stat("slowest_unit_time_sec"))
        row["memory"] = max(row["memory"], usage.ru_maxrss // 1024)
        if code != 0:
            row["failed"] += 1
            kept = args.work / ("%s-failed-%d.log" % (target, time.time()))
            shutil.copy(log, kept)
            print("VIOLATION, %s: exit code %s, see %s" % (target, code, kept), flush=True)
    print("%-12s %12s %10s %12s %12s %8s" % ("fuzz", "executions", "CPU s", "slowest s", "memory MB", "failed"))
    with open(args.ledger, "a") as ledger:
        for target, row in sorted(total.items()):
            print("%-12s %12d %10.0f %12d %12d %8d" % (target, row["executions"], row["seconds"], row["slowest"], row["memory"], row["failed"]))
            ledger.write(json.dumps({"date": campaign.today(), "commit": args.commit, "target": target, **row, "seconds": round(row["seconds"])}) + "\n")
    everything = [sum(row[name] for row in total.values()) for name in ("executions", "seconds", "failed")]
    print("%-12s %12d %10.0f %12s %12s %8d" % ("in all", *everything[:2], "", "", everything[2]))
    sys.exit(1 if everything[2] else 0)


if __name__ == "__main__":
    main()
