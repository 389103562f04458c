"""The oracle's algebra: polynomials of SymPy or of FLINT, behind the same few names. No shared code with the Rust."""
import functools

import sympy

from oracle_language import number, order

class SymPy:
    """Polynomials by sympy.polys.rings; a text by SymPy's own parser and sympy.expand."""

    version = "SymPy " + sympy.__version__

    def __init__(self, nvars):
        names = ["x%d" % (i + 1) for i in range(nvars)]
        self.nvars, self.ring, self.gens = nvars, sympy.ring(names, sympy.ZZ)[0], sympy.symbols(names)
        self.zero, self.one = self.ring.zero, self.ring.one

    def from_dict(self, terms):
        return self.ring.from_dict({m: c for m, c in terms.items() if c})

    def terms(self, poly):
        return {m: int(c) for m, c in poly.items()}

    def expanded(self, text):
        e = sympy.expand(sympy.sympify(text.replace("^", "**"), locals={str(g): g for g in self.gens}))
        return self.from_dict({m: int(c) for m, c in sympy.Poly(e, *self.gens).terms()})


class Flint:
    """Polynomials by python-flint's fmpz_mpoly; a text by Python's own parser, on FLINT's generators."""

    def __init__(self, nvars):
        import flint
        names = ["x%d" % (i + 1) for i in range(nvars)]
        Flint.version = "python-flint " + flint.__version__
        self.nvars, self.ring = nvars, flint.fmpz_mpoly_ctx.get(names, flint.Ordering.lex)
        self.zero, self.one = self.from_dict({}), self.from_dict({(0,) * nvars: 1})
        self.gens = dict(zip(names, self.ring.gens()), __builtins__={})

    def from_dict(self, terms):
        return self.ring.from_dict(terms)

    def terms(self, poly):
        return {m: int(c) for m, c in poly.to_dict().items()}

    def expanded(self, text):
        return self.zero + eval(text.replace("^", "**"), self.gens)  # a text of our own parser: digits, x1 to x8, + - * ( )


@functools.lru_cache(maxsize=None)
def algebra_of(name, nvars):
    return {"sympy": SymPy, "flint": Flint}[name](nvars)


def collect(factor, algebra):
    merged = {}
    for c, exponents, _ in factor:
        merged[exponents] = merged.get(exponents, 0) + number(c)
    return algebra.from_dict(merged)


def value(state, algebra):
    """The polynomial a state stands for."""
    if state[0] == "bare":
        return collect(state[1], algebra)
    total = algebra.zero
    for product in state[1]:
        p = algebra.one
        for factor in product:
            p = p * collect(factor, algebra)
        total = total + p
    return total


def normal(poly, algebra):
    """A polynomial as a factor in normal form."""
    terms = algebra.terms(poly)
    return [(terms[m], m, False) for m in sorted(terms, key=order)] or [(0, (0,) * algebra.nvars, False)]
