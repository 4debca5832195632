"""The success probability of memoryless policies as a polynomial: its value, its slopes, its ascent."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from keydoor.exact import belief_model
from keydoor.rules import Rules

SMALL = 1e-6  # probabilities below this are rounded to 0 once the ascent is over
TIE = Fraction(1, 10**9)  # slopes closer than this count as equal
RARE = 1e-3  # probabilities below this may be on their way to 0
STEP = 1e-6  # of the differences from which the curvature comes
DENOMINATORS = (64, 10**9)  # small ones are tried first: where the maximum is rational, they are it


def dot(first: Sequence[Any], second: Sequence[Any]) -> Any:
    return sum((x * y for x, y in zip(first, second, strict=True)), Fraction(0))


class Objective:
    r"""J as a function of rows :math:`\pi(\cdot \mid o)`, one for each observation while the task goes on."""

    def __init__(self, world: Rules, horizon: int) -> None:
        model = belief_model(world)
        self.actions = range(len(world.actions))
        self.seen = [world.start_observation]
        index = {world.start_observation: 0}
        level = {(model.start, 0): 0}
        # For each turn and node: the observation, and for each action its branches (probability, next node, reward).
        self.levels: list[list[tuple[int, list[list[tuple[Fraction, int, Fraction]]]]]] = []
        for turn in range(horizon):
            after: dict[tuple[int, int], int] = {}
            nodes = []
            for belief, seen in level:
                rows = []
                for branches in model.branches[belief]:
                    row = []
                    for branch in branches:
                        following = -1
                        if branch.belief is not None and turn + 1 < horizon:
                            if branch.observation not in index:
                                index[branch.observation] = len(self.seen)
                                self.seen.append(branch.observation)
                            place = (branch.belief, index[branch.observation])
                            following = after.setdefault(place, len(after))
                        row.append((branch.probability, following, branch.base_reward))
                    rows.append(row)
                nodes.append((seen, rows))
            self.levels.append(nodes)
            level = after
        self.float_levels = [
            [
                (seen, [[(float(p), n, float(r)) for p, n, r in row if n >= 0 or r] for row in rows])
                for seen, rows in nodes
            ]
            for nodes in self.levels
        ]

    def slopes(self, rows: Sequence[Sequence[Any]]) -> tuple[Any, list[list[Any]]]:
        r"""J and all :math:`\partial J/\partial\pi(a \mid o) = \sum_{t,\,h: o_t = o} \Pr(h)\, Q(h, a)`."""
        exact = isinstance(rows[0][0], Fraction)
        levels: Any = self.levels if exact else self.float_levels
        zero = Fraction(0) if exact else 0.0
        reach = [[zero] * len(nodes) for nodes in levels]
        reach[0][0] = zero + 1
        for turn, nodes in enumerate(levels):
            for probability, (seen, table) in zip(reach[turn], nodes, strict=True):
                if probability:
                    for chosen, row in zip(rows[seen], table, strict=True):
                        if chosen:
                            for share, following, _ in row:
                                if following >= 0:
                                    reach[turn + 1][following] += probability * chosen * share
        slopes = [[zero] * len(self.actions) for _ in self.seen]
        ahead: list[Any] = []
        for turn in reversed(range(len(levels))):
            values = []
            for probability, (seen, table) in zip(reach[turn], levels[turn], strict=True):
                value = zero
                for action, row in enumerate(table):
                    worth = zero
                    for share, following, reward in row:
                        worth += share * (reward + (ahead[following] if following >= 0 else 0))
                    if worth:
                        slopes[seen][action] += probability * worth
                        value += rows[seen][action] * worth
                values.append(value)
            ahead = values
        return ahead[0], slopes

    def climb(self, rows: list[list[float]], rounds: int) -> tuple[float, list[list[float]]]:
        """Follow the map of Baum and Eagon; steps beyond it are taken as long as they go up, too."""
        value, slopes = self.slopes(rows)
        power, earlier = 1.0, -1.0
        for number in range(rounds):
            if number % 50 == 49:
                if value - earlier < 1e-13:
                    break
                earlier = value
            trial = [_moved(row, slope, power) for row, slope in zip(rows, slopes, strict=True)]
            found, slopes_there = self.slopes(trial)
            if found < value and power > 1:
                power = 1.0
                continue
            gap = sum(max(slope) - dot(row, slope) for row, slope in zip(trial, slopes_there, strict=True))
            rows, value, slopes = trial, found, slopes_there
            power = min(power * 1.5, 1e6)
            if gap < 1e-14:
                break
        return value, rows

    def without_rare(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Actions that are on their way out, and would take thousands of rounds for it, put to 0."""
        kept = [[p if p > RARE else 0.0 for p in row] for row in rows]
        return [[p / sum(row) for p in row] for row in kept]

    def directions(self, rows: Sequence[Sequence[Any]], slopes: Sequence[Sequence[Any]]) -> list[tuple[int, int, int]]:
        """(observation, action, the last one in use): directions within the actions in use, where the policy comes."""
        found = []
        for seen, (row, slope) in enumerate(zip(rows, slopes, strict=True)):
            used = [action for action in self.actions if row[action]]
            if any(slope):
                found += [(seen, action, used[-1]) for action in used[:-1]]
        return found

    def polish(self, rows: list[list[float]]) -> tuple[float, list[list[float]]]:
        """Newton's method within the actions in use, as long as it goes up."""
        value, slopes = self.slopes(rows)
        for _ in range(20):
            directions = self.directions(rows, slopes)
            slope = [slopes[seen][more] - slopes[seen][less] for seen, more, less in directions]
            if not slope or max(map(abs, slope)) < 1e-16:
                break
            matrix = []
            for direction in directions:
                ends = [self.slopes(_shifted(rows, [direction], [sign * STEP]))[1] for sign in (1, -1)]
                up, down = ([there[s][x] - there[s][y] for s, x, y in directions] for there in ends)
                matrix.append([(x - y) / (2 * STEP) for x, y in zip(up, down, strict=True)])
            step = _solve(matrix, [-x for x in slope])
            trial = None if step is None else _shifted(rows, directions, step)
            if trial is None or min(map(min, trial)) < 0:
                break
            found, slopes_there = self.slopes(trial)
            if found < value - 1e-15:
                break
            rows, value, slopes = trial, found, slopes_there
        return value, rows

    def rounded(self, rows: Sequence[Sequence[float]]) -> list[list[Fraction]]:
        """Fractions nearby: a stationary point with small denominators if there is one, else fine ones."""
        highest = self.slopes(rows)[0]
        exact: list[list[Fraction]] = []
        for limit in DENOMINATORS:
            exact = [_row_of_fractions(row, limit) for row in rows]
            value, slopes = self.slopes(exact)
            gap = sum(max(slope) - dot(row, slope) for row, slope in zip(exact, slopes, strict=True))
            if gap == 0 and value >= Fraction(highest) - Fraction(1, 10**9):
                break
        return exact

    def strict(self, rows: Sequence[Sequence[Fraction]], slopes: Sequence[Sequence[Fraction]]) -> bool:
        """Whether the curvature is negative in all directions along which nothing is lost to first order."""
        directions = self.directions(rows, slopes)
        for seen, (row, slope) in enumerate(zip(rows, slopes, strict=True)):
            level, last = dot(row, slope), max(action for action in self.actions if row[action])
            if any(slope):  # an unused action may be as good as the ones in use: the curvature has to decide
                tied = (a for a in self.actions if not row[a] and slope[a] > level - TIE)
                directions += [(seen, action, last) for action in tied]
        step = Fraction(1, 1000)  # it may lead out of the simplex: the polynomial goes on there

        def value(*moves: tuple[int, int]) -> Fraction:
            there = [list(row) for row in rows]
            for number, sign in moves:
                seen, more, less = directions[number]
                there[seen][more] += sign * step
                there[seen][less] -= sign * step
            found: Fraction = self.slopes(there)[0]
            return found

        size = range(len(directions))
        matrix = [
            [
                float(
                    (value((i, 1), (j, 1)) - value((i, 1), (j, -1)) - value((i, -1), (j, 1)) + value((i, -1), (j, -1)))
                    / (4 * step**2)
                )
                for j in size
            ]
            for i in size
        ]
        for i in size:  # elimination: all pivots of a negative definite matrix are negative
            if matrix[i][i] >= -1e-9:
                return False
            for k in range(i + 1, len(matrix)):
                factor = matrix[k][i] / matrix[i][i]
                matrix[k] = [x - factor * y for x, y in zip(matrix[k], matrix[i], strict=True)]
        return True


def _shifted(
    rows: Sequence[Sequence[float]], directions: Sequence[tuple[int, int, int]], steps: Sequence[float]
) -> list[list[float]]:
    there = [list(row) for row in rows]
    for (seen, more, less), step in zip(directions, steps, strict=True):
        there[seen][more] += step
        there[seen][less] -= step
    return there


def _solve(matrix: list[list[float]], right: list[float]) -> list[float] | None:
    """Elimination for a handful of unknowns; ``None`` where the matrix has no inverse."""
    rows = [[*row, x] for row, x in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        if abs(rows[pivot][i]) < 1e-12:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(len(rows)):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def _moved(row: Sequence[float], slope: Sequence[float], power: float) -> list[float]:
    highest = max(slope)
    if highest <= 0:
        return list(row)
    weights = [p * (s / highest) ** power for p, s in zip(row, slope, strict=True)]
    total = sum(weights)
    return [weight / total for weight in weights] if total > 0 else list(row)


def _row_of_fractions(row: Sequence[float], limit: int) -> list[Fraction]:
    kept = [p if p > SMALL else 0.0 for p in row]
    exact = [Fraction(p / sum(kept)).limit_denominator(limit) for p in kept]
    largest = max(range(len(row)), key=lambda action: row[action])
    exact[largest] += 1 - sum(exact)
    return exact
