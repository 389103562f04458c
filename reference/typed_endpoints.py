"""The endpoints of crates/polystep-core/tests/typed/inputs.md, computed by SymPy from the typed text.

The reader of typed text in this file shares no code with the Rust. It turns the text into a Python expression, and SymPy
expands it. Only the rule for names and the term order are written a second time here, from their description.

    pip install sympy==1.14.0
    python3 reference/typed_endpoints.py            # compares every endpoint in the file with SymPy's
    python3 reference/typed_endpoints.py --write    # writes SymPy's endpoints into the file

Last run: 2026-11-16, SymPy 1.14.0, Python 3.11: 151 endpoints, 0 wrong.
"""

import re
import sys
import unicodedata
from pathlib import Path

import sympy

INPUTS = Path(__file__).parent.parent / "crates/polystep-core/tests/typed/inputs.md"
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
VARIABLES = sympy.symbols("x1:9")

TOKEN = re.compile(
    r"(?P<power>(?:\^|\*\*)\s*(?:\{\s*\d+\s*\}|\(\s*\d+\s*\)|\d+))"
    r"|(?P<name>[^\W\d_](?:_\{\s*\d+\s*\}|_?\d+)?)"
    r"|(?P<number>\d+)"
    r"|(?P<open>\()"
    r"|(?P<close>\))"
    r"|(?P<sign>[-+*])"
    r"|(?P<blank>\s+)"
)


def plain(text: str) -> str:
    """The text in ASCII spelling, but for Greek letters."""
    text = text.strip()
    for around in [r"\$\$(.*)\$\$", r"\$(.*)\$", r"\\\((.*)\\\)", r"\\\[(.*)\\\]"]:
        if match := re.fullmatch(around, text):
            text = match[1]
            break
    text = re.sub(f"[{SUPERSCRIPTS}]+", lambda m: "^" + "".join(str(SUPERSCRIPTS.index(c)) for c in m[0]) + " ", text)
    text = re.sub(f"[{SUBSCRIPTS}]", lambda m: str(SUBSCRIPTS.index(m[0])), text)
    text = re.sub(r"\\(left|right|bigl|bigr)(?![a-z])|\\[,;:!]", " ", text)
    text = re.sub(r"\\(cdot|times)(?![a-z])|[·×]", "*", text)
    text = re.sub(r"\\(alpha|beta)", lambda m: {"alpha": "α", "beta": "β"}[m[1]], text)
    text = re.sub("[−–]", "-", text)
    return unicodedata.normalize("NFKC", text).replace("[", "(").replace("]", ")")


def tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"cannot read {text!r} at {at}")
        if match.lastgroup != "blank":
            found.append((match.lastgroup, match[0]))
        at = match.end()
    return found


def name_of(text: str) -> tuple[str, int]:
    """The letter and the index; -1 stands for no index."""
    digits = re.sub(r"\D", "", text[1:])
    return text[0], int(digits) if digits else -1


def variables(names: set[tuple[str, int]]) -> dict[tuple[str, int], sympy.Symbol]:
    """If all names are x1 to x8, they keep their numbers; else they are sorted by letter, then by index."""
    letters = {letter for letter, _ in names}
    if letters in ({"x"}, {"X"}) and all(1 <= index <= 8 for _, index in names):
        return {name: VARIABLES[name[1] - 1] for name in names}
    ordered = sorted(names, key=lambda n: (n[0].lower(), n[0], n[1]))
    return dict(zip(ordered, VARIABLES))


def expression(text: str) -> sympy.Expr:
    found = tokens(plain(text))
    symbols = variables({name_of(t) for kind, t in found if kind == "name"})
    python, last = [], None
    for kind, token in found:
        if kind in ("name", "number", "open") and last in ("name", "number", "close", "power"):
            python.append("*")
        if kind == "name":
            python.append(str(symbols[name_of(token)]))
        elif kind == "number":
            python.append(f"Integer({token})")
        elif kind == "power":
            python.append("**" + re.sub(r"\D", "", token))
        else:
            python.append(token)
        last = kind
    names = {str(v): v for v in VARIABLES} | {"Integer": sympy.Integer}
    return sympy.sympify(eval("".join(python), {"__builtins__": {}}, names))  # the input is our own file


def endpoint(text: str) -> str:
    """The expanded expression in the strict signed infix language, in the term order of the paper."""
    poly = sympy.Poly(sympy.expand(expression(text)), *VARIABLES)
    if poly.is_zero:
        return "0"

    def order(term):
        exponents = term[0]
        return -sum(exponents), sum(e > 0 for e in exponents), [-e for e in exponents]

    written = ""
    for exponents, coefficient in sorted(poly.terms(), key=order):
        powers = [f"x{i + 1}" + (f"^{e}" if e > 1 else "") for i, e in enumerate(exponents) if e]
        number = [str(abs(coefficient))] if abs(coefficient) != 1 or not powers else []
        sign = "-" if coefficient < 0 else "+" if written else ""
        written += sign + "*".join(number + powers)
    return written


def main() -> None:
    write = "--write" in sys.argv
    lines, typed, cases, wrong = INPUTS.read_text().split("\n"), None, 0, 0
    for i, line in enumerate(lines):
        label, text = line[:10].strip(), line[10:]
        if label == "typed":
            typed = text
        elif label == "endpoint" and typed is not None:
            cases += 1
            right = endpoint(typed)
            if text != right and not write:
                wrong += 1
                print(f"{typed}: the file has {text}, SymPy has {right}")
            lines[i] = f"endpoint  {right}"
            typed = None
    if write:
        INPUTS.write_text("\n".join(lines))
    print(f"SymPy {sympy.__version__}: {cases} endpoints, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
