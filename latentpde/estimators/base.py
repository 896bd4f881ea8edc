"""What a method is, the table of them, and the one function that runs any of them."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from latentpde.decoder import Decoder
from latentpde.domain import Domain
from latentpde.errors import LatentPDEWarning, UsageError
from latentpde.estimators.setup import Setup
from latentpde.latent import Latent
from latentpde.needs import Needs
from latentpde.observation import Observation
from latentpde.observation.checks import checked_velocity
from latentpde.observation.lifting import lift_of
from latentpde.pde import Family
from latentpde.posterior import PDEPosterior, Posterior
from latentpde.registry import Registry
from latentpde.settings import Settings
from latentpde.spectra import Spectrum
from latentpde.validation import Count, Seed, check_fields, check_value, checked

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    import xarray as xr
    from torch import Tensor

    from latentpde.domain import Domain


@dataclass(frozen=True, kw_only=True)
class Estimator(ABC):
    """A method: given readings and a prior, it returns a posterior.

    Its dataclass fields are its options, each with a default that works, so ``Map(num_steps=80)`` is a method with one
    option changed. Options are checked against their annotations when it is made (`latentpde.validation`); a family
    that it cannot treat is refused by `check_family`.

    Attributes:
        name: what the method is called in `methods`, on the command line and in files.
        summary: what it does, in one line.
        has_spread: whether it can return several draws, and so a posterior standard deviation; false for methods that
            only give a point estimate.
        takes_data_as_they_come: whether it takes readings in tables, noise that is not known, and open edges.
        takes_walls: whether it takes walls, which all methods that run through the decoder alone can.
        cases_at_once: how many of very many cases it is best given at once; 1 where it gains nothing from several.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    has_spread: ClassVar[bool] = True
    takes_data_as_they_come: ClassVar[bool] = False
    takes_walls: ClassVar[bool] = False
    cases_at_once: ClassVar[int] = 16

    @classmethod
    def check_family(cls, family: Family) -> None:
        """Raise `UsageError` where the method cannot treat this family; most methods treat any."""
        return

    @abstractmethod
    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> Posterior:
        """Condition the prior on the readings.

        Args:
            observation: readings of one or many cases. What is returned for a case does not depend on the others.
            latent: the family, the bounds of its coefficients and the source's prior.
            num_draws: posterior draws per case, at least 1; a method without a spread returns one.
            seed: seed of all random numbers; the same seed gives the same bits on the same machine.
            show_progress: draw a bar on a terminal, print lines elsewhere.
        """

    def needs(self, observation: Observation, latent: Latent, num_draws: int) -> Needs:
        """About what `estimate` will need; `reconstruct` asks before it starts. By default, draws of latents and of
        fields on the fine grid."""
        fine = observation.refinement**2 * math.prod(observation.grid.shape) * len(observation.times)
        return Needs(memory=32 * observation.num_cases * num_draws * (latent.size + fine))

    def __post_init__(self) -> None:
        check_fields(self, self.name)

    def settings(self, seed: int) -> dict[str, Any]:
        """The options and the seed, by name: what a posterior records of how it was made."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**asdict(self), **{n: v.describe() for n, v in plain.items() if isinstance(v, Spectrum)}, "seed": seed}


methods: Registry[type[Estimator]] = Registry("method", "methods", "latentpde.methods")

DEFAULT_METHOD = "exact"
DEFAULT_SOURCE_PRIOR_STD = Latent.source_prior_std


def reconstruct(
    observation: Observation | xr.Dataset | xr.DataArray | xr.DataTree | pd.DataFrame | str | Path,
    family: str | Family | None = None,
    *,
    method: str = DEFAULT_METHOD,
    num_draws: int = 12,
    seed: int = 0,
    noise_std: float | str | tuple[float, float] | None = None,
    domain: Domain | str | None = None,
    initial: Spectrum | str | None = None,
    source: Spectrum | str | None = None,
    trend: str | None = None,
    velocity: Any = None,
    robust: bool | str | None = None,
    bounds: Mapping[str, tuple[float, float]] | str | Tensor | None = None,
    fixed: Mapping[str, float] | str | None = None,
    gaussian: Mapping[str, tuple[float, float]] | str | None = None,
    source_prior_std: float | None = None,
    num_modes: int | None = None,
    show_progress: bool = False,
    **options,
) -> Posterior:
    """Reconstruct the field behind sparse readings, with the PDE's coefficients and source.

    Raises a `latentpde.LatentPDEWarning` for what `Posterior.warnings` says of a case.

    Args:
        observation: an `Observation`, or anything that `latentpde.read` takes: a file, a table, a dataset. Truths in
            it are not looked at.
        family: the governing PDE, by name or as an object; may be left out where the observation names it.
        method: a name of ``latentpde list methods``.
        num_draws: posterior draws per case, at least 1.
        seed: seed of all random numbers; the same seed gives the same bits on the same machine.
        noise_std: standard deviation of the readings' noise, positive, in the field's unit; by default what came with
            the observation, else it is inferred.
        domain: the edges, a `Domain` or words such as ``"y=open,x=periodic"``; by default what came with the
            observation, else open.
        initial: the prior of an initial state that is not known, a `Spectrum` or words such as ``"PowerLaw()"``; by
            default a `Matern` field whose levels are inferred.
        source: the prior of the source, likewise; ``"none"`` for a PDE without one.
        trend: what is added to the field with a flat prior: ``none``, a ``constant``, or a ``linear`` function of the
            place; by default a constant where the initial state is not known.
        velocity: of a family of order 2, what the field changes by at time 0: ``"zero"``, the prior of one that is not
            known, as ``initial`` has it, or the velocity itself, ``([case,] y, x)`` on the cells of the initial state;
            by default what came with the observation, else zero.
        robust: whether readings may be outliers, whose noise has heavy tails; by default not. `Posterior.set_aside`
            lists those that are.
        bounds: ``(lower, upper)`` of coefficients by name, or in words such as ``"kappa=0.01:0.2"``, or of all of them
            as a tensor ``(coefficient, 2)``; by default those that came with the observation, else what suits its
            extent and times.
        fixed: known coefficients, by name or in words such as ``"kappa=0.02"``.
        gaussian: ``(mean, std)`` of a Gaussian prior of coefficients, by name or in words such as ``"vx=2.0:0.5"``.
        source_prior_std, num_modes: pointwise standard deviation of the paper's prior of the source, and its Fourier
            modes per half axis: short for ``source=lp.WhiteBand(num_modes, std)``. By default what came with the
            observation, else the strength is inferred by a method that can, and 0.5 for others; 12 modes.
        show_progress: draw a bar on a terminal, print lines elsewhere.
        options: the method's own, such as ``num_steps`` of ``map``.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("balanced", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.3)
        >>> posterior = lp.reconstruct(cases, method="map", num_steps=20)
        >>> posterior.mean(resolution=64).shape
        (1, 64, 64)
        >>> posterior.coefficients.dims
        ('case', 'draw', 'coefficient')
    """
    if not isinstance(observation, Observation):
        known = family if isinstance(family, str) else None
        observation = Observation.read(observation, family=known, noise_std=noise_std)
    check_value(Count, num_draws, "num_draws")
    check_value(Seed, seed, "seed")
    if hasattr(velocity, "shape"):
        velocity, given_velocity = None, checked_velocity(velocity, observation.num_cases, observation.grid)
        observation = replace(observation, initial_velocity=given_velocity)
    by_name = None if hasattr(bounds, "shape") else bounds
    given = Settings.of(
        noise_std=noise_std,
        domain=domain,
        initial=initial,
        source=source,
        trend=trend,
        velocity=velocity,
        robust=robust,
        bounds=by_name,
        fixed=fixed,
        gaussian=gaussian,
    ).over(observation.settings)
    kind = methods.get(method)
    setup = Setup.of(
        observation,
        family,
        given,
        all_bounds=bounds if by_name is None else None,  # pyright: ignore[reportArgumentType]
        source_prior_std=source_prior_std,
        num_modes=num_modes,
        as_they_come=kind.takes_data_as_they_come,
    )
    estimator = make_estimator(method, **options, **setup.options(method, [f.name for f in fields(kind)]))
    observation, latent = setup.observation, setup.latent
    estimator.check_family(latent.family)
    if not estimator.takes_data_as_they_come:
        observation.require_benchmark(method, walls=estimator.takes_walls)
    mend = "ask for fewer draws, modes or cases, or for less effort"
    estimator.needs(observation, latent, num_draws).check(estimator.name, mend, show=show_progress)
    posterior = estimator.estimate(observation, latent, num_draws=num_draws, seed=seed, show_progress=show_progress)
    if "misfit" not in posterior.diagnostics:
        found = {"misfit": posterior.misfits().numpy(), **posterior.diagnostics}
        posterior = replace(posterior, diagnostics=found)
    used = posterior.latent if isinstance(posterior, PDEPosterior) else latent
    posterior = replace(posterior, settings={**posterior.settings, **setup.record(used)})
    said = {"source_prior_std": source_prior_std, "num_modes": num_modes, **given.texts(), **options}
    if by_name is None and bounds is not None:
        said["bounds"] = bounds
    call = {"family": latent.family.name, "method": estimator.name, "num_draws": num_draws, "seed": seed}
    posterior = replace(posterior, call=call | {name: value for name, value in said.items() if value is not None})
    for sentence in posterior.all_warnings():
        warnings.warn(sentence, LatentPDEWarning, stacklevel=2)
    return posterior


def make_estimator(method: str, **options) -> Estimator:
    """Make a method with some of its options changed.

    Args:
        method: a name of ``latentpde list methods``.
        options: the method's own; others are refused with a list of those that it has.

    Example:
        >>> from latentpde.estimators import make_estimator
        >>> make_estimator("map", num_steps=80)
        Map(num_steps=80, num_restarts=3, weight=0.01, learning_rate=0.4, start_std=1.0)
    """
    kind = methods.get(method)
    known = [f.name for f in fields(kind)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UsageError(
            f"method {kind.name!r} has no option {', '.join(unknown)}; it has: {', '.join(known) or 'none'}"
        )
    return kind(**checked(kind, options, kind.name))


def decoder_for(observation: Observation, latent: Latent) -> Decoder:
    """The decoder from latents to fields on the rectangle that was observed."""
    mirror = (observation.domain or Domain.periodic()).mirror
    return replace(Decoder.within(latent, observation.grid.extent, mirror), lift=lift_of(observation))
