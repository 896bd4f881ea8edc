"""The configuration of a training: one TOML file per family and size, checked before anything is computed.

Each class here is a table of that file, and its fields are explained where they are declared.
"""

from __future__ import annotations

import os
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from latentpde.diffusion import Schedule
from latentpde.errors import UsageError
from latentpde.estimators.map import Map
from latentpde.io.files import check_readable
from latentpde.nn.encoders import SMALLEST_SIDE
from latentpde.nn.presets import PRESETS, NetworkSize
from latentpde.pde import families
from latentpde.simulation import regimes
from latentpde.validation import MOST, shortened

Stage = Literal["encoder", "denoiser_enc", "denoiser_map", "denoiser_true", "fundps"]
_LARGEST = 1e6  # networks compute in single precision
STAGES: tuple[Stage, ...] = ("encoder", "denoiser_enc", "denoiser_map", "denoiser_true", "fundps")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _sensible(self) -> _Table:
        for name, value in self:
            for number in value if isinstance(value, tuple) else (value,):
                most = 2**32 - 1 if name == "seed" else MOST if isinstance(number, int) else _LARGEST
                if isinstance(number, int | float) and abs(number) > most:
                    raise ValueError(f"{name} must be at most {most}, got {shortened(number)}")
        return self


class DataTable(_Table):
    """``[data]``: the simulated cases that networks are trained and validated on.

    >>> DataTable(num_per_regime=200).shape
    (128, 128)

    Args:
        num_per_regime: training cases of each regime.
        num_validation: validation cases of each regime.
        noise_std: standard deviation of the readings' noise.
        shape: cells ``(ny, nx)`` of the fine grid that cases are simulated on.
        pooling: fine cells per coarse cell and axis; readings are of coarse cells.
        num_modes: Fourier modes of the source per half axis.
        bounds: the bounds that latents are relative to: each ``regime``'s own, or those of the ``family`` for all.
            Coefficients are drawn from the regime's either way.
    """

    num_per_regime: int = Field(default=5000, ge=1)
    num_validation: int = Field(default=100, ge=1)
    noise_std: float = Field(default=0.15, gt=0)
    shape: tuple[int, int] = Field(default=(128, 128), strict=False)
    pooling: int = Field(default=4, ge=1)
    num_modes: int = Field(default=12, ge=1)
    bounds: Literal["regime", "family"] = "regime"


class StageTable(_Table):
    """How any network is trained: by AdamW, with a learning rate that rises along a line and falls along a cosine.

    >>> StageTable(epochs=10, learning_rate=2e-3).batch_size
    64

    Args:
        epochs: passes over all training cases.
        batch_size: cases per step and process; all of one regime.
        learning_rate: the highest learning rate.
        warmup: share of all steps in which the learning rate rises, from 0 to 1.
        weight_decay: AdamW's weight decay.
        clip: largest norm of the gradient of all parameters; a longer one is shortened.
        ema_decay: decay per step of the moving average of the parameters, which becomes the weights.
    """

    epochs: int = Field(ge=1)
    batch_size: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    warmup: float = Field(default=0.02, ge=0, le=1)
    weight_decay: float = Field(default=1e-4, ge=0)
    clip: float = Field(default=1.0, gt=0)
    ema_decay: float = Field(default=0.999, ge=0, lt=1)


class EncoderTable(StageTable):
    """``[encoder]``: the inference encoder, which `enc` uses. It also takes what `StageTable` has.

    >>> EncoderTable(latent_weight=0.1).epochs
    400

    Args:
        latent_weight: ``lambda``, the weight of the penalty on the latent's squared norm.
    """

    epochs: int = Field(default=400, ge=1)
    latent_weight: float = Field(default=0.01, ge=0)


class DenoiserTable(StageTable):
    """``[denoiser_enc]``, ``[denoiser_map]`` and ``[denoiser_true]``: a denoiser for each kind of target, the latents
    that it learns: the encoder's, MAP estimates, or the simulator's own. It also takes what `StageTable` has.

    >>> DenoiserTable(num_steps=200, beta_end=0.1).drop
    0.1

    Args:
        obs_weight: ``lambda_obs``, the weight of the observation term in the loss.
        coefficient_weight: weight of the coefficients' entries in the denoising loss, where the source's have 1. The
            best denoiser does not depend on it, but a few entries among hundreds are learnt slowly.
        noises_per_case: diffusion steps and noises that each case of a batch is shown with: embedding a case takes
            longer than denoising it.
        drop: probability that a case's conditioning is dropped, so that the network learns to do without.
        num_steps, beta_start, beta_end: the noise schedule (`latentpde.diffusion.Schedule`).
        map_steps, map_restarts: ``num_steps`` and ``num_restarts`` of `map`, where MAP estimates are the targets.
        map_reading_sets: sets of readings per case that MAP estimates are made for; epochs take turns.
    """

    epochs: int = Field(default=600, ge=1)
    obs_weight: float = Field(default=0.1, ge=0)
    coefficient_weight: float = Field(default=1.0, gt=0)
    noises_per_case: int = Field(default=1, ge=1)
    drop: float = Field(default=0.1, ge=0, lt=1)
    num_steps: int = Field(default=Schedule.num_steps, ge=1)
    beta_start: float = Field(default=Schedule.beta_start, gt=0, lt=1)
    beta_end: float = Field(default=Schedule.beta_end, gt=0, lt=1)
    map_steps: int = Field(default=Map.num_steps, ge=1)
    map_restarts: int = Field(default=Map.num_restarts, ge=1)
    map_reading_sets: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _rising(self) -> DenoiserTable:
        if self.beta_start > self.beta_end:
            raise ValueError(f"needs beta_start <= beta_end, got {self.beta_start} and {self.beta_end}")
        return self


class FunDPSTable(StageTable):
    """``[fundps]``: the denoiser of joint fields, which `fundps` uses. It also takes what `StageTable` has.

    >>> FunDPSTable(fine_epochs=20).coarsening
    2

    Args:
        fine_epochs: how many of the last epochs are on the data's own grid; those before are on a coarser one.
        coarsening: cells of the data's grid per side of a cell of the coarser one.
        log_sigma_mean, log_sigma_std: mean and standard deviation of the logarithm of the noise's level, which is in
            standard deviations of the fields.
        sigma_data: standard deviation that the preconditioning takes fields to have.
        noise_length: correlation length of the noise, relative to the sides of the rectangle; at most 0.1.
    """

    epochs: int = Field(default=400, ge=1)
    fine_epochs: int = Field(default=0, ge=0)
    coarsening: int = Field(default=2, ge=1)
    log_sigma_mean: float = -1.2
    log_sigma_std: float = Field(default=1.2, gt=0)
    sigma_data: float = Field(default=0.5, gt=0)
    noise_length: float = Field(default=0.05, gt=0, le=0.1)


class TrainingConfig(_Table):
    """The training of a family's networks: the top level of the file. A stage without a table is not trained.

    >>> config = TrainingConfig(family="helmholtz", output="runs/helmholtz", encoder=EncoderTable(epochs=8))
    >>> config.stages, config.regime_names
    (['encoder'], ['helmholtz'])

    Args:
        family: name of the PDE family.
        preset: size of the networks, a name of `latentpde.nn.PRESETS`.
        output: folder for data, checkpoints and, in the end, weights.
        seed: seed of cases, readings and networks; the same seed gives the same bits on the same machine.
        regimes: names of the regimes to train on together; by default all of the family's.
        mixed_precision: ``no``, or ``bf16`` on hardware that gains from it.
        data: the simulated cases.
        encoder, denoiser_enc, denoiser_map, denoiser_true, fundps: the stages, one network each.
    """

    family: str
    preset: str = "compact"
    output: str
    seed: int = Field(default=0, ge=0)
    regimes: list[str] | None = None
    mixed_precision: Literal["no", "bf16"] = "no"
    data: DataTable = DataTable()
    encoder: EncoderTable | None = None
    denoiser_enc: DenoiserTable | None = None
    denoiser_map: DenoiserTable | None = None
    denoiser_true: DenoiserTable | None = None
    fundps: FunDPSTable | None = None

    @field_validator("preset")
    @classmethod
    def _known_preset(cls, preset: str) -> str:
        if preset not in PRESETS:
            raise ValueError(f"must be one of {', '.join(PRESETS)}")
        return preset

    @field_validator("family")
    @classmethod
    def _known_family(cls, family: str) -> str:
        return families.get(family).name

    @property
    def size(self) -> NetworkSize:
        """The size of the networks."""
        return PRESETS[self.preset]

    @property
    def regime_names(self) -> list[str]:
        """Names of the regimes to train on; raises `UsageError` where one is not of the family."""
        own = [regime.name for regime in regimes if regime.family == self.family]
        wrong = sorted(set(self.regimes or []) - set(own))
        if wrong or not own:
            raise UsageError(f"{self.family} has the regimes {', '.join(own) or 'none'}; not {', '.join(wrong)}")
        return self.regimes or own

    @property
    def stages(self) -> list[Stage]:
        """The stages that are trained, in an order that lets each use the ones before."""
        return [stage for stage in STAGES if getattr(self, stage) is not None]


def load_config(source: str | Path) -> TrainingConfig:
    """Read and check a configuration; raises `UsageError` that names every field that is wrong.

    Args:
        source: a TOML file, or the name of a shipped configuration.

    Example:
        >>> config = load_config("helmholtz-compact")
        >>> config.stages
        ['encoder', 'denoiser_enc', 'denoiser_map', 'denoiser_true']
        >>> config.denoiser_map.map_steps
        80
    """
    path = Path(source)
    shipped = files("latentpde.training") / "configs"
    if not path.suffix and not os.path.lexists(path):
        names = sorted(entry.name.removesuffix(".toml") for entry in shipped.iterdir() if entry.name.endswith(".toml"))
        if str(source) not in names:
            raise UsageError(f"there is no file {shortened(str(source))}; shipped configurations: {', '.join(names)}")
        text = (shipped / f"{source}.toml").read_text("utf-8")
    else:
        check_readable(path, "configuration")
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"cannot read the configuration {path}: it is not text") from error
    try:
        config = TrainingConfig.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{source} is not TOML: {error}") from error
    except ValidationError as error:
        raise UsageError(f"{source} is not a configuration: {_problems(error)}") from error
    if not config.stages:
        raise UsageError(f"{source} trains nothing; add at least one of the tables {', '.join(STAGES)}")
    _ = config.regime_names  # refuses unknown ones
    side = min(config.data.shape) // config.data.pooling
    if side < SMALLEST_SIDE:
        raise UsageError(
            f"data.shape over data.pooling leaves {side} cells along a side; networks need at least {SMALLEST_SIDE}"
        )
    return config


def _problems(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, problem['loc'])) or 'file'}: {problem['msg']}" for problem in error.errors())
