"""Bundled models from Python: the answers and proofs of the command line."""

import json
import pathlib

import polystep
import pytest

NAME = "large_coeff-1-coarse-infix"


@pytest.fixture(scope="module")
def model():
    return polystep.Model.load(NAME, device="cpu")


def test_it_knows_what_it_learned(model):
    assert model.name == NAME and model.tasks[0].space.key == "large_coeff" and "CPU" in model.device
    assert NAME in polystep.Model.bundled()


def test_answers_are_scored(model):
    test = polystep.fixed_set("large_coeff", "test", proofs=10)
    answers = model.answer(test.inputs)
    assert all(answer.finished and answer.logprob <= 1e-3 for answer in answers)
    greedy = polystep.score(test.records([a.output for a in answers], [a.logprob for a in answers]))["greedy"]
    assert greedy["full_proof"]["exact"]["percent"] >= 80
    some = polystep.fixed_set("large_coeff", "test", proofs=2)
    beams = [answer.beams for answer in model.answer(some.inputs, beams=5)]
    records = some.records([[text for text, _ in found] for found in beams], [[p for _, p in found] for found in beams])
    found = polystep.score(records)["beam"]
    assert found["width"] == 5 and found["any5"]["exact"]["percent"] == 100


def test_records():
    """Records hold what a model wrote, best first."""
    batch = polystep.fixed_set("small_coeff", "test", proofs=2)
    records = batch.records([["1", "2"]] * len(batch), [[-0.1, -0.2]] * len(batch))
    assert [beam["output"] for beam in records[0]["beams"]] == ["1", "2"]
    assert records[0]["beams"][1]["logprob"] == -0.2 and records[0]["proof"] == "small_coeff:1:test:2021:0"


def test_proofs_are_those_of_the_command_line(command, model):
    expression = "(2*a^2)*(3*a+4)+(5*a)*(2)"
    proof = model.prove(expression)
    said = json.loads(command.run("prove", expression, "--model", str(pathlib.Path(polystep.__file__).parent / "models" / NAME), "--json", "--device", "cpu")[0])
    mine = json.loads(proof.json())
    assert {key: mine[key] for key in mine if key != "chosen"} == {key: said[key] for key in said if key != "chosen"}
    assert proof.endpoint == "6*x1^3+8*x1^2+10*x1" and len(proof) == len(proof.steps)
    assert all(step.verdict == "exact" and step.reason for step in proof.steps) == proof.right
    alone = model.prove(expression, alone=True)
    assert alone.answer_right is True and {step.author for step in alone.steps} == {"model"}


def test_a_run_of_ones_own(command, tmp_path):
    run = "[data]\nconfig = \"small_coeff\"\n[model]\nd = 64\nlayers = 1\nheads = 4\nffn = 64\nmax_positions = 64\n[train]\nbatch = 4\nsteps = 3\nvalid_proofs = 2\n"
    (tmp_path / "tiny.toml").write_text(run)
    command.run("train", "tiny.toml", "--out", "tiny", "--device", "cpu", "--threads", "1")
    model = polystep.Model.load(tmp_path / "tiny", device="cpu")
    assert model.tasks[0].space.key == "small_coeff"
    proof = model.prove("(x+1)(x+2) + 3x")
    assert proof.endpoint == "x1^2+6*x1+2" and not proof.right and proof.steps[0].author == "exact"
    with pytest.raises(ValueError, match="tokens and this model takes 63"):
        model.prove("+".join(["(x+1)(x+2)(x+3)"] * 9))
    # Exported and read back, it is the same model.
    command.run("export", "tiny", "--out", "exported")
    exported = polystep.Model.load(tmp_path / "exported", device="cpu")
    assert exported.tasks == model.tasks
    inputs = polystep.fixed_set("small_coeff", "test", proofs=5).inputs
    answers = [[(a.output, a.logprob) for a in which.answer(inputs)] for which in (model, exported)]
    assert answers[0] == answers[1]


def test_what_cannot_be_loaded(tmp_path):
    with pytest.raises(FileNotFoundError, match="the bundled models are all-spaces, "):
        polystep.Model.load("large")
    with pytest.raises(ValueError, match="holds no run"):
        polystep.Model.load(tmp_path)
    with pytest.raises(ValueError, match="unknown device `gpu`"):
        polystep.Model.load(NAME, device="gpu")


def test_wrong_inputs(model):
    with pytest.raises(ValueError, match="input 1 cannot be read"):
        model.answer(["(x1)+(1)", "(y)"])
    with pytest.raises(ValueError, match="7 beams"):
        model.answer("(x1)+(1)", beams=7)
    assert model.answer([]) == []
    long = model.answer("+".join(["(x1)*(2)"] * 200))
    assert not long.finished
