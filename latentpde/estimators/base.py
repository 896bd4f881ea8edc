"""What a method is, the table of them, and the one function that runs any of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.pde import Family, get_family
from latentpde.posterior import Posterior
from latentpde.registry import Registry

if TYPE_CHECKING:
    import xarray as xr
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Estimator(ABC):
    """A method. Its dataclass fields are its options, each with a default that works.

    Attributes:
        name: as registered.
        summary: in a line.
        spreads: whether it can give more than a point.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    spreads: ClassVar[bool] = True

    @classmethod
    def check_family(cls, family: Family) -> None:
        """Raise `UsageError` where the method cannot treat a family; most treat any."""
        return

    @abstractmethod
    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> Posterior:
        """Condition on the observation.

        Args:
            observation: one or many cases, all treated in one batch.
            latent: the family, its bounds and prior.
            num_draws: posterior draws per case; a method without a spread returns one.
            seed: of all randomness.
            show_progress: draw a bar on a terminal, print lines elsewhere.
        """

    def settings(self, seed: int) -> dict[str, Any]:
        return {**asdict(self), "seed": seed}


methods: Registry[type[Estimator]] = Registry("method", "methods", "latentpde.methods")

DEFAULT_METHOD = "exact"
DEFAULT_SOURCE_PRIOR_STD = 0.5
DEFAULT_NUM_MODES = 12


def reconstruct(
    observation: Observation | xr.Dataset | xr.DataTree,
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
    """The field behind sparse readings, with the PDE's coefficients and source.

    Args:
        observation: an `Observation`, or a dataset in the layout of ``cases.nc``.
        family: the governing PDE, by name or as an object; may be left out where the observation names it.
        method: one of ``latentpde list methods``.
        num_draws: posterior draws per case.
        seed: same seed, same machine, same bits.
        bounds: intervals for coefficients by name, or all of them as a tensor ``(coefficient, 2)``; by default those
            that came with the observation, else the family's own.
        source_prior_std: the source's standard deviation beforehand; by default what came with the observation, else 0.5.
        num_modes: Fourier modes of the source per half axis; 0 for a PDE without one. By default 12, or what the
            observation says.
        options: the method's own, such as ``num_steps`` of ``map``.
    """
    if not isinstance(observation, Observation):
        observation = Observation.from_dataset(observation, family=family if isinstance(family, str) else None)
    if family is None and observation.family is None:
        raise UsageError("the observation does not name its PDE; give family= (on the command line --pde)")
    if num_draws < 1:
        raise UsageError(f"the number of draws must be at least 1, got {num_draws}")
    chosen = get_family(family if family is not None else observation.family or "")
    from_data = observation.family is not None and get_family(observation.family) is chosen
    known_std = observation.source_prior_std if from_data else None
    if num_modes is None:
        known_modes = observation.num_modes if from_data else None
        num_modes = 0 if known_std == 0 and source_prior_std is None else known_modes or DEFAULT_NUM_MODES
    latent = Latent(
        chosen,
        source_prior_std=source_prior_std if source_prior_std is not None else known_std or DEFAULT_SOURCE_PRIOR_STD,
        num_modes=num_modes,
        bounds=_bounds(chosen, bounds, observation.bounds if from_data else None),
    )
    estimator = make_estimator(method, **options)
    estimator.check_family(chosen)
    return estimator.estimate(observation, latent, num_draws=num_draws, seed=seed, show_progress=show_progress)


def make_estimator(method: str, **options) -> Estimator:
    """A method with some of its options changed."""
    kind = methods.get(method)
    known = [f.name for f in fields(kind)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UsageError(
            f"method {kind.name!r} has no option {', '.join(unknown)}; it has: {', '.join(known) or 'none'}"
        )
    return kind(**options)


def decoder_for(observation: Observation, latent: Latent) -> Decoder:
    return Decoder(latent, observation.grid.extent)


def _bounds(family: Family, given, known: Tensor | None) -> Tensor:
    base = family.bounds if known is None else known
    if given is None:
        return base
    if not isinstance(given, dict):
        return given
    base = base.clone()
    for name, interval in given.items():
        if name not in family.coefficient_names:
            raise UsageError(
                f"{family.name} has no coefficient {name!r}; it has: {', '.join(family.coefficient_names)}"
            )
        base[family.coefficient_names.index(name)] = base.new_tensor(list(interval))
    return base
