"""The test that the two-page book names."""

from tools.sums import total


def added(n):
    return sum(range(1, n + 1)) - total(n)


def test_pairs():
    assert added(10) == 0


def test_of_nothing():
    """It speaks of total and does not call it."""
    assert "total"
