"""How fast the package is here. It prints a table, and compares with `polystep bench generate` in the same run.

    python examples/speed.py

With PyTorch installed it also compares a training step that is fed by `polystep.examples` with one that is fed by tensors in memory.
"""

import itertools
import json
import subprocess
import sys
import time

import polystep

SECONDS = 4.0


def rate(stream):
    """Examples per second, after the threads have started."""
    next(stream)
    began, examples = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        examples += len(next(stream))
    return examples / (time.perf_counter() - began)


def bench():
    command = [sys.executable, "-m", "polystep", "bench", "generate", "--config", "large_coeff", "--proofs", "2000000", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"][-1]["steps_per_s"]


def checked():
    batch = next(polystep.examples("large_coeff", batch_size=200_000))
    inputs, outputs = batch.inputs, batch.targets
    began = time.perf_counter()
    found = polystep.check(inputs, outputs)
    assert all(found)
    return len(found) / (time.perf_counter() - began)


def row(what, value, unit, note=""):
    print(f"| {what} | {value:,.0f} {unit} | {note} |".replace(",", " "), flush=True)


def main():
    print("large_coeff, one variable, plain, coarse, infix, guarded\n\n| | | |\n|---|---|---|")
    made = bench()
    row("`polystep bench generate`, not guarded, thrown away", made, "steps/s")
    for what, keywords in (
        ("packed, shuffled", {}),
        ("packed, in order", {"shuffle": False}),
        ("padded, with special tokens", {"padded": True, "special_tokens": True}),
    ):
        fast = rate(polystep.examples("large_coeff", batch_size=65536, **keywords))
        row(f"`polystep.examples`, {what}", fast, "steps/s", f"{100 * fast / made:.0f} % of bench")
    row("`polystep.check`, in batches, all right", checked(), "steps/s")
    try:
        import torch
    except ImportError:
        print("\nPyTorch is not installed: training is not compared")
        return
    fed(torch)


def fed(torch):
    """Medians of many short turns, so that both meet the same machine."""
    from train_transformer import Examples, Simplifier, learn

    torch.manual_seed(1)
    model = Simplifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    stream = iter(Examples(128))
    memory = itertools.cycle(list(itertools.islice(stream, 200)))
    for _ in range(20):
        learn(model, optimizer, *next(memory))

    def turn(source, steps=20):
        began = time.perf_counter()
        tokens = 0
        for _ in range(steps):
            src, tgt = next(source)
            learn(model, optimizer, src, tgt)
            tokens += src.numel() + tgt.numel()
        return tokens / (time.perf_counter() - began)

    turns = [(turn(memory), turn(stream)) for _ in range(15)]
    from_memory, from_stream = (sorted(times)[len(turns) // 2] for times in zip(*turns))
    row("PyTorch training fed by tensors in memory", from_memory, "tokens/s")
    row("PyTorch training fed by `polystep.examples`", from_stream, "tokens/s", f"{100 * from_stream / from_memory:.1f} %")


if __name__ == "__main__":
    main()
