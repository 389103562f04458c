#!/usr/bin/env python3
"""Each lever alone against the base: runs of equal wall time, judged on validation, never on a test set.

  python3 reference/frontier_ablations.py target/release/polystep --device cuda --out runs/ablations
  python3 reference/frontier_ablations.py target/release/polystep --device cuda --out runs/ablations --budget 25     # in parts
  python3 reference/frontier_ablations.py target/release/polystep --tiny --out target/ablations                      # a smoke test on a CPU

Every variant is a sweep of its own over the seeds (`polystep sweep`, which validates and does not test), so the command can be given
again after any interruption: what is done is skipped, what was begun goes on from its checkpoint. Runs follow one another on one device,
because two at a time would share its wall time. The table goes to OUT/table.md and OUT/table.json after every variant.

The time of a run includes its validations, so these are few. A budget in minutes follows the clock: runs repeat in distribution, not bit
for bit. `same sign` says whether every seed of a variant differs from the same seed of the base in the same direction. Only such a
difference may be claimed, and with two seeds it is still weak: one variant in two without any effect passes.
"""
import argparse, json, pathlib, subprocess, sys, time, tomllib

VARIANTS = {
    "base": {},
    "decoder 6 layers": {"model.decoder_layers": 6},
    "decoder 8, encoder 3 layers": {"model.encoder_layers": 3, "model.decoder_layers": 8},
    "fp32 logits": {"train.logits": "fp32"},
    "EMA 0.999": {"train.ema": 0.999},
    "EMA 0.9995": {"train.ema": 0.9995},
    "late batch 1024": {"train.late": {"from": 0.67, "batch": 1024}},
    "late eps 1e-12": {"train.late": {"from": 0.67, "eps": 1e-12}},
    # The stream itself (docs/mix.md), which the base mixes by fixed weights.
    "natural stream": {"data.mix": {}},
    "focus": {"data.mix": {}, "train.focus": {"every": 500_000}},
}

# Small enough for a CPU; only to see that everything runs.
TINY = {"data.config": "small_coeff", "model.d": 64, "model.layers": 1, "model.heads": 4, "model.ffn": 128, "train.batch": 16,
        "train.valid_proofs": 20, "train.log_every": 10}


def put(table, key, value):
    *path, last = key.split(".")
    for name in path:
        table = table.setdefault(name, {})
    table[last] = value


def toml(table, path=()):
    """A table as TOML: plain values first, then its tables."""
    plain = {k: v for k, v in table.items() if not isinstance(v, dict)}
    lines = [f"[{'.'.join(path)}]"] if path and plain else []
    lines += [f"{json.dumps(k)} = {value(v)}" for k, v in plain.items()]
    for k, v in table.items():
        if isinstance(v, dict):
            lines += toml(v, (*path, json.dumps(k)))
    return lines


def value(v):
    if isinstance(v, list):
        return f"[{', '.join(map(value, v))}]"
    if isinstance(v, dict):
        return f"{{ {', '.join(f'{json.dumps(k)} = {value(w)}' for k, w in v.items())} }}"
    return repr(v) if isinstance(v, float) else json.dumps(v)


def last_validation(trial):
    """The last validation of a finished trial; none if it has not come to its end."""
    if not (trial / "model.safetensors").exists():
        return None
    lines = [json.loads(line) for line in (trial / "metrics.jsonl").read_text().splitlines()]
    valid = [line for line in lines if line["kind"] == "valid"][-1]
    seed = tomllib.loads((trial / "config.toml").read_text())["data"]["seed"]
    keep = ("step", "examples", "seconds", "full_proof", "stepwise", "loss")
    return {"seed": seed} | {key: valid[key] for key in keep}


def table(results):
    base = {row["seed"]: row for row in results.get("base", [])}
    lines = ["| variant | seed | examples | steps | seconds | full proofs | right steps | loss | loss to base | same sign |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for name, rows in results.items():
        gaps = [row["loss"] / base[row["seed"]]["loss"] - 1 for row in rows if row["seed"] in base]
        same = "" if name == "base" else "yes" if len(gaps) > 1 and (min(gaps) > 0 or max(gaps) < 0) else "no"
        for row in rows:
            gap = f"{100 * (row['loss'] / base[row['seed']]['loss'] - 1):+.1f} %" if row["seed"] in base and name != "base" else ""
            lines.append(f"| {name} | {row['seed']} | {row['examples']} | {row['step']} | {row['seconds']:.0f} | {100 * row['full_proof']:.2f} % | "
                         f"{100 * row['stepwise']:.3f} % | {row['loss']:.5f} | {gap} | {same} |")
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("polystep", help="the binary")
    p.add_argument("--base", default="configs/frontier.toml", help="the run that all variants change")
    p.add_argument("--minutes", type=float, default=5.0, help="of each run")
    p.add_argument("--seeds", default="1,2")
    p.add_argument("--only", help="variants by name, with commas")
    p.add_argument("--budget", type=float, help="minutes after which this command saves and stops")
    p.add_argument("--device", default="auto")
    p.add_argument("--tiny", action="store_true")
    p.add_argument("--out", default="runs/ablations")
    args = p.parse_args()
    base = {} if args.tiny else tomllib.loads(pathlib.Path(args.base).read_text())
    budget = {"train.steps": 20} if args.tiny else {"train.minutes": args.minutes}
    for key in ("examples", "steps", "minutes"):
        base.setdefault("train", {}).pop(key, None)
    common = budget | {"train.valid_every": 0, "train.patience": 0} | (TINY if args.tiny else {})
    out, began, results = pathlib.Path(args.out), time.monotonic(), {}
    out.mkdir(parents=True, exist_ok=True)
    names = args.only.split(",") if args.only else list(VARIANTS)
    unknown = [name for name in names if name not in VARIANTS]
    if unknown:
        sys.exit(f"no variant {', '.join(unknown)}; there are: {', '.join(VARIANTS)}")
    for name in names:
        run = json.loads(json.dumps(base))
        for key, setting in (common | VARIANTS[name]).items():
            put(run, key, setting)
        run["grid"] = {"data.seed": [int(seed) for seed in args.seeds.split(",")]}
        run["sweep"] = {"stop": "never"}
        slug = "".join(c if c.isalnum() else "-" for c in name)
        file, folder = out / f"{slug}.toml", out / slug
        file.write_text("\n".join(toml(run)) + "\n")
        command = [args.polystep, "sweep", str(file), "--out", str(folder), "--device", args.device]
        if args.budget:
            left = args.budget - (time.monotonic() - began) / 60
            if left <= 0:
                break
            command += ["--minutes", f"{left:.2f}"]
        subprocess.run(command, check=True)
        trials = sorted(path for path in folder.iterdir() if (path / "trial.txt").exists())
        results[name] = [row for row in map(last_validation, trials) if row]
        (out / "table.md").write_text(table(results))
        (out / "table.json").write_text(json.dumps(results, indent=1))
    print(table(results))


if __name__ == "__main__":
    main()
