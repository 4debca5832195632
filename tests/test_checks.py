"""The checks of arguments: what passes, what is refused, and that the message says where."""

import math
from collections import OrderedDict, deque
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import pytest

from keydoor import _checks

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")
torch = pytest.importorskip("torch")

BIGGEST = 1.7976931348623157e308  # the largest float


@pytest.mark.parametrize(
    "value", [0, -3, 0.5, -0.0, Fraction(1, 3), np.float32(0.5), np.int64(7), torch.tensor(0.25), BIGGEST]
)
def test_a_finite_number_comes_back_as_a_plain_number_of_equal_value(value):
    result = _checks.finite(value, "x")
    assert type(result) in (int, float, Fraction)
    assert result == value


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float32("nan"),
        np.longdouble("inf"),
        torch.tensor(math.nan),
        None,
        "1",
        "nan",
        True,
        np.True_,
        1j,
        Decimal(1),
        [1.0],
        10**400,
        Fraction(-(10**400), 3),
    ],
    ids=repr,
)
def test_what_is_not_a_finite_number_is_refused_with_its_name(value):
    with pytest.raises(ValueError, match=r"^x\[3\] is .*; expected a finite number$"):
        _checks.finite(value, "x[3]")


def test_long_double_becomes_a_float():
    """``numpy.longdouble.item()`` returns itself; its infinity once passed a check that looked at floats only."""
    assert type(_checks.real(np.longdouble("0.5"), "x")) is float


@pytest.mark.parametrize("column", [np.ones((3, 1)), torch.ones(3, 1), np.ones((0, 3)), pd.DataFrame({0: [5.0, 6.0]})])
def test_a_table_is_not_a_sequence_of_numbers(column):
    """Each row of (n, 1) has an ``item()``; no rows would be the empty sequence; a DataFrame iterates over its names.

    The column named 0 of the last one once passed for the one number 0.
    """
    with pytest.raises(ValueError, match=r"column is .*; expected a sequence, of one dimension"):
        _checks.finite_sequence(column, "column")
    with pytest.raises(ValueError, match=r"column\[0\]"):  # the same rows in a list
        _checks.finite_sequence([np.ones((1, 1))], "column")


@pytest.mark.parametrize(
    "value", [np.timedelta64(5, "ns"), np.timedelta64(5, "s"), np.datetime64(5, "ns"), np.ma.masked], ids=repr
)
def test_durations_dates_and_masked_entries_are_no_numbers(value):
    """To numpy a ``timedelta64`` is an integer, its ``item()`` a count of nanoseconds; that of a masked entry is 0."""
    assert isinstance(value, np.signedinteger) or value.item() is not None  # the foils
    for check in (_checks.real, _checks.finite, _checks.unit_interval, _checks.flag):
        with pytest.raises(ValueError, match=r"^x is "):
            check(value, "x")
    with pytest.raises(ValueError, match=r"^x is .*; expected an integer not below 0$"):
        _checks.whole(value, "x", least=0)
    with pytest.raises(ValueError, match=r"^x\[1\] is "):
        _checks.finite_sequence(np.ma.array([1.0, 2.0], mask=[0, 1]), "x")


class Silent:
    def __repr__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize("value", [10**5000, Fraction(10**5000, 3), Silent(), [Silent()]], ids=["int", "F", "o", "l"])
def test_a_value_that_has_no_text_is_refused_all_the_same(value):
    """Python makes no text of an integer of more than 4300 digits, and its message named neither argument nor rule."""
    with pytest.raises((ValueError, RuntimeError)):
        repr(value)  # the foil
    with pytest.raises(ValueError, match=r"^x is <.* that has no text>; expected a finite number$"):
        _checks.finite(value, "x")


def test_an_array_is_told_on_one_line():
    with pytest.raises(ValueError, match=r"^x is ") as caught:
        _checks.finite(np.ones((2, 2)), "x")
    assert "\n" in repr(np.ones((2, 2)))
    assert "\n" not in str(caught.value)


def test_whole_numbers_below_a_power_of_two():
    assert _checks.whole(2**63 - 1, "x", least=0, bits=63) == 2**63 - 1
    with pytest.raises(ValueError, match=r"^x is 9223372036854775808; expected an .* not below 0 and below 2\*\*63$"):
        _checks.whole(2**63, "x", least=0, bits=63)


def test_words():
    assert type(_checks.one_of(np.str_("a"), "x", ("a", "b"))) is str
    for bad in ("A", "", None, ["a"], np.array("a"), 10**5000):
        with pytest.raises(ValueError, match=r"^x is .*; expected one of a, b$"):
            _checks.one_of(bad, "x", ("a", "b"))


def test_arithmetic_beyond_a_float_is_told_as_a_value_error():
    """A large integer is exact by itself; where it meets a float, Python raises an OverflowError."""
    with pytest.raises(OverflowError):
        0.5 + 10**400
    with pytest.raises(ValueError, match=r"^the sum is too large; expected a result within the range of a float"):  # noqa: SIM117
        with _checks.float_range("the sum"):
            0.5 + 10**400


def test_infinities_pass_real_and_nan_does_not():
    assert _checks.real(-math.inf, "x") == -math.inf
    with pytest.raises(ValueError, match=r"x is nan; expected a number"):
        _checks.real(math.nan, "x")


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, Fraction(1, 2), np.float64(0.99)])
def test_the_unit_interval_includes_its_ends(value):
    assert _checks.unit_interval(value, "gamma") == value


@pytest.mark.parametrize("value", [-1e-12, math.nextafter(1, 2), math.nan, math.inf, True, None, "0.9"])
def test_outside_the_unit_interval_nothing_is_clamped(value):
    with pytest.raises(ValueError, match=r"gamma is .*; expected a number in \[0, 1\]"):
        _checks.unit_interval(value, "gamma")


def test_whole_numbers():
    assert _checks.whole(np.int32(4), "n", least=1) == 4
    assert type(_checks.whole(np.int32(4), "n", least=1)) is int
    for value in (0, 4.0, True, "4", None, Fraction(4), math.nan):
        with pytest.raises(ValueError, match=r"n is .*; expected an integer not below 1"):
            _checks.whole(value, "n", least=1)


def test_flags_are_booleans_and_masks_may_be_numbers():
    assert _checks.flag(np.True_, "f") is True
    assert _checks.flag(torch.tensor(False), "f") is False
    for value in (0, 1, 1.0, None, "True", np.int64(1)):
        with pytest.raises(ValueError, match=r"f is .*; expected True or False"):
            _checks.flag(value, "f")
    for one, zero in ((1, 0), (True, False), (1.0, 0.0), (np.int8(1), torch.tensor(0.0)), (np.True_, np.float32(0))):
        assert _checks.binary(one, "m") is True
        assert _checks.binary(zero, "m") is False
    for value in (2, -1, 0.5, math.nan, None, "1", [1]):
        with pytest.raises(ValueError, match=r"m is .*; expected 0 or 1"):
            _checks.binary(value, "m")


@pytest.mark.parametrize(
    "values",
    [[1, 2], (1, 2), deque([1, 2]), range(1, 3), (n for n in (1, 2)), np.array([1, 2]), torch.tensor([1, 2])],
    ids=lambda values: type(values).__name__,
)
def test_sequences_of_any_library(values):
    assert _checks.finite_sequence(values, "x") == [1, 2]


@pytest.mark.parametrize(
    "values",
    [
        *("12", b"12", bytearray(b"12")),
        *({1: 2}, OrderedDict(), MappingProxyType({}), {1, 2}, frozenset(), {}.keys()),
        *(None, 3, np.array(3.0), torch.tensor(3.0)),
    ],
    ids=repr,
)
def test_what_has_no_order_or_no_elements_is_not_a_sequence(values):
    with pytest.raises(ValueError, match=r"x is .*; expected a sequence"):
        _checks.sequence(values, "x")


def test_unequal_lengths_are_named_with_their_lengths():
    _checks.same_length(a=[1], b=[2])
    with pytest.raises(ValueError, match="a has 1, b has 2"):
        _checks.same_length(a=[1], b=[1, 2])


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(ValueError, match=r"x is \[0, 0.*\.\.\.; expected less") as caught:
        _checks.refuse("x", [0] * 10_000, "less")
    assert len(str(caught.value)) < 120
