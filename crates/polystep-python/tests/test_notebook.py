"""The notebook runs from its first cell to its last, and prints what it shows."""

import ast
import contextlib
import io
import json
import pathlib

NOTEBOOK = pathlib.Path(__file__).parents[3] / "examples/tour.ipynb"


def run(source, names):
    """Runs a cell as Jupyter does: what it prints, and the value of a last expression."""
    tree = ast.parse("".join(source))
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, NOTEBOOK.name, "exec"), names)
        value = None if last is None else eval(compile(last, NOTEBOOK.name, "eval"), names)
    return printed.getvalue() + ("" if value is None else repr(value))


def shown(cell):
    """The text of the outputs that the notebook was saved with."""
    texts = [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
    return "".join(part for text in texts for part in text)


def test_the_notebook():
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    names = {}
    assert len(cells) >= 6
    for cell in cells:
        assert run(cell["source"], names) == shown(cell), "".join(cell["source"])
