"""The states of a proof as text, for the oracle: infix and prefix, parsed and printed. No SymPy, no shared code.

A term is (coefficient, exponents, raw): the coefficient an int, or for the calculator a list of summands, each a list of
ints; raw terms print ^1. A factor is a list of terms, a product a list of factors. A state is ("bare", factor) or
("sum", products). Zero is the factor of one term with the coefficient 0 and no variables.
"""
import functools
import itertools
import re


class Wrong(Exception):
    """What is wrong with a record, in a sentence."""


def need(truth, *says):
    if not truth:
        raise Wrong(" ".join(str(s) for s in says))


@functools.lru_cache(maxsize=None)
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


def once(write):
    """A term is written once, and then remembered; one with a bracket is not."""
    remembered = functools.lru_cache(maxsize=1 << 16)(write)
    return lambda term: remembered(term) if isinstance(term[0], int) else write(term)


def powers(exponents, raw, power):
    """The variables of a monomial. An exponent of 1 is written only where the term is raw."""
    return [power(i, e) if e != 1 or raw else "x%d" % i for i, e in enumerate(exponents, 1) if e]


@once
def infix_term(term):
    """With its sign; a bracket is always added."""
    coefficient, exponents, raw = term
    parts = powers(exponents, raw, lambda i, e: "x%d^%d" % (i, e))
    if not isinstance(coefficient, int):
        parts.insert(0, "[%s]" % "+".join("*".join(map(str, s)) for s in coefficient))
        return "+" + "*".join(parts)
    if abs(coefficient) != 1 or not parts:
        parts.insert(0, str(abs(coefficient)))
    return ("-" if coefficient < 0 else "+") + "*".join(parts)


def infix_factor(factor):
    text = "".join(map(infix_term, factor))
    return text[1:] if text[0] == "+" else text


def infix_product(product):
    return "*".join("(%s)" % infix_factor(f) for f in product)


def infix(state):
    return infix_factor(state[1]) if state[0] == "bare" else "+".join(map(infix_product, state[1]))


def nest(op, parts):
    """a, b, c -> op a op b c"""
    return " ".join(["%s %s" % (op, p) for p in parts[:-1]] + [parts[-1]])


def prefix_int(n):
    return ("INT- " if n < 0 else "INT+ ") + " ".join(str(abs(n)))


@once
def prefix_term(term):
    coefficient, exponents, raw = term
    parts = powers(exponents, raw, lambda i, e: "^ x%d %s" % (i, prefix_int(e)))
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


def nonzero(n, text):
    need(n != 0, "0 in a bracket in", text)
    return n


def zero_alone(factor, text):
    """Zero stands only as a whole factor, without variables."""
    need(all(t[0] != 0 for t in factor) or (len(factor) == 1 and not any(factor[0][1])), "0 is not alone in", text)
    return factor


def parse_infix(text, nvars):
    tokens = re.findall(r"\d+|x\d+|.", text)
    r = Reader(text, tokens, nvars)

    def integer():
        word = r.next()
        need(word.isdigit() and (word == "0" or word[0] != "0"), "expected a number in", text)
        return int(word)

    def signed():
        if r.peek() != "-":
            return nonzero(integer(), text)
        r.take("-")
        return -nonzero(integer(), text)

    def coefficient():
        if r.peek() != "[":
            return integer()
        r.take("[")
        summands = [[signed()]]
        while r.peek() in ("+", "*"):
            if r.next() == "+":
                summands.append([signed()])
            else:
                summands[-1].append(signed())
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
        terms = []
        while not terms or r.peek() in ("+", "-"):
            minus = r.peek() == "-"
            if minus or terms:
                r.next()
            c, exponents, raw = term()
            if minus:
                need(isinstance(c, int) and c > 0, "a minus before 0 or before a bracket in", text)
                c = -c
            terms.append((c, exponents, raw))
        return zero_alone(terms, text)

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
        sign = r.next()
        need(sign in ("INT+", "INT-"), "expected INT+ or INT- in", text)
        digits = ""
        while r.peek().isdigit():
            need(len(r.peek()) == 1, "a digit is one token in", text)
            digits += r.next()
        need(digits and (digits == "0" or digits[0] != "0"), "expected digits in", text)
        need(sign == "INT+" or digits != "0", "INT- 0 in", text)
        return int(digits) if sign == "INT+" else -int(digits)

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
                c = several("+", lambda: several("*", lambda: nonzero(integer(), text)))
                r.take("]")
            elif r.peek() in ("INT+", "INT-"):
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
        return zero_alone(several("+", term), text)

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
