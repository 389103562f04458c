"""Transformers that simplify polynomials step by step: the sampler, the checker, the prover, scoring, and models.

>>> import polystep
>>> polystep.prove("(x+1)(x+2) + 3x").end
'x1^2+6*x1+2'
>>> polystep.check("(x1)+(2*x1)", "4*x1").reason
'In the sumstep of all products, the polynomial became another one: the coefficient of x1 should be 3, not 4.'
>>> batch = next(polystep.examples("large_coeff", batch_size=256))
>>> len(batch)
256

`python -m polystep`, or `polystep` in a shell, is the command line.
"""

from ._cpu import check_cpu

check_cpu()

from ._native import (  # noqa: E402 (the CPU is checked before the compiled code is loaded)
    BOS,
    EOS,
    KINDS,
    PAD,
    VOCABULARY,
    Answer,
    Batch,
    Check,
    ExampleStream,
    Model,
    ModelProof,
    ModelStep,
    Proof,
    Space,
    Step,
    Task,
    __version__,
    check,
    decode,
    encode,
    examples,
    fixed_set,
    prove,
    sample,
    score,
)

__all__ = [
    "BOS",
    "EOS",
    "KINDS",
    "PAD",
    "VOCABULARY",
    "Answer",
    "Batch",
    "Check",
    "ExampleStream",
    "Model",
    "ModelProof",
    "ModelStep",
    "Proof",
    "Space",
    "Step",
    "Task",
    "__version__",
    "check",
    "decode",
    "encode",
    "examples",
    "fixed_set",
    "prove",
    "sample",
    "score",
]
