"""Is the PDE wrong: comparisons that take longer than the checks of every run, for when they are asked for.

The readings' evidence under the model is compared with that under a Gaussian process that knows no PDE
(`latentpde.questions.physics_free`), and, where the initial state is known, with that under the same model with a usual
mistake undone, such as swapped axes (`latentpde.questions.mistakes`). If the model is right, odds of 100 to 1 against
it have a probability of 1 in 100 at the most, whatever it is compared with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from latentpde.domain import Domain
from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.parallel import on_one_thread
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.estimators.exact.readings import Readings
from latentpde.grid import at_points
from latentpde.posterior import Posterior
from latentpde.posterior.adequacy import CLEAR, MISTAKES, against_gaussian_process, as_odds, if_mistaken
from latentpde.questions.mistakes import evidences_of_mistakes
from latentpde.questions.mixture import of_one_family
from latentpde.questions.physics_free import MOST_READINGS, PhysicsFree


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """What the comparisons found, and the posterior with their results among its diagnostics and warnings.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, seed=3, shape=(16, 16), num_modes=2, sparsity=0.4)
    >>> lp.check_model(lp.reconstruct(cases)).log_odds.shape
    (1,)

    Args:
        posterior: with the diagnostics ``log_odds_gaussian_process``, ``log_odds_mistake`` and ``mistake``.
    """

    posterior: ExactPosterior

    @property
    def log_odds(self) -> np.ndarray:
        """Log odds of the PDE against the Gaussian process, of each case; NaN where they were not compared."""
        return self.posterior.diagnostics["log_odds_gaussian_process"]

    def to_text(self) -> str:
        """What was found, as lines."""
        lines = []
        for case in range(self.posterior.observation.num_cases):
            prefix = f"case {case}: " if self.posterior.observation.num_cases > 1 else ""
            lines += [prefix + sentence for sentence in self.sentences(case)]
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """What was found for each case, for programs: log odds (``None`` where they were not compared) and words."""
        found = []
        for case in range(self.posterior.observation.num_cases):
            notes = {name: float(self.posterior.diagnostics[name][case]) for name in _NAMES}
            how = int(notes.pop("mistake"))
            record: dict[str, Any] = {name: None if math.isnan(odds) else odds for name, odds in notes.items()}
            found.append({**record, "mistake": None if how < 0 else MISTAKES[how], "sentences": self.sentences(case)})
        return found

    def sentences(self, case: int = 0) -> list[str]:
        """What was found for one case, in words.

        Args:
            case: its number, from 0.
        """
        notes = {name: float(self.posterior.diagnostics[name][case]) for name in _NAMES}
        said = [
            f"A Gaussian process without physics was not compared: that is done up to {MOST_READINGS:,} readings, all "
            "of the field."
            if math.isnan(notes["log_odds_gaussian_process"])
            else against_gaussian_process(notes["log_odds_gaussian_process"])
        ]
        if not math.isnan(notes["log_odds_mistake"]):
            how, odds = MISTAKES[int(notes["mistake"])], notes["log_odds_mistake"]
            said += if_mistaken(odds, how) or [
                "The data are likelier as given than with the initial state turned, mirrored or shifted, or in other "
                f"units, at odds of {as_odds(-odds)}."
                if odds < -CLEAR
                else f"The readings do not tell whether {how}."
            ]
        return said


_FEW_READINGS = 300  # whose matrices are so small that sharing them between cores takes longer
_NAMES = ("log_odds_gaussian_process", "log_odds_mistake", "mistake")


def check_model(posterior: Posterior, *, seed: int = 0) -> ModelCheck:
    """Whether the PDE explains the readings better than a Gaussian process that knows none, and whether the initial
    state is turned, shifted, or in other units than the readings.

    Args:
        posterior: by the method ``exact``.
        seed: of the process's starts.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("klein_gordon", num=1, seed=3, shape=(16, 16), num_modes=2, sparsity=0.4)
        >>> found = lp.check_model(lp.reconstruct(cases))
        >>> bool(found.log_odds[0] > 0), found.posterior.warnings(0)
        (True, [])
    """
    posterior = of_one_family(posterior, "a check of the model")
    found = {name: [] for name in _NAMES}
    for case in range(posterior.observation.num_cases):
        process = physics_free(posterior, case)
        own, against = float(posterior.diagnostics["log_evidence"][case]), math.nan
        if process is not None:
            with on_one_thread(len(process.values) <= _FEW_READINGS):
                against = process.log_evidence(seed)
        found["log_odds_gaussian_process"].append(own - against)
        undone = evidences_of_mistakes(posterior, case)
        best = max(undone, key=undone.__getitem__) if undone else None
        # less the number of mistakes, so that many of them raise no more alarms than one
        found["log_odds_mistake"].append(math.nan if best is None else undone[best] - own - math.log(len(undone)))
        found["mistake"].append(-1 if best is None else MISTAKES.index(best))
    notes = {name: np.array(values) for name, values in found.items()}
    return ModelCheck(replace(posterior, diagnostics={**posterior.diagnostics, **notes}))


def model_sentences(posterior: Posterior, case: int = 0) -> list[str]:
    """What `check_model` found for one case of a posterior that it gave, in words; nothing where it was not asked.

    Args:
        posterior: of any method.
        case: its number, from 0.
    """
    if not isinstance(posterior, ExactPosterior) or "log_odds_gaussian_process" not in posterior.diagnostics:
        return []
    return ModelCheck(posterior).sentences(case)


def physics_free(posterior: ExactPosterior, case: int = 0) -> PhysicsFree | None:
    """A Gaussian process without physics for the readings of a case, with the model's noise, trend and initial state;
    ``None`` where there are too many, or some are of the source."""
    one, model = posterior.observation[case : case + 1], posterior.model(case)
    domain = one.domain or Domain.periodic()
    known_start = model.state is not None
    table = replace(one, initial=None, fine_initial=None) if known_start else one
    readings = Readings.of(table, float(posterior.settings.get("initial_noise_std", 0.0)))
    if len(readings) > MOST_READINGS or bool(readings.of_source.any()):
        return None
    noise, extent = model.likelihood.noise, one.grid.extent
    noise_std, start = readings.noise_std, None
    if known_start:
        unknown = noise.column[readings.order] >= 0
        noise_std = torch.where(unknown, torch.nan, noise.known[readings.order].sqrt())
        start = _start_at(model, readings) if posterior.latent.family.order else None
    middle = torch.tensor(extent, dtype=torch.float64) / 2
    columns = torch.cat([torch.ones((len(readings), 1), dtype=torch.float64), readings.positions - middle], 1)
    return PhysicsFree(
        values=readings.values,
        positions=readings.positions,
        times=readings.times,
        noise_std=noise_std,
        trend=columns[:, : model.likelihood.trend.shape[1]],
        extent=extent,
        periodic=(domain.y == "periodic", domain.x == "periodic"),
        groups=torch.zeros_like(readings.groups) if known_start else readings.groups,
        start=start,
    )


def _start_at(model: Model, readings: Readings) -> Tensor:
    assert model.state is not None
    return at_points(model.state.mean_hat, readings.positions, model.decoder.extent)
