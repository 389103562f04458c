#!/usr/bin/env python3
"""Random typed expressions with signs, in 1 to 4 variables: polystep's endpoints and verdicts against SymPy's.

    pip install sympy==1.14.0
    cargo build --release && cargo build --release -p polystep-learn --example prove_many
    python3 reference/typed_campaign.py target/release/polystep --expressions 10000 --jobs 2 \
        --prove-many target/release/examples/prove_many --model models/all-spaces --kept typed.jsonl

For every expression
 1. the exact proof (`polystep prove --symbolic --json`) must end in the polynomial that SymPy expands the typed text to;
 2. the model alone must be called right exactly if the last line that it wrote is that polynomial, in normal form;
 3. model and checker together must end there, too; whose each step is, is counted.
2 and 3 are made by the example program `prove_many`, which asks the model for many proofs at once; `--jobs` of them run side by side.
The first `--by-command` expressions are given to `polystep prove --alone`, too: it must say the same, and its exit code must.
It may take an hour. With `--minutes` it stops earlier, and the next call goes on: `--kept` holds one line per expression that is done.
The reader of typed text is that of typed_endpoints.py; no code is shared with the Rust. Exits with 1 at any disagreement.
"""
import argparse
import collections
import json
import multiprocessing
import os
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
    """What is known of an expression before a model is asked: its exact proof beside SymPy's endpoint."""
    polystep, seed = job
    text = expression(seed)
    right = typed_endpoints.endpoint(text)
    code, proof, said = prove(polystep, text, "--symbolic")
    done = {"seed": seed, "typed": text, "endpoint": right}
    if code or proof["end"] != right:
        return done | {"wrong": "the exact proof ends in %s" % (proof["end"] if proof else said)}
    return done | {"minus": "-" in proof["start"], "nothing_to_prove": not proof["steps"]}


def last_line(proof):
    """The last line of a calculator's proof is its evaluated one."""
    last = proof["steps"][-1]
    return last.get("next") or last["line"]


def by_models(done, together, alone):
    """Adds the two proofs by a model, and what is wrong with them."""
    right = done["endpoint"]
    sympys = alone["stop"] == "end" and last_line(alone) == right
    done |= {"alone": last_line(alone), "alone_right": sympys, "steps": together["steps_by"], "outside": together.get("outside")}
    if alone["answer_right"] != sympys:
        done["wrong"] = "alone it is said to be right: %s" % alone["answer_right"]
    elif last_line(together) != right or together["endpoint"] != right:
        done["wrong"] = "together ends in %s" % last_line(together)
    return done


def by_command(args, done):
    """Gives an expression to the command line: it must say the same, and its exit code must."""
    code, said, _ = prove(args.polystep, done["typed"], "--alone", "--model", args.model, "--threads", "1")
    if (code == 0, said["answer_right"], last_line(said)) != (done["alone_right"],) * 2 + (done["alone"],):
        done["wrong"] = "by command: exit code %d, it ends in %s" % (code, last_line(said))
    done["by_command"] = True


def ask(args, asked, keep, until):
    """Has the model prove these expressions, until the time is over."""
    with subprocess.Popen([args.prove_many, args.model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        run.stdin.write("".join(done["typed"] + "\n" for done in asked))
        run.stdin.close()
        for done, line in zip(asked, run.stdout):
            by_models(done, *json.loads(line))
            if "wrong" not in done and done["seed"] % 1_000_000 < args.by_command:
                by_command(args, done)
            keep(done)
            if time.time() > until:
                run.kill()
                return


def tell(args, all_done):
    """Prints the counts and the first disagreements; true if there is none, and nothing is left to do."""
    wrong = [done for done in all_done if "wrong" in done]
    minus = sum(done.get("minus", False) for done in all_done)
    print("SymPy %s, seed %d: %d typed expressions, %d of them with a minus" % (sympy.__version__, args.seed, len(all_done), minus))
    complete = len(all_done) == args.expressions
    if args.prove_many:
        asked = [done for done in all_done if "alone" in done]
        steps = collections.Counter()
        for done in asked:
            steps.update(done["steps"])
        total = sum(steps.values()) or 1
        none = sum(done.get("nothing_to_prove", False) for done in all_done)
        print("%d in normal form already; %d given to the model" % (none, len(asked)))
        print("alone: %d of %d answers are right by SymPy, and called so; %d were given to the command line, too"
              % (sum(done["alone_right"] for done in asked), len(asked), sum("by_command" in done for done in asked)))
        shares = ", ".join("%s %d (%.2f %%)" % (k, steps[k], 100 * steps[k] / total) for k in ("model", "beams", "exact"))
        print("together: %d steps: %s; %d proofs without an exact step" % (total, shares, sum(not done["steps"]["exact"] for done in asked)))
        for what, chosen in (("with a minus", [d for d in asked if d["minus"]]), ("without one", [d for d in asked if not d["minus"]]),
                             ("like its training", [d for d in asked if not d["outside"]])):
            of = sum(sum(d["steps"].values()) for d in chosen) or 1
            print("    %s: %d proofs, %d right alone, %d without an exact step; %.2f %% of %d steps are exact ones"
                  % (what, len(chosen), sum(d["alone_right"] for d in chosen), sum(not d["steps"]["exact"] for d in chosen),
                     100 * sum(d["steps"]["exact"] for d in chosen) / of, of))
    for done in wrong[:10]:
        print("%(typed)s\n    SymPy: %(endpoint)s; %(wrong)s" % done)
    print("%d disagreements%s" % (len(wrong), "" if complete else "; not complete"))
    return complete and not wrong


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("polystep")
    ap.add_argument("--expressions", type=int, default=10000)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--prove-many", metavar="PROGRAM", help="the example program; without it no model is asked")
    ap.add_argument("--model", default="models/all-spaces")
    ap.add_argument("--by-command", type=int, default=100, help="expressions that `polystep prove --alone` is given, too")
    ap.add_argument("--kept", metavar="FILE", help="what is done, so that the next call goes on")
    ap.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    args = ap.parse_args()
    until = time.time() + 60 * args.minutes
    all_done = []
    if args.kept and os.path.exists(args.kept):
        all_done = [json.loads(line) for line in open(args.kept)]
    known = {done["seed"] for done in all_done}
    lock = threading.Lock()

    def keep(done):
        with lock:
            all_done.append(done)
            if args.kept:
                with open(args.kept, "a") as file:
                    file.write(json.dumps(done) + "\n")

    seeds = [args.seed * 1_000_000 + i for i in range(args.expressions)]
    with multiprocessing.Pool(args.jobs) as pool:
        exacts = pool.map(exact, [(args.polystep, seed) for seed in seeds if seed not in known], chunksize=16)
    to_ask = []
    for done in exacts:
        if args.prove_many and "wrong" not in done and not done["nothing_to_prove"]:
            to_ask.append(done)
        else:
            keep(done)
    askers = [threading.Thread(target=ask, args=(args, to_ask[job::args.jobs], keep, until)) for job in range(args.jobs)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    sys.exit(0 if tell(args, all_done) else 1)


if __name__ == "__main__":
    main()
