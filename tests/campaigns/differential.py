#!/usr/bin/env python3
"""Generated proofs and random verdicts against python-flint: no value may differ.

Proofs: of every record each state is read here and evaluated by FLINT (fmpz_mpoly). All states of a proof must be the polynomial of its
start, each step must begin where the last one ended, and the end must be the start's normal form. One record in 500 is also
derived again, text for text, by reference/oracle.py.

Verdicts: targets are changed at random, and `polystep check` must judge each of them as FLINT does: exact, the same value,
another value, or not a state at all.

    pip install python-flint==0.9.0 sympy==1.14.0
    python3 tests/campaigns/differential.py --minutes 5 --jobs 2 --ledger tests/campaigns/differential.jsonl

A chunk of the work has a number, from which its space, its way of writing and its seed follow. With a ledger the numbers continue where
the last run ended, so no proof is counted twice.
"""
import collections
import functools
import itertools
import json
import multiprocessing
import os
import random
import subprocess
import sys
import time

import flint

import campaign

sys.path.insert(0, str(campaign.ROOT / "reference"))
import oracle  # noqa: E402

PROOFS = 2000
ORACLE_EVERY = 500
JUDGED = 60  # proofs of a chunk
SPACES = [(key + sign, nvars) for key in oracle.CAPS for nvars in (1, 2) for sign in ("", "/signed")]
WAYS = [way for way in oracle.combinations(True)]


# ---------------------------------------------------------------- values
class Wrong(Exception):
    """Text that is no state."""


@functools.lru_cache(maxsize=1 << 18)
def infix_term(text):
    """`-3*x1^2*x2` as (exponents, coefficient). A bracket stands for the sum of its products."""
    coefficient, exponents = 1, [0, 0]
    if text.startswith("-"):
        coefficient, text = -1, text[1:]
    if text.startswith("["):
        bracket, _, text = text[1:].partition("]")
        total = 0
        for product in bracket.split("+"):
            n = 1
            for number in product.split("*"):
                n *= int(number)
            total += n
        coefficient *= total
        text = text.lstrip("*")
    for part in filter(None, text.split("*")):
        if part[0] == "x":
            name, _, power = part.partition("^")
            exponents[int(name[1:]) - 1] += int(power or 1)
        else:
            coefficient *= int(part)
    return tuple(exponents), coefficient


def terms_of(text):
    """The terms of a factor. A plus or a minus within a bracket separates nothing."""
    if "[" not in text:
        return text.replace("-", "+-").lstrip("+").split("+")
    terms, depth, begin = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if i > begin and not depth and letter in "+-":
            terms.append(text[begin:i])
            begin = i + (letter == "+")
    return terms + [text[begin:]]


@functools.lru_cache(maxsize=1 << 14)
def infix_factor(text):
    merged = collections.defaultdict(int)
    for term in terms_of(text):
        exponents, coefficient = infix_term(term)
        merged[exponents] += coefficient
    return RING.from_dict(merged)


@functools.lru_cache(maxsize=1 << 12)
def infix_product(text):
    product = ONE
    for factor in text.split(")*("):
        product = product * infix_factor(factor)
    return product


def infix_value(text):
    if not text.startswith("("):
        return infix_factor(text)
    total = ZERO
    for product in text[1:-1].split(")+("):
        total = total + infix_product(product)
    return total


def prefix_value(text):
    """Read from the right: an operator takes the two values that stand after it."""
    stack, digits = [], ""
    for token in reversed(text.split(" ")):
        if token.isdigit():
            digits = token + digits
        elif token == "INT+":
            stack.append(int(digits))
            digits = ""
        elif token == "INT-":
            stack.append(-int(digits))
            digits = ""
        elif token[0] == "x":
            stack.append(GENERATORS[token])
        elif token in ("+", "+P"):
            stack.append(stack.pop() + stack.pop())
        elif token == "*":
            stack.append(stack.pop() * stack.pop())
        elif token == "*F":
            # Before a single factor it only says that this is no endpoint.
            if len(stack) > 1:
                stack.append(stack.pop() * stack.pop())
        elif token == "^":
            base = stack.pop()
            stack.append(base ** stack.pop())
        elif token not in "[]":
            raise Wrong(token)
    if len(stack) != 1 or digits:
        raise Wrong(text)
    return ZERO + stack[0]


RING = flint.fmpz_mpoly_ctx.get(["x1", "x2"], flint.Ordering.lex)
ZERO, ONE = RING.from_dict({}), RING.from_dict({(0, 0): 1})
GENERATORS = dict(zip(["x1", "x2"], RING.gens()))
VALUE = {"infix": infix_value, "prefix": prefix_value}


def normal_form(poly, notation, nvars):
    """The text of an endpoint, by the oracle's printer."""
    terms = sorted(((m[:nvars], int(c)) for m, c in poly.to_dict().items()), key=lambda term: oracle.order(term[0]))
    factor = [(c, m, False) for m, c in terms] or [(0, (0,) * nvars, False)]
    return oracle.PRINT[notation](("bare", factor))


# ---------------------------------------------------------------- proofs
def need(truth, *says):
    if not truth:
        raise Wrong(" ".join(map(str, says)))


def check_proof(record):
    value, annotated = VALUE[record["notation"]], record["setting"] == "annotated"
    plain = oracle.drop_marks if annotated else str
    total = value(record["start"])
    need(value(record["end"]) == total, "the end has another value than the start")
    need(record["end"] == normal_form(total, record["notation"], record["vars"]), "the end is not in normal form")
    here = record["start"]
    for k, step in enumerate(record["steps"]):
        need(plain(step["input"]) == here, "step", k, "does not begin where the last one ended")
        target = plain(step["target"])
        if target != here:
            need(value(target) == total, "step", k, "changes the value:", target)
        here = step.get("next") or target
        if here != target:
            need(value(here) == total, "step", k, "is evaluated to another value:", here)
    need(here == record["end"], "the steps do not lead to the end")


def chunk_of(number):
    """The space, the way of writing and the seed of a chunk."""
    round_, place = divmod(number, len(SPACES) * len(WAYS))
    space, turn = place % len(SPACES), place // len(SPACES)
    return SPACES[space], WAYS[(space + turn) % len(WAYS)], 1_000_000 + round_


def generated(polystep, number, proofs):
    (config, nvars), (setting, granularity, notation), seed = chunk_of(number)
    command = [polystep, "generate", "--config", config, "--vars", str(nvars), "--setting", setting, "--granularity", granularity,
               "--notation", notation, "--proofs", str(proofs), "--seed", str(seed), "--threads", "1"]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()


def run_chunk(job):
    polystep, number, proofs = job
    steps, wrong = 0, []
    lines = generated(polystep, number, proofs)
    for n, line in enumerate(lines):
        record = json.loads(line)
        steps += len(record["steps"])
        try:
            check_proof(record)
            if n % ORACLE_EVERY == 0:
                oracle.check_record(record, "flint")
        except Exception as e:  # a record that cannot be read here is wrong as well
            wrong.append("%s: %s" % (record.get("id"), e))
    verdicts, judged = run_verdicts(polystep, number, lines)
    return number, len(lines), steps, wrong, verdicts, judged


# ---------------------------------------------------------------- verdicts
def changed(rng, text):
    """A text near this one: often another value, sometimes the same, sometimes no state at all."""
    kind, at = rng.randrange(6), rng.randrange(len(text))
    if kind == 0:
        return text[:at] + rng.choice("0123456789+*x^()-[] ") + text[at + 1:]
    if kind == 1:
        return text[:at] + text[at + 1:]
    if kind == 2:
        return text[:at] + rng.choice("0123456789+*()") + text[at:]
    if kind == 3 and ")+(" in text:
        products = text[1:-1].split(")+(")
        rng.shuffle(products)
        return "(" + ")+(".join(products) + ")"
    if kind == 4 and "(" not in text and "-" not in text:
        terms = text.split("+")
        rng.shuffle(terms)
        return "+".join(terms)
    digits = [i for i, letter in enumerate(text) if letter.isdigit()]
    at = rng.choice(digits) if digits else 0
    return text[:at] + str(rng.randrange(1, 10)) + text[at + 1:]


def expected_verdict(output, target):
    """What FLINT says of an answer in infix; None if it is no state, or beyond the limits that polystep names (degree 255, 63 bits)."""
    if output == target:
        return "exact"
    try:
        found, wanted = [oracle.value(oracle.PARSE["infix"](text, 8), oracle.algebra_of("flint", 8)) for text in (output, target)]
    except Exception:
        return None
    if any(sum(m) > 255 or abs(int(c)) >= 1 << 63 for m, c in found.to_dict().items()):
        return None
    return "same value" if found == wanted else "wrong value"


def run_verdicts(polystep, number, lines):
    """Answers that are changed targets, judged by `polystep check --json` and by FLINT."""
    _, (setting, granularity, notation), _ = chunk_of(number)
    if setting != "plain" or notation != "infix":
        return 0, []
    rng, asked = random.Random(number), []
    for line in lines[:JUDGED]:
        step = rng.choice(json.loads(line)["steps"])
        asked += [(step, changed(rng, step["target"])) for _ in range(3)]
    answers = "".join(json.dumps({"input": step["input"], "output": output}) + "\n" for step, output in asked)
    command = [polystep, "check", "-", "--setting", setting, "--granularity", granularity, "--json"]
    told = subprocess.run(command, input=answers, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    if len(told) != len(asked) + 1:
        return len(asked), ["%d verdicts on %d answers" % (len(told) - 1, len(asked))]
    wrong = []
    for (step, output), line in zip(asked, told):
        got, want = json.loads(line)["verdict"].replace("_", " "), expected_verdict(output, step["target"])
        # Not a state for the oracle: polystep reads a little more than it prints, but never calls that exact.
        if got != want if want else got == "exact":
            wrong.append("%r after %r is %s, and FLINT says %s" % (output, step["input"], got, want or "it is no state"))
    return len(asked), wrong


# ---------------------------------------------------------------- the whole run
def main():
    args = campaign.arguments(__doc__, jobs={"type": int, "default": 2}, ledger={"metavar": "FILE"},
                              chunk={"type": int, "default": PROOFS, "help": "proofs in a chunk"})
    first = args.seed * 1000 * len(SPACES) * len(WAYS)
    if args.ledger and os.path.exists(args.ledger):
        done = [json.loads(line) for line in open(args.ledger)]
        first = max((line["to"] for line in done if line["seed"] == args.seed), default=first)
    counts = campaign.Counts(["steps"])
    began, last = time.monotonic(), first
    with multiprocessing.Pool(args.jobs) as pool:
        waiting, numbers = collections.deque(), itertools.count(first)
        # Two chunks for each process are on their way; what was handed out is finished, even after the last minute.
        while waiting or time.monotonic() < args.end:
            while len(waiting) < 2 * args.jobs and time.monotonic() < args.end:
                waiting.append(pool.apply_async(run_chunk, ((args.polystep, next(numbers), args.chunk),)))
            number, proofs, steps, wrong, verdicts, misjudged = waiting.popleft().get()
            _, (setting, _, notation), _ = chunk_of(number)
            kind = "%s, %s" % (setting, notation)
            counts.add(kind, proofs, steps=steps)
            counts.add("verdicts", verdicts)
            for of, sentence in [(kind, w) for w in wrong] + [("verdicts", w) for w in misjudged]:
                counts.fail(of, sentence)
            last = number + 1
    if args.ledger:
        seconds = round(time.monotonic() - began)
        line = {"date": campaign.today(), "seed": args.seed, "from": first, "to": last, "chunk": args.chunk,
                "proofs": sum(row["tried"] for kind, row in counts.rows.items() if kind != "verdicts"), "steps": counts.total("steps"),
                "verdicts": counts.rows["verdicts"]["tried"], "failed": counts.total("failed"), "seconds": seconds,
                "program": campaign.version(args.polystep)}
        with open(args.ledger, "a") as f:
            f.write(json.dumps(line) + "\n")
    counts.finish("differential", args)


if __name__ == "__main__":
    main()
