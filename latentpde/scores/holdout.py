"""Whether to believe a reconstruction without knowing the truth: readings are held out, predicted and scored.

What was held out is predicted from the readings that remain, by the method in question and by what takes no physics:
kriging, the last reading of the nearest station (persistence), and the mean of the readings. A prediction is that of a
reading, so the noise is part of it. Where the method's errors are no smaller than kriging's, the PDE has taught it
nothing; where its 90 % intervals cover much less than 90 %, its standard deviations are not to be believed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool
from numpy.typing import ArrayLike
from torch import Tensor

from latentpde.errors import DataError, LatentPDEWarning, UsageError
from latentpde.estimators.base import DEFAULT_METHOD, methods, reconstruct
from latentpde.observation import Observation
from latentpde.observation.listing import Listing
from latentpde.posterior import Posterior
from latentpde.scores.points.kriging import Kriging
from latentpde.scores.points.simple import mean_of_readings, persistence
from latentpde.scores.points.task import Prediction, Predictor, Readings, Task, scores
from latentpde.validation import Seed, ShareInside, check_value

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

NUM_DRAWS = 200  # of a method that draws them quickly
FEWEST = 30  # held-out readings below which scores are said to be rough
_RIVALS: dict[str, Predictor] = {
    "kriging": Kriging(),
    "persistence": persistence,
    "mean of readings": mean_of_readings,
}
#: Columns of the scores, and what they are.
SCORES = {
    "rmse": "root mean square error, in the unit of the readings",
    "crps": "error of the whole predicted distribution, in the unit of the readings",
    "coverage90": "share of the readings within the 90 % interval; 0.9 if calibrated",
    "z_mean": "mean of the errors in predicted standard deviations; 0 if unbiased",
    "z_std": "their standard deviation; 1 if calibrated, above 1 if overconfident",
}


@dataclass(frozen=True, eq=False)
class Holdout:
    """Readings that were held out, with what was predicted for them, and the scores of several predictors.

    Args:
        method: the method in question, the first row of the scores.
        scores: a row for each predictor, with the columns `SCORES`.
        readings: a row for each held-out reading: its case, place and time as the user has them, its value, and mean,
            standard deviation (of a reading, its noise included) and z-score by the method.
        num_kept: readings that the predictions were made from.
        by: what was held out together: ``readings``, ``stations``, or ``groups`` of the user's.
        notes: what the method said of its own result, as sentences; mostly nothing.
    """

    method: str
    scores: pd.DataFrame
    readings: pd.DataFrame
    num_kept: int
    by: str
    notes: tuple[str, ...] = ()

    def to_dataset(self) -> xr.Dataset:
        """What ``out.nc`` holds of it: ``holdout_scores`` with axes ``(predictor, score)``, and a variable for each
        column of the readings on the axis ``held_out``."""
        import xarray as xr

        columns = {
            f"holdout_{name}": ("held_out", column.to_numpy(), {"long_name": f"{name} of the held-out readings"})
            for name, column in self.readings.items()
            if name != "place"
        }
        table = (
            ("predictor", "score"),
            self.scores.to_numpy(dtype=float),
            {"long_name": "scores of held-out readings"},
        )
        names = {"predictor": list(self.scores.index), "score": list(self.scores.columns)}
        return xr.Dataset({"holdout_scores": table, **columns}, coords=names)

    def rows(self) -> list[list[str]]:
        """The scores for people: the predictor, then a cell for each column. Errors have as many decimals as the
        smallest needs for three digits, so that they can be compared."""
        least = float(np.nanmin(self.scores[["rmse", "crps"]].to_numpy()))
        decimals = int(np.clip(2 - np.floor(np.log10(least)), 0, 12)) if least > 0 else 2
        return [
            [str(name), *(_cell(row[column], column, decimals) for column in SCORES)]
            for name, row in self.scores.to_dict("index").items()
        ]

    def to_text(self) -> str:
        """A table for the terminal, and what it says in a sentence."""
        rows = [["", "RMSE", "CRPS", "in 90 %", "z mean", "z std"], *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
        return "\n".join([self.sentence, *(f"  {line}" for line in lines)])

    @property
    def sentence(self) -> str:
        """How the method compares with the best of the others, in words."""
        num = len(self.readings)
        of = {"readings": "", "stations": " of whole stations", "groups": " of whole groups"}[self.by]
        own = self.scores.loc[self.method]
        rivals = self.scores.drop(index=self.method)
        best = str(rivals["rmse"].idxmin()).replace("mean of readings", "the mean of the readings")
        ratio = own["rmse"] / rivals["rmse"].min()
        words = f"{100 * abs(1 - ratio):.0f} % {'below' if ratio < 1 else 'above'} that of {best}"
        held = (
            f", and {100 * own['coverage90']:.0f} % of them lie in their 90 % intervals"
            if np.isfinite(own["coverage90"])
            else ""
        )
        rough = " With so few readings these numbers are rough." if num < FEWEST else ""
        return f"{num} held-out reading{'s' * (num > 1)}{of}: the error of {self.method} is {words}{held}.{rough}"


def _cell(value: float, column: str, decimals: int) -> str:
    if not np.isfinite(value):
        return "-"
    if column == "coverage90":
        return f"{100 * value:.0f} %"
    return f"{value:.2f}" if column.startswith("z") else f"{value:.{decimals}f}" if value < 1e6 else f"{value:.3g}"


def holdout(
    observation: Observation | Any,
    family: Any = None,
    *,
    share: float = 0.1,
    groups: str | ArrayLike | None = None,
    seed: int = 0,
    method: str = DEFAULT_METHOD,
    num_draws: int | None = None,
    show_progress: bool = False,
    **settings,
) -> Holdout:
    """Hold some readings out, predict them from the others, and score that beside what takes no physics.

    The result of `latentpde.reconstruct` with all readings is made afterwards, by another call.

    Args:
        observation: whatever `latentpde.reconstruct` takes.
        family: the PDE, as there.
        share: of the field's readings of each case that is held out, between 0 and 1; those of the source are kept.
        groups: ``"stations"`` to hold out whole places with all their times, which is the harder and mostly the more
            honest question; or a label for each reading of a single case, to hold out readings of one label together.
            By default readings are held out one by one.
        seed: of the choice, and of the method.
        method, num_draws, show_progress, settings: as those of `latentpde.reconstruct`; 200 draws by default where the
            method draws them quickly.

    Example:
        >>> import latentpde as lp
        >>> rng = np.random.default_rng(0)
        >>> y, x, t = rng.random(40), rng.random(40), np.repeat([0.0, 0.5], 20)
        >>> readings = np.sin(6 * (x - 0.2 * t)) + 0.1 * rng.standard_normal(40)
        >>> observation = lp.Observation.from_table(readings, y=y, x=x, t=t, sigma=0.1)
        >>> known = {"initial": lp.Matern(1.0, 0.5), "num_modes": 0, "fixed": {"vy": 0.0, "kappa": 0.01}}
        >>> found = lp.holdout(observation, "advection_diffusion", share=0.2, **known)
        >>> found.scores.index.tolist(), len(found.readings)
        (['exact', 'kriging', 'persistence', 'mean of readings'], 8)
    """
    check_value(ShareInside, share, "share")
    check_value(Seed, seed, "seed")
    if not isinstance(observation, Observation):
        observation = Observation.read(observation, family=family if isinstance(family, str) else None)
    kept, held, by = split(observation, share, groups, seed=seed)
    quick = methods.get(method).takes_data_as_they_come
    num_draws = (NUM_DRAWS if quick else 12) if num_draws is None else num_draws
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LatentPDEWarning)  # it is in the notes
        posterior = reconstruct(
            kept, family, method=method, num_draws=num_draws, seed=seed, show_progress=show_progress, **settings
        )
    tasks = [_task(kept, held, case) for case in range(len(observation))]
    found = {posterior.method: [_by_posterior(posterior, held, case) for case in range(len(observation))]}
    for name, predictor in _RIVALS.items():
        found[name] = [predictor(task, seed=seed) for task in tasks]
    return _collected(posterior, held, tasks, found, by)


def split(
    observation: Observation, share: float, groups: str | ArrayLike | None = None, *, seed: int = 0
) -> tuple[Observation, Observation, str]:
    """Readings to keep and readings to hold out, and what the latter were held out by.

    >>> observation = Observation.from_arrays(np.ones((4, 4)), times=[1.0], noise_std=0.1)
    >>> kept, held, _ = split(observation, 0.25)
    >>> kept.num_readings, held.num_readings
    (tensor([12]), tensor([4]))
    """
    rng = np.random.default_rng([2718, seed])
    out = torch.zeros_like(observation.mask)
    for case in range(len(observation)):
        listing = Listing.of(observation, case)
        labels, of_field = _labels(listing, groups, len(observation)), listing.of_field
        if not len(of_field):
            raise DataError(f"all readings of case {case} are of the source; those of the field are held out")
        chosen = np.zeros(len(listing), dtype=bool)
        chosen[of_field] = _chosen(labels[of_field], share, rng)
        if chosen[of_field].all():
            raise DataError(
                f"holding out {100 * share:g} % leaves no reading of case {case}, which has {len(listing)}; hold out "
                "fewer, or readings one by one"
            )
        out[case][observation.mask[case]] = torch.from_numpy(chosen)
    by = "readings" if groups is None else "stations" if isinstance(groups, str) else "groups"
    return _only(observation, observation.mask & ~out), _only(observation, out), by


def _only(observation: Observation, mask: Bool[Tensor, "case time *reading"]) -> Observation:
    return replace(observation, mask=mask, values=torch.where(mask, observation.values, 0.0))


def _labels(listing: Listing, groups: str | ArrayLike | None, num_cases: int) -> np.ndarray:
    if groups is None:
        return np.arange(len(listing))
    if isinstance(groups, str):
        if groups != "stations":
            raise UsageError(f"groups is 'stations', or a label for each reading; got {groups!r}")
        return listing.stations
    labels = np.asarray(groups)
    if num_cases > 1 or labels.shape != (len(listing),):
        raise UsageError(
            f"groups needs one label for each of the {len(listing)} readings of a single case; got shape "
            f"{labels.shape} for {num_cases} case(s)"
        )
    return np.unique(labels.astype(str), return_inverse=True)[1]


def _chosen(labels: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Which readings are held out: all those of some of the labels, at least one of these."""
    known = np.unique(labels)
    return np.isin(labels, rng.choice(known, max(1, round(share * len(known))), replace=False))


def _task(kept: Observation, held: Observation, case: int) -> Task:
    given, asked = (Listing.of(one, case).of_the_field() for one in (kept, held))
    known, unknown = (Readings(one.points, one.times, one.values, one.stations) for one in (given, asked))
    return Task(f"case {case}", known, unknown, kept.grid.origin, kept.grid.extent, noisy=True)


def _by_posterior(posterior: Posterior, held: Observation, case: int) -> Prediction:
    """What a method says of the held-out readings of a case."""
    one, mask = slice(case, case + 1), held.mask[case]
    with torch.no_grad():
        draws = posterior.reading_draws(one)[0][:, mask].numpy()
    noise = posterior.noise_stds(case, held).numpy()
    if not posterior.has_spread:
        return Prediction(draws[0], np.full(len(noise), np.nan), noise)
    return Prediction(draws.mean(0), draws.std(0, ddof=1), noise, draws)


def _collected(
    posterior: Posterior, held: Observation, tasks: list[Task], found: dict[str, list[Prediction]], by: str
) -> Holdout:
    import pandas as pd

    rows, seed = {}, int(posterior.settings.get("seed", 0))
    together = replace(tasks[0], asked=_joined([task.asked for task in tasks]))
    for name, predictions in found.items():
        joined = _joined_predictions(predictions)
        row = scores(joined, together, seed=seed)
        z = (together.asked.values - joined.mean) / np.hypot(joined.std, joined.noise_std)
        row |= {"z_mean": float(z.mean()), "z_std": float(z.std())}
        if np.isnan(joined.std).any():  # a point: the score of its distribution is its absolute error
            row |= {"crps": row["mae"], "coverage90": np.nan}
        rows[name] = {column: row[column] for column in SCORES}
    tables = []
    for case, own in enumerate(found[posterior.method]):
        table = Listing.of(held, case).of_the_field().to_frame(held.frame)
        table.insert(0, "case", case)
        std = np.hypot(own.std, own.noise_std)
        value = table.iloc[:, -1].to_numpy()
        tables.append(
            table.rename(columns={table.columns[-1]: "value"}).assign(
                mean=own.mean, std=std, z=(value - own.mean) / std
            )
        )
    return Holdout(
        method=posterior.method,
        scores=pd.DataFrame(rows).T.rename_axis("predictor"),
        readings=pd.concat(tables, ignore_index=True),
        num_kept=int(posterior.observation.num_readings.sum()),
        by=by,
        notes=tuple(posterior.all_warnings()),
    )


def _joined(parts: list[Readings]) -> Readings:
    columns = [
        np.concatenate([getattr(part, name) for part in parts]) for name in ("points", "times", "values", "stations")
    ]
    return Readings(*columns)


def _joined_predictions(parts: list[Prediction]) -> Prediction:
    noise = np.concatenate([np.broadcast_to(part.noise_std, part.mean.shape) for part in parts])
    draws = [part.draws for part in parts if part.draws is not None]
    return Prediction(
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.std for part in parts]),
        noise,
        np.concatenate(draws, axis=1) if draws else None,
    )
