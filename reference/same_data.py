#!/usr/bin/env python3
"""Compares two builds of polystep: the same data, losses, predictions, metrics and ledgers, byte for byte.

    python3 reference/same_data.py OLD NEW [--repo .] [--quick] [--proofs 200]

OLD and NEW are two binaries. Everything is made twice, in two empty folders, and compared: generated data of every setting,
granularity and notation; estimates; short trainings on the CPU (losses and weights); what the bundled models answer; the
ledgers made from the committed records. Times, dates and commits are left out of the comparison; nothing
else is. Exits with 1 if anything differs, and names it. Keys and files that only NEW has are named, too, but are no difference.
"""

import argparse
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

SPACES = ["small_coeff", "medium_coeff", "large_coeff", "no_backtrack", "medium_degree", "medium_terms"]
GRANULARITIES = ["coarse", "fine", "fine_counted", "fac=term,mul=pair,sum=pair", "fac=product,mul=pair,sum=all"]
CLOCK = {"seconds", "time", "wall", "commit", "version", "examples_per_second", "device", "seconds_left", "date"}


def generations(quick):
    """The arguments of `generate` to compare, each by a name."""
    proofs = "200" if quick else "2000"
    for space in SPACES:
        for v in ["1", "2"]:
            yield f"{space} {v} plain", ["--config", space, "--vars", v, "--proofs", proofs]
    for setting in ["plain", "calculator", "annotated", "endpoint"]:
        for granularity in GRANULARITIES:
            for notation in ["infix", "prefix"]:
                if setting == "annotated" and notation == "prefix":
                    continue
                flags = ["--config", "medium_terms", "--vars", "2", "--setting", setting, "--notation", notation]
                yield f"{setting} {granularity} {notation}", [*flags, "--granularity", granularity, "--proofs", proofs]
    for kind in ["add4", "add9", "mul4", "mul9", "arithmetic"]:
        config = [] if kind == "arithmetic" else ["--config", kind]
        yield f"arithmetic {kind}", ["--setting", "arithmetic", *config, "--proofs", proofs]
    for task in ["add", "mul2", "mul3", "scoeff"]:
        yield f"sub-task {task}", ["--config", f"large_coeff/{task}", "--proofs", proofs]
    for split in ["valid", "test", "beam"]:
        yield f"split {split}", ["--config", "no_backtrack", "--vars", "2", "--split", split]
    for retry in ["factor", "product", "polynomial"]:
        for variables in ["all", "uniform"]:
            flags = ["--retry", retry, "--variables", variables, "--vars", "3", "--proofs", proofs]
            yield f"retry {retry}, variables {variables}", ["--config", "medium_degree", *flags]
    yield "order grlex, ones", ["--vars", "2", "--order", "grlex", "--ones", "--proofs", proofs]
    yield "seed 77, by steps", ["--config", "large_coeff", "--steps", proofs, "--seed", "77"]


TRAININGS = {
    "plain": ["--recipe", "fast", "--config", "small_coeff"],
    "dropout, post-norm": ["--recipe", "paper", "--config", "large_coeff", "--set", "model.dropout=0.1"],
    "curriculum": ["--recipe", "fast", "--config", "small_coeff", "--curriculum", "C2"],
    "endpoint, prefix": ["--recipe", "fast", "--config", "small_coeff", "--setting", "endpoint", "--notation", "prefix"],
    "calculator, fine": ["--recipe", "fast", "--config", "small_coeff", "--setting", "calculator", "--granularity", "fine"],
    "annotated": ["--recipe", "fast", "--config", "small_coeff", "--setting", "annotated"],
    "arithmetic": ["--recipe", "fast", "--setting", "arithmetic"],
}
SMALL = ["--max-steps", "30", "--device", "cpu", "--threads", "2"]
SMALL += [x for s in ["model.layers=1", "model.d=64", "model.heads=2", "train.batch=32", "train.valid_proofs=20"] for x in ["--set", s]]


def without_clock(value):
    """JSON without what depends on the clock or on the build."""
    if isinstance(value, dict):
        return {k: without_clock(v) for k, v in value.items() if k not in CLOCK}
    if isinstance(value, list):
        return [without_clock(v) for v in value]
    return value


def content(path):
    """What a file says: a document, or a hash."""
    if path.suffix == ".toml":
        return tomllib.loads(path.read_text())
    if path.suffix in {".json", ".jsonl"}:
        lines = [path.read_text()] if path.suffix == ".json" else path.read_text().splitlines()
        return [without_clock(json.loads(line)) for line in lines]
    data = path.read_bytes()
    if path.suffix == ".safetensors":  # the tensors; the header's metadata names the build
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        header.pop("__metadata__", None)
        data = json.dumps(header, sort_keys=True).encode() + data[8 + size :]
    return hashlib.sha256(data).hexdigest()


def same(old, new, where, added):
    """Whether `new` says all that `old` says; what it says beyond that is added."""
    if isinstance(old, dict) and isinstance(new, dict):
        added.update(f"{where}.{key}" for key in new.keys() - old.keys())
        return all(key in new and same(old[key], new[key], f"{where}.{key}", added) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(same(a, b, where, added) for a, b in zip(old, new))
    return old == new


def run(binary, arguments, cwd):
    done = subprocess.run([str(binary), *arguments], cwd=cwd, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{binary} {' '.join(arguments)}\nexit {done.returncode}\n{done.stderr.decode()}")
    return done.stdout


def stdout_digest(binary, arguments, cwd):
    return hashlib.sha256(run(binary, arguments, cwd)).hexdigest()


def trained(binary, arguments, cwd):
    """The losses and the weights of a short training."""
    out = cwd / "run"
    shutil.rmtree(out, ignore_errors=True)
    run(binary, ["train", *arguments, *SMALL, "--out", "run"], cwd)
    names = ["metrics.jsonl", "metrics.json", "model.safetensors", "config.toml"]
    return {name: content(out / name) for name in names}


def evaluated(binary, model, proofs, cwd):
    """Predictions and metrics of a bundled model on the first proofs of the space that its TOML names first."""
    run_folder = cwd / "model"
    shutil.rmtree(run_folder, ignore_errors=True)
    shutil.copytree(model, run_folder)
    (run_folder / "metrics.json").unlink(missing_ok=True)
    data = tomllib.loads((run_folder / "config.toml").read_text())["data"]
    on = f"{data['config']}:{data['vars']}"
    run(binary, ["eval", "model", "--on", on, "--proofs", str(proofs), "--device", "cpu"], cwd)
    files = sorted((run_folder / "predictions").rglob("*.jsonl"))
    found = {str(f.relative_to(run_folder)): content(f) for f in files if "verdicts" not in f.name}
    found["metrics.json"] = content(run_folder / "metrics.json")
    return found


def ledgers(binary, repo, cwd):
    """The ledgers, from the committed records."""
    shutil.copytree(repo / "results", cwd / "results", dirs_exist_ok=True)
    shutil.copytree(repo / "reproduce", cwd / "reproduce", dirs_exist_ok=True)
    for ledger in (cwd / "results").glob("*.csv"):
        if ledger.name != "colide.csv":
            ledger.unlink()
    run(binary, ["reproduce", "--all", "--show"], cwd)
    run(binary, ["reproduce", "--all", "--show", "--recipe", "paper"], cwd)
    return {str(f.relative_to(cwd)): content(f) for f in sorted((cwd / "results").rglob("*.csv"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--repo", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--quick", action="store_true", help="a tenth of the generated data")
    parser.add_argument("--proofs", type=int, default=200, help="proofs that each bundled model is asked; 0: none")
    arguments = parser.parse_args()
    binaries = [arguments.old.resolve(), arguments.new.resolve()]
    repo = arguments.repo.resolve()
    folders = [pathlib.Path(tempfile.mkdtemp()) for _ in binaries]
    differences, count, added = 0, 0, set()

    def compare(what, make):
        nonlocal differences, count
        old, new = (make(b, f) for b, f in zip(binaries, folders))
        if not isinstance(old, dict):
            old, new = {"": old}, {"": new}
        added.update(f"{what} {name}" for name in new.keys() - old.keys())
        for name in sorted(old):
            count += 1
            if name not in new or not same(old[name], new[name], f"{what} {name}", added):
                differences += 1
                print(f"DIFFERENT  {what} {name}", flush=True)

    def section(name, before):
        print(f"{name}: {count - before} comparisons", flush=True)

    start = count
    for name, flags in generations(arguments.quick):
        compare(f"generate: {name}", lambda b, f: stdout_digest(b, ["generate", *flags], f))
    section("generated data", start)
    start = count
    for flags in [["--config", "all", "--vars", "1,2", "--draws", "20000"]]:
        compare("estimate", lambda b, f: list(map(json.loads, run(b, ["estimate", *flags, "--json"], f).splitlines())))
    section("estimates", start)
    start = count
    for name, flags in TRAININGS.items():
        compare(f"train: {name}:", lambda b, f: trained(b, flags, f))
    section("trainings", start)
    start = count
    models = sorted(p for p in (repo / "models").iterdir() if p.is_dir())
    for model in models if arguments.proofs else []:
        compare(f"eval {model.name}:", lambda b, f: evaluated(b, model, arguments.proofs, f))
    section("bundled models", start)
    start = count
    compare("ledgers:", lambda b, f: ledgers(b, repo, f))
    section("ledgers", start)
    for folder in folders:
        shutil.rmtree(folder)
    for name in sorted(added):
        print(f"only in NEW: {name}")
    print(f"{count} comparisons, {differences} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
