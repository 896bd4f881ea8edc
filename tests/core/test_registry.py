"""The table of names: what is declared is imported when it is asked for, and not before."""

from __future__ import annotations

import sys

import pytest

from latentpde.errors import UsageError
from latentpde.registry import Registry


def positive(number):
    if number <= 0:
        raise UsageError(f"{number} is not positive")


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module that nothing has imported."""
    (tmp_path / "numbers_for_the_registry.py").write_text("two = 2\nless = -1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "numbers_for_the_registry"
    sys.modules.pop("numbers_for_the_registry", None)


def test_what_is_declared_is_imported_when_it_is_asked_for(module):
    table = Registry("number", "numbers")
    table.declare("two", f"{module}:two")
    table.register("one", 1)
    assert table.names() == ("two", "one")
    assert "TWO" in table
    assert table.get("one") == 1
    assert module not in sys.modules
    assert list(table) == [2, 1]
    assert module in sys.modules


def test_what_is_declared_is_checked_before_it_is_used(module):
    table = Registry("number", "numbers", validate=positive)
    table.declare("less", f"{module}:less")
    for _ in range(2):
        with pytest.raises(UsageError, match="-1 is not positive"):
            table.get("less")


def test_a_declared_name_is_taken_and_can_be_replaced_or_removed(module):
    table = Registry("number", "numbers", validate=positive)
    table.declare("two", f"{module}:two")
    with pytest.raises(UsageError, match="exists already"):
        table.declare("two", f"{module}:less")
    with pytest.raises(UsageError, match="exists already"):
        table.register("two", 22)
    with pytest.raises(UsageError, match="not positive"):
        table.register("two", -2, replace=True)
    assert table.get("two") == 2
    table.declare("other", f"{module}:two")
    table.register("other", 3, replace=True)
    assert table.get("other") == 3
    table.unregister("two")
    assert table.names() == ("other",)
