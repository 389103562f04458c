"""What the campaigns share: their command line, their table, their ledger, and commands of polystep run with a limit of time."""
import argparse
import csv
import datetime
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A command that takes longer hangs. The longest that a campaign starts takes a few seconds on an idle machine.
HANG = 300


def arguments(description, **more):
    """`--minutes` and `--seed`, the program, and what a campaign adds."""
    ap = argparse.ArgumentParser(description=description.split("\n")[0])
    ap.add_argument("--minutes", type=float, default=1.0, help="how long to go on (default: 1)")
    ap.add_argument("--seed", type=int, default=1, help="what is drawn (default: 1)")
    ap.add_argument("--polystep", default=str(ROOT / "target/release/polystep"), metavar="PROGRAM", help="the program that is tested")
    for name, options in more.items():
        ap.add_argument("--" + name, **options)
    args = ap.parse_args()
    args.polystep = os.path.abspath(args.polystep)
    if not os.access(args.polystep, os.X_OK):
        ap.error("there is no program %s: cargo build --release, or name one with --polystep" % args.polystep)
    args.random = random.Random(args.seed)
    begin(args)
    return args


def begin(args):
    """The minutes count from now: what was prepared before does not."""
    args.end = time.monotonic() + 60 * args.minutes


class Counts:
    """What was tried and what failed, by kind; the first violations are said at once."""

    def __init__(self, columns=()):
        self.rows, self.columns, self.began, self.said = {}, list(columns), time.monotonic(), 0

    def add(self, kind, n=1, **more):
        row = self.rows.setdefault(kind, {"tried": 0, "failed": 0, **{c: 0 for c in self.columns}})
        row["tried"] += n
        for name, value in more.items():
            row[name] += value

    def fail(self, kind, sentence):
        self.add(kind, 0, failed=1)
        self.said += 1
        if self.said <= 20:
            print("VIOLATION, %s: %s" % (kind, sentence), flush=True)

    def total(self, column):
        return sum(row[column] for row in self.rows.values())

    def finish(self, name, args):
        """Prints the table, and ends the program: 1 if anything failed."""
        names = ["tried", *self.columns, "failed"]
        width = max(map(len, self.rows), default=4)
        print("%-*s  %s" % (width, name, "  ".join("%9s" % n for n in names)))
        for kind, row in self.rows.items():
            print("%-*s  %s" % (width, kind, "  ".join("%9d" % row[n] for n in names)))
        print("%-*s  %s" % (width, "in all", "  ".join("%9d" % self.total(n) for n in names)))
        print("%s: seed %d, %s, %d s" % (name, args.seed, version(args.polystep), time.monotonic() - self.began))
        sys.exit(1 if self.total("failed") or not self.total("tried") else 0)


def version(polystep):
    return subprocess.run([polystep, "--version"], capture_output=True, text=True).stdout.strip()


def today():
    return datetime.date.today().isoformat()


def run(command, **options):
    """Runs a command to its end. A hang is an exit code of its own, "hang"."""
    try:
        return subprocess.run(command, capture_output=True, timeout=HANG, stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired as e:
        return subprocess.CompletedProcess(command, "hang", e.stdout or b"", e.stderr or b"")


def panicked(result):
    """Whether a command ended as no command may: by a panic, a signal or a hang."""
    code, said = result.returncode, result.stderr
    return code in (101, "hang") or (isinstance(code, int) and code < 0) or b"panicked at" in said


def last_line(text):
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def folder():
    """A new folder in memory, where there is one, or else on the disk."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    return tempfile.TemporaryDirectory(prefix="polystep-campaign-", dir=memory)


def files(place):
    """Every file under a folder, as it must be after any interruption: without what a clock decides."""
    place = pathlib.Path(place)
    # TensorBoard's files, the list of who took a run, and what a child printed tell of processes and times.
    told = ("events.out.tfevents", "claims.jsonl")
    paths = [p for p in sorted(place.rglob("*")) if p.is_file() and not p.name.startswith(told) and p.suffix != ".log"]
    return {str(p.relative_to(place)): without_clocks(p.name, p.read_bytes()) for p in paths}


def without_clocks(name, data):
    """Seconds of training are the only thing that a clock decides. They stand in logs, metrics, ledgers and checkpoints."""
    if name.endswith((".json", ".jsonl")):
        return re.sub(rb'"seconds":\s*[-+.\deE]+', b'"seconds":0', data)
    if name.endswith(".csv"):
        rows = list(csv.reader(data.decode().splitlines()))
        clocks = {i for i, column in enumerate(rows[0] if rows else []) if "seconds" in column}
        return [[field for i, field in enumerate(row) if i not in clocks] for row in rows]
    if name.startswith("step-") and name.endswith(".safetensors"):
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + length])
        text = header.pop("__metadata__")
        return [dict(json.loads(text["state"]), seconds=0), header, data[8 + length:]]
    return data


def difference(found, wanted):
    """The first difference of two folders as `files` gives them, in a sentence; None if there is none."""
    for name in sorted(found.keys() | wanted.keys()):
        if name not in found:
            return "%s is missing" % name
        if name not in wanted:
            return "%s is too many" % name
        if found[name] != wanted[name]:
            return "%s is another than that of an unbroken run" % name
    return None
