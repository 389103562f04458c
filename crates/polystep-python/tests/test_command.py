"""The `polystep` command of the wheel: the same program, whose children and models are found without a binary."""

import pathlib
import signal
import subprocess
import sys
import time

import polystep
import pytest

PLAN = """
evaluation.proofs = 2
expected.paper = [72.7, 98.9]
cost = { seconds_per_run = 1, seconds_per_endpoint_run = 1, seconds_per_paper_run = 1, seconds_per_evaluation = 1 }
[table]
name = "var1coarsefull"
order = 1
[fast]
model.d = 64
model.layers = 1
model.heads = 4
model.ffn = 64
model.max_positions = 256
train.batch = 4
train.steps = 3
train.valid_every = 0
train.valid_proofs = 2
train.checkpoint_steps = 5
"""


def test_reproduce_with_two_jobs(command, tmp_path):
    """Every run is trained and tested by child processes."""
    (tmp_path / "plan.toml").write_text(PLAN)
    flags = ["--table", "var1coarsefull", "--rows", "1", "--jobs", "2", "--plan", "plan.toml", "--device", "cpu", "--threads", "1"]
    out, _ = command.run("reproduce", *flags)
    assert out.startswith("var1coarsefull · recipe fast: 1 of 1 rows"), out
    ledger = (tmp_path / "results/var1coarsefull.csv").read_text().splitlines()
    assert len(ledger) == 2 and ledger[1].startswith("1,small_coeff,plain,coarse,infix,,fast,S-64,12,"), ledger
    assert (tmp_path / "runs").is_dir()


def test_prove_by_a_bundled_model(command):
    out, _ = command.run("prove", "(2*x)*(x+3)+(x+1)*(4)")
    assert "endpoint: 2*x^2+10*x+4" in out and "model " in out, out


def test_the_entry_point():
    script = pathlib.Path(sys.executable).with_name("polystep")
    said = subprocess.run([script, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["polystep", polystep.__version__]
    wrong = subprocess.run([script, "prof"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "prove" in wrong.stderr


def interrupted(process, after):
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    return out, err


def test_ctrl_c_ends_a_command(command, tmp_path):
    process = command.start("generate", "--proofs", "1000000000", "--out", "all.jsonl")
    _, err = interrupted(process, 2)
    assert process.returncode == 130 and "interrupted" in err and not list(tmp_path.iterdir())
    # A command that writes no file does not listen; the signal ends it.
    process = command.start("bench", "generate", "--proofs", "1000000000")
    interrupted(process, 2)
    assert process.returncode in (-signal.SIGINT, 130)


@pytest.mark.parametrize(
    "call",
    [
        "model.answer([f'({n}*x1)*(x1+2)+(3)' for n in range(1, 10**5)])",
        "model.answer([f'({n}*x1)*(x1+2)+(3)' for n in range(1, 10**5)], beams=5)",
        "[model.prove('(x+1)(x+2)(x+3) + (x+4)(x+5)', alone=n % 2 == 0) for n in range(10**6)]",
    ],
)
def test_ctrl_c_ends_a_question_to_a_model(call):
    """The model then answers the next one."""
    text = (
        "import polystep\n"
        "model = polystep.Model.load('large_coeff-1-coarse-infix', device='cpu', threads=1)\n"
        "print('loaded', flush=True)\n"
        f"try:\n    {call}\nexcept KeyboardInterrupt:\n    print(model.answer('(x1)+(2*x1)').output)"
    )
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "loaded\n"
    out, err = interrupted(process, 1)
    assert out == "3*x1\n", err


def test_ctrl_c_is_a_keyboard_interrupt():
    calls = [
        "polystep.sample('small_coeff', 10**12)",
        "[None for _ in polystep.examples('small_coeff', batch_size=10**8)]",
        "[polystep.check(['(x1+1)*(x1+2)+(3)'] * 10**6, ['(x1^2+3*x1+2)+(3)'] * 10**6) for _ in range(1000)]",
    ]
    for call in calls:
        text = f"import polystep\ntry:\n    {call}\nexcept KeyboardInterrupt:\n    print('caught')"
        process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = interrupted(process, 3)
        assert out == "caught\n", err
