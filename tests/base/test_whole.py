"""A whole number is any integer in its range, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.base.whole import count, whole
from workbench.errors import InputError


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_integers_of_every_kind(value: Any) -> None:
    found = whole("it", value, least=3, most=3)
    assert (found, type(found)) == (3, int)


@pytest.mark.parametrize("value", [0, 5, 3.0, "3", True, None, [3], np.float32(3), np.bool_(True), np.array([3, 3])])
def test_others_are_refused_by_name(value: Any) -> None:
    with pytest.raises(InputError) as caught:
        whole("it", value, least=1, most=4)
    assert str(caught.value) == f"it is {value!r}. Expected: a whole number of at least 1 and at most 4."


def test_without_an_upper_end() -> None:
    assert whole("it", 2**80) == 2**80


def test_a_count_ends_where_31_bits_do_which_is_told_only_beyond_it() -> None:
    """10**30 samples or steps were taken, and then ran over in an array or never ended."""
    assert count("it", np.int64(2**31 - 1)) == 2**31 - 1
    with pytest.raises(InputError, match=r"^it is 2147483648\. .* of at least 1 and at most 2147483647\.$"):
        count("it", 2**31)
    with pytest.raises(InputError, match=r"^it is 0\. .* of at least 1\.$"):
        count("it", 0)
