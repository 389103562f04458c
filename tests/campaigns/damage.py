#!/usr/bin/env python3
"""Files of every kind that polystep reads are damaged and forged; then a command reads them. No panic, no hang, nothing accepted in silence.

- A file that carries a checksum (weights, checkpoints) must be refused whatever was changed.
- Any other file must be refused with exit code 2 (1, where a run cannot go on) and a sentence; or `report`, which shows what is left of a
  run, must tell of the damage; or the file must still be valid: TOML that Python reads, JSON without a figure that contradicts
  its counts, CSV with as many fields as its header.

    python3 tests/campaigns/damage.py --minutes 15 --seed 1
"""
import csv
import itertools
import json
import os
import pathlib
import re
import shutil
import time
import tomllib

import campaign
from kill import ALONE, PLAN, SWEEP, TINY

SPACE = """[space]
key = "mine"
base = "small_coeff"
coeff = { polynomial = 90, product = 30, factor = 5 }
degree = { polynomial = 6, factor = 3 }
terms = { product = 8, factor = 3 }
max = { products = 3, factors = 3 }
min = { products = 2, factors = 2, terms = 1 }
retry = "product"
variables = "all"
signed = false
"""
NUMBERS = [b"0", b"-1", b"1e999", b"NaN", b"18446744073709551615", b"99999999999999999999", b"0.5", b"-0.0", b"1e-320", b"true", b'"7"', b"null"]
LETTERS = bytes(range(256))


# ---------------------------------------------------------------- damage
def flip(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1:]


def cut(rng, data):
    return data[:rng.randrange(len(data))]


def drop(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 40):]


def double(rng, data):
    at, length = rng.randrange(len(data)), rng.randint(1, 60)
    return data[:at] + data[at:at + length] + data[at:]


def insert(rng, data):
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes(rng.choices(LETTERS, k=rng.randint(1, 8))) + data[at:]


def zeros(rng, data):
    at, length = rng.randrange(len(data)), rng.randint(1, 64)
    return data[:at] + bytes(min(length, len(data) - at)) + data[at + length:]


def append(rng, data):
    return data + bytes(rng.choices(LETTERS, k=rng.randint(1, 16)))


def swap_lines(rng, data):
    lines = data.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def repeat_line(rng, data):
    lines = data.split(b"\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return b"\n".join(lines)


def other_number(rng, data):
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?", data))
    if not found:
        return flip(rng, data)
    place = rng.choice(found)
    return data[:place.start()] + rng.choice(NUMBERS) + data[place.end():]


def other_word(rng, data):
    found = list(re.finditer(rb"[A-Za-z_]{2,}", data))
    if len(found) < 2:
        return flip(rng, data)
    a, b = rng.choice(found), rng.choice(found)
    return data[:a.start()] + b.group() + data[a.end():]


def repeat_field(rng, data):
    """A key of JSON twice, the second time with another value."""
    found = list(re.finditer(rb'"[a-z_0-9]+":\s*(?:"[^"]*"|[-\d.e]+)', data))
    if not found:
        return double(rng, data)
    field = rng.choice(found)
    return data[:field.end()] + b"," + other_number(rng, field.group()) + data[field.end():]


BYTES = [flip, flip, cut, drop, double, insert, zeros, append]
TEXT = BYTES + [swap_lines, repeat_line, other_number, other_number, other_number, other_word, repeat_field]


# ---------------------------------------------------------------- what is still valid
def valid_toml(data):
    tomllib.loads(data.decode())


def valid_json(data):
    def figures(value):
        if isinstance(value, dict):
            if {"percent", "of"} <= value.keys() and "right" in value and value["of"]:
                wanted = 100 * value["right"] / value["of"]
                assert abs(value["percent"] - wanted) < 0.01, "percent %s of %s/%s" % (value["percent"], value["right"], value["of"])
            for inner in value.values():
                figures(inner)
        elif isinstance(value, list):
            for inner in value:
                figures(inner)
    figures(json.loads(data, parse_constant=lambda name: 1 / 0))


def valid_lines(data):
    for line in filter(bytes.strip, data.split(b"\n")):
        valid_json(line)


def valid_csv(data):
    rows = list(csv.reader(data.decode().splitlines()))
    assert all(len(row) == len(rows[0]) for row in rows)


class Kind:
    """A kind of file, where it lies in the prepared folder, and a command that reads it."""

    def __init__(self, name, path, command, valid=None, checksum=False, damages=TEXT, needs=()):
        self.name, self.path, self.command, self.valid, self.checksum, self.damages, self.needs = (
            name, path, command, valid, checksum, damages, needs)


def kinds(ready):
    checkpoint = max(p.name for p in (ready / "half/checkpoints").glob("step-*"))
    report = ["report", "run", "--out", "page.html"]
    run, half = ["run"], ["half"]
    return [
        Kind("weights", "run/model.safetensors", ["answer", "run", "one.jsonl", *ALONE], None, True, BYTES, [*run, "one.jsonl"]),
        Kind("weights, export", "run/model.safetensors", ["export", "run", "--out", "out"], None, True, BYTES, run),
        Kind("checkpoint", "half/checkpoints/" + checkpoint, ["train", "--resume", "--out", "half", *ALONE], None, True, BYTES, half),
        Kind("config.toml of a run", "run/config.toml", report, valid_toml, needs=run),
        Kind("metrics.json", "run/metrics.json", report, valid_json, needs=run),
        Kind("metrics.jsonl", "run/metrics.jsonl", report, valid_lines, needs=run),
        Kind("metrics.jsonl, resumed", "half/metrics.jsonl", ["train", "--resume", "--out", "half", *ALONE], None, needs=half),
        Kind("predictions", "greedy.jsonl", ["eval", "--predictions", "greedy.jsonl"], valid_lines, needs=["greedy.jsonl"]),
        # Stored verdicts are a memory: those that do not fit are made again, so nothing need be said.
        Kind("verdicts", "run/predictions/small_coeff-1/greedy.verdicts.jsonl", report, None, needs=run),
        Kind("proofs", "some.jsonl", ["check", "some.jsonl"], None, needs=["some.jsonl"]),
        Kind("training data", "some.jsonl", ["train", "--data", "some.jsonl", "--config", "small_coeff", "--out", "new", "--max-steps", "1",
             "--set", "model.d=64", "--set", "model.layers=1", "--set", "train.valid_proofs=1", "--set", "train.batch=4", *ALONE], valid_lines,
             needs=["some.jsonl"]),
        Kind("questions", "one.jsonl", ["answer", "run", "one.jsonl", *ALONE], valid_lines, needs=[*run, "one.jsonl"]),
        Kind("Parquet", "data/train-00000-of-00001.parquet", ["train", "--data", "data", "--config", "small_coeff", "--out", "new", "--max-steps", "1",
             "--set", "model.d=64", "--set", "model.layers=1", "--set", "train.valid_proofs=1", "--set", "train.batch=4", *ALONE], None, damages=BYTES,
             needs=["data"]),
        Kind("sweep.toml", "sweep.toml", ["sweep", "sweep.toml", "--list", "--out", "trials"], valid_toml, needs=["sweep.toml"]),
        Kind("space.toml", "space.toml", ["generate", "--config", "space.toml", "--proofs", "1", "--threads", "1"], valid_toml, needs=["space.toml"]),
        Kind("plan.toml", "plan.toml", ["reproduce", "--table", "var1coarsefull", "--plan", "plan.toml", "--dry-run"], valid_toml, needs=["plan.toml"]),
        Kind("ledger", "results/OODcoeff.csv", ["reproduce", "--table", "OODcoeff", "--show", "--results", "results"], valid_csv, needs=["results"]),
        Kind("exported config.json", "exported/config.json", ["answer", "exported", "one.jsonl", *ALONE], valid_json, needs=["exported", "one.jsonl"]),
    ]


def prepare(polystep, ready):
    (ready / "tiny.toml").write_text(TINY)
    (ready / "half.toml").write_text(TINY)
    (ready / "sweep.toml").write_text(SWEEP)
    (ready / "plan.toml").write_text(PLAN)
    (ready / "space.toml").write_text(SPACE)
    generate = ["generate", "--config", "small_coeff", "--threads", "1"]
    for command in (["train", "tiny.toml", "--out", "run", *ALONE], ["eval", "run", "--proofs", "3", "--no-beam", *ALONE],
                    ["train", "half.toml", "--out", "half", *ALONE], [*generate, "--proofs", "6", "--out", "some.jsonl"],
                    [*generate, "--split", "test", "--steps", "3", "--out", "one.jsonl"], ["export", "run", "--out", "exported"],
                    [*generate, "--proofs", "20", "--format", "parquet", "--out", "data"]):
        done = campaign.run([polystep, *command], cwd=ready)
        if done.returncode != 0:
            raise SystemExit("%s: %s" % (" ".join(command), campaign.last_line(done.stderr)))
    # A run that was not finished: only then its checkpoints are read.
    for name in ("metrics.json", "model.safetensors"):
        (ready / "half" / name).unlink()
    (ready / "results").mkdir()
    shutil.copy(campaign.ROOT / "results/OODcoeff.csv", ready / "results")
    shutil.copy(ready / "run/predictions/small_coeff-1/greedy.jsonl", ready)
    parquet = next((ready / "data").rglob("*.parquet"))
    parquet.rename(ready / "data/train-00000-of-00001.parquet")


def place_of(kind, ready, place):
    """The files that a command needs, and the one that is damaged."""
    for name in kind.needs:
        source = ready / name
        shutil.copytree(source, place / name) if source.is_dir() else shutil.copy(source, place / name)
    return place / kind.path


def damaged(kind, rng, data):
    """Other bytes, and how they were changed."""
    whole, done = data, []
    while data == whole:
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            damage = rng.choice(kind.damages)
            done.append(damage.__name__)
            data = damage(rng, data) if data else data
    return data, ", ".join(done)


def violation(kind, data, result):
    """Which rule was broken, if one was."""
    if campaign.panicked(result) or result.returncode not in (0, 1, 2):
        return "it ended as no command may"
    if result.returncode != 0:
        return None if result.stderr.strip() or result.stdout.strip() else "refused without a word"
    if kind.checksum:
        return "accepted in silence"
    if kind.valid and not re.search(rb"is damaged|cannot be read|are cut: ", result.stderr):
        try:
            kind.valid(data)
        except Exception as e:
            return "accepted, though %s" % (e or type(e).__name__)
    return None


def try_one(args, kind, ready, counts, environment):
    with campaign.folder() as other:
        path = place_of(kind, ready, pathlib.Path(other))
        data, how = damaged(kind, args.random, path.read_bytes())
        path.write_bytes(data)
        result = campaign.run([args.polystep, *kind.command], cwd=other, env=environment)
    counts.add(kind.name, 1, refused=int(result.returncode != 0))
    wrong = violation(kind, data, result)
    if wrong:
        if args.keep:
            (pathlib.Path(args.keep) / ("%s-%d" % (re.sub(r"\W+", "-", kind.name), counts.total("failed")))).write_bytes(data)
        counts.fail(kind.name, "%s (%s): exit code %s: %s" % (wrong, how, result.returncode, campaign.last_line(result.stderr)))


def main():
    args = campaign.arguments(__doc__, keep={"metavar": "FOLDER", "help": "where to keep the files that broke a rule"},
                              only={"metavar": "NAME", "help": "only the kinds whose name begins so"})
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    environment = dict(os.environ, POLYSTEP_MODELS="none")
    counts = campaign.Counts(["refused"])
    with campaign.folder() as place:
        ready = pathlib.Path(place)
        prepare(args.polystep, ready)
        wanted = [kind for kind in kinds(ready) if kind.name.startswith(args.only or "")]
        for kind in wanted:
            with campaign.folder() as other:
                place_of(kind, ready, pathlib.Path(other))
                whole = campaign.run([args.polystep, *kind.command], cwd=other, env=environment)
            if whole.returncode != 0:
                raise SystemExit("%s, undamaged: %s" % (kind.name, campaign.last_line(whole.stderr)))
        campaign.begin(args)
        for kind in itertools.cycle(wanted):
            if time.monotonic() > args.end:
                break
            try_one(args, kind, ready, counts, environment)
    counts.finish("damage", args)


if __name__ == "__main__":
    main()
