"""The types of polystep's compiled part. What a function does is in its docstring: `help(polystep.examples)`."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, final, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict, Unpack

__version__: str
PAD: int
BOS: int
EOS: int
VOCABULARY: list[str]
KINDS: list[str]

Setting = Literal["plain", "calculator", "annotated", "endpoint", "arithmetic"]
Notation = Literal["infix", "prefix"]
Order = Literal["paper", "grlex"]
Split = Literal["train", "valid", "test", "beam"]
FixedSplit = Literal["valid", "test", "beam"]
Kind = Literal["facstep", "mulstep", "sumstep", "markstep", "endpoint", "add", "mul"]
Verdict = Literal["exact", "same value", "wrong value", "malformed"]
Device = Literal["auto", "cpu", "cuda"]

class WritingKeywords(TypedDict, total=False):
    setting: Setting
    granularity: str
    notation: Notation
    order: Order
    ones: bool

class TaskKeywords(WritingKeywords, total=False):
    vars: int

@final
class Space:
    def __new__(
        cls,
        base: str = "medium_coeff",
        /,
        *,
        key: str = ...,
        coeff: Mapping[str, int] = ...,
        degree: Mapping[str, int] = ...,
        terms: Mapping[str, int] = ...,
        max: Mapping[str, int] = ...,
        min: Mapping[str, int] = ...,
        vars_prod: int = ...,
        vars_fac: int = ...,
        retry: Literal["factor", "product", "polynomial"] = ...,
        variables: Literal["all", "uniform"] = ...,
    ) -> Space: ...
    @staticmethod
    def from_toml(text: str) -> Space: ...
    @property
    def key(self) -> str: ...
    @property
    def caps(self) -> dict[str, Any]: ...
    def __hash__(self) -> int: ...

@final
class Task:
    def __new__(cls, space: Task | Space | str = ..., /, **keywords: Unpack[TaskKeywords]) -> Task: ...
    @property
    def space(self) -> Space: ...
    @property
    def vars(self) -> int: ...
    @property
    def setting(self) -> Setting: ...
    @property
    def granularity(self) -> str: ...
    @property
    def notation(self) -> Notation: ...
    def __hash__(self) -> int: ...

@final
class Step:
    @property
    def kind(self) -> Kind: ...
    @property
    def input(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def next(self) -> str | None: ...

@final
class Proof:
    @property
    def id(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def start(self) -> str: ...
    @property
    def end(self) -> str: ...
    @property
    def steps(self) -> list[Step]: ...
    def json(self) -> str: ...
    def __len__(self) -> int: ...

@final
class Batch:
    @property
    def src(self) -> NDArray[np.uint8]: ...
    @property
    def tgt(self) -> NDArray[np.uint8]: ...
    @property
    def src_offsets(self) -> NDArray[np.int64] | None: ...
    @property
    def tgt_offsets(self) -> NDArray[np.int64] | None: ...
    @property
    def kind(self) -> NDArray[np.uint8]: ...
    @property
    def proof(self) -> NDArray[np.uint64]: ...
    @property
    def step(self) -> NDArray[np.uint16]: ...
    @property
    def position(self) -> tuple[int, int]: ...
    @property
    def inputs(self) -> list[str]: ...
    @property
    def targets(self) -> list[str]: ...
    @property
    def kinds(self) -> list[Kind]: ...
    @property
    def ids(self) -> list[str]: ...
    def records(
        self,
        answers: Sequence[str] | Sequence[Sequence[str]],
        logprobs: Sequence[float] | Sequence[Sequence[float]] | None = None,
    ) -> list[dict[str, Any]]: ...
    def __len__(self) -> int: ...

@final
class ExampleStream:
    def __iter__(self) -> ExampleStream: ...
    def __next__(self) -> Batch: ...

@final
class Check:
    @property
    def verdict(self) -> Verdict: ...
    @property
    def expected(self) -> Kind | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def symbolic(self) -> bool: ...
    def __bool__(self) -> bool: ...

def sample(
    task: Task | Space | str,
    n: int = 1,
    *,
    first: int = 0,
    seed: int | None = None,
    split: Split = "train",
    **keywords: Unpack[TaskKeywords],
) -> list[Proof]: ...
def examples(
    task: Task | Space | str,
    *,
    batch_size: int = 256,
    padded: bool = False,
    special_tokens: bool = False,
    shuffle: bool = True,
    longest: int | None = None,
    seed: int = 1,
    start: tuple[int, int] = (0, 0),
    rank: int = 0,
    world: int = 1,
    threads: int | None = None,
    **keywords: Unpack[TaskKeywords],
) -> ExampleStream: ...
def fixed_set(
    task: Task | Space | str,
    split: FixedSplit = "test",
    *,
    proofs: int | None = None,
    padded: bool = False,
    special_tokens: bool = False,
    **keywords: Unpack[TaskKeywords],
) -> Batch: ...
def prove(expression: str, **keywords: Unpack[WritingKeywords]) -> Proof: ...
@overload
def check(input: str, output: str, **keywords: Unpack[WritingKeywords]) -> Check: ...
@overload
def check(
    input: Sequence[str], output: Sequence[str], **keywords: Unpack[WritingKeywords]
) -> list[Check]: ...
def score(
    records: str | PathLike[str] | Iterable[Mapping[str, Any]], **keywords: Unpack[WritingKeywords]
) -> dict[str, Any]: ...
def encode(text: str) -> NDArray[np.uint8]: ...
def decode(tokens: NDArray[np.uint8] | Sequence[int], notation: Notation = "infix") -> str: ...
def main(arguments: list[str], command: list[str], folder: str) -> int: ...
