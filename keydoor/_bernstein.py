"""Polynomials on the unit cube, and their largest value between two fractions.

In Bernstein form the coefficients of a polynomial on a box enclose its values, and those at the corners are values.
Halving the boxes that may still hold the maximum makes the enclosure as narrow as one likes, with fractions and so
without rounding (Garloff, 1986).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import count, pairwise, product
from math import comb, prod

Exponents = tuple[int, ...]


class Polynomial:
    """A polynomial in a fixed number of variables with fractions as coefficients."""

    def __init__(self, terms: Mapping[Exponents, Fraction | int]) -> None:
        self.terms = {powers: Fraction(c) for powers, c in terms.items() if c}

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for powers, coefficient in other.terms.items():
            total[powers] = total.get(powers, Fraction(0)) + coefficient
        return Polynomial(total)

    def __mul__(self, other: Polynomial | Fraction | int) -> Polynomial:
        if not isinstance(other, Polynomial):
            return Polynomial({powers: c * other for powers, c in self.terms.items()})
        total: dict[Exponents, Fraction] = {}
        for (first, c), (second, d) in product(self.terms.items(), other.terms.items()):
            powers = tuple(i + j for i, j in zip(first, second, strict=True))
            total[powers] = total.get(powers, Fraction(0)) + c * d
        return Polynomial(total)

    def __call__(self, *point: Fraction) -> Fraction:
        return sum(
            (c * prod(x**k for x, k in zip(point, powers, strict=True)) for powers, c in self.terms.items()),
            Fraction(0),
        )


class Box:
    """The polynomial on one box: Bernstein coefficients by their indices."""

    def __init__(self, degrees: Exponents, coefficients: dict[Exponents, Fraction]) -> None:
        self.degrees = degrees
        self.coefficients = coefficients
        self.upper = max(coefficients.values())
        corners = product(*((0, degree) for degree in degrees))
        self.lower = max(coefficients[corner] for corner in corners)

    def halves(self, axis: int) -> Iterator[Box]:
        """The same polynomial on both halves, by the algorithm of de Casteljau."""
        degree = self.degrees[axis]
        left, right = {}, {}
        others = [range(d + 1) for i, d in enumerate(self.degrees) if i != axis]
        for rest in product(*others):
            line = [self.coefficients[(*rest[:axis], i, *rest[axis:])] for i in range(degree + 1)]
            for step in range(degree + 1):
                left[(*rest[:axis], step, *rest[axis:])] = line[0]
                right[(*rest[:axis], degree - step, *rest[axis:])] = line[-1]
                line = [(x + y) / 2 for x, y in pairwise(line)]
        yield Box(self.degrees, left)
        yield Box(self.degrees, right)


def enclose_maximum(polynomial: Polynomial, variables: int, width: Fraction) -> tuple[Fraction, Fraction]:
    """Two fractions no further apart than ``width``, between which the maximum on the unit cube lies."""
    degrees = tuple(max((powers[i] for powers in polynomial.terms), default=0) for i in range(variables))
    coefficients = {
        index: sum(
            (
                c * prod(Fraction(comb(i, k), comb(d, k)) for i, k, d in zip(index, powers, degrees, strict=True))
                for powers, c in polynomial.terms.items()
                if all(k <= i for k, i in zip(powers, index, strict=True))
            ),
            Fraction(0),
        )
        for index in product(*(range(d + 1) for d in degrees))
    }
    order = count()
    box = Box(degrees, coefficients)
    lower = box.lower
    queue = [(-box.upper, next(order), 0, box)]
    while -queue[0][0] - lower > width:
        _, _, axis, box = heapq.heappop(queue)
        for half in box.halves(axis):
            lower = max(lower, half.lower)
            if half.upper > lower:
                heapq.heappush(queue, (-half.upper, next(order), (axis + 1) % variables, half))
        if not queue:  # every box is at most the value found
            return lower, lower
    return lower, -queue[0][0]
