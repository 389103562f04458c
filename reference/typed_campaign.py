#!/usr/bin/env python3
"""Random typed expressions with signs, in 1 to 4 variables: polystep's endpoints and verdicts against SymPy's.

    pip install sympy==1.14.0
    python3 reference/typed_campaign.py target/release/polystep --expressions 10000 --jobs 2

For every expression
 1. the exact proof (`prove --symbolic --json`) must end in the polynomial that SymPy expands the typed text to;
 2. the model alone (`prove --alone --json`) must be called right exactly if the last line that it wrote is that polynomial
    by SymPy, in normal form; its exit code must say the same;
 3. model and checker together (`prove --json`): whose each step is, is counted.
The reader of typed text is that of typed_endpoints.py; no code is shared with the Rust. Exits with 1 at any disagreement.
"""
import argparse
import collections
import json
import multiprocessing
import random
import subprocess
import sys
import time

import sympy

import typed_endpoints

NAMES = [["x"], ["x1"], ["y", "x"], ["x1", "x2"], ["a", "b", "c"], ["x", "y", "z"], ["x1", "x3", "x2"], ["a", "b", "x", "y"],
         ["x1", "x2", "x3", "x4"], ["t2", "t10", "s", "u"]]
RAISED = "⁰¹²³"


def power(draw, base, exponent):
    if exponent == 1:
        return base
    return base + draw.choice(["^%d", "^{%d}", "**%d"]) % exponent if draw.random() < 0.8 else base + RAISED[exponent]


def term(draw, names):
    """A number times at most two powers, without a sign."""
    number = draw.randint(1, 9)
    chosen = draw.sample(names, min(len(names), draw.choice([0, 1, 1, 1, 2])))
    powers = [power(draw, name, draw.choice([1, 1, 2, 3])) for name in chosen]
    if not powers:
        return str(number)
    written = [str(number)] if number > 1 or draw.random() < 0.1 else []
    return draw.choice(["*", " * ", "·"]).join(written + powers) if draw.random() < 0.5 else " ".join(written + powers)


def summed(draw, parts):
    """Parts joined by + or -, the first perhaps with a minus."""
    text = draw.choice(["", "", "-", "− "]) + parts[0]
    for part in parts[1:]:
        text += draw.choice(["+", " + ", "-", " - ", " − "]) + part
    return text


def factor(draw, names, depth=0):
    if draw.random() < 0.1 and depth == 0:
        inner = [term(draw, names), "%s(%s)" % (draw.randint(2, 5), summed(draw, [term(draw, names) for _ in range(2)]))]
        return "(%s)" % summed(draw, inner)
    text = "(%s)" % summed(draw, [term(draw, names) for _ in range(draw.randint(1, 3))])
    return power(draw, text, 2) if draw.random() < 0.08 else text


def product(draw, names):
    """At most one bare term, and then parentheses."""
    parts = [factor(draw, names) for _ in range(draw.choice([0, 1, 1, 2, 2, 3]))]
    if not parts or draw.random() < 0.4:
        parts.insert(0, term(draw, names))
    text = parts[0]
    for part in parts[1:]:
        text += draw.choice(["*", "", " ", "·", "\\cdot "]) + part
    return text


def expression(seed):
    draw = random.Random(seed)
    names = draw.choice(NAMES)
    text = summed(draw, [product(draw, names) for _ in range(draw.randint(1, 3))])
    return "$%s$" % text if draw.random() < 0.05 else text


def prove(polystep, text, *flags):
    done = subprocess.run([polystep, "prove", *flags, "--json", "--", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def check(job):
    """What is wrong with one expression, and what was counted."""
    polystep, seed, models = job
    text, wrong, count = expression(seed), [], collections.Counter(expressions=1)
    right = typed_endpoints.endpoint(text)
    code, exact, said = prove(polystep, text, "--symbolic")
    if code or exact["end"] != right:
        wrong.append("the exact proof ends in %s, SymPy in %s" % (exact and exact["end"] or said, right))
    count["minus"] = "-" in (exact or {}).get("start", "")
    if models and not wrong and exact["steps"]:
        code, alone, said = prove(polystep, text, "--alone", "--threads", "1")
        if alone is None:
            wrong.append("alone: " + said)
        else:
            # The last line of a calculator's proof is its evaluated one.
            last = alone["steps"][-1].get("next") or alone["steps"][-1]["line"]
            sympys = alone["stop"] == "end" and "(" not in last and last == right
            if (alone["answer_right"], code == 0) != (sympys, sympys):
                wrong.append("alone ends in %s, exit code %d, said to be right: %s" % (last, code, alone["answer_right"]))
            count["alone right"] = sympys
            count["proofs"] = 1
        code, together, said = prove(polystep, text, "--threads", "1")
        if together is None or code:
            wrong.append("together: " + said)
        else:
            count.update(together["steps_by"])
            count["minus outside"] = "a minus" in (together.get("outside") or "")
            last = together["steps"][-1].get("next") or together["steps"][-1]["line"]
            if last != right or together["endpoint"] != right:
                wrong.append("together ends in %s" % last)
            count["without an exact step"] = together["steps_by"]["exact"] == 0
    return text, wrong, count


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("polystep")
    ap.add_argument("--expressions", type=int, default=10000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--symbolic-only", action="store_true", help="without the models")
    args = ap.parse_args()
    began, total, bad = time.time(), collections.Counter(), 0
    jobs = [(args.polystep, args.seed * 1_000_000 + i, not args.symbolic_only) for i in range(args.expressions)]
    with multiprocessing.Pool(args.jobs) as pool:
        for i, (text, wrong, count) in enumerate(pool.imap(check, jobs, chunksize=8), 1):
            total.update(count)
            bad += bool(wrong)
            if wrong and bad <= 10:
                print(text, *wrong, sep="\n    ", flush=True)
            if i % 500 == 0:
                print("%d of %d, %d wrong, %.0f s" % (i, len(jobs), bad, time.time() - began), file=sys.stderr, flush=True)
    steps = total["model"] + total["beams"] + total["exact"]
    print("SymPy %s: %d expressions (%d with a minus), %d disagreements; %.0f s"
          % (sympy.__version__, total["expressions"], total["minus"], bad, time.time() - began))
    if steps:
        shares = ", ".join("%s %d (%.1f %%)" % (k, total[k], 100 * total[k] / steps) for k in ("model", "beams", "exact"))
        print("alone: %d of %d answers are right" % (total["alone right"], total["proofs"]))
        print("together: %d steps: %s; %d of %d proofs without an exact step; a minus named as outside of training: %d"
              % (steps, shares, total["without an exact step"], total["proofs"], total["minus outside"]))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
