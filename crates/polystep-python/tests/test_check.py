"""The checker, one step or many."""

import json

import polystep
import pytest


def test_many_are_checked_like_one():
    batch = next(polystep.examples("large_coeff", batch_size=3000))
    outputs = batch.targets
    outputs[5] = outputs[5] + "+1"
    outputs[6] = batch.inputs[6]
    outputs[7] = outputs[7][:-1] + "("
    many = polystep.check(batch.inputs, outputs)
    assert len(many) == 3000 and [i for i, found in enumerate(many) if not found] == [5, 6, 7]
    assert [polystep.check(a, b) for a, b in zip(batch.inputs[:20], outputs)] == many[:20]
    assert many[6].verdict == "same value" and many[6].symbolic and not many[6].exact
    assert many[7].verdict == "malformed" and many[0].expected == batch.kinds[0]


@pytest.mark.parametrize("setting", ["plain", "calculator", "annotated", "endpoint", "arithmetic"])
def test_every_setting(setting):
    task = polystep.Task("mul4" if setting == "arithmetic" else "medium_coeff", setting=setting)
    batch = next(polystep.examples(task, batch_size=400))
    assert all(polystep.check(batch.inputs, batch.targets, setting=setting))
    wrong = polystep.check(batch.inputs, [text + "0" for text in batch.targets], setting=setting)
    assert not any(found.exact for found in wrong) and all(found.reason for found in wrong)


def test_what_a_person_typed():
    assert polystep.check("(x+1)*(x+2)+(3)", "(x^2 + 3*x + 2) + (3)").verdict == "exact"
    assert polystep.check("(x+1)*(x+2)+(3)", "(x^2 + 3*x + 3) + (3)").verdict == "wrong value"


def test_it_agrees_with_the_command_line(command, tmp_path):
    records = command.records("generate", "--steps", "500")
    for record in records[::3]:
        record["target"] = record["target"].replace("2", "3")
    (tmp_path / "steps.jsonl").write_text("\n".join(map(json.dumps, records)))
    wrong = sum(not found for found in polystep.check([r["input"] for r in records], [r["target"] for r in records]))
    said = command.run("check", "steps.jsonl", "--granularity", "coarse", code=1)[1]
    assert wrong > 0 and f"{wrong} of the proofs or step examples" in said


def test_wrong_calls():
    with pytest.raises(ValueError, match="2 inputs and 1 outputs"):
        polystep.check(["1", "2"], ["1"])
    with pytest.raises(TypeError, match="one input and one output"):
        polystep.check(["1"], "1")
    with pytest.raises(ValueError, match="step 1: the input cannot be read"):
        polystep.check(["(x1)+(2)", "(§)"], ["x1+2", "1"])
