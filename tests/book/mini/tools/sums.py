"""What the proposition of the two-page book computes."""


def total(n: int) -> int:
    """The sum of the numbers from 1 to n."""
    return n * (n + 1) // 2


def unrelated() -> int:
    """What no test of the two-page book looks at."""
    return 0
