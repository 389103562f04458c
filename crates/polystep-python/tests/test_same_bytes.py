"""The same seed gives the same data from Python and from the command line, in every setting."""

import json

import polystep
import pytest

TASKS = [
    {"setting": "plain", "config": "large_coeff", "vars": 1},
    {"setting": "calculator", "config": "medium_terms", "vars": 2, "granularity": "fine", "notation": "prefix"},
    {"setting": "annotated", "config": "small_coeff", "vars": 1},
    {"setting": "endpoint", "config": "no_backtrack", "vars": 2, "order": "grlex"},
    {"setting": "arithmetic", "config": "mul4"},
    {"setting": "plain", "config": "medium_coeff/mul2", "ones": True},
]


def both_ways(task):
    """Keywords for Python and flags for the command line."""
    flags = [part for key, value in task.items() for part in ([f"--{key}"] if value is True else [f"--{key}", str(value)])]
    return {key: value for key, value in task.items() if key != "config"}, flags


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["setting"])
def test_step_examples(command, task):
    keywords, flags = both_ways(task)
    written = command.records("generate", "--steps", "3000", "--seed", "7", *flags)
    stream = polystep.examples(task["config"], batch_size=700, shuffle=False, seed=7, **keywords)
    drawn = []
    while len(drawn) < 3000:
        batch = next(stream)
        drawn += zip(batch.ids, batch.step.tolist(), batch.kinds, batch.inputs, batch.targets)
    keys = ("proof", "step", "kind", "input", "target")
    assert drawn[:3000] == [tuple(record[key] for key in keys) for record in written]
    assert len(written) == 3000


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["setting"])
def test_proofs(command, task):
    keywords, flags = both_ways(task)
    lines = command.run("generate", "--proofs", "600", *flags)[0].splitlines()
    assert [proof.json() for proof in polystep.sample(task["config"], 600, **keywords)] == lines
    some = polystep.sample(task["config"], 20, first=570, **keywords)
    assert [proof.json() for proof in some] == lines[570:590]
    for proof, line in zip(some, lines[570:590]):
        steps = [(s.kind, s.input, s.target, s.next) for s in proof.steps]
        assert steps == [(s["kind"], s["input"], s["target"], s.get("next")) for s in json.loads(line)["steps"]]


@pytest.mark.parametrize("split", ["test", "valid", "beam"])
def test_fixed_sets(command, split):
    written = command.records("generate", "--split", split, "--steps", "4000", "--config", "large_coeff")
    fixed = polystep.fixed_set("large_coeff", split)
    drawn = list(zip(fixed.ids, fixed.inputs, fixed.targets))[:4000]
    assert drawn == [(record["proof"], record["input"], record["target"]) for record in written]
    assert len(fixed) == 5000 if split == "beam" else len(set(fixed.ids)) == 1000


def test_exact_proofs(command):
    for flags, keywords in (([], {}), (["--granularity", "fine", "--setting", "calculator"], {"granularity": "fine", "setting": "calculator"})):
        line = command.run("prove", "(x+1)(x+2) + 3x", "--symbolic", "--json", *flags)[0].strip()
        assert polystep.prove("(x+1)(x+2) + 3x", **keywords).json() == line
