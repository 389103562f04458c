"""The package: its types, its models, and the CPUs that it refuses."""

import ast
import importlib.metadata
import inspect
import pathlib
import subprocess
import sys

import polystep
import pytest
from polystep._cpu import check_cpu

FOLDER = pathlib.Path(polystep.__file__).parent


def test_it_is_typed():
    assert (FOLDER / "py.typed").exists()
    stub = ast.parse((FOLDER / "_native.pyi").read_text())
    typed = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    constants = {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}
    assert set(polystep.__all__) <= set(typed) | constants

    def parameters(node):
        arguments = node.args
        return [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs if a.arg not in ("self", "cls")]

    for name, node in typed.items():
        thing = getattr(polystep._native, name, None)
        if isinstance(node, ast.FunctionDef):
            taken = inspect.signature(thing).parameters.values()
            assert parameters(node) == [p.name for p in taken if p.kind is not p.VAR_KEYWORD], name
        elif thing is not None:
            members = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
            public = {member for member in vars(thing) if not member.startswith("_")}
            assert public == {member for member in members if not member.startswith("_")}, name


def test_the_version_is_that_of_the_package():
    assert importlib.metadata.version("polystep") == polystep.__version__
    assert importlib.metadata.requires("polystep") == ["numpy>=1.23"]


def test_a_cpu_without_avx2_is_refused(tmp_path):
    old = tmp_path / "cpuinfo"
    old.write_text("processor\t: 0\nflags\t\t: fpu sse sse2 ssse3 sse4_2 avx\n")
    with pytest.raises(ImportError, match="AVX2 and FMA.*no avx2, fma"):
        check_cpu(str(old))
    check_cpu()
    check_cpu(str(tmp_path / "nothing"))


def test_the_cpu_is_checked_before_the_library_is_loaded(tmp_path):
    """In a fresh interpreter whose CPU is too old, the import fails with a sentence, and the library is never loaded."""
    text = (
        "import builtins, sys\n"
        "real = builtins.open\n"
        "builtins.open = lambda file, *a, **k: real('cpuinfo' if file == '/proc/cpuinfo' else file, *a, **k)\n"
        "try:\n    import polystep\nexcept ImportError as error:\n    print(error, 'polystep._native' in sys.modules)\n"
    )
    (tmp_path / "cpuinfo").write_text("flags\t\t: fpu sse2\n")
    said = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True).stdout
    assert said.startswith("polystep needs an x86-64 CPU with AVX2") and said.endswith("False\n"), said
