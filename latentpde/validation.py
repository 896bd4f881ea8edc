"""What a value from outside may be, described once: options of methods, arguments, attributes of files, manifests.

Kinds of values are annotations, such as ``num_steps: Count``, and pydantic checks against them, strictly: text is not
taken for a number, nor a fraction for a count. What is wrong is said in our words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from annotated_types import Ge, Gt, Le, Lt

from latentpde.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter, ValidationError

#: Numbers beyond these cannot be meant: no computer does as many steps, and squares of the reals must stay finite.
MOST, LARGEST, SMALLEST = 10**7, 1e100, 1e-100
#: No clock of a PDE runs on so long; its exponents would overflow.
LATEST = 1e15

Count = Annotated[int, Ge(1), Le(MOST)]
CountOrNone = Annotated[int, Ge(0), Le(MOST)]
Real = Annotated[float, Ge(-LARGEST), Le(LARGEST)]
Positive = Annotated[float, Ge(SMALLEST), Le(LARGEST)]
NotNegative = Annotated[float, Ge(0.0), Le(LARGEST)]
Share = Annotated[float, Ge(0.0), Le(1.0)]
ShareBelowOne = Annotated[float, Ge(0.0), Lt(1.0)]
ShareInside = Annotated[float, Gt(0.0), Lt(1.0)]
Seed = Annotated[int, Ge(0), Lt(2**32)]  # beyond it, streams of random numbers begin to repeat
Time = Annotated[float, Ge(0.0), Le(LATEST)]
NumModes = Annotated[int, Ge(0), Le(10_000)]

_WORDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of a sensible size",
    "float_type": "a finite number",
    "float_parsing": "a finite number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "none_required": "left out",
    "mapping_type": 'names with values, such as {{"kappa": 0.1}}',
    "dict_type": 'names with values, such as {{"kappa": 0.1}}',
    "tuple_type": "several numbers, such as [0.5, 2.0]",
    "list_type": "a list",
    "greater_than_equal": "at least {ge:g}",
    "greater_than": "above {gt:g}",
    "less_than_equal": "at most {le:g}",
    "less_than": "below {lt:g}",
    "literal_error": "one of {expected}",
    "enum": "one of {expected}",
    "missing": "given",
    "too_long": "no longer than {max_length}",
    "too_short": "no shorter than {min_length}",
}


def check_fields(instance: Any, what: str) -> None:
    """Check a frozen dataclass against its annotations, and put the checked values in place. Defaults are its own.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Steps:
    ...     num_steps: Count = 3
    >>> check_fields(Steps(5), "map")
    """
    given = {f.name: value for f in fields(instance) if (value := getattr(instance, f.name)) is not f.default}
    for name, value in checked(type(instance), given, what).items():
        object.__setattr__(instance, name, value)


def checked(kind: type, values: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Values for some fields of a dataclass, checked against its annotations; raises `UsageError`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Steps:
    ...     num_steps: Count = 3
    >>> checked(Steps, {"num_steps": "a"}, "map")
    Traceback (most recent call last):
    latentpde.errors.UsageError: the option num_steps of map must be a whole number, got 'a'
    """
    from pydantic import ValidationError

    try:
        found = _model(kind).model_validate({name: _plain(value) for name, value in values.items()})
    except ValidationError as problem:
        raise UsageError(f"the option {explain(problem, what)}") from problem
    return {name: getattr(found, name) for name in values}


def check_value(kind: Any, value: Any, what: str) -> Any:
    """One value, checked against an annotation; raises `UsageError`.

    >>> check_value(Count, 12, "num_draws")
    12
    >>> check_value(Count, 0, "num_draws")
    Traceback (most recent call last):
    latentpde.errors.UsageError: num_draws must be at least 1, got 0

    Args:
        kind: the annotation, one of this module's or any that pydantic knows.
        value: from outside.
        what: it is called in the message.
    """
    from pydantic import ValidationError

    try:
        return _adapter(kind).validate_python(_plain(value))
    except ValidationError as problem:
        expected, found = _expected_and_found(problem)
        raise UsageError(f"{what} must be {expected}, got {found}") from problem


def explain(error: ValidationError, of: str = "") -> str:
    """The first thing that is wrong, in a sentence without a subject: where, what is expected, what was found."""
    problem = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in problem["loc"] if not _is_internal(part)) or "whole"
    expected, found = _expected_and_found(error)
    return f"{where}{f' of {of}' if of else ''} must be {expected}, got {found}"


def _expected_and_found(error: ValidationError) -> tuple[str, str]:
    problem = error.errors(include_url=False)[0]
    expected = _WORDS.get(problem["type"])
    expected = (
        expected.format(**problem.get("ctx", {})) if expected else problem["msg"].removeprefix("Input should be ")
    )
    expected = "positive" if expected == f"at least {SMALLEST:g}" else expected
    return expected, shortened(problem["input"])


def shortened(value: Any, most: int = 60) -> str:
    """A value as a message shows it: what is long is cut.

    >>> shortened("a" * 100, most=10)
    "'aaaaaa..."
    """
    try:
        found = repr(value)
    except Exception:  # a stranger's object, or an integer with more digits than Python writes
        found = f"an object of type {type(value).__name__}"
    return found if len(found) <= most else f"{found[: most - 3]}..."


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0 else value


def _is_internal(part: str | int) -> bool:
    """Whether pydantic added this part of a place itself, as for the members of a union."""
    return isinstance(part, str) and ("[" in part or part in ("float", "int", "str", "bool", "none"))


@lru_cache(maxsize=64)
def _adapter(kind: Any) -> TypeAdapter:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(kind, config=ConfigDict(strict=True, allow_inf_nan=False))


@lru_cache(maxsize=64)
def _model(kind: type) -> type[BaseModel]:
    from pydantic import ConfigDict, create_model

    hints = get_type_hints(kind, include_extras=True)
    config = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True, extra="forbid")
    definitions: dict[str, Any] = {f.name: (hints[f.name], None) for f in fields(kind)}  # defaults are the class's own
    return create_model(kind.__name__, __config__=config, **definitions)
