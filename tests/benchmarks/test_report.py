"""The table of the benchmarks: its ratios, and that it is the one of the results beside it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.benchmarks import report


def measured(*rows: tuple[str, dict[str, Any], float, dict[str, Any]]) -> dict[str, Any]:
    """As pytest-benchmark writes it."""
    benchmarks = [
        {"name": f"{function}[x]", "params": parameters, "stats": {"min": seconds}, "extra_info": extra}
        for function, parameters, seconds, extra in rows
    ]
    return {"machine_info": {"python_version": "3.11", "cpu": {}}, "benchmarks": benchmarks}


def test_rates_are_divided_by_the_rate_and_times_by_the_time() -> None:
    """1,000 steps in 0.1 s beside 3,000 in 0.1 s: three times the rate. 4 s beside 2 s: twice the time."""
    reduced = report.reduce(
        measured(
            ("bench_vector", {"name": "peer", "size": 64}, 0.1, {"steps": 1_000}),
            ("bench_vector", {"name": "ours", "size": 64}, 0.1, {"steps": 3_000}),
            ("bench_vector", {"name": "ours", "size": 1024}, 0.1, {"steps": 5_000}),
            ("bench_exact", {"name": "yardstick", "rules": "soft"}, 2.0, {}),
            ("bench_exact", {"name": "value", "rules": "soft"}, 4.0, {}),
        )
    )
    text = report.timings(reduced)
    assert "| ours | 0.030 | 3.00 |" in text
    assert "| ours | 0.050 | 1.00 |" in text  # alone in its table
    assert "| value | 4,000.0 | 2.00 |" in text
    assert text.count("## ") == 3


def test_an_unknown_benchmark_is_named() -> None:
    with pytest.raises(ValueError, match=r"^bench_new\[x\] has no title; expected a function of bench_scalar, "):
        report.reduce(measured(("bench_new", {"name": "row"}, 1.0, {})))


def test_the_page_is_the_one_of_the_results() -> None:
    """An edit of one without the other would claim what was not measured: `python -m tests.benchmarks.report`."""
    assert report.README.read_text("utf8") == report.render()
