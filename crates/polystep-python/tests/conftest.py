"""The tests run against the built wheel, in an environment with numpy and pytest only."""

import json
import pathlib
import subprocess
import sys

import polystep
import pytest


def pytest_configure():
    source = pathlib.Path(__file__).parents[1]
    installed = pathlib.Path(polystep.__file__).resolve()
    assert source not in installed.parents, f"{installed} is the source, not the installed wheel"


class Command:
    """The command line of the wheel, in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder

    def start(self, *arguments, **more):
        command = [sys.executable, "-m", "polystep", *arguments]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.folder, text=True, **{**pipes, **more})

    def run(self, *arguments, code=0, **more):
        """What it prints, and what it says on standard error."""
        process = self.start(*arguments, **more)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, err
        return out, err

    def records(self, *arguments):
        return [json.loads(line) for line in self.run(*arguments)[0].splitlines()]


@pytest.fixture
def command(tmp_path):
    return Command(tmp_path)
