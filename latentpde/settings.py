"""What is said of the model beyond its family: edges, noise, priors, bounds. Spelt alike in Python, on the command line
and in the attributes of files, and recorded with every result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from latentpde.domain import Domain
from latentpde.errors import UsageError
from latentpde.spectra import Spectrum, WhiteBand
from latentpde.validation import Positive, Real, check_value, shortened

Trend = Literal["none", "constant", "linear"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What somebody said of the model; ``None`` for what nobody did.

    >>> given = Settings.of(domain="y=open,x=periodic", source="Matern(std=(0.1, 10.0))", bounds="kappa=0.01:2")
    >>> given.domain, given.bounds
    (Domain(y='open', x='periodic'), {'kappa': (0.01, 2.0)})
    >>> given.texts()["source"]
    'Matern(std=(0.1, 10.0), smoothness=1.5)'

    Args:
        noise_std: standard deviation of the noise of all readings, in the field's unit; or ``(lower, upper)``, in words
            ``0.1:0.5``, to infer it between.
        domain: the edges of the rectangle.
        initial: the prior of an initial state that is not known, or not everywhere.
        source: the prior of the source; `WhiteBand` without modes for none.
        trend: what is added to the field with a flat prior: ``none``, a ``constant``, or a ``linear`` function of the
            place.
        velocity: the prior of the velocity that the state of a family of order 2 starts with, or ``zero``.
        robust: whether readings may be outliers, whose noise has heavy tails.
        bounds: ``(lower, upper)`` of coefficients, by name.
        fixed: known coefficients, by name.
        gaussian: ``(mean, std)`` of a Gaussian prior of coefficients, by name.
    """

    noise_std: float | tuple[float, float] | None = None
    domain: Domain | None = None
    initial: Spectrum | None = None
    source: Spectrum | None = None
    trend: Trend | None = None
    velocity: Spectrum | Literal["zero"] | None = None
    robust: bool | None = None
    bounds: Mapping[str, tuple[float, float]] | None = None
    fixed: Mapping[str, float] | None = None
    gaussian: Mapping[str, tuple[float, float]] | None = None

    @classmethod
    def of(cls, **given: Any) -> Settings:
        """Settings as objects or in words; raises `UsageError` for what is neither.

        Args:
            given: by name; ``None`` for what is not said.
        """
        return cls(**{name: _READERS[name](value, name) for name, value in given.items() if value is not None})

    def over(self, others: Settings) -> Settings:
        """These, and what others say where these say nothing; bounds and the like coefficient by coefficient."""
        joined = {}
        for f in fields(self):
            own, other = getattr(self, f.name), getattr(others, f.name)
            joined[f.name] = {**other, **own} if isinstance(own, dict) and isinstance(other, dict) else own
            joined[f.name] = other if own is None else joined[f.name]
        return Settings(**joined)

    def texts(self) -> dict[str, str | float | bool]:
        """What was said, in the words that `of` reads."""
        found: dict[str, str | float | bool] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Domain | Spectrum):
                found[f.name] = value.describe()
            elif isinstance(value, dict):
                found[f.name] = ",".join(f"{name}={_joined(number)}" for name, number in value.items())
            elif value is not None:
                found[f.name] = _joined(value) if isinstance(value, tuple) else value
        return found


def parse_numbers(text: str, option: str, num: int) -> dict[str, Any]:
    """Numbers by the names of coefficients, as on the command line: ``kappa=0.01:0.2,vx=-1:1``.

    >>> parse_numbers("kappa=0.01:0.2, vx=-1:1", "bounds", 2)
    {'kappa': (0.01, 0.2), 'vx': (-1.0, 1.0)}

    Args:
        text: pairs with commas between them.
        option: what they are called in a message.
        num: of numbers for each name, with colons between them.
    """
    found: dict[str, Any] = {}
    example = {"bounds": "kappa=0.01:0.2", "fixed": "kappa=0.02", "gaussian": "vx=2.0:0.5"}.get(option, "kappa=0.1")
    for item in text.split(","):
        name, _, numbers = (piece.strip() for piece in item.partition("="))
        try:
            values = [float(number) for number in numbers.split(":")]
        except ValueError:
            values = []
        if not name or len(values) != num:
            wanted = {"bounds": "name=lower:upper", "gaussian": "name=mean:std"}.get(option, "name=value")
            raise UsageError(f"{option} takes {wanted}, such as {example}; got {shortened(item)}")
        if name in found:
            raise UsageError(f"{option} names {name!r} twice; give each coefficient one")
        found[name] = tuple(values) if num > 1 else values[0]
    return found


def _joined(number: Any) -> str:
    return ":".join(f"{part!r}" for part in number) if isinstance(number, tuple) else f"{number!r}"


def _noise(value: Any, name: str) -> float | tuple[float, float]:
    if isinstance(value, str):
        try:
            numbers = [float(part) for part in value.split(":")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 2:
            raise UsageError(
                f"{name} is a positive number, or lower:upper to infer it between, such as 0.1:0.5; got "
                f"{shortened(value)}"
            )
        value = numbers[0] if len(numbers) == 1 else tuple(numbers)
    if not isinstance(value, tuple | list):
        return check_value(Positive, value, name)
    lower, upper = check_value(tuple[Positive, Positive], tuple(value), name)
    if lower >= upper:
        raise UsageError(f"{name} needs its lower bound first, got {lower:g} and {upper:g}")
    return lower, upper


def _prior(value: Any, name: str) -> Spectrum:
    if isinstance(value, str) and name == "source" and value.strip() == "none":
        return WhiteBand(num_modes=0)
    if not isinstance(value, str | Spectrum):
        raise UsageError(
            f"{name} is the prior of a field, such as lp.Matern(std=(0.1, 10.0)), or the same in words; got "
            f"{shortened(value)}"
        )
    return Spectrum.parse(value)


def _velocity(value: Any, name: str) -> Spectrum | Literal["zero"]:
    return "zero" if isinstance(value, str) and value.strip() == "zero" else _prior(value, name)


def _trend(value: Any, name: str) -> Trend:
    if value not in get_args(Trend):
        raise UsageError(f"{name} must be one of {', '.join(get_args(Trend))}, got {shortened(value)}")
    return value


def _robust(value: Any, name: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    word = str(value).strip().lower()
    if not isinstance(value, bool | int | str) or word not in words:
        raise UsageError(f"{name} must be true or false, got {shortened(value)}")
    return words[word]


def _by_name(num: int) -> Any:
    kind = dict[str, tuple[Real, Real]] if num > 1 else dict[str, Real]

    def read(value: Any, name: str) -> Any:
        if isinstance(value, str):
            value = parse_numbers(value, name, num)
        if isinstance(value, Mapping):
            value = {key: tuple(pair) if isinstance(pair, list) else pair for key, pair in value.items()}
        return check_value(kind, value, name)

    return read


_READERS: dict[str, Any] = {
    "noise_std": _noise,
    "domain": lambda value, name: Domain.parse(value),
    "initial": _prior,
    "source": _prior,
    "trend": _trend,
    "velocity": _velocity,
    "robust": _robust,
    "bounds": _by_name(2),
    "fixed": _by_name(1),
    "gaussian": _by_name(2),
}
