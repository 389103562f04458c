"""The states of a proof as text, for the oracle: infix and prefix, parsed and printed. No SymPy, no shared code.

A term is (coefficient, exponents, raw): the coefficient an int, or for the calculator a list of summands, each a list of
ints; raw terms print ^1. A factor is a list of terms, a product a list of factors. A state is ("bare", factor) or
("sum", products).
"""
import itertools
import re


class Wrong(Exception):
    """What is wrong with a record, in a sentence."""


def need(truth, *says):
    if not truth:
        raise Wrong(" ".join(str(s) for s in says))


def order(exponents):
    """Total degree descending, fewer variables first, then the higher exponent of x1, x2, ... first."""
    return (-sum(exponents), sum(1 for e in exponents if e), tuple(-e for e in exponents))


def number(coefficient):
    if isinstance(coefficient, int):
        return coefficient
    return sum(product_of(summand) for summand in coefficient)


def product_of(numbers):
    result = 1
    for n in numbers:
        result *= n
    return result


def infix_term(term):
    coefficient, exponents, raw = term
    parts = []
    for i, e in enumerate(exponents):
        if e:
            parts.append("x%d" % (i + 1) if e == 1 and not raw else "x%d^%d" % (i + 1, e))
    if not isinstance(coefficient, int):
        parts.insert(0, "[%s]" % "+".join("*".join(map(str, s)) for s in coefficient))
    elif coefficient != 1 or not parts:
        parts.insert(0, str(coefficient))
    return "*".join(parts)


def infix_factor(factor):
    return "+".join(map(infix_term, factor))


def infix_product(product):
    return "*".join("(%s)" % infix_factor(f) for f in product)


def infix(state):
    return infix_factor(state[1]) if state[0] == "bare" else "+".join(map(infix_product, state[1]))


def nest(op, parts):
    """a, b, c -> op a op b c"""
    return " ".join(["%s %s" % (op, p) for p in parts[:-1]] + [parts[-1]])


def prefix_int(n):
    return "INT+ " + " ".join(str(n))


def prefix_term(term):
    coefficient, exponents, raw = term
    parts = []
    for i, e in enumerate(exponents):
        if e:
            parts.append("x%d" % (i + 1) if e == 1 and not raw else "^ x%d %s" % (i + 1, prefix_int(e)))
    if not isinstance(coefficient, int):
        parts.insert(0, "[ %s ]" % nest("+", [nest("*", list(map(prefix_int, s))) for s in coefficient]))
    elif coefficient != 1 or not parts:
        parts.insert(0, prefix_int(coefficient))
    return nest("*", parts)


def prefix_factor(factor):
    return nest("+", list(map(prefix_term, factor)))


def prefix(state):
    if state[0] == "bare":
        return prefix_factor(state[1])
    if len(state[1]) == 1 and len(state[1][0]) == 1:
        return "*F " + prefix_factor(state[1][0][0])
    return nest("+P", [nest("*F", list(map(prefix_factor, p))) for p in state[1]])


PRINT = {"infix": infix, "prefix": prefix}


class Reader:
    """Tokens with a position; both parsers stand on it."""

    def __init__(self, text, tokens, nvars):
        self.text, self.tokens, self.at, self.nvars = text, tokens, 0, nvars

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def take(self, token):
        got = self.next()
        need(got == token, "expected", token, "but found", repr(got), "in", self.text)

    def done(self):
        need(self.at == len(self.tokens), "text after the end of", self.text)

    def variable(self):
        name = self.next()
        need(re.fullmatch(r"x[1-8]", name), "expected a variable, found", repr(name), "in", self.text)
        i = int(name[1:]) - 1
        need(i < self.nvars, "more variables than vars in", self.text)
        return i


def parse_infix(text, nvars):
    tokens = re.findall(r"\d+|x\d+|.", text)
    r = Reader(text, tokens, nvars)

    def integer():
        word = r.next()
        need(word.isdigit() and (word == "0" or word[0] != "0"), "expected a number in", text)
        return int(word)

    def coefficient():
        if r.peek() != "[":
            return integer()
        r.take("[")
        summands = [[integer()]]
        while r.peek() in ("+", "*"):
            if r.next() == "+":
                summands.append([integer()])
            else:
                summands[-1].append(integer())
        r.take("]")
        return summands

    def term():
        exponents, c, raw = [0] * nvars, 1, False
        if r.peek() == "[" or r.peek().isdigit():
            c = coefficient()
            if r.peek() != "*" or not r.tokens[r.at + 1].startswith("x"):
                return (c, tuple(exponents), raw)
            r.take("*")
        while True:
            i = r.variable()
            e = 1
            if r.peek() == "^":
                r.take("^")
                e = integer()
                raw = raw or e == 1
            need(e > 0 and exponents[i] == 0, "a variable twice, or with exponent 0, in", text)
            exponents[i] = e
            if r.peek() != "*":
                return (c, tuple(exponents), raw)
            r.take("*")

    def factor():
        terms = [term()]
        while r.peek() == "+":
            r.take("+")
            terms.append(term())
        return terms

    if not text.startswith("("):
        state = ("bare", factor())
    else:
        products = [[]]
        while True:
            r.take("(")
            products[-1].append(factor())
            r.take(")")
            if r.peek() == "+":
                products.append([])
            elif r.peek() != "*":
                break
            r.next()
        state = ("sum", products)
    r.done()
    return state


def parse_prefix(text, nvars):
    r = Reader(text, text.split(" "), nvars)

    def integer():
        r.take("INT+")
        digits = ""
        while r.peek().isdigit():
            need(len(r.peek()) == 1, "a digit is one token in", text)
            digits += r.next()
        need(digits and (digits == "0" or digits[0] != "0"), "expected digits in", text)
        return int(digits)

    def several(op, part):
        parts = []
        while r.peek() == op:
            r.take(op)
            parts.append(part())
        return parts + [part()]

    def term():
        exponents, c, raw = [0] * nvars, 1, False
        for k in itertools.count():
            more = r.peek() == "*"
            if more:
                r.take("*")
            if r.peek() == "[":
                need(k == 0, "a coefficient after a variable in", text)
                r.take("[")
                c = several("+", lambda: several("*", integer))
                r.take("]")
            elif r.peek() == "INT+":
                need(k == 0, "a coefficient after a variable in", text)
                c = integer()
            else:
                power = r.peek() == "^"
                if power:
                    r.take("^")
                i = r.variable()
                e = integer() if power else 1
                raw = raw or (power and e == 1)
                need(e > 0 and exponents[i] == 0, "a variable twice, or with exponent 0, in", text)
                exponents[i] = e
            if not more:
                return (c, tuple(exponents), raw)

    def factor():
        return several("+", term)

    def product():
        return several("*F", factor)

    if r.peek() == "+P":
        state = ("sum", several("+P", product))
    elif r.peek() == "*F":
        r.take("*F")
        first = factor()
        state = ("sum", [[first] + (product() if r.at < len(r.tokens) else [])])
    else:
        state = ("bare", factor())
    r.done()
    return state


PARSE = {"infix": parse_infix, "prefix": parse_prefix}
