#!/usr/bin/env python3
"""An independent oracle for generated proofs: the same mathematics, written a second time in Python, with SymPy's algebra.

It shares no code with the Rust library. For every proof record (JSONL, see docs of `polystep generate`) it
 1. parses every state with its own parsers (infix and prefix) and prints it again: the text must come back unchanged
    (with FLINT, where speed counts: the start and the end; the texts between must be those of the derived proof);
 2. multiplies out the start, read by another parser: the record's endpoint must be that polynomial, in normal form;
 3. computes every state's value: each must equal the start's value;
 4. derives the whole proof again from the start (which step comes next, what exactly it rewrites, the calculator's
    brackets, the marks of annotated proofs) and compares it with the record, text for text;
 5. checks every cap of the configuration on the start, its expanded products and its endpoint, without their signs.

    polystep generate --config large_coeff --vars 2 --proofs 1000 --setting calculator | python3 oracle.py -
    python3 oracle.py --run ../target/release/polystep --proofs 10000 --jobs 2 --sample oracle_sample.jsonl
    python3 oracle.py --run ../target/release/polystep --proofs 83400 --jobs 2 --algebra flint --signed --sample FILE

The second form generates and checks all 12 spaces, in every granularity, setting and notation; the third their signed
variants. With `--algebra flint` python-flint multiplies, which is faster; SymPy checks one proof in 200 again.
Exit code 0: every record passed. 1: at least one did not; the first failures are explained.
"""
import argparse
import collections
import itertools
import json
import multiprocessing
import re
import subprocess
import sys
import time
import zlib

from oracle_algebra import algebra_of, collect, normal, value
from oracle_language import PARSE, PRINT, infix, infix_factor, need, number, order

# The configurations, from the paper's text: coefficients (polynomial, product, factor), degrees (polynomial, factor),
# terms (product, factor), most products, most factors.
CAPS = {
    "small_coeff": ((60, 20, 5), (6, 3), (8, 3), 3, 3),
    "medium_coeff": ((120, 40, 8), (6, 3), (8, 3), 3, 3),
    "large_coeff": ((300, 100, 10), (6, 3), (8, 3), 3, 3),
    "no_backtrack": ((10125, 3375, 5), (9, 3), (27, 3), 3, 3),
    "medium_degree": ((120, 40, 8), (12, 5), (8, 3), 3, 3),
    "medium_terms": ((120, 40, 8), (6, 3), (20, 4), 5, 4),
}
# granularity -> what one facstep, mulstep and sumstep rewrites
UNITS = {
    "coarse": ("product", "product", "all"),
    "fine": ("factor", "pair", "pair"),
    "fine_counted": ("factor", "product", "all"),
    "fac=term,mul=pair,sum=pair": ("term", "pair", "pair"),
}
# kind of step -> its tag in annotated proofs
TAGS = {"facstep": "FAC", "mulstep": "MUL", "sumstep": "SUM"}
# The committed sample holds every way of writing in every fifth space.
SAMPLE_EVERY = 5
# SymPy checks every so many proofs again when another program does the algebra.
SYMPY_EVERY = 200


# ---------------------------------------------------------------- proofs
def simplify_factor(factor, algebra):
    return normal(collect(factor, algebra), algebra)


def terms_of(factor):
    """Zero has no terms."""
    return [t for t in factor if t[0] != 0]


def open_sum(groups, plain):
    """The calculator's factor: for each monomial its summands, one number standing alone without a bracket. What comes to
    0 stands here, too; where nothing is left to compute, the factor is as in the plain step."""
    coefficients = {m: c for c, m, _ in plain}
    terms = []
    for m in sorted(groups, key=order):
        summands = [[n for n in s if n != 1] or [1] for s in groups[m]]
        need(number(summands) == coefficients.get(m, 0), "the oracle's own summands do not add up")
        terms.append((summands[0][0] if len(summands) == 1 and len(summands[0]) == 1 else summands, m, False))
    return terms or plain


def open_factor(factor, algebra):
    groups = collections.defaultdict(list)
    for c, m, _ in terms_of(factor):
        groups[m].append([c])
    return open_sum(groups, simplify_factor(factor, algebra))


def multiply(factors, algebra):
    """The product of simplified factors, plain and for the calculator."""
    poly = algebra.one
    for f in factors:
        poly = poly * collect(f, algebra)
    groups = collections.defaultdict(list)
    for choice in itertools.product(*map(terms_of, factors)):
        m = tuple(map(sum, zip(*(t[1] for t in choice))))
        groups[m].append([t[0] for t in choice])
    plain = normal(poly, algebra)
    return plain, open_sum(groups, plain)


def add(factors, algebra):
    poly = algebra.zero
    groups = collections.defaultdict(list)
    for f in factors:
        poly = poly + collect(f, algebra)
        for c, m, _ in terms_of(f):
            groups[m].append([c])
    plain = normal(poly, algebra)
    return plain, open_sum(groups, plain)


def derive(start, units, marks, algebra):
    """Every step of the proof: (kind, before, after, after for the calculator, marked text of before, if `marks`)."""
    fac, mul, summing = units
    state = [list(map(list, p)) for p in start[1]]
    steps = []

    def show(mark):
        """The infix text with the operand between # #; mark = (first product, last product, factors or None)."""
        first, last, factors = mark
        texts = []
        for i, p in enumerate(state):
            parts = ["(%s)" % infix_factor(f) for f in p]
            if factors and i == first:
                a, b = factors
                parts[a] = "#" + parts[a]
                parts[b] = parts[b] + "#"
            texts.append("*".join(parts))
        if not factors:
            texts[first] = "#" + texts[first]
            texts[last] = texts[last] + "#"
        return "+".join(texts)

    def step(kind, mark, plain, calculator, ends=False):
        before, marked = ("sum", [list(p) for p in state]), show(mark) if marks else None
        bare = ends and len(plain) == 1 and len(plain[0]) == 1 and is_normal(plain[0][0])
        after = ("bare", plain[0][0]) if bare else ("sum", plain)
        opened = ("bare", calculator[0][0]) if bare else ("sum", calculator)
        if after != before:
            steps.append((kind, before, after, opened, marked))
        state[:] = plain

    def replaced(i, product):
        return [product if k == i else list(p) for k, p in enumerate(state)]

    alone = len(state) == 1
    for i, product in enumerate(list(state)):
        one = alone and len(product) == 1
        if fac == "product":
            step("facstep", (i, i, None), replaced(i, [simplify_factor(f, algebra) for f in product]),
                 replaced(i, [open_factor(f, algebra) for f in product]), ends=one)
            continue
        for j, factor in enumerate(product):
            for plain, calculator in fac_states(factor, fac, algebra) or [(factor, factor)] * one:
                head, tail = state[i][:j], state[i][j + 1:]
                step("facstep", (i, i, (j, j)), replaced(i, head + [plain] + tail),
                     replaced(i, head + [calculator] + tail), ends=one)
    for i in range(len(state)):
        while len(state[i]) > 1:
            n = len(state[i]) if mul == "product" else 2
            plain, calculator = multiply(state[i][:n], algebra)
            rest = state[i][n:]
            step("mulstep", (i, i, None if mul == "product" else (0, 1)), replaced(i, [plain] + rest),
                 replaced(i, [calculator] + rest), ends=alone)
    while len(state) > 1:
        n = len(state) if summing == "all" else 2
        plain, calculator = add([p[0] for p in state[:n]], algebra)
        step("sumstep", (0, n - 1, None), [[plain]] + state[n:], [[calculator]] + state[n:], ends=True)
    return steps


def is_normal(factor):
    keys = [order(t[1]) for t in factor]
    return not any(t[2] for t in factor) and all(a < b for a, b in zip(keys, keys[1:]))


def fac_states(factor, fac, algebra):
    """What one factor becomes, facstep after facstep: at once, or one monomial after the other, from the left."""
    goal, opened = simplify_factor(factor, algebra), open_factor(factor, algebra)
    if fac == "factor":
        return [(goal, opened)] if goal != factor else []
    states, now, done = [], factor, []
    for bracket in opened:
        monomial, total = bracket[1], number(bracket[0])
        term = [(total, monomial, False)] if total else []
        k = len(done)
        if now[k:k + 1] == term and not any(t[1] == monomial for t in now[k + 1:]):
            done = done + term
            continue
        rest = [t for t in now[k:] if t[1] != monomial]
        states.append((done + term + rest or goal, done + [bracket] + rest))
        now, done = states[-1][0], done + term
    return states


def expected_steps(record, start, notation, algebra):
    """The steps as they should be, and the states that are written in them."""
    setting = record["setting"]
    show = PRINT[notation]
    if setting == "endpoint":
        end = ("bare", normal(value(start, algebra), algebra))
        return [{"kind": "endpoint", "input": show(start), "target": show(end)}], [start, end]
    derived = derive(start, UNITS[record["granularity"]], setting == "annotated", algebra)
    steps = []
    for kind, before, after, opened, marked in derived:
        if setting == "annotated":
            tagged = "%s $ %s" % (TAGS[kind], marked)
            steps.append({"kind": "markstep", "input": "MARK $ " + infix(before), "target": tagged})
            steps.append({"kind": kind, "input": tagged, "target": "MARK $ " + infix(after)})
        elif setting == "calculator":
            steps.append({"kind": kind, "input": show(before), "target": show(opened), "next": show(after)})
        else:
            steps.append({"kind": kind, "input": show(before), "target": show(after)})
    if setting == "annotated":
        end = infix(derived[-1][2])
        steps.append({"kind": "markstep", "input": "MARK $ " + end, "target": "END $ " + end})
    opened = [d[3] for d in derived] if setting == "calculator" else []
    return steps, [d[2] for d in derived] + opened


# ---------------------------------------------------------------- caps
def check_caps(caps, start, algebra):
    """The caps hold for the polynomial without its signs."""
    (c_poly, c_prod, c_fac), (d_poly, d_fac), (t_prod, t_fac), max_prod, max_fac = caps
    start = (start[0], [[[(abs(c), m, raw) for c, m, raw in f] for f in p] for p in start[1]])
    total = algebra.zero
    need(start[0] == "sum", "the start is not a sum of products")
    need(2 <= len(start[1]) <= max_prod, len(start[1]), "products")
    degrees = []
    for product in start[1]:
        need(1 <= len(product) <= max_fac, len(product), "factors")
        poly = algebra.one
        for factor in product:
            need(1 <= len(factor) <= t_fac, len(factor), "terms in a factor")
            for c, exponents, raw in factor:
                need(1 <= c <= c_fac, "coefficient", c, "in a factor")
                need(sum(exponents) <= d_fac, "degree", sum(exponents), "in a factor")
                need(raw or 1 not in exponents, "an unsimplified factor without ^1")
            keys = [order(t[1]) for t in factor]
            need(keys == sorted(keys), "the terms of a factor are out of order")
            poly = poly * collect(factor, algebra)
        terms, total = algebra.terms(poly), total + poly
        need(max(terms.values()) <= c_prod, "coefficient", max(terms.values()), "in a product")
        need(len(terms) <= t_prod, len(terms), "terms in a product")
        degrees.append(max(map(sum, terms)))
    for product, degree in zip(start[1], degrees):
        # only a product whose degree is used up ends after one factor, and all products are given the same degree
        need(len(product) > 1 or degree == max(degrees), "a single factor, but degree is left")
    need(max(degrees) <= d_poly, "degree", max(degrees))
    need(max(algebra.terms(total).values()) <= c_poly, "a coefficient of the endpoint is above", c_poly)


# ---------------------------------------------------------------- records
def drop_marks(text):
    return text.split("$ ", 1)[-1].replace("#", "")


def check_record(record, name="sympy"):
    notation, setting = record["notation"], record["setting"]
    algebra = algebra_of(name, record["vars"])
    config, _, signed = record["config"].partition("/")
    seen = {}

    def read(text):
        if text not in seen:
            state = PARSE[notation](text, algebra.nvars)
            need(PRINT[notation](state) == text, "printed again, it differs:", text)
            seen[text] = state, value(state, algebra)
        return seen[text]

    if setting == "arithmetic":
        return check_arithmetic(record)
    (start, total), (end, _) = read(record["start"]), read(record["end"])
    need(end[0] == "bare" and end[1] == normal(total, algebra), "the end is not the start's normal form")
    need(algebra.expanded(infix(start)) == total, "the start, expanded, is another polynomial")
    if config in CAPS and signed in ("", "signed"):
        check_caps(CAPS[config], start, algebra)
    need(signed or "-" not in json.dumps(record["steps"]), "a minus in an unsigned space")
    expected, states = expected_steps(record, start, notation, algebra)
    for state in states:
        need(value(state, algebra) == total, "the value changed:", state)
    for k, (got, want) in enumerate(itertools.zip_longest(record["steps"], expected)):
        need(got and want, "step", k, ": the record ends early or late")
        need({x: v for x, v in got.items() if v is not None} == want,
             "step", k, ":\n    got  ", json.dumps(got), "\n    want ", json.dumps(want))
        for key in ("input", "target", "next"):
            if key in want and name == "sympy":
                text = drop_marks(got[key]) if setting == "annotated" else got[key]
                need(read(text)[1] == total, "step", k, ": the value of", key, "changed:", text)
    last = record["steps"][-1]
    need(drop_marks(last.get("next") or last["target"]) == record["end"], "the last step does not reach the end")


def check_arithmetic(record):
    for step in record["steps"]:
        text = step["input"]
        if record["notation"] == "prefix":
            op, rest = text.split(" ", 1)
            a, b = [int(n.replace(" ", "")) for n in rest.split("INT+") if n.strip()]
            answer = int(step["target"].replace("INT+", "").replace(" ", ""))
        else:
            a, op, b = re.fullmatch(r"(\d+)([+*])(\d+)", text).groups()
            a, b, answer = int(a), int(b), int(step["target"])
        need(len(str(a)) == len(str(b)) and len(str(a)) in (4, 9), "not 4 or 9 digits:", text)
        need(answer == (a + b if op == "+" else a * b), "wrong answer:", text, step["target"])
        need(step["kind"] == {"+": "add", "*": "mul"}[op], "the kind of", text, "is", step["kind"])


def check_lines(lines, say, algebra="sympy", most=3):
    """(proofs, steps, failures) of JSONL lines; the first failures are said."""
    proofs = steps = failures = 0
    for n, line in enumerate(lines, 1):
        record = json.loads(line)
        proofs += 1
        steps += len(record["steps"])
        try:
            check_record(record, algebra)
            if algebra != "sympy" and n % SYMPY_EVERY == 0:
                check_record(record)
        except Exception as e:  # a record that breaks the oracle is a record that is wrong
            failures += 1
            if failures <= most:
                say("line %d (%s): %s: %s" % (n, record.get("id"), type(e).__name__, e))
    return proofs, steps, failures


# ---------------------------------------------------------------- the whole run
def combinations(signed):
    """Every granularity, setting and notation that exists together. The arithmetic probe has no signs."""
    for notation in ("infix", "prefix"):
        for setting in ("plain", "calculator"):
            for granularity in UNITS:
                yield setting, granularity, notation
        yield "endpoint", "coarse", notation
        if not signed:
            yield "arithmetic", "coarse", notation
    for granularity in ("coarse", "fine", "fine_counted"):
        yield "annotated", granularity, "infix"


def number_of(way):
    """A number that depends on nothing but the name of a way of writing: a new way changes no other's seed or sample."""
    return zlib.crc32(" ".join(way).encode()) % 1000


def run_one(job):
    polystep, proofs, seed, algebra, (config, nvars), (setting, granularity, notation) = job
    command = [polystep, "generate", "--config", config, "--vars", str(nvars), "--setting", setting, "--granularity",
               granularity, "--notation", notation, "--proofs", str(proofs), "--seed", str(seed), "--threads", "1"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    said = []
    return (config, nvars, setting, granularity, notation), check_lines(lines, said.append, algebra), said, lines[0]


def run_all(args):
    """`--proofs` proofs per space, shared out over the ways of writing; each way has a seed of its own."""
    began = time.time()
    ways = list(combinations(args.signed))
    each = -(-args.proofs // len(ways))
    spaces = list(itertools.product((key + "/signed" * args.signed for key in CAPS), (1, 2)))
    jobs = [(args.run, each, args.seed + number_of(way), args.algebra, space, way) for space in spaces for way in ways]
    total, bad, kept = [0, 0, 0], 0, []
    with multiprocessing.Pool(args.jobs) as pool:
        for combination, counts, said, first in pool.imap(run_one, jobs):
            total = [a + b for a, b in zip(total, counts)]
            bad += bool(counts[2] or counts[0] != each)
            print("%-20s vars %d  %-10s  %-26s  %-6s  %5d proofs  %6d steps  %d failed" % (combination + counts),
                  *said, sep="\n    ", flush=True)
            if (spaces.index(combination[:2]) + number_of(combination[2:])) % SAMPLE_EVERY == 0:
                kept.append(first)
    version = algebra_of(args.algebra, 1).version
    print("%s: %d proofs (%d per space), %d steps, %d failed; %.0f s"
          % (version, total[0], each * len(ways), total[1], total[2], time.time() - began))
    if args.sample and not bad:
        with open(args.sample, "w") as f:
            f.writelines(line + "\n" for line in kept)
    return bad


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("files", nargs="*", help="JSONL files of proof records; - is standard input")
    ap.add_argument("--run", metavar="POLYSTEP", help="generate with this program and check every combination")
    ap.add_argument("--proofs", type=int, default=10000, help="proofs per space, with --run")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--signed", action="store_true", help="the signed variants of the spaces, with --run")
    ap.add_argument("--algebra", choices=("sympy", "flint"), default="sympy",
                    help="which program multiplies; with flint SymPy checks one proof in 200 again")
    ap.add_argument("--sample", metavar="FILE", help="write the first verified proof of each way of writing, in every fifth space, here")
    args = ap.parse_args()
    if args.run:
        sys.exit(1 if run_all(args) else 0)
    if not args.files:
        ap.error("give a file of proof records, - for standard input, or --run")
    failed = 0
    for name in args.files:
        with (sys.stdin if name == "-" else open(name)) as f:
            proofs, steps, failures = check_lines(f, print, args.algebra)
        print("%s: %d proofs, %d steps, %d failed" % (name, proofs, steps, failures))
        failed += failures
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
