"""`latentpde suggest`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latentpde.cli.options import MOST, AsJson, Quiet
from latentpde.errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np

    from latentpde.observation import Observation


class Target(StrEnum):
    """What further readings are to tell of."""

    field = "field"
    coefficients = "coefficients"
    region = "region"
    source = "source"


def suggest(
    reconstruction: Annotated[Path, typer.Argument(help="A file that `latentpde reconstruct` wrote, by exact.")],
    num: Annotated[int, typer.Option(min=1, max=1000, help="How many readings.")] = 5,
    times: Annotated[
        list[str] | None, typer.Option("--times", help="A time at which readings can be taken. Repeatable.")
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="CSV file of possible places: columns y and x, and time if they differ.")
    ] = None,
    target: Annotated[Target, typer.Option(help="What they are to tell of.")] = Target.field,
    region: Annotated[
        str | None, typer.Option(help="For --target region: y_low:y_high,x_low:x_high in the user's coordinates.")
    ] = None,
    noise_std: Annotated[float | None, typer.Option(help="Noise of a new reading; as the others' by default.")] = None,
    case: Annotated[int, typer.Option(min=0, max=MOST, help="Number of the case, from 0.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Also write them to a CSV file.")] = None,
    picture: Annotated[Path | None, typer.Option("--map", help="Also draw a map: .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Rank places and times for further readings by what they would tell.

    The reconstruction is repeated from the readings and settings in its file.
    """
    from latentpde.errors import no_warnings
    from latentpde.estimators import reconstruct
    from latentpde.io.files import atomic_path, check_writable
    from latentpde.io.reconstructions import open_reconstruction
    from latentpde.questions.design import suggest as run

    for path in (output, picture):
        if path is not None:
            check_writable(path)
    if picture is not None and picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UsageError(f"--map draws .png, .svg or .pdf; got {picture.name!r}")
    observation, settings = open_reconstruction(reconstruction)
    observation.require_case(case)
    if settings.get("method") != "exact":
        raise UsageError(f"{reconstruction} was made by {settings.get('method')}; suggest needs the method exact")
    if settings.get("average"):
        likeliest = settings["family"][0]
        raise UsageError(f"{reconstruction} is a mixture of families; reconstruct with one, such as --pde {likeliest}")
    places = None if candidates is None else read_candidates(candidates, observation)
    with no_warnings():  # they were given when the file was made
        posterior = reconstruct(observation[case : case + 1], **settings, show_progress=not quiet)
    found = run(
        posterior,
        num,
        target=target.value,
        times=_numbers(times, observation),
        candidates=places,
        region=None if region is None else parse_region(region),
        noise_std=noise_std,
    )
    table = found.to_dataframe()
    if output is not None:
        with atomic_path(output) as temporary:
            table.to_csv(temporary, index=False)
    if picture is not None:
        from latentpde.report.design import plot_suggestion

        with atomic_path(picture) as temporary:
            plot_suggestion(found).savefig(temporary, dpi=150, format=picture.suffix.lstrip(".").lower())
    if as_json:
        records = json.loads(str(table.to_json(orient="records", date_format="iso")))
        print(json.dumps({"target": target.value, "noise_std": found.noise_std, "readings": records}))
    elif not quiet:
        print(found.to_text())


def parse_region(text: str) -> tuple[float, float, float, float]:
    """A rectangle from ``y_low:y_high,x_low:x_high``.

    >>> parse_region("0:2.5,-1:1")
    (0.0, 2.5, -1.0, 1.0)
    """
    try:
        (y_low, y_high), (x_low, x_high) = (map(float, part.split(":")) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"--region takes y_low:y_high,x_low:x_high, such as 0:2.5,-1:1; got {text!r}") from error
    if not (y_low < y_high and x_low < x_high):
        raise UsageError(f"--region needs the lower number first along each axis; got {text!r}")
    return y_low, y_high, x_low, x_high


def read_candidates(path: Path, observation: Observation) -> np.ndarray:
    """Places, and times where there is such a column, from a CSV file with the user's names or y, x and time."""
    import numpy as np
    import pandas as pd

    try:
        table = pd.read_csv(path)
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as CSV: {error}") from error
    frame = observation.frame
    names = ("y", "x", "time") if frame is None else (frame.y.name, frame.x.name, frame.time_name)
    columns = []
    for own, usual in zip(names, ("y", "x", "time"), strict=True):
        name = next((n for n in (own, usual) if n in table.columns), None)
        if name is None and usual != "time":
            known = ", ".join(map(str, table.columns))
            raise DataError(f"{path} needs a column {own!r} for the places; it has: {known}")
        if name is not None:
            values = table[name]
            if usual == "time" and frame is not None:
                columns.append(np.array([frame.to_number(value) for value in values]))
            else:
                columns.append(np.asarray(pd.to_numeric(values, errors="coerce"), dtype=np.float64))
    found = np.column_stack(columns)
    bad = ~np.isfinite(found).all(1)
    if bad.any():
        raise DataError(f"{path}: {int(bad.sum())} row(s) are not finite numbers; the first is row {bad.argmax() + 1}")
    return found


def _numbers(times: list[str] | None, observation: Observation) -> list[Any] | None:
    """Times as numbers, or as dates where the user's clock has them."""
    if not times:
        return None
    found: list[Any] = []
    for text in times:
        try:
            found.append(float(text))
        except ValueError as error:
            if observation.frame is None or observation.frame.clock is None:
                raise UsageError(f"--times takes numbers here, as the readings have no dates; got {text!r}") from error
            found.append(text)
    return found
