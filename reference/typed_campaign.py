#!/usr/bin/env python3
"""Random typed expressions with signs, in 1 to 4 variables: polystep's endpoints and verdicts against SymPy's.

    pip install sympy==1.14.0
    cargo build --release && cargo build --release -p polystep-learn --example prove_many
    python3 reference/typed_campaign.py target/release/polystep --expressions 10000 \
        --prove-many target/release/examples/prove_many --model models/all-spaces

For every expression
 1. the exact proof (`polystep prove --symbolic --json`) must end in the polynomial that SymPy expands the typed text to;
 2. the model alone must be called right exactly if the last line that it wrote is that polynomial, in normal form;
 3. model and checker together must end there, too; whose each step is, is counted.
2 and 3 are made by the example program `prove_many`, which asks the model for many proofs at once. The first `--by-command`
expressions are given to `polystep prove --alone`, too: it must say the same, and its exit code must.
The reader of typed text is that of typed_endpoints.py; no code is shared with the Rust. Exits with 1 at any disagreement.
"""
import argparse
import collections
import json
import multiprocessing
import random
import subprocess
import sys
import threading
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
    text = "(%s)" % summed(draw, [term(draw, names) for _ in range(draw.choice([1, 2, 2, 3]))])
    return power(draw, text, 2) if draw.random() < 0.08 else text


def product(draw, names):
    """At most one bare term, and then parentheses."""
    parts = [factor(draw, names) for _ in range(draw.choice([0, 1, 1, 1, 2, 2]))]
    if not parts or draw.random() < 0.4:
        parts.insert(0, term(draw, names))
    text = parts[0]
    for part in parts[1:]:
        text += draw.choice(["*", "", " ", "·", "\\cdot "]) + part
    return text


def expression(seed):
    draw = random.Random(seed)
    names = draw.choice(NAMES)
    text = summed(draw, [product(draw, names) for _ in range(draw.choice([1, 2, 2, 3]))])
    return "$%s$" % text if draw.random() < 0.05 else text


def prove(polystep, text, *flags):
    command = [polystep, "prove", *flags, "--json", "--", text]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


def exact(job):
    """The typed text, SymPy's endpoint, the exact proof's start, and what is wrong with it."""
    polystep, seed = job
    text = expression(seed)
    right = typed_endpoints.endpoint(text)
    code, proof, said = prove(polystep, text, "--symbolic")
    if code or proof["end"] != right:
        return text, right, "", "the exact proof ends in %s, SymPy in %s" % (proof["end"] if proof else said, right)
    return text, right, proof["start"] if proof["steps"] else "", None


def last_line(proof):
    """The last line of a calculator's proof is its evaluated one."""
    last = proof["steps"][-1]
    return last.get("next") or last["line"]


def by_models(right, together, alone, count):
    """What is wrong with the two proofs by a model."""
    sympys = alone["stop"] == "end" and last_line(alone) == right
    count.update(together["steps_by"])
    count.update({"proofs": 1, "alone right": sympys, "no exact step": together["steps_by"]["exact"] == 0,
                  "minus outside": "a minus" in (together.get("outside") or "")})
    if alone["answer_right"] != sympys:
        return "alone ends in %s, said to be right: %s" % (last_line(alone), alone["answer_right"])
    if last_line(together) != right or together["endpoint"] != right:
        return "together ends in %s" % last_line(together)
    return None


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("polystep")
    ap.add_argument("--expressions", type=int, default=10000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--prove-many", metavar="PROGRAM", help="the example program; without it no model is asked")
    ap.add_argument("--model", default="models/all-spaces")
    ap.add_argument("--proved", type=int, help="how many expressions the model is given; all, unless given")
    ap.add_argument("--by-command", type=int, default=100, help="expressions that `polystep prove --alone` is given, too")
    args = ap.parse_args()
    began, count, wrong = time.time(), collections.Counter(), []
    jobs = [(args.polystep, args.seed * 1_000_000 + i) for i in range(args.expressions)]
    with multiprocessing.Pool(args.jobs) as pool:
        exacts = pool.map(exact, jobs, chunksize=16)
    wrong += [(text, why) for text, _, _, why in exacts if why]
    print("SymPy %s: %d expressions (%d with a minus), %d endpoints differ; %.0f s"
          % (sympy.__version__, len(exacts), sum("-" in e[2] for e in exacts), len(wrong), time.time() - began), flush=True)
    if args.prove_many:
        # An expression in normal form has nothing to prove.
        asked = [e for e in exacts if e[2]][:args.proved]
        typed = "".join(e[0] + "\n" for e in asked)
        with subprocess.Popen([args.prove_many, args.model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
            threading.Thread(target=lambda: (run.stdin.write(typed), run.stdin.close())).start()
            for i, ((text, right, _, _), line) in enumerate(zip(asked, run.stdout)):
                together, alone = json.loads(line)
                why = by_models(right, together, alone, count)
                if why is None and i < args.by_command:
                    code, said, _ = prove(args.polystep, text, "--alone", "--model", args.model, "--threads", "1")
                    if (code == 0, said["answer_right"], last_line(said)) != (alone["answer_right"],) * 2 + (last_line(alone),):
                        why = "by command: exit code %d, it ends in %s" % (code, last_line(said))
                    count["by command"] += 1
                wrong += [(text, why)] if why else []
        if count["proofs"] != len(asked):
            wrong.append(("prove_many", "%d of %d proofs came back" % (count["proofs"], len(asked))))
        steps = sum(count[k] for k in ("model", "beams", "exact"))
        shares = ", ".join("%s %d (%.2f %%)" % (k, count[k], 100 * count[k] / steps) for k in ("model", "beams", "exact"))
        print("alone: %d of %d answers are right by SymPy and by polystep; %d of them by command, too"
              % (count["alone right"], count["proofs"], count["by command"]))
        print("together: %d steps: %s; %d proofs without an exact step; a minus is named as outside of training in %d"
              % (steps, shares, count["no exact step"], count["minus outside"]))
    for text, why in wrong[:10]:
        print(text, why, sep="\n    ")
    print("%d disagreements; %.0f s" % (len(wrong), time.time() - began))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
