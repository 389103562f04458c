"""The examples in the docstrings."""

import doctest
import inspect

import polystep
import pytest

NAMED = {name: getattr(polystep, name) for name in polystep.__all__}
DOCUMENTED = {name: thing for name, thing in NAMED.items() if inspect.isclass(thing) or inspect.isroutine(thing)}


def docstrings():
    yield "polystep", polystep.__doc__
    for name, thing in DOCUMENTED.items():
        yield name, inspect.getdoc(thing)
        for member, value in vars(thing).items() if inspect.isclass(thing) else ():
            if not member.startswith("_"):
                value = value.__func__ if isinstance(value, staticmethod) else value
                yield f"{name}.{member}", inspect.getdoc(value)


@pytest.mark.parametrize("name, text", list(docstrings()))
def test_examples(name, text):
    assert text, f"{name} has no docstring"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    found = []
    doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL if "^" in text else 0).run(test, out=found.append)
    assert not found, "".join(found)


def test_there_are_examples():
    functions = [name for name, thing in DOCUMENTED.items() if inspect.isroutine(thing)]
    without = [name for name in functions if ">>> " not in inspect.getdoc(NAMED[name])]
    assert not without and len(functions) >= 8, without
