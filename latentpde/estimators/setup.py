"""What a method is given: the data, the prior and the options that follow from what was said, and from what was not.

What the call says wins over what the data say. Where neither says anything, a method that takes data as they come is
given a user's data: open edges, noise and source to be inferred, bounds of the coefficients that suit the data's extent
and times. Other methods know the paper's problem alone: a torus, bounds that the family states for a unit square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from latentpde.domain import Domain
from latentpde.errors import DataError, UsageError
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.observation.tables import is_around_readings
from latentpde.pde import Family, get_family
from latentpde.pde.scales import scaled_bounds
from latentpde.settings import Settings
from latentpde.spectra import Spectrum, WhiteBand
from latentpde.validation import NumModes, Positive, check_value

if TYPE_CHECKING:
    from torch import Tensor

#: Settings that are options of the methods that have them.
_OPTIONS = ("initial", "source", "trend", "velocity", "robust", "fixed", "gaussian")
_GIVEN, _OF_DATA, _SCALED, _OF_FAMILY = "given", "of the data", "from extent and times", "of the family"


@dataclass(frozen=True, eq=False)
class Setup:
    """Data, prior and options.

    Args:
        observation: with the noise and the edges that it is taken to have.
        latent: the family, the bounds of its coefficients and the source's prior.
        settings: what the call and the data said.
        bounds_from: where the bounds of each coefficient come from, in words.
    """

    observation: Observation
    latent: Latent
    settings: Settings
    bounds_from: dict[str, str]

    @classmethod
    def of(
        cls,
        observation: Observation,
        family: str | Family | None,
        settings: Settings,
        *,
        all_bounds: Tensor | None = None,
        source_prior_std: float | None = None,
        num_modes: int | None = None,
        as_they_come: bool = True,
    ) -> Setup:
        """What follows for one call.

        Args:
            observation: as it came.
            family: the PDE; may be left out where the observation names it.
            settings: what the call says, and what the data say where it says nothing.
            all_bounds: of all coefficients at once, ``(coefficient, 2)``.
            source_prior_std, num_modes: of the paper's prior of the source.
            as_they_come: whether the method takes open edges, and infers noise and source.
        """
        check_value(Positive | None, source_prior_std, "source_prior_std")
        check_value(NumModes | None, num_modes, "num_modes")
        if family is None and observation.family is None:
            raise UsageError("the observation does not name its PDE; give family= (on the command line --pde)")
        chosen = get_family(family if family is not None else observation.family or "")
        of_data = observation if observation.family is not None and get_family(observation.family) is chosen else None
        if settings.source is not None and (source_prior_std is not None or num_modes is not None):
            raise UsageError("source says the source's prior whole: leave out source_prior_std and num_modes")
        settings = _in_users_lengths(settings, observation)
        settings, known_std, num_modes = _paper_source(settings, of_data, source_prior_std, num_modes)
        domain = settings.domain or observation.domain or (Domain() if as_they_come else Domain.periodic())
        observation = _with_noise(replace(observation, domain=domain), settings.noise_std)
        _require_walls_somewhere(observation, domain)
        bounds, bounds_from = _bounds(chosen, observation, of_data, settings, all_bounds, as_they_come)
        latent = Latent(
            chosen,
            source_prior_std=known_std or Latent.source_prior_std,
            num_modes=num_modes,
            infers_source=as_they_come and known_std is None,
            bounds=bounds,
            guessed=tuple(c.name for c in chosen.coefficients if bounds_from[c.name] == _SCALED and c.unit != "1"),
        )
        return cls(observation, latent, settings, bounds_from)

    def options(self, method: str, known: Sequence[str]) -> dict[str, Any]:
        """The settings that are options of a method; raises `UsageError` where it has no such option.

        Args:
            method: its name.
            known: names of its options.
        """
        found = {name: value for name in _OPTIONS if (value := getattr(self.settings, name)) is not None}
        if isinstance(self.settings.noise_std, tuple):
            found["noise_bounds"] = self.settings.noise_std
        spelt = {"noise_bounds": "bounds of noise_std"}
        unknown = [spelt.get(name, name) for name in found if name not in known]
        if unknown:
            raise UsageError(
                f"method {method!r} knows the paper's problem alone, without {', '.join(unknown)}; take the method "
                "exact, or leave that out"
            )
        return found

    def record(self, latent: Latent) -> dict[str, Any]:
        """What was assumed, for the settings of a result, in the words of `latentpde.settings`.

        Args:
            latent: that the method used in the end, with bounds that it may have widened.
        """
        observation, family = self.observation, latent.family
        assert observation.domain is not None
        noise = observation.noise_std[observation.mask].unique()
        known = "given for each reading" if len(noise) > 1 else float(noise)
        return {
            "family": family.name,
            "domain": observation.domain.describe(),
            "noise_std": "inferred" if bool(noise.isnan().any()) else known,
            "bounds": dict(zip(family.coefficient_names, latent.bounds.tolist(), strict=True)),
            "bounds_from": self.bounds_from,
        }


def _paper_source(
    settings: Settings, of_data: Observation | None, std: float | None, num_modes: int | None
) -> tuple[Settings, float | None, int]:
    """The paper's prior of the source, which every method knows, out of the settings; its strength is ``None`` where it
    is not known."""
    source = settings.source
    if isinstance(source, WhiteBand) and (source.num_modes == 0 or isinstance(source.std, float | int)):
        given = float(source.std) if isinstance(source.std, float | int) else Latent.source_prior_std
        return replace(settings, source=None), given, source.num_modes
    if source is not None:
        return settings, None, source.num_modes if isinstance(source, WhiteBand) else Latent.num_modes
    of_file, modes_of_file = (of_data.source_prior_std, of_data.num_modes) if of_data is not None else (None, None)
    if num_modes is None:
        num_modes = 0 if of_file == 0 and std is None else modes_of_file or Latent.num_modes
    return settings, std if std is not None else of_file, num_modes


def _require_walls_somewhere(observation: Observation, domain: Domain) -> None:
    """Raise `DataError` for walls around a table of readings of which nobody has said where they are."""
    places = observation.positions
    if places is not None and domain.mirror and is_around_readings(observation.grid, places[0]):
        raise DataError(
            f"a domain with walls ({domain.describe()}) needs to know where they are; give the rectangle that they "
            "bound, in Python grid= of the readings, of a file --rectangle y_low,y_high,x_low,x_high"
        )


def _in_users_lengths(settings: Settings, observation: Observation) -> Settings:
    """Lengths of priors that came with a unit, as numbers of the data's."""
    unit = "" if observation.frame is None else observation.frame.length_unit
    priors = {name: getattr(settings, name) for name in ("initial", "source", "velocity")}
    return replace(settings, **{n: prior.in_unit(unit) for n, prior in priors.items() if isinstance(prior, Spectrum)})


def _with_noise(observation: Observation, noise_std: float | tuple[float, float] | None) -> Observation:
    """With the noise that is said, or without where it is to be inferred."""
    if noise_std is None:
        return observation
    known = torch.nan if isinstance(noise_std, tuple) else noise_std
    return replace(observation, noise_std=torch.where(observation.mask, known, 1.0).double())


def _bounds(
    family: Family,
    observation: Observation,
    of_data: Observation | None,
    settings: Settings,
    all_bounds: Tensor | None,
    as_they_come: bool,
) -> tuple[Tensor, dict[str, str]]:
    """Bounds of the coefficients, and where those of each come from."""
    names = family.coefficient_names
    if all_bounds is not None:
        return all_bounds, dict.fromkeys(names, _GIVEN)
    if of_data is not None and of_data.bounds is not None:
        base, where = of_data.bounds.clone(), dict.fromkeys(names, _OF_DATA)
    elif as_they_come:
        duration = float(observation.times.max())
        base, where = scaled_bounds(family, max(observation.grid.extent), duration), dict.fromkeys(names, _SCALED)
    else:
        base, where = family.bounds, dict.fromkeys(names, _OF_FAMILY)
    for name, interval in (settings.bounds or {}).items():
        if name not in names:
            raise UsageError(f"{family.name} has no coefficient {name!r}; it has: {', '.join(names)}")
        base[names.index(name)], where[name] = base.new_tensor(list(interval)), _GIVEN
    for name, value in (settings.fixed or {}).items():
        if where.get(name) in (_SCALED, _OF_FAMILY):  # nobody gave them, and somebody knows better
            lower, upper = base[names.index(name)].tolist()
            if not lower < value < upper:
                wide = abs(value) / 2 or (upper - lower) / 2
                base[names.index(name)] = base.new_tensor([min(lower, value - wide), max(upper, value + wide)])
    return base, where
