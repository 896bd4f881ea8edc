r"""Which PDE: families compared by their evidence.

The evidence of a family is the probability of the readings with everything else integrated out, coefficients over
their prior included. With all families alike beforehand, evidences are odds. They depend on the priors: a coefficient
that the readings fix well costs :math:`\log 2` where its bounds are twice as wide. So families are solved a second
time with bounds twice as wide, all but those that are far behind, and where that changes which one is first, the
answer says so.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from latentpde.errors import DataError, LatentPDEError, LatentPDEWarning, UsageError, no_warnings
from latentpde.estimators import base
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.observation import Observation
from latentpde.pde import Family, families, get_family
from latentpde.posterior import Posterior
from latentpde.progress import progress
from latentpde.questions.mixture import MixturePosterior

ALIKE = math.log(10)  # log odds below which families cannot be told apart
_FAR_BEHIND = 50.0  # in log odds; doubling the bounds of coefficients that fit costs about one for each
_MIXED_DRAWS = 199


@dataclass(frozen=True, eq=False)
class Comparison:
    """Families that were tried on the same readings, the likeliest first.

    >>> import latentpde as lp
    >>> cases = lp.simulate("klein_gordon", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.5)
    >>> found = lp.compare(cases, ["klein_gordon", "helmholtz"])
    >>> found.best, found.probabilities["klein_gordon"] > 0.9
    ('klein_gordon', True)

    Args:
        posteriors: by the family's name; of several cases the evidences add up, as one PDE is behind all of them.
        wide: log evidence with bounds twice as wide, by name, of those that it was tried with; NaN where that failed.
        refused: families that could not be tried, with the reason.
        num_draws: that were asked for.
    """

    posteriors: dict[str, ExactPosterior]
    wide: dict[str, float]
    refused: dict[str, str]
    num_draws: int

    @property
    def best(self) -> str:
        """The likeliest family."""
        return next(iter(self.posteriors))

    @property
    def log_evidences(self) -> dict[str, float]:
        """By name, summed over cases."""
        return {name: float(p.diagnostics["log_evidence"].sum()) for name, p in self.posteriors.items()}

    @property
    def errors(self) -> dict[str, float]:
        """Standard errors of the log evidences."""
        return {
            name: float(np.sqrt((p.diagnostics["log_evidence_error"] ** 2).sum()))
            for name, p in self.posteriors.items()
        }

    @property
    def probabilities(self) -> dict[str, float]:
        """Posterior probability of each family, all alike beforehand."""
        return _probabilities(self.log_evidences)

    @property
    def alike(self) -> list[str]:
        """Families that the readings do not tell from the best, at odds of 10 to 1."""
        evidences = self.log_evidences
        top = evidences[self.best]
        return [name for name, value in evidences.items() if name != self.best and top - value < ALIKE]

    @property
    def is_sensitive(self) -> bool:
        """Whether another family is first where bounds are twice as wide."""
        known = {name: value for name, value in self.wide.items() if math.isfinite(value)}
        return bool(known) and max(known, key=known.__getitem__) != self.best

    def posterior(self, average: bool = False) -> Posterior:
        """That of the best family, or the mixture of all, with the comparison among its settings."""
        record = {
            name: {
                "log_evidence": round(value, 3),
                "error": round(self.errors[name], 3),
                "probability": float(f"{self.probabilities[name]:.4g}"),
                **(
                    {"log_evidence_wide": round(self.wide[name], 3)}
                    if math.isfinite(self.wide.get(name, math.nan))
                    else {}
                ),
            }
            for name, value in self.log_evidences.items()
        }
        if average:
            return MixturePosterior.of(
                self.posteriors, self.probabilities, self.num_draws, {"families": record, "families_notes": self.notes}
            )
        best = self.posteriors[self.best]
        return replace(best, settings={**best.settings, "families": record, "families_notes": self.notes})

    def to_text(self) -> str:
        """The odds in words, with what they depend on."""
        probabilities, evidences, errors = self.probabilities, self.log_evidences, self.errors
        lines = ["Which PDE, all families alike beforehand:"]
        for name, value in evidences.items():
            wide = self.wide.get(name, math.nan)
            also = f"; with bounds twice as wide {wide:.1f}" if math.isfinite(wide) else ""
            lines.append(
                f"  {name}: probability {probabilities[name]:.3g}, log evidence {value:.1f} ± {errors[name]:.2f}{also}"
            )
        return "\n".join([*lines, *self.notes])

    @property
    def notes(self) -> list[str]:
        """What is to be known beside the odds, as sentences."""
        lines = []
        if self.alike:
            lines.append(
                f"The readings cannot tell {self.best} from {', '.join(self.alike)}: the odds are below 10 to 1."
            )
        if self.is_sensitive:
            lines.append("With bounds twice as wide another family comes first: the answer depends on the priors.")
        return lines + [f"{name} was not tried: {reason}" for name, reason in self.refused.items()]


def compare(
    observation: Any,
    names: str | Sequence[str | Family] = "auto",
    *,
    num_draws: int = 12,
    sensitivity: bool = True,
    show_progress: bool = False,
    **settings: Any,
) -> Comparison:
    """Try several families on the same readings and compare their evidences.

    What the data say of one family alone, its bounds, is not used, so that no family is given away.

    Args:
        observation: as that of `latentpde.reconstruct`.
        names: of families, or ``"auto"`` for all that there are.
        num_draws: posterior draws of each.
        sensitivity: whether to repeat it with bounds twice as wide, for families that are not far behind.
        show_progress: draw a bar on a terminal, print lines elsewhere.
        settings: further ones of `latentpde.reconstruct`; bounds and the like are for the families that have such a
            coefficient.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("klein_gordon", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.5)
        >>> lp.compare(cases, ["klein_gordon", "helmholtz"], sensitivity=False).alike
        []
    """
    if settings.get("method", "exact") != "exact":
        raise UsageError(f"only the method exact knows the evidence of a family, not {settings['method']}")
    if not isinstance(observation, Observation):
        observation = Observation.read(observation)
    chosen = families.names() if names == "auto" else [get_family(name).name for name in names]
    if len(set(chosen)) < 2 or len(set(chosen)) < len(chosen):
        raise UsageError(f"give at least two families, each once; got {', '.join(chosen)}")
    for name in ("source_prior_std", "num_modes"):
        if settings.get(name) is None and settings.get("source") is None:
            settings[name] = getattr(observation, name)
    unnamed = replace(observation, family=None, bounds=None)
    found, refused = {}, {}
    with progress("compare families", len(chosen), show=show_progress) as meter:
        for name in chosen:
            meter.say(name)
            try:
                with no_warnings():
                    own = _for_family(settings, get_family(name))
                    found[name] = base.reconstruct(unnamed, name, num_draws=num_draws, **own)
            except (UsageError, DataError) as error:
                refused[name] = str(error)
            meter(1)
    if not found:
        raise DataError(f"no family could be tried: {'; '.join(f'{n}: {r}' for n, r in refused.items())}")
    evidences = {name: float(own.diagnostics["log_evidence"].sum()) for name, own in found.items()}
    order = sorted(found, key=lambda name: -evidences[name])
    near = [name for name in order if sensitivity and evidences[order[0]] - evidences[name] < _FAR_BEHIND]
    wide = {}
    with progress("compare with bounds twice as wide", len(near), show=show_progress) as meter:
        for name in near:
            meter.say(name)
            with no_warnings():
                wide[name] = _wide(unnamed, found[name], _for_family(settings, get_family(name)))
            meter(1)
    return Comparison({name: found[name] for name in order}, wide, refused, num_draws)


@functools.wraps(base.reconstruct)
def reconstruct(observation: Any, family: Any = None, *, average: bool = False, **settings: Any) -> Posterior:
    if not is_several(family):
        if average:
            raise UsageError("average is over several families: give family='auto' or a list of names")
        return base.reconstruct(observation, family, **settings)
    if average:
        settings["num_draws"] = max(settings.get("num_draws", 12), _MIXED_DRAWS)
    names = split(family) if isinstance(family, str) else family
    posterior = compare(observation, names, **settings).posterior(average)
    for sentence in posterior.all_warnings():
        warnings.warn(sentence, LatentPDEWarning, stacklevel=2)
    return posterior


def is_several(family: Any) -> bool:
    """Whether a setting names several families: ``auto``, names with commas, or a list.

    >>> is_several("auto"), is_several("helmholtz"), is_several(["helmholtz", "telegraph"])
    (True, False, True)
    """
    return isinstance(family, list | tuple) or (isinstance(family, str) and (family == "auto" or "," in family))


def split(text: str) -> str | list[str]:
    """Names in a text with commas; ``auto`` stays as it is."""
    return text if text == "auto" else [name.strip() for name in text.split(",")]


def _for_family(settings: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """The settings, without those of coefficients that this family does not have."""
    own = dict(settings)
    for name in ("bounds", "fixed", "gaussian"):
        if isinstance(own.get(name), Mapping):
            own[name] = {c: v for c, v in own[name].items() if c in family.coefficient_names} or None
    return own


def _wide(observation: Observation, posterior: Any, settings: Mapping[str, Any]) -> float:
    """The log evidence with bounds twice as wide; those of a quantity that has a sign keep it."""
    bounds = posterior.prior.bounds
    lower, upper = bounds.unbind(-1)
    wider = torch.stack(
        [torch.where(lower >= 0, lower / 2, lower - (upper - lower) / 2), upper + (upper - lower) / 2], -1
    )
    wider[:, 1] = torch.where(lower >= 0, wider[:, 0] + 2 * (upper - lower), wider[:, 1])
    own = {**settings, "bounds": wider, "num_draws": 1, "num_spread_draws": 2, "num_mean_nodes": 2}
    try:
        found = base.reconstruct(observation, posterior.latent.family, **own)
    except LatentPDEError:
        return math.nan
    return float(found.diagnostics["log_evidence"].sum())


def _probabilities(log_evidences: Mapping[str, float]) -> dict[str, float]:
    top = max(log_evidences.values())
    shares = {name: math.exp(value - top) for name, value in log_evidences.items()}
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items()}
