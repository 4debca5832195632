"""What many seeds say of a setting: medians, ranges and intervals, never one favourable run.

The success of a run is a draw from a wide distribution, in this world often one of 0, ½ and 1. From the best of a few
seeds, or their mean, nothing follows; what can be told from :math:`n` runs is told here, with how sure it is.

**Two kinds of interval.** The bootstrap draws new samples from the runs and looks how a statistic varies. It fits any
statistic, and for few runs it is too narrow: from runs that are all alike it gives an interval of length zero, though
five successes in five are likely enough for a method that fails one time in four. For the share of runs that reach a
threshold there is an exact interval (:func:`share_interval`), which covers the truth at least as often as it says.

The estimators are those of Agarwal, Schwarzer, Castro, Courville, Bellemare (2021). This module runs on the standard
library; results depend on the ``seed`` of the resampling alone.
"""

from __future__ import annotations

import math
import random
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from keydoor._checks import IN_RANGE, Number, finite, finite_sequence, float_range, real, refuse, unit_interval, whole

__all__ = [
    "bootstrap_interval",
    "compare",
    "interquartile_mean",
    "probability_of_improvement",
    "share_interval",
    "summarise",
]


def interquartile_mean(values: Sequence[float]) -> float:
    """The mean of the middle half: a quarter of the runs, rounded down, is left out at either end.

    .. math:: \\frac{1}{n - 2k} \\sum_{i = k + 1}^{n - k} x_{(i)}, \\qquad k = \\lfloor n / 4 \\rfloor

    Less moved by outliers than the mean, less wasteful than the median.

    Args:
        values: the :math:`x_i`, finite numbers, at least one.

    Returns:
        A number between the lowest and the highest value.

    Raises:
        ValueError: no value, or one that is not finite.

    Source:
        Agarwal, Schwarzer, Castro, Courville, Bellemare (2021), *Deep Reinforcement Learning at the Edge of the
        Statistical Precipice*.

    Example:
        >>> interquartile_mean([0.0, 0.5, 1.0, 100.0])
        0.75
    """
    return _interquartile_mean(_sample(values, "values"))


def _interquartile_mean(values: Sequence[float]) -> float:
    cut = len(values) // 4
    with float_range("the interquartile mean"):
        return statistics.fmean(sorted(values)[cut : len(values) - cut])


def probability_of_improvement(first: Sequence[float], second: Sequence[float]) -> float:
    """How likely a run of one setting is better than one of another; a tie counts half.

    .. math:: P(X > Y) + \\tfrac12 P(X = Y)
              \\approx \\frac{1}{n m} \\sum_{i=1}^n \\sum_{j=1}^m \\big([x_i > y_j] + \\tfrac12 [x_i = y_j]\\big)

    Args:
        first: the :math:`x_i`, finite numbers, at least one.
        second: the :math:`y_j`, finite numbers, at least one.

    Returns:
        A number in [0, 1]; with the arguments exchanged, the rest to 1.

    Raises:
        ValueError: no value, or one that is not finite.

    Source:
        Agarwal et al. (2021); it is the statistic of Mann and Whitney (1947), divided by :math:`nm`.

    Example:
        >>> probability_of_improvement([1.0, 1.0, 0.5], [0.5, 0.0])
        0.9166666666666666
    """
    return _improvement(_sample(first, "first"), _sample(second, "second"))


def _improvement(first: Sequence[float], second: Sequence[float]) -> float:
    ordered = sorted(second)
    twice = sum(bisect_left(ordered, x) + bisect_right(ordered, x) for x in first)
    return twice / (2 * len(first) * len(second))


def bootstrap_interval(
    statistic: Callable[..., float],
    *samples: Sequence[float],
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """A percentile interval of the stratified bootstrap.

    Each sample is drawn anew from its own values, as many with replacement as there are, and the statistic is computed
    of these; the ends of the interval are quantiles of what comes out,

    .. math:: \\big[q_{(1 - c)/2},\\ q_{(1 + c)/2}\\big]

    for the level :math:`c`. Samples are strata: runs of one setting never stand in for runs of another.

    Args:
        statistic: a function of as many lists as there are samples, which returns a finite number.
        samples: each a sequence of finite numbers, at least one.
        level: in (0, 1).
        resamples: how often samples are drawn, at least 1.
        seed: seed of the drawing, a whole number.

    Returns:
        The ends of the interval, the lower one first.

    Raises:
        ValueError: an argument is outside of its range, or the statistic returns what is no finite number.

    Source:
        Efron (1979), *Bootstrap Methods: Another Look at the Jackknife*; Agarwal et al. (2021) for the strata.

    Example:
        >>> bootstrap_interval(interquartile_mean, [0.0, 0.5, 1.0, 1.0, 1.0])
        (0.16666666666666666, 1.0)
    """
    if not callable(statistic):
        refuse("statistic", statistic, "a function of samples")
    if not samples:
        refuse("samples", [], "at least one sample")
    known = [_sample(values, f"samples[{i}]") for i, values in enumerate(samples)]
    level, count = _level(level), whole(resamples, "resamples", least=1)
    generator = random.Random(whole(seed, "seed", least=0))
    found = []
    for _ in range(count):
        drawn = [generator.choices(values, k=len(values)) for values in known]
        found.append(float(finite(statistic(*drawn), "the statistic of a resample")))
    found.sort()
    return _quantile(found, (1 - level) / 2), _quantile(found, (1 + level) / 2)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between two values along the straight line, as numpy does it."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    between = ordered[below] + (place - below) * (ordered[above] - ordered[below])
    return float(finite(between, "an end of the interval", IN_RANGE))


def share_interval(successes: int, runs: int, *, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a probability, from how often something has happened.

    The lower end is the probability at which so many successes or more have the chance :math:`(1 - c)/2`,

    .. math:: \\sum_{i = k}^{n} \\binom{n}{i} p^i (1 - p)^{n - i} = \\frac{1 - c}{2},

    and the upper end is found in the same way from the failures. Whatever the probability, the interval covers it in
    at least the share :math:`c` of all experiments.

    Args:
        successes: :math:`k`, an integer in [0, ``runs``].
        runs: :math:`n`, at least 1.
        level: :math:`c`, in (0, 1).

    Returns:
        The ends of the interval, both in [0, 1], the lower one first.

    Raises:
        ValueError: an argument is outside of its range.

    Source:
        Clopper, Pearson (1934), *The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial*.

    Example:
        >>> [round(end, 3) for end in share_interval(5, 5)]
        [0.478, 1.0]
    """
    runs = whole(runs, "runs", least=1)
    successes = whole(successes, "successes", least=0)
    if successes > runs:
        refuse("successes", successes, f"at most {runs}, the number of runs")
    tail = (1 - _level(level)) / 2
    return _lower_end(successes, runs, tail), 1 - _lower_end(runs - successes, runs, tail)


def _lower_end(successes: int, runs: int, tail: float) -> float:
    if successes == 0:
        return 0.0
    # Logarithms: the coefficients of thousands of runs are beyond the range of a float.
    powers = range(successes, runs + 1)
    ways = [math.lgamma(runs + 1) - math.lgamma(i + 1) - math.lgamma(runs - i + 1) for i in powers]
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:  # until two floats are neighbours
        hit, miss = math.log(middle), math.log1p(-middle)
        chance = math.fsum(math.exp(way + i * hit + (runs - i) * miss) for way, i in zip(ways, powers, strict=True))
        low, high = (middle, high) if chance < tail else (low, middle)
    return low


def summarise(
    results: Iterable[Mapping[str, Any]],
    *,
    key: str = "success",
    threshold: float = 0.95,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """What the rows of a sweep say of each setting.

    Args:
        results: rows with ``setting``, ``seed`` and ``key``, as :func:`keydoor.sweep.sweep` returns them.
        key: what is looked at, a number in each row.
        threshold: a run reaches it if its number is not below; a number.
        level: of the intervals, in (0, 1).
        resamples: draws of the bootstrap, at least 1.
        seed: seed of the bootstrap, a whole number.

    Returns:
        A dictionary for each setting, in the order in which they first appear. ``setting`` and ``runs``, their number;
        ``median``, with ``median_interval``; ``lowest`` and ``highest``, the full range; ``interquartile_mean``, with
        ``interquartile_mean_interval``; ``reached``, the share of runs that reach the threshold, with
        ``reached_interval``. The first two intervals are of the bootstrap, the last is exact (:func:`share_interval`);
        each is a list of two ends. Of a setting with a single run nothing can be said: all but the first two are
        ``None``.

    Raises:
        ValueError: a row without its setting, seed or number, a run that comes twice, or runs of different settings
            under one name.

    Example:
        >>> rows = [{"setting": "sparse", "seed": seed, "success": x} for seed, x in enumerate([0, 0.5, 0.5, 1, 1])]
        >>> found = summarise(rows)[0]
        >>> found["runs"], found["median"], found["reached"], [round(x, 2) for x in found["reached_interval"]]
        (5, 0.5, 0.4, [0.05, 0.85])
    """
    least, level = real(threshold, "threshold"), _level(level)
    return [
        _summary(name, values, least, {"level": level, "resamples": resamples, "seed": seed})
        for name, values in _by_setting(results, key).items()
    ]


def _summary(name: str, values: list[float], threshold: Number, how: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"setting": name, "runs": len(values)}
    median_interval = list(bootstrap_interval(statistics.median, values, **how))
    mean_interval = list(bootstrap_interval(_interquartile_mean, values, **how))
    reached = sum(value >= threshold for value in values)
    figures = {
        "median": statistics.median(values),
        "median_interval": median_interval,
        "lowest": min(values),
        "highest": max(values),
        "interquartile_mean": _interquartile_mean(values),
        "interquartile_mean_interval": mean_interval,
        "reached": reached / len(values),
        "reached_interval": list(share_interval(reached, len(values), level=how["level"])),
    }
    return told | (figures if len(values) > 1 else dict.fromkeys(figures))


def compare(
    results: Iterable[Mapping[str, Any]],
    first: str,
    second: str,
    *,
    key: str = "success",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, Any]:
    """How likely a run of one setting does better than one of another, from the rows of a sweep.

    Args:
        results: rows with ``setting``, ``seed`` and ``key``.
        first: name of a setting with at least two runs.
        second: name of another.
        key: what is looked at, a number in each row.
        level: of the interval, in (0, 1).
        resamples: draws of the bootstrap, at least 1.
        seed: seed of the bootstrap, a whole number.

    Returns:
        ``first`` and ``second``; ``probability``, see :func:`probability_of_improvement`; and ``interval``, of the
        bootstrap with the two settings as its strata, a list of two ends.

    Raises:
        ValueError: as :func:`summarise`; or a setting has no two runs here.

    Example:
        >>> rows = [{"setting": s, "seed": n, "success": x} for s, xs in (("a", [1, 1]), ("b", [0, 0])) for n, x in
        ...         enumerate(xs)]
        >>> compare(rows, "a", "b")["probability"]
        1.0
    """
    known = _by_setting(results, key)
    for name, which in ((first, "first"), (second, "second")):
        if not isinstance(name, str) or len(known.get(name, ())) < 2:
            enough = ", ".join(name for name, values in known.items() if len(values) > 1)
            refuse(which, name, f"a setting with at least two runs: {enough or 'there is none'}")
    pair = known[first], known[second]
    interval = bootstrap_interval(_improvement, *pair, level=level, resamples=resamples, seed=seed)
    return {"first": first, "second": second, "probability": _improvement(*pair), "interval": list(interval)}


def _by_setting(results: Any, key: str) -> dict[str, list[float]]:
    if isinstance(results, (str, bytes, Mapping)) or not isinstance(results, Iterable):
        refuse("results", results, "a sequence of rows")
    found: dict[str, dict[int, float]] = {}
    settings: dict[str, Any] = {}
    for i, row in enumerate(results):
        where = f"results[{i}]"
        if not isinstance(row, Mapping) or not isinstance(row.get("setting"), str) or "seed" not in row:
            refuse(where, row, "a mapping with setting and seed")
        name, seed = row["setting"], whole(row["seed"], f"{where}['seed']", least=0)
        if not isinstance(key, str) or key not in row:
            refuse("key", key, f"one of the keys of {where}: {', '.join(map(str, row))}")
        runs = found.setdefault(name, {})
        if seed in runs:
            raise ValueError(f"{where} is the run {name!r}, seed {seed}, a second time; expected each run once")
        if settings.setdefault(name, row.get("settings")) != row.get("settings"):
            raise ValueError(f"{where} has other settings than the runs of {name!r} before it; expected equal ones")
        runs[seed] = float(finite(row[key], f"{where}[{key!r}]"))
    return {name: list(runs.values()) for name, runs in found.items()}


def _sample(values: Any, name: str) -> list[float]:
    known = [float(value) for value in finite_sequence(values, name)]
    if not known:
        refuse(name, [], "at least one number")
    return known


def _level(level: Any) -> float:
    number = float(unit_interval(level, "level"))
    if number in (0, 1):
        refuse("level", level, "a number in (0, 1)")
    return number
