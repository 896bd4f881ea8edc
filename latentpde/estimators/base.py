"""What a method is, the table of them, and the one function that runs any of them."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from latentpde.decoder import Decoder
from latentpde.errors import LatentPDEWarning, UsageError
from latentpde.latent import Latent
from latentpde.needs import Needs
from latentpde.observation import Observation
from latentpde.pde import Family, get_family
from latentpde.pde.scales import scaled_bounds
from latentpde.posterior import Posterior
from latentpde.registry import Registry
from latentpde.validation import Count, NumModes, Positive, Real, Seed, check_fields, check_value, checked

if TYPE_CHECKING:
    import xarray as xr
    from torch import Tensor


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
        cases_at_once: how many of very many cases it is best given at once; 1 where it gains nothing from several.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    has_spread: ClassVar[bool] = True
    takes_data_as_they_come: ClassVar[bool] = False
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
        return {**asdict(self), "seed": seed}


methods: Registry[type[Estimator]] = Registry("method", "methods", "latentpde.methods")

DEFAULT_METHOD = "exact"
DEFAULT_SOURCE_PRIOR_STD = Latent.source_prior_std


def reconstruct(
    observation: Observation | xr.Dataset | xr.DataTree | str | Path,
    family: str | Family | None = None,
    *,
    method: str = DEFAULT_METHOD,
    num_draws: int = 12,
    seed: int = 0,
    bounds: dict[str, tuple[float, float]] | Tensor | None = None,
    source_prior_std: float | None = None,
    num_modes: int | None = None,
    show_progress: bool = False,
    **options,
) -> Posterior:
    """Reconstruct the field behind sparse readings, with the PDE's coefficients and source.

    Raises a `latentpde.LatentPDEWarning` for what `Posterior.warnings` says of a case.

    Args:
        observation: an `Observation`, or a dataset in the layout of ``cases.nc``, whose truths are not looked at, or
            the path of such a file.
        family: the governing PDE, by name or as an object; may be left out where the observation names it.
        method: a name of ``latentpde list methods``.
        num_draws: posterior draws per case, at least 1.
        seed: seed of all random numbers; the same seed gives the same bits on the same machine.
        bounds: ``(lower, upper)`` of coefficients by name, or of all of them as a tensor ``(coefficient, 2)``; by
            default those that came with the observation, else the family's own.
        source_prior_std: pointwise standard deviation of the source under the prior, positive; by default what came
            with the observation, else 0.5.
        num_modes: Fourier modes of the source per half axis; 0 for a PDE without a source. By default what came with
            the observation, else 12.
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
        observation = Observation.from_dataset(observation, family=family if isinstance(family, str) else None)
    check_value(Count, num_draws, "num_draws")
    check_value(Seed, seed, "seed")
    check_value(Positive | None, source_prior_std, "source_prior_std")
    check_value(NumModes | None, num_modes, "num_modes")
    latent = _latent(observation, family, bounds, source_prior_std, num_modes)
    estimator = make_estimator(method, **options)
    estimator.check_family(latent.family)
    if not estimator.takes_data_as_they_come:
        observation.require_benchmark(method)
    mend = "ask for fewer draws, modes or cases, or for less effort"
    estimator.needs(observation, latent, num_draws).check(estimator.name, mend, show=show_progress)
    posterior = estimator.estimate(observation, latent, num_draws=num_draws, seed=seed, show_progress=show_progress)
    if "misfit" not in posterior.diagnostics:
        found = {"misfit": posterior.misfits().numpy(), **posterior.diagnostics}
        posterior = replace(posterior, diagnostics=found)
    given = {"bounds": bounds, "source_prior_std": source_prior_std, "num_modes": num_modes, **options}
    call = {"family": latent.family.name, "method": estimator.name, "num_draws": num_draws, "seed": seed}
    posterior = replace(posterior, call=call | {name: value for name, value in given.items() if value is not None})
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
    return Decoder(latent, observation.grid.extent)


def _latent(
    observation: Observation,
    family: str | Family | None,
    bounds: dict[str, tuple[float, float]] | Tensor | None,
    source_prior_std: float | None,
    num_modes: int | None,
) -> Latent:
    """The prior: what was given, else what came with the observation if that names the same family, else defaults."""
    if family is None and observation.family is None:
        raise UsageError("the observation does not name its PDE; give family= (on the command line --pde)")
    chosen = get_family(family if family is not None else observation.family or "")
    from_data = observation.family is not None and get_family(observation.family) is chosen
    known_std = observation.source_prior_std if from_data else None
    # data in the user's own units say nothing of the source's; the benchmark's have a strength of order one
    infers_source = observation.domain is not None and source_prior_std is None and known_std is None
    if num_modes is None:
        known_modes = observation.num_modes if from_data else None
        num_modes = 0 if known_std == 0 and source_prior_std is None else known_modes or Latent.num_modes
    scaled = _scaled_bounds(chosen, observation)
    known_bounds = observation.bounds if from_data else None
    given = chosen.coefficient_names if bounds is not None and not isinstance(bounds, dict) else tuple(bounds or ())
    is_guess = scaled is not None and known_bounds is None
    return Latent(
        chosen,
        guessed=tuple(c.name for c in chosen.coefficients if c.name not in given and c.unit != "1") if is_guess else (),
        source_prior_std=source_prior_std if source_prior_std is not None else known_std or DEFAULT_SOURCE_PRIOR_STD,
        num_modes=num_modes,
        infers_source=infers_source,
        bounds=_bounds(chosen, bounds, known_bounds, scaled),
    )


def _scaled_bounds(family: Family, observation: Observation) -> Tensor | None:
    """Bounds for data in units of their own; ``None`` for those of the benchmark, which are on a unit square."""
    if observation.domain is None:
        return None
    return scaled_bounds(family, max(observation.grid.extent), float(observation.times.max()))


def _bounds(
    family: Family,
    given: dict[str, tuple[float, float]] | Tensor | None,
    known: Tensor | None,
    scaled: Tensor | None,
) -> Tensor:
    """The bounds that came with the data, else those that suit its size, else the family's, with those replaced that
    were given."""
    base = (scaled if scaled is not None else family.bounds) if known is None else known
    if given is None:
        return base
    if not isinstance(given, dict):
        return given
    base = base.clone()
    pairs = {name: tuple(pair) if isinstance(pair, list) else pair for name, pair in given.items()}
    for name, interval in check_value(dict[str, tuple[Real, Real]], pairs, "bounds").items():
        if name not in family.coefficient_names:
            raise UsageError(
                f"{family.name} has no coefficient {name!r}; it has: {', '.join(family.coefficient_names)}"
            )
        base[family.coefficient_names.index(name)] = base.new_tensor(list(interval))
    return base
