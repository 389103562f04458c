"""Errors are exceptions with the sentences of the command line."""

import itertools

import polystep
import pytest


def said(command, *arguments):
    return command.run(*arguments, code=2)[1].splitlines()[0].removeprefix("error: ")


@pytest.mark.parametrize(
    "flags, call",
    [
        (["--vars", "9"], lambda: polystep.sample("small_coeff", vars=9)),
        (["--config", "small_coeff/nothing"], lambda: polystep.sample("small_coeff/nothing")),
        (["--setting", "annotated", "--notation", "prefix"], lambda: polystep.sample("small_coeff", setting="annotated", notation="prefix")),
        (["--setting", "arithmetic", "--config", "add5"], lambda: polystep.examples("add5", setting="arithmetic")),
    ],
)
def test_the_same_sentences(command, flags, call):
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == said(command, "generate", *flags)


def test_a_bad_expression(command):
    with pytest.raises(ValueError) as refused:
        polystep.prove("(x+1)*(x/2)")
    sentence, text, caret = str(refused.value).splitlines()
    assert sentence == said(command, "prove", "(x+1)*(x/2)")
    assert text == "(x+1)*(x/2)" and caret == "        ^"


def test_a_bad_space(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[space]\nbase = \"small_coeff\"\nmax_terms = 3\n")
    with pytest.raises(ValueError, match=r"mine.toml, line 3: unknown field `max_terms`"):
        polystep.Space(str(file))
    with pytest.raises(FileNotFoundError, match="nowhere.toml"):
        polystep.Space("nowhere.toml")
    with pytest.raises(ValueError, match="unknown field `maximum`"):
        polystep.Space("small_coeff", maximum=3)
    with pytest.raises(ValueError, match="reserved"):
        polystep.Space("small_coeff", key="large_coeff")


def test_wrong_keywords_and_shares():
    with pytest.raises(TypeError, match="unexpected keyword argument 'var'"):
        polystep.sample("small_coeff", var=2)
    with pytest.raises(ValueError, match="unknown setting `plane`: plain, "):
        polystep.Task("small_coeff", setting="plane")
    with pytest.raises(ValueError, match="unknown split `exam`"):
        polystep.fixed_set("small_coeff", "exam")
    with pytest.raises(TypeError, match="a Task, a Space"):
        polystep.examples(3)
    for wrong, why in (({"batch_size": 0}, "batch_size"), ({"rank": 2, "world": 2}, "rank 2 of 2"), ({"rank": 1, "world": 2, "start": (4, 0)}, "block 4")):
        with pytest.raises(ValueError, match=why):
            polystep.examples("small_coeff", **wrong)


def test_records_that_cannot_be_scored(tmp_path):
    record = {"proof": "a", "step": 1, "kind": "sumstep", "input": "(1)+(2)", "target": "3", "beams": []}
    with pytest.raises(ValueError, match="step 0"):
        polystep.score([record])
    with pytest.raises(ValueError, match="record 0: missing field `proof`"):
        polystep.score([{}])
    with pytest.raises(ValueError, match="no records"):
        polystep.score([])
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(ValueError, match="bad.jsonl line 1"):
        polystep.score(tmp_path / "bad.jsonl")


def test_a_batch_wants_an_answer_to_each_example():
    batch = next(itertools.islice(polystep.examples("small_coeff", batch_size=3), 1))
    with pytest.raises(ValueError, match="3 examples, 2 answers"):
        batch.records(["1", "2"])
