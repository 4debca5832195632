"""What many seeds say: closed forms, every bootstrap sample enumerated, and scipy where it is installed."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keydoor.summaries import (
    bootstrap_interval,
    compare,
    interquartile_mean,
    probability_of_improvement,
    share_interval,
    summarise,
)

SUCCESSES = st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def stats() -> Any:
    """The library of others, where it is installed."""
    return pytest.importorskip("scipy.stats", reason="scipy is not installed")


def rows(**values: list[float]) -> list[dict[str, Any]]:
    """Rows of a sweep; seeds are counted from 1."""
    return [{"setting": s, "seed": n, "success": x} for s, xs in values.items() for n, x in enumerate(xs, start=1)]


# --- the middle half ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.7], 0.7),
        ([0, 1], 0.5),
        ([0, 0, 1], 1 / 3),  # a quarter of three, rounded down, is nobody
        ([9, 0, 0.5, 1], 0.75),  # 0 and 9 are left out
        ([5, 1, 2, 3, 4], 3.0),
        ([0, 0, 1, 1, 1, 1, 1, 100], 1.0),  # the lowest two and the highest two
    ],
)
def test_interquartile_mean(values: list[float], expected: float) -> None:
    assert interquartile_mean(values) == pytest.approx(expected, abs=1e-15)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_interquartile_mean_is_that_of_scipy(stats: Any, values: list[float]) -> None:
    """That of Agarwal et al. is scipy's mean trimmed by a quarter."""
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25), abs=1e-9)


def test_the_mean_is_moved_by_one_run_and_the_middle_half_is_not() -> None:
    """The foil: one run of eight that goes astray."""
    honest, astray = [1.0] * 8, [1.0] * 7 + [-1000.0]
    assert interquartile_mean(astray) == interquartile_mean(honest) == 1.0
    assert statistics.fmean(astray) < -100


# --- the probability of improvement ---------------------------------------------------------------------------------


def counted(first: list[float], second: list[float]) -> Fraction:
    """The definition, pair by pair."""
    pairs = [Fraction(x > y) + Fraction(x == y, 2) for x in first for y in second]
    return sum(pairs, Fraction(0)) / len(pairs)


@given(SUCCESSES, SUCCESSES)
@settings(deadline=None)
def test_probability_of_improvement_is_the_count_of_pairs(first: list[float], second: list[float]) -> None:
    forwards, backwards = probability_of_improvement(first, second), probability_of_improvement(second, first)
    assert forwards == float(counted(first, second))
    assert counted(first, second) + counted(second, first) == 1
    assert forwards + backwards == pytest.approx(1, abs=1e-15)
    assert probability_of_improvement(first, first) == 0.5


def test_ties_count_half() -> None:
    """The foil counts wins alone: two equal settings would both be worse than the other."""
    equal = [0.5, 1.0, 1.0]
    wins = sum(x > y for x in equal for y in equal) / 9
    assert wins == 2 / 9
    assert probability_of_improvement(equal, equal) == 0.5
    assert probability_of_improvement([1, 1], [0]) == 1
    assert probability_of_improvement([0], [1, 1]) == 0


@given(SUCCESSES, SUCCESSES)
@settings(max_examples=25, deadline=None)
def test_probability_of_improvement_is_that_of_mann_and_whitney(
    stats: Any, first: list[float], second: list[float]
) -> None:
    test = stats.mannwhitneyu(first, second, alternative="greater", method="asymptotic")
    assert probability_of_improvement(first, second) == pytest.approx(test.statistic / (len(first) * len(second)))


# --- the bootstrap --------------------------------------------------------------------------------------------------


def exact_ends(statistic: Any, samples: list[list[float]], level: float) -> tuple[float, float]:
    """The quantiles of the bootstrap's own distribution: all n^n samples of each stratum, equally likely."""
    drawn = [list(itertools.product(values, repeat=len(values))) for values in samples]
    found = sorted(float(statistic(*map(list, several))) for several in itertools.product(*drawn))
    return tuple(  # type: ignore[return-value]
        next(x for i, x in enumerate(found, start=1) if i / len(found) >= share)
        for share in ((1 - level) / 2, (1 + level) / 2)
    )


def all_of(*samples: list[float]) -> float:
    return statistics.fmean(itertools.chain(*samples))


@pytest.mark.parametrize(
    ("statistic", "samples", "level", "expected"),
    [
        (statistics.fmean, [[0, 1]], 0.95, (0, 1)),  # 0, ½, ½, 1
        (statistics.fmean, [[0, 1]], 0.4, (0.5, 0.5)),
        (statistics.fmean, [[0, 0, 1]], 0.95, (0, 1)),  # a binomial of 3 draws: 8, 12, 6 and 1 of 27
        (statistics.fmean, [[0, 0, 1]], 0.8, (0, 2 / 3)),
        (statistics.fmean, [[0, 0, 1]], 0.2, (1 / 3, 1 / 3)),
        (statistics.median, [[0, 0, 1]], 0.4, (0, 0)),  # 1 with two or three ones: 7 of 27
        (statistics.median, [[0, 0, 1]], 0.6, (0, 1)),
        (max, [[1, 2, 3]], 0.8, (2, 3)),  # 1, 7 and 19 of 27
        (probability_of_improvement, [[0, 1], [0, 1]], 0.95, (0, 1)),
        (probability_of_improvement, [[0, 1], [0, 1]], 0.5, (0.25, 0.75)),
        (all_of, [[0, 1], [5, 5]], 0.95, (2.5, 3)),  # the second stratum cannot vary
    ],
)
def test_every_bootstrap_sample_of_a_few_values(
    statistic: Any, samples: list[list[float]], level: float, expected: tuple[float, float]
) -> None:
    """Levels at which the nearest step of the exact distribution is five deviations of the drawing away or more."""
    assert exact_ends(statistic, samples, level) == pytest.approx(expected)
    found = bootstrap_interval(statistic, *samples, level=level, resamples=3000)
    assert found == pytest.approx(expected)


def test_strata_are_not_mixed() -> None:
    """The foil pools the runs of both settings: it lets one stand in for the other, and finds doubt where none is."""
    samples = [0.0, 0.0], [1.0, 1.0]
    assert bootstrap_interval(all_of, *samples) == (0.5, 0.5)
    low, high = bootstrap_interval(all_of, [0.0, 0.0, 1.0, 1.0])
    assert low < 0.5 < high


def test_interval_is_that_of_scipy(stats: Any) -> None:
    """Two bootstraps of one sample of 30 differ by the chance of the drawing alone."""
    import numpy as np

    values = [((7 * i) % 30) ** 2 / 900 for i in range(30)]
    pair = values[:14], values[14:]

    def gap(x: Any, y: Any, axis: int = -1) -> Any:
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    for own, theirs, samples in (
        (statistics.fmean, np.mean, (values,)),
        (statistics.median, np.median, (values,)),
        (lambda x, y: statistics.fmean(x) - statistics.fmean(y), gap, pair),
    ):
        expected = stats.bootstrap(
            samples, theirs, n_resamples=4000, method="percentile", confidence_level=0.9, rng=1, vectorized=True
        ).confidence_interval
        spread = expected.high - expected.low
        found = bootstrap_interval(own, *samples, level=0.9, resamples=4000, seed=1)
        assert found == pytest.approx((expected.low, expected.high), abs=spread / 10)


@pytest.mark.parametrize(
    "call",
    [
        lambda: interquartile_mean([1.7e308] * 4),
        lambda: bootstrap_interval(lambda sample: sample[0], [1.7e308, -1.7e308], resamples=2),
    ],
)
def test_a_sum_beyond_the_range_of_a_float_is_refused(call: Any) -> None:
    """Finite numbers may have no finite sum: no error of arithmetic, and no infinite end of an interval."""
    with pytest.raises(ValueError, match="expected a result within the range of a float"):
        call()


def test_a_threshold_that_no_float_can_hold() -> None:
    assert summarise(rows(a=[0.5, 1.0]), threshold=10**400)[0]["reached"] == 0.0


def test_interval_depends_on_its_seed_alone() -> None:
    values = [0.1 * i for i in range(7)]
    state = random.getstate()
    first = bootstrap_interval(statistics.fmean, values, resamples=50, seed=3)
    assert random.getstate() == state
    random.random()
    assert bootstrap_interval(statistics.fmean, values, resamples=50, seed=3) == first
    assert bootstrap_interval(statistics.fmean, values, resamples=50, seed=4) != first


# --- the share of runs ----------------------------------------------------------------------------------------------


def binomial(n: int, k: int, p: float) -> float:
    return math.comb(n, k) * p**k * (1 - p) ** (n - k)


@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_share_interval_at_its_ends(n: int) -> None:
    """All succeed: the lower end has p^n = .025. None does: the mirror image."""
    assert share_interval(n, n) == (pytest.approx(0.025 ** (1 / n), rel=1e-12), 1.0)
    assert share_interval(0, n) == (0.0, pytest.approx(1 - 0.025 ** (1 / n), rel=1e-12))


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.01, 0.99))
@settings(max_examples=50, deadline=None)
def test_share_interval_solves_its_equation(run: tuple[int, int], level: float) -> None:
    k, n = run
    low, high = share_interval(k, n, level=level)
    assert 0 <= low <= k / n <= high <= 1
    if k > 0:
        assert math.fsum(binomial(n, i, low) for i in range(k, n + 1)) == pytest.approx((1 - level) / 2, rel=1e-9)
    if k < n:
        assert math.fsum(binomial(n, i, high) for i in range(k + 1)) == pytest.approx((1 - level) / 2, rel=1e-9)


@given(st.integers(1, 2000), st.floats(0, 1))
@settings(max_examples=25, deadline=None)
def test_share_interval_is_that_of_scipy(stats: Any, n: int, share: float) -> None:
    k = round(share * n)
    expected = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
    assert share_interval(k, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_share_interval_covers_what_it_says_and_the_bootstrap_does_not() -> None:
    """Coverage without any drawing: the chance of each count, added up where its interval holds the truth.

    The foil is the percentile bootstrap of the share, here with the exact quantiles of its binomial distribution. Five
    runs of a method that succeeds nine times in ten are all successes more often than not, and then it says [1, 1].
    """
    n = 5

    def bootstrap(k: int) -> tuple[float, float]:
        steps = list(itertools.accumulate(binomial(n, i, k / n) for i in range(n + 1)))
        return tuple(next(i for i, x in enumerate(steps) if x >= q - 1e-12) / n for q in (0.025, 0.975))  # type: ignore[return-value]

    def coverage(interval: Any, p: float) -> float:
        return sum(binomial(n, k, p) for k in range(n + 1) if interval(k)[0] <= p <= interval(k)[1])

    assert min(coverage(lambda k: share_interval(k, n), p / 100) for p in range(101)) >= 0.95
    assert bootstrap(5) == (1.0, 1.0)
    assert coverage(bootstrap, 0.9) < 0.42


# --- the rows of a sweep --------------------------------------------------------------------------------------------


def test_summary_of_two_settings() -> None:
    found = summarise(rows(sparse=[0, 0.5, 0.5, 0.5, 1], potential=[1, 1, 1, 1, 0.5]))
    assert [one["setting"] for one in found] == ["sparse", "potential"]
    sparse, potential = found
    assert (sparse["runs"], sparse["median"], sparse["lowest"], sparse["highest"]) == (5, 0.5, 0, 1)
    assert sparse["interquartile_mean"] == 0.5
    assert (sparse["reached"], potential["reached"]) == (0.2, 0.8)
    assert sparse["reached_interval"] == list(share_interval(1, 5))
    assert potential["median"] == 1.0
    assert sparse["median_interval"] == list(bootstrap_interval(statistics.median, [0, 0.5, 0.5, 0.5, 1]))
    for one in found:
        for name in ("median", "interquartile_mean", "reached"):
            low, high = one[f"{name}_interval"]
            assert low <= one[name] <= high


def test_the_best_seeds_are_no_summary() -> None:
    """The foil: the mean of the best five of twenty runs, and the best run, of a method that fails mostly."""
    values = [1.0] * 5 + [0.0] * 15
    found = summarise(rows(lucky=values))[0]
    assert statistics.fmean(sorted(values)[-5:]) == max(values) == 1.0
    assert found["median"] == 0.0
    assert found["interquartile_mean"] == 0.0
    assert found["reached"] == 0.25
    assert found["reached_interval"][1] < 0.5


def test_of_one_run_nothing_is_said() -> None:
    """Its median, lowest and highest would all be that run."""
    found = summarise(rows(one=[1.0], two=[1.0, 1.0]))
    assert {name for name, value in found[0].items() if value is not None} == {"setting", "runs"}
    assert found[0].keys() == found[1].keys()
    assert found[1]["median"] == 1.0


def test_threshold_and_key() -> None:
    some = [{"setting": "a", "seed": n, "score": x} for n, x in enumerate([0.89, 0.9, 0.91])]
    assert summarise(some, key="score", threshold=0.9)[0]["reached"] == 2 / 3
    assert summarise(some, key="score")[0]["reached"] == 0
    assert summarise([]) == []


def test_comparison() -> None:
    found = compare(rows(sparse=[0, 0, 0.5, 1], potential=[1, 1, 1, 0.5]), "potential", "sparse")
    assert found["probability"] == float(counted([1, 1, 1, 0.5], [0, 0, 0.5, 1]))
    low, high = found["interval"]
    assert low < found["probability"] < high <= 1


ROW = {"setting": "a", "seed": 1, "success": 0.5}
NAN = float("nan")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interquartile_mean([]), r"values is \[\]; expected at least one number"),
        (lambda: interquartile_mean([0, NAN]), r"values\[1\] is nan"),
        (lambda: interquartile_mean("0.5"), "values is '0.5'; expected a sequence"),
        (lambda: probability_of_improvement([], [1]), "first is"),
        (lambda: probability_of_improvement([1], [math.inf]), r"second\[0\] is inf"),
        (lambda: bootstrap_interval(statistics.fmean), "samples is"),
        (lambda: bootstrap_interval("mean", [1]), "statistic is 'mean'; expected a function"),
        (lambda: bootstrap_interval(statistics.fmean, [1, True]), r"samples\[0\]\[1\] is True"),
        (lambda: bootstrap_interval(statistics.fmean, [1], level=1), r"level is 1; expected a number in \(0, 1\)"),
        (lambda: bootstrap_interval(statistics.fmean, [1], level=95), r"level is 95; expected a number in \[0, 1\]"),
        (lambda: bootstrap_interval(statistics.fmean, [1], resamples=0), "resamples is 0"),
        (lambda: bootstrap_interval(statistics.fmean, [1], seed=-1), "seed is -1"),
        (lambda: bootstrap_interval(lambda x: NAN, [1]), "the statistic of a resample is nan"),
        (lambda: share_interval(6, 5), "successes is 6; expected at most 5, the number of runs"),
        (lambda: share_interval(-1, 5), "successes is -1"),
        (lambda: share_interval(0, 0), "runs is 0"),
        (lambda: share_interval(0.5, 5), "successes is 0.5"),
        (lambda: share_interval(1, 5, level=0), "level is 0"),
        (lambda: summarise(ROW), "results is .*; expected a sequence of rows"),
        (lambda: summarise([1]), r"results\[0\] is 1; expected a mapping with setting and seed"),
        (lambda: summarise([ROW, {"seed": 1, "success": 1}]), r"results\[1\] is"),
        (lambda: summarise([{**ROW, "seed": 1.5}]), r"results\[0\]\['seed'\] is 1.5"),
        (lambda: summarise([{**ROW, "success": NAN}]), r"results\[0\]\['success'\] is nan"),
        (lambda: summarise([ROW], key="succes"), "key is 'succes'; expected one of the keys of .*: setting, seed"),
        (lambda: summarise([ROW, ROW]), r"results\[1\] is the run 'a', seed 1, a second time"),
        (lambda: summarise([{**ROW, "settings": {"delay": 0}}, {**ROW, "seed": 2, "settings": {"delay": 1}}]), "other"),
        (lambda: summarise([ROW], threshold=NAN), "threshold is nan"),
        (lambda: summarise([ROW], level=0), "level is 0"),
        (
            lambda: compare(rows(a=[0, 1], b=[1]), "a", "b"),
            "second is 'b'; expected a setting with at least two runs: a",
        ),
        (lambda: compare([], "a", "b"), "first is 'a'; .*there is none"),
    ],
)
def test_input_without_meaning(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
