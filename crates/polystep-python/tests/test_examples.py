"""The training stream: deterministic by seed and position, shared by ranks, guarded, in any layout."""

import itertools
import os

import numpy as np
import polystep
import pytest


def texts(stream, batches):
    taken = list(itertools.islice(stream, batches))
    return [pair for batch in taken for pair in zip(batch.inputs, batch.targets)]


def test_threads_do_not_change_the_data():
    one, four = (texts(polystep.examples("small_coeff", threads=threads), 400) for threads in (1, 4))
    assert one == four and len(one) == 400 * 256


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_stream_goes_on_at_a_position(shuffle):
    # Far enough to cross into the second block of 16384 proofs.
    stream = polystep.examples("small_coeff", batch_size=9000, shuffle=shuffle, seed=3)
    batches = list(itertools.islice(stream, 10))
    assert batches[-1].position[0] >= 1
    for before, after in ((0, 1), (7, 8), (8, 9)):
        again = next(polystep.examples("small_coeff", batch_size=9000, shuffle=shuffle, seed=3, start=batches[before].position))
        assert again.inputs == batches[after].inputs and again.position == batches[after].position
        assert (again.proof == batches[after].proof).all()


def test_ranks_share_the_stream():
    whole = texts(polystep.examples("small_coeff", batch_size=1000, shuffle=False), 250)
    shares = [list(itertools.islice(polystep.examples("small_coeff", batch_size=1000, shuffle=False, rank=r, world=3), 130)) for r in range(3)]
    blocks = [set((batch.proof // 16384).tolist()) for share in shares for batch in [share[0], share[-1]]]
    assert blocks[0] == {0} and blocks[2] == {1} and blocks[4] == {2}
    together = {}
    for share in shares:
        for batch in share:
            for key, pair in zip(zip(batch.proof.tolist(), batch.step.tolist()), zip(batch.inputs, batch.targets)):
                assert key not in together, "an example in two shares"
                together[key] = pair
    order = [together[key] for key in sorted(together)]
    assert order[: len(whole)] == whole
    last = shares[1][3].position
    again = next(polystep.examples("small_coeff", batch_size=1000, shuffle=False, rank=1, world=3, start=last))
    assert again.inputs == shares[1][4].inputs


def test_layouts_hold_the_same_tokens():
    packed = next(polystep.examples("medium_terms", batch_size=50, vars=2))
    for special in (False, True):
        padded = next(polystep.examples("medium_terms", batch_size=50, vars=2, padded=True, special_tokens=special))
        assert padded.src.dtype == np.uint8 and padded.src.shape[0] == 50 and padded.src_offsets is None
        assert padded.inputs == packed.inputs and padded.targets == packed.targets
        for i in range(50):
            tokens = packed.tgt[packed.tgt_offsets[i] : packed.tgt_offsets[i + 1]]
            wanted = [polystep.BOS, *tokens, polystep.EOS] if special else tokens.tolist()
            row = padded.tgt[i]
            assert row[: len(wanted)].tolist() == wanted and (row[len(wanted) :] == polystep.PAD).all()
            assert polystep.decode(row) == packed.targets[i]
            assert polystep.encode(packed.targets[i]).tolist() == tokens.tolist()
    assert polystep.examples("small_coeff", special_tokens=True).__next__().src[-1] == polystep.EOS


def test_long_examples_are_left_out():
    batch = next(polystep.examples("large_coeff", batch_size=5000, longest=40, special_tokens=True, padded=True))
    assert batch.src.shape[1] <= 40 and batch.tgt.shape[1] <= 41


def test_no_endpoint_of_a_fixed_set_is_trained_on():
    guarded = {proof.end for split in ("test", "valid", "beam") for proof in polystep.sample("small_coeff", 1000, split=split)}
    drawn = {proof.end for proof in polystep.sample("small_coeff", 5000)}
    assert not drawn & guarded
    trained = next(polystep.examples("small_coeff", setting="endpoint", batch_size=5000))
    assert not set(trained.targets) & guarded and len(drawn) > 1000


def test_a_space_of_ones_own():
    space = polystep.Space("small_coeff", key="mine", max={"products": 2, "factors": 2})
    batch = next(polystep.examples(space, batch_size=2000, shuffle=False))
    assert batch.ids[0] == "mine:1:train:1:0"
    assert max(text.count(")+(") for text in batch.inputs) == 1


def test_a_forked_process_is_told():
    stream = polystep.examples("small_coeff")
    next(stream)
    child = os.fork()
    if child == 0:
        try:
            next(stream)
        except RuntimeError as error:
            os._exit(0 if "make it in the worker" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_worker_makes_its_own():
    """As a DataLoader does it: the parent has used the library, and the child makes a stream and lets the parent's go."""
    mine = polystep.examples("small_coeff")
    wanted = next(mine).inputs
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        found = next(polystep.examples("small_coeff")).inputs
        del mine
        os.write(writer, b"same" if found == wanted else b"other")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 10) == b"same"
