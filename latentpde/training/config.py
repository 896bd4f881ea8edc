"""What a training run is: one TOML file per family and size, checked before anything is computed."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from latentpde.errors import UsageError
from latentpde.nn.presets import PRESETS, NetworkSize
from latentpde.pde import families
from latentpde.simulation import regimes

Stage = Literal["encoder", "denoiser_enc", "denoiser_map", "denoiser_true"]
STAGES: tuple[Stage, ...] = ("encoder", "denoiser_enc", "denoiser_map", "denoiser_true")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class DataTable(_Table):
    """Where cases come from.

    Args:
        num_per_regime: training cases of each regime of the family.
        num_validation: validation cases of each.
        noise_std: of the readings.
        shape: the fine grid.
        pooling: fine cells per coarse cell and side.
        num_modes: of the source.
    """

    num_per_regime: int = Field(default=5000, ge=1)
    num_validation: int = Field(default=100, ge=1)
    noise_std: float = Field(default=0.15, gt=0)
    shape: tuple[int, int] = Field(default=(128, 128), strict=False)
    pooling: int = Field(default=4, ge=1)
    num_modes: int = Field(default=12, ge=1)


class StageTable(_Table):
    """How a network is trained.

    Args:
        epochs: passes over all cases.
        batch_size: cases per step and process; all of one regime.
        learning_rate: highest of the cosine.
        warmup: share of all steps in which the rate rises.
        weight_decay: of AdamW.
        clip: largest norm of the gradient.
        ema_decay: of the average that becomes the weights.
    """

    epochs: int = Field(ge=1)
    batch_size: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    warmup: float = Field(default=0.02, ge=0, le=1)
    weight_decay: float = Field(default=1e-4, ge=0)
    clip: float = Field(default=1.0, gt=0)
    ema_decay: float = Field(default=0.999, ge=0, lt=1)


class EncoderTable(StageTable):
    """The inference encoder.

    Args:
        latent_weight: ``lambda``, the penalty on the latent.
    """

    epochs: int = Field(default=400, ge=1)
    latent_weight: float = Field(default=0.01, ge=0)


class DenoiserTable(StageTable):
    """A denoiser.

    Args:
        obs_weight: ``lambda_obs``, of the observation term.
        coefficient_weight: of the coefficients' entries in the denoising loss, beside 1 for the source's. The best
            denoiser does not depend on it, but a few entries of hundreds are learnt slowly.
        draws: steps and noises per case and batch: what is known of a case takes longer than denoising it.
        drop: probability that the conditioning is dropped.
        num_steps, beta_start, beta_end: the schedule of noise.
        map_steps, map_restarts: of the MAP estimates that are its targets, where they are.
        map_draws: sets of readings per case that MAP estimates are made for; epochs take turns.
    """

    epochs: int = Field(default=600, ge=1)
    obs_weight: float = Field(default=0.1, ge=0)
    coefficient_weight: float = Field(default=1.0, gt=0)
    draws: int = Field(default=1, ge=1)
    drop: float = Field(default=0.1, ge=0, lt=1)
    num_steps: int = Field(default=400, ge=1)
    beta_start: float = Field(default=1e-4, gt=0, lt=1)
    beta_end: float = Field(default=0.02, gt=0, lt=1)
    map_steps: int = Field(default=300, ge=1)
    map_restarts: int = Field(default=3, ge=1)
    map_draws: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _rising(self) -> DenoiserTable:
        if self.beta_start > self.beta_end:
            raise ValueError(f"needs beta_start <= beta_end, got {self.beta_start} and {self.beta_end}")
        return self


class TrainingConfig(_Table):
    """A family's networks. A stage without a table is not trained.

    Args:
        family: of PDEs; all its regimes are trained together.
        preset: size of the networks.
        output: folder for data, checkpoints and, in the end, weights.
        seed: same seed, same machine, same bits.
        regimes: to train on, where not all of the family's.
        mixed_precision: ``bf16`` on hardware that gains from it.
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
        return PRESETS[self.preset]

    @property
    def regime_names(self) -> list[str]:
        own = [regime.name for regime in regimes if regime.family == self.family]
        wrong = sorted(set(self.regimes or []) - set(own))
        if wrong or not own:
            raise UsageError(f"{self.family} has the regimes {', '.join(own) or 'none'}; not {', '.join(wrong)}")
        return self.regimes or own

    @property
    def stages(self) -> list[Stage]:
        """Those that are trained, in the order that lets each use the ones before."""
        return [stage for stage in STAGES if getattr(self, stage) is not None]


def load_config(source: str | Path) -> TrainingConfig:
    """From a TOML file, or by the name of a shipped configuration such as ``helmholtz-compact``."""
    path = Path(source)
    shipped = files("latentpde.training") / "configs"
    if not path.suffix and not path.exists():
        names = sorted(entry.name.removesuffix(".toml") for entry in shipped.iterdir() if entry.name.endswith(".toml"))
        if str(source) not in names:
            raise UsageError(f"there is no file {source}; shipped configurations: {', '.join(names)}")
        text = (shipped / f"{source}.toml").read_text()
    else:
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not text"
            raise UsageError(f"cannot read the configuration {path}: {reason}") from error
    try:
        config = TrainingConfig.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not TOML: {error}") from error
    except ValidationError as error:
        raise UsageError(f"{source} is not a configuration: {_problems(error)}") from error
    if not config.stages:
        raise UsageError(f"{source} trains nothing; add at least one of the tables {', '.join(STAGES)}")
    _ = config.regime_names  # refuses unknown ones
    return config


def _problems(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, problem['loc'])) or 'file'}: {problem['msg']}" for problem in error.errors())
