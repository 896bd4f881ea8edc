"""Scenes of the page: a truth that the client may draw on, sensors that read it, and the posterior that follows.

The truth is a simulated case with what was drawn added to its initial state and its source. Sensors read it at the
family's usual time, with noise that belongs to the sensor, so that moving one does not roll the dice again. The
initial state is known as the benchmark knows it: its averages over 32 x 32 cells.
"""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.domain import Domain
from latentpde.errors import UsageError, no_warnings
from latentpde.estimators import reconstruct
from latentpde.grid import Grid, at_points, average_pool, crop_block, resample
from latentpde.latent import Latent, source_scale
from latentpde.observation import Observation
from latentpde.posterior import LatentPosterior, PDEPosterior
from latentpde.questions.design import suggest
from latentpde.simulation import simulate
from latentpde.simulation.regimes import Regime, regimes
from latentpde.web.drawing import drawn
from latentpde.web.models import LOOKS, MOST_SENSORS, OPENING, Drawing, Scene
from latentpde.web.picture import coefficient_results, encoded

FINE, POOLING = Grid((128, 128)), 4
_SOURCE_BRUSH = 2.5  # standard deviations of the source's prior that a brush of height 1 adds
_PRIOR_DRAWS = 128
_KEPT = 6  # posteriors that a worker keeps, for the time slider and for suggestions
#: Options of `exact`: enough draws for a smooth picture, and fewer while a sensor is on the move.
_FULL: dict[str, Any] = {"num_spread_draws": 96, "num_mean_nodes": 48}
_DRAFT: dict[str, Any] = {"num_spread_draws": 32, "num_mean_nodes": 24}


def catalogue(report: Any = None) -> dict:
    """The PDEs of the page and where to begin, as `latentpde.web.models.Catalogue`.

    >>> [example["regime"] for example in catalogue()["examples"]][:2]
    ['diffusion', 'advection']
    """
    examples = [
        {
            "regime": name,
            "family": regime.family,
            "equation": regime.pde.equation,
            "order": regime.pde.order,
            "reading_time": regime.time,
            "source_std": regime.source_prior_std,
        }
        for name, regime in ((name, regimes.get(name)) for name in regimes.names())
    ]
    return {"examples": examples, "opening": OPENING.model_dump(mode="json")}


class Truth:
    """The field behind a scene, exactly.

    >>> truth = Truth(Scene(regime="helmholtz"))
    >>> truth.field(Grid((64, 64)), 1.0).shape
    torch.Size([64, 64])
    """

    def __init__(self, scene: Scene):
        self.regime: Regime = regimes.get(scene.regime)
        theta, q, initial = _example(scene.regime, scene.seed)
        self.theta = theta
        bounds = torch.tensor(self.regime.ranges, dtype=torch.float64)
        self.latent = Latent(self.regime.pde, self.regime.source_prior_std, bounds=bounds)
        self.decoder = Decoder(self.latent, FINE.extent)
        self.initial = _base(initial, scene.start) + drawn(scene.start, FINE)
        brush = _SOURCE_BRUSH * self.regime.source_prior_std * drawn(scene.source, FINE)
        self.z = self.latent.pack(theta, _base(q, scene.source) + source_latent(self.latent, brush))

    @property
    def coarse_initial(self) -> Float[Tensor, "y x"]:
        return average_pool(self.initial, POOLING)

    def spectrum(self, relative_time: float) -> Tensor:
        when = [relative_time * self.regime.time]
        return self.decoder.spectrum(self.z, FINE.analyse(self.initial), when)[0]

    def field(self, grid: Grid, relative_time: float) -> Float[Tensor, "y x"]:
        """At a time in units of the reading time."""
        return grid.synthesise(self.spectrum(relative_time))

    def source(self, grid: Grid) -> Float[Tensor, "y x"]:
        return self.decoder.source(self.z, grid)


def _base(field: Tensor, drawing: Drawing) -> Tensor:
    return torch.zeros_like(field) if drawing.blank else field


@lru_cache(maxsize=32)
def _example(regime: str, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Coefficients, source and initial state of a simulated case."""
    truth = simulate(regime, num=1, seed=seed, observed="point")["truth"].to_dataset().isel(case=0)
    theta, q, initial = (
        torch.from_numpy(truth[name].values).double() for name in ("coefficients", "source", "initial")
    )
    return theta, q, initial


def source_latent(latent: Latent, source: Float[Tensor, "y x"]) -> Float[Tensor, " source"]:
    """The numbers of a latent whose source is nearest to a field on `FINE`: its modes that the latent can hold.

    >>> from latentpde.pde import get_family
    >>> latent = Latent(get_family("helmholtz"), num_modes=4)
    >>> wave = torch.sin(4 * torch.pi * FINE.coordinates()[0])[:, None].expand(FINE.shape)
    >>> again = FINE.synthesise(latent.source_spectrum(source_latent(latent, wave)))
    >>> torch.allclose(again, wave)
    True
    """
    m = latent.num_modes
    block = crop_block(FINE.analyse(source), (2 * m, m)).clone()
    block[m] = 0  # the mode -M has no partner M in the block
    parts = torch.stack([block.real, block.imag]).unflatten(1, (2, m)).transpose(0, 1)
    return parts.flatten() / source_scale(m)


def observe(scene: Scene, truth: Truth) -> Observation:
    """What the sensors read, with the coarse initial state; without a sensor, an observation of nothing."""
    positions = torch.tensor([[s.y, s.x] for s in scene.sensors], dtype=torch.float64).reshape(-1, 2)
    clean = at_points(truth.spectrum(1.0), positions, FINE.extent)
    noise = [_noise(scene.seed, sensor.id) for sensor in scene.sensors]
    values = clean + scene.noise_std * torch.tensor(noise, dtype=torch.float64)
    known: dict[str, Any] = {
        "grid": FINE.coarsen(POOLING),
        "domain": Domain.periodic(),
        "pooling": POOLING,
        "family": truth.regime.family,
        "bounds": truth.latent.bounds,
        "source_prior_std": truth.regime.source_prior_std,
        "num_modes": truth.latent.num_modes,
    }
    if scene.sensors:
        return Observation.from_arrays(
            values,
            truth.coarse_initial,
            times=[truth.regime.time],
            noise_std=scene.noise_std,
            positions=positions,
            keep_outliers=True,
            **known,
        )
    nothing = torch.zeros((1, 1, 0), dtype=torch.float64)
    return Observation(
        values=nothing,
        mask=nothing.bool(),
        noise_std=nothing,
        times=torch.tensor([truth.regime.time], dtype=torch.float64),
        initial=truth.coarse_initial[None],
        observed="point",
        positions=positions[None],
        batched=False,
        **known,
    )


def _noise(seed: int, sensor: int) -> float:
    """Standard normal, and the same for a sensor wherever it stands."""
    return float(np.random.default_rng([7, seed, sensor]).standard_normal())


def _posterior(scene: Scene, truth: Truth) -> PDEPosterior:
    observation = observe(scene, truth)
    if scene.sensors:
        with no_warnings():
            found = reconstruct(observation, num_draws=8, seed=0, **(_DRAFT if scene.draft else _FULL))
        assert isinstance(found, PDEPosterior)
        return found
    return LatentPosterior(
        observation=observation,
        method="prior",
        decoder=truth.decoder,
        z=truth.latent.draw(_PRIOR_DRAWS, generator=torch.Generator().manual_seed(0))[None],
        initial_hat=observation.initial_spectrum()[:, None],
    )


@lru_cache(maxsize=_KEPT)
def _solved(scene_json: str) -> tuple[Truth, PDEPosterior]:
    scene = Scene.model_validate_json(scene_json)
    truth = Truth(scene)
    return truth, _posterior(scene, truth)


def _known(scene: Scene) -> tuple[Truth, PDEPosterior]:
    """Truth and posterior; what only says how to look at them makes no difference."""
    return _solved(scene.model_copy(update=LOOKS).model_dump_json())


def picture_of(report: Any, scene: dict) -> dict:
    """What is known of a scene, as `latentpde.web.models.Picture`."""
    begun = time.perf_counter()
    asked = Scene.model_validate(scene)
    truth, posterior = _known(asked)
    grid, one = FINE.with_shape((asked.resolution, asked.resolution)), slice(0, 1)
    when = torch.tensor([asked.time * truth.regime.time], dtype=torch.float64)
    makers = {
        "mean": lambda: posterior.means(one, grid, when)[0, 0],
        "std": lambda: posterior.spreads(one, grid, when).std[0, 0],
        "source": lambda: posterior.source_means(one, grid)[0],
        "source_std": lambda: posterior.source_stds(one, grid)[0],
        "start": lambda: resample(truth.initial, FINE, grid),
        "truth": lambda: truth.field(grid, asked.time),
        "true_source": lambda: truth.source(grid),
    }
    with torch.no_grad():
        layers = {name: makers[name]() for name in dict.fromkeys(asked.layers)}
    values = posterior.observation.values.flatten().tolist()
    return {
        "time": asked.time,
        "layers": {name: encoded(field) for name, field in layers.items()},
        "scale": {"field": _size(truth.field(FINE, asked.time)), "source": _size(truth.source(FINE))},
        "coefficients": coefficient_results(posterior, truth.theta if "truth" in layers else None),
        "readings": [{"id": s.id, "value": value} for s, value in zip(asked.sensors, values, strict=True)],
        "scores": _scores(layers),
        "notes": posterior.warnings(0),
        "seconds": time.perf_counter() - begun,
    }


def _size(field: Tensor) -> float:
    """What all but a few values of a field stay below."""
    return float(field.abs().flatten().quantile(0.995))


def _scores(layers: dict[str, Tensor]) -> dict | None:
    if not {"truth", "mean", "std"} <= layers.keys():
        return None
    error = (layers["truth"] - layers["mean"]).abs()
    return {
        "rmse": float(error.square().mean().sqrt()),
        "within_two_std": float((error <= 2 * layers["std"]).double().mean()),
    }


def suggestion_for(report: Any, scene: dict) -> dict:
    """Where one more sensor would help most, as `latentpde.web.models.Place`."""
    asked = Scene.model_validate(scene)
    if len(asked.sensors) >= MOST_SENSORS:
        raise UsageError("there are as many sensors as the page takes; remove one first")
    posterior = _known(asked)[1]
    if not asked.sensors:  # nothing was read yet, so the least known place is the one to begin with
        return _least_known(posterior)
    found = suggest(posterior, num=1)
    y, x, _ = found.candidates[found.chosen[0]].tolist()
    return {"y": min(max(y, 0.0), 1.0), "x": min(max(x, 0.0), 1.0)}


def _least_known(posterior: PDEPosterior) -> dict:
    grid = FINE.with_shape((64, 64))
    with torch.no_grad():
        std = posterior.spreads(slice(0, 1), grid, posterior.observation.times).std[0, 0]
    row, column = divmod(int(std.argmax()), grid.shape[1])
    y, x = grid.coordinates()
    return {"y": float(y[row]), "x": float(x[column])}
