"""Options that say something of the model: edges, noise, priors, bounds. They are spelt as in Python and in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

Domain = Annotated[
    str | None,
    typer.Option(
        help="Edges: open, periodic, dirichlet, neumann, or y=neumann,x=periodic. By default the file's, or open."
    ),
]
Initial = Annotated[
    str | None,
    typer.Option(
        help="Prior of an initial state that is not known: Matern(std=(0.1, 10.0)). Or a file with the state."
    ),
]
Source = Annotated[str | None, typer.Option(help="Prior of the source, as --initial has it; none for no source.")]
Trend = Annotated[
    str | None, typer.Option(help="Added to the field: none, constant, or linear in the place.", show_default=False)
]
Velocity = Annotated[
    str | None, typer.Option(help="How fast the field changes at first, order 2: zero, or a prior as --initial has it.")
]
NoiseStd = Annotated[
    str | None,
    typer.Option(help="Noise of the readings, or 0.1:0.5 to infer it between. By default the file's, or inferred."),
]
Robust = Annotated[
    bool | None,
    typer.Option("--robust", help="Readings may be outliers: those far off what the others say are set aside."),
]
Bounds = Annotated[list[str] | None, typer.Option(help="Interval of a coefficient: kappa=0.01:0.2. Repeatable.")]
Fixed = Annotated[list[str] | None, typer.Option(help="A known coefficient: kappa=0.02. Repeatable.")]
Gaussian = Annotated[
    list[str] | None, typer.Option(help="Mean and standard deviation of a coefficient beforehand: vx=2.0:0.5.")
]


def noise_of(text: str | None) -> tuple[float | None, dict[str, Any]]:
    """The noise that ``--noise-std`` says, and the setting that it is where it says bounds instead.

    >>> noise_of("0.4"), noise_of("0.1:0.5"), noise_of(None)
    ((0.4, {}), (None, {'noise_std': '0.1:0.5'}), (None, {}))
    """
    from latentpde.cli.options import check_range
    from latentpde.validation import LARGEST, SMALLEST

    if text is None:
        return None, {}
    try:
        number = float(text)
    except ValueError:
        return None, model_settings({"noise_std": text}, ("noise_std",))
    check_range(number, "--noise-std", f"positive and finite, at least {SMALLEST:g}", SMALLEST, LARGEST)
    return number, {}


_FILES = (".nc", ".nc4", ".cdf", ".h5", ".zarr")


def take_initial_state(given: dict[str, Any]) -> dict[str, Any]:
    """What ``--initial`` says to `latentpde.read`, where it is a file with a state; it is then no prior any more.

    >>> given = {"initial": "u0.nc"}
    >>> take_initial_state(given), given
    ({'initial_state': 'u0.nc'}, {'initial': None})
    """
    text = given.get("initial")
    if text is None or not text.lower().rstrip("/").endswith(_FILES):
        return {}
    given["initial"] = None
    return {"initial_state": text}


_NAMES = ("domain", "initial", "source", "trend", "velocity", "robust", "bounds", "fixed", "gaussian")


def model_settings(given: Mapping[str, Any], names: Sequence[str] = _NAMES) -> dict[str, Any]:
    """Arguments of `latentpde.reconstruct` from those of a command that are options above, in words, checked before
    anything is read; what is not given is left out.

    >>> model_settings({"domain": " y=open ", "bounds": ["kappa=0.1:1", "vx=-1:1"], "source": None, "seed": 3})
    {'domain': 'open', 'bounds': {'kappa': (0.1, 1.0), 'vx': (-1.0, 1.0)}}
    """
    from latentpde.errors import UsageError
    from latentpde.settings import Settings
    from latentpde.validation import LARGEST

    found: dict[str, Any] = {}
    for name in names:
        value = given.get(name)
        if value is None or value == []:
            continue
        option = f"--{name.replace('_', '-')}"
        try:
            said = Settings.of(**{name: ",".join(value) if isinstance(value, list) else value})
        except UsageError as error:
            words = str(error)
            raise UsageError(
                f"{option}{words.removeprefix(name) if words.startswith(name) else f': {words}'}"
            ) from error
        if name == "bounds":
            for coefficient, (lower, upper) in (said.bounds or {}).items():
                if not -LARGEST <= lower < upper <= LARGEST:
                    raise UsageError(
                        f"{option} needs finite numbers, the lower one first; got {coefficient}={lower:g}:{upper:g}"
                    )
        found[name] = getattr(said, name) if isinstance(value, list) else said.texts()[name]
    return found
