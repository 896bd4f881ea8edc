"""What clients may ask, as checked types; FastAPI makes the OpenAPI description of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_SENSORS, MOST_STROKES, MOST_POINTS = 60, 32, 300

Unit = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Layer = Literal["mean", "std", "source", "source_std", "start", "truth", "true_source"]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sensor(_Asked):
    """A sensor on the unit square, read once, at the scene's reading time."""

    id: int = Field(ge=0, le=65535, description="The same id has the same noise wherever it is moved to.")
    y: Unit = Field(description="From the bottom, 0 to 1.")
    x: Unit = Field(description="From the left, 0 to 1.")


class Stroke(_Asked):
    """A line drawn with a soft brush."""

    points: list[tuple[Unit, Unit]] = Field(min_length=1, max_length=MOST_POINTS, description="(y, x) of each point.")
    width: float = Field(default=0.06, ge=0.02, le=0.3, allow_inf_nan=False, description="Of the brush.")
    height: float = Field(default=1.0, ge=-2.0, le=2.0, allow_inf_nan=False, description="Added where the brush is.")


class Drawing(_Asked):
    """A field of the truth: that of the example, or nothing, with what was drawn on it."""

    blank: bool = Field(default=False, description="Whether to begin with nothing instead of the example's.")
    strokes: list[Stroke] = Field(default_factory=list, max_length=MOST_STROKES)


class Scene(_Asked):
    """A truth, some sensors, and what is to be shown. The same scene gives the same picture."""

    regime: str = Field(default="balanced", max_length=40, pattern="^[a-z_]+$", description="Of `GET /api/catalogue`.")
    seed: int = Field(default=0, ge=0, le=9999, description="Number of the example.")
    noise_std: float = Field(default=0.15, ge=0.005, le=2.0, allow_inf_nan=False)
    resolution: Literal[64, 128, 256] = 128
    time: float = Field(
        default=1.0, ge=0.0, le=2.0, allow_inf_nan=False, description="When to look, in units of the reading time."
    )
    sensors: list[Sensor] = Field(default_factory=list, max_length=MOST_SENSORS)
    start: Drawing = Drawing()
    source: Drawing = Drawing()
    layers: list[Layer] = Field(
        default_factory=lambda: ["mean", "std", "source", "source_std", "start"], min_length=1, max_length=7
    )
    draft: bool = Field(default=False, description="A rougher answer in less time, while a sensor is being dragged.")


#: Parts of a scene that only say how to look at it, at some values: scenes that agree but for these have one posterior.
LOOKS: dict[str, Any] = {"time": 1.0, "resolution": 128, "layers": ["mean"]}

#: Waves that began as five dipoles: with eight readings the whole field is known, with four it is fog.
_OPENING_PLACES = (
    (0.22, 0.30), (0.70, 0.18), (0.55, 0.62), (0.15, 0.80), (0.85, 0.72), (0.40, 0.10), (0.35, 0.50), (0.90, 0.42)
)  # fmt: skip
_STEPS = 65535  # of a coordinate in a link
OPENING = Scene(
    regime="klein_gordon",
    seed=4,
    noise_std=0.1,
    sensors=[
        Sensor(id=i, y=round(y * _STEPS) / _STEPS, x=round(x * _STEPS) / _STEPS)
        for i, (y, x) in enumerate(_OPENING_PLACES)
    ],
    layers=["mean", "std", "source", "start"],
)


class Place(BaseModel):
    """A place on the unit square."""

    y: float
    x: float


class FieldData(BaseModel):
    """A field, rows from the bottom up."""

    shape: tuple[int, int] = Field(description="(y, x)")
    data: str = Field(description="Base64 of little-endian 32-bit floats, row after row.")


class CoefficientResult(BaseModel):
    """The posterior of one coefficient."""

    name: str
    meaning: str
    unit: str
    bounds: tuple[float, float] = Field(description="Of the prior, which is uniform between them.")
    draws: list[float]
    truth: float | None = Field(default=None, description="Where it is known and was asked for.")


class Reading(BaseModel):
    """What a sensor read."""

    id: int
    value: float


class Scale(BaseModel):
    """Sizes to draw with, which do not change when a sensor moves."""

    field: float
    source: float


class Scores(BaseModel):
    """How well the mean and the spread match the truth."""

    rmse: float
    within_two_std: float = Field(description="Share of points whose truth is within two standard deviations.")


class Picture(BaseModel):
    """What is known of a scene."""

    time: float = Field(description="In units of the reading time.")
    layers: dict[str, FieldData]
    scale: Scale
    limits: tuple[float, float] | None = Field(default=None, description="Of a file's field, over all times.")
    coefficients: list[CoefficientResult]
    readings: list[Reading]
    scores: Scores | None
    notes: list[str] = Field(description="What to know before trusting it, as sentences; mostly nothing.")
    seconds: float


class Example(BaseModel):
    """A PDE with a truth to explore it."""

    regime: str
    family: str
    equation: str
    order: int = Field(description="In time; a family of order 0 is steady.")
    reading_time: float
    source_std: float


class Catalogue(BaseModel):
    """What there is to explore."""

    examples: list[Example]
    opening: Scene = Field(description="The scene that the page begins with.")


class Finding(BaseModel):
    """A sentence about a file."""

    kind: Literal["fact", "note", "doubt", "obstacle"]
    about: str | None = Field(description="What a fact is about, such as readings or values.")
    text: str


class Checked(BaseModel):
    """What a file holds, and whether it can be reconstructed."""

    findings: list[Finding]
    family: str | None = Field(description="The PDE that suits it.")
    works: bool


class DataPlace(Place):
    """A place where a file has readings."""

    id: int
    words: str = Field(description="Its name in the file, or its coordinates there.")


class AxisWords(BaseModel):
    """One of a file's own axes."""

    name: str
    unit: str
    low: float = Field(description="At the map's lower or left edge.")
    high: float


class Axes(BaseModel):
    """A file's own axes in space."""

    y: AxisWords
    x: AxisWords


class Result(BaseModel):
    """A reconstruction, whose pictures and files can be asked for."""

    equation: str
    times: list[str] = Field(description="Of the pictures, in words: dates where the file has dates.")
    places: list[DataPlace] = Field(description="Where readings were taken, as shares of the rectangle.")
    num_readings: int
    axes: Axes
    value: str = Field(description="The file's name of what was read.")
    unit: str
    source_unit: str
    seconds: float


class FileStatus(BaseModel):
    """A file and what becomes of it."""

    id: str
    state: Literal["checking", "checked", "queued", "running", "done", "failed"]
    phase: str
    seconds: float
    checked: Checked | None
    result: Result | None
    problem: str | None


class Reconstruction(_Asked):
    """How a file is to be reconstructed."""

    family: str = Field(max_length=40, pattern="^[a-z_]+$")
    noise_std: float | None = Field(default=None, gt=0.0, le=1e12, allow_inf_nan=False, description="Inferred if null.")
    resolution: int = Field(default=96, ge=16, le=256)
    seed: int = Field(default=0, ge=0, le=2**32 - 1)


class Problem(BaseModel):
    """Why there is no answer."""

    detail: str


def api_problems(*codes: int) -> dict[int | str, dict]:
    """The OpenAPI description of errors.

    >>> api_problems(503)[503]["model"].__name__
    'Problem'
    """
    return {code: {"model": Problem} for code in codes}
