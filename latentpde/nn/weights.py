"""Trained networks on disk: a file of tensors and a manifest that says what they are.

A folder of weights holds, per family and role, ``<family>-<role>.safetensors`` and ``<family>-<role>.json``; roles
are ``encoder``, ``denoiser_map``, ``denoiser_enc``, ``denoiser_true``, after the latents that a denoiser has learnt,
and ``fundps``, the denoiser of joint fields. Networks are stored in half precision and computed in single. Nothing is
loaded that does not fit its manifest, the family and this version.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from safetensors.torch import load, save
from torch import Tensor, nn

from latentpde.diffusion.edm import FieldDenoiser, Preconditioning
from latentpde.diffusion.random_fields import RandomField
from latentpde.diffusion.schedule import Schedule
from latentpde.errors import DataError, UsageError
from latentpde.io.files import reason, write_bytes
from latentpde.latent import Latent, Statistics
from latentpde.nn import Denoiser, InferenceEncoder, NetworkSize, Units
from latentpde.nn.fields import NUM_CHANNELS, FieldStatistics
from latentpde.nn.neural_operator import NeuralOperator, OperatorSize
from latentpde.pde import Family
from latentpde.validation import explain

FORMAT = 1
SHIPPED = "shipped"
FUNDPS = "fundps"
MOST_MODES = 1000


class Manifest(BaseModel):
    """What a file of weights is, and how it came to be.

    Args:
        format: version of this layout.
        family, coefficients: the PDE family and the names of its coefficients, in order.
        role: which network it is.
        size: the fields of its `NetworkSize`.
        num_modes: Fourier modes of its source per half axis.
        mean, std: mean and standard deviation of the latents that it has learnt, in its units, or of FunDPS's channels;
            None for the encoder.
        power: mean squared Fourier amplitudes of FunDPS's channels, by distance from mode zero.
        schedule: the fields of its noise `Schedule`; None for the encoder.
        training: configuration, length and final losses of the training.
        conditions: what it was trained on: grid, times, noise, regimes and their priors.
        latentpde: version of the package that wrote it.
        sha256: hash of the file of tensors.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    format: int
    family: str
    coefficients: list[str]
    role: str
    size: dict[str, Any]
    num_modes: int
    mean: list[float] | None = None
    std: list[float] | None = None
    power: list[list[float]] | None = None
    schedule: dict[str, float] | None = None
    training: dict[str, Any]
    conditions: dict[str, Any]
    latentpde: str
    sha256: str = ""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network with what is needed to use it, from `load_weights`."""

    network: nn.Module
    manifest: Manifest

    @property
    def statistics(self) -> Statistics:
        """Mean and standard deviation that a denoiser's latents are normalised by."""
        mean, std = self.manifest.mean, self.manifest.std
        assert mean is not None
        assert std is not None
        return Statistics(torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64))

    @property
    def field_statistics(self) -> FieldStatistics:
        """Of the joint fields that FunDPS's network has learnt."""
        parts = (self.manifest.mean, self.manifest.std, self.manifest.power)
        return FieldStatistics(*(torch.tensor(part, dtype=torch.float64) for part in parts))

    @property
    def noise(self) -> RandomField:
        """That FunDPS's network has learnt to remove."""
        return RandomField((self.manifest.schedule or {})["noise_length"])

    @property
    def schedule(self) -> Schedule:
        """The noise schedule that a denoiser was trained with."""
        values = dict(self.manifest.schedule or {})
        return Schedule(num_steps=int(values.pop("num_steps")), **values)

    @property
    def num_parameters(self) -> int:
        """Number of the network's parameters."""
        return sum(p.numel() for p in self.network.parameters())

    def units(self, latent: Latent) -> Units:
        """The way between some raw latents and the network's units."""
        return _units(self.manifest, latent)


def build(role: str, size: NetworkSize, num_latent: int, num_prior: int) -> InferenceEncoder | Denoiser:
    """A network that is not trained yet.

    Args:
        role: ``encoder``, or any other for a denoiser.
        size: widths and depths.
        num_latent: number of entries of the latent.
        num_prior: number of entries of the vector that describes the prior.
    """
    kind = InferenceEncoder if role == "encoder" else Denoiser
    return kind(size, num_latent, num_prior)


def build_fields(size: OperatorSize, sigma_data: float) -> FieldDenoiser:
    """FunDPS's network, as yet untrained."""
    return FieldDenoiser(NeuralOperator(size, NUM_CHANNELS), Preconditioning(sigma_data))


def save_weights(folder: Path, state: dict[str, Tensor], manifest: Manifest) -> Path:
    """Write a network's parameters and their manifest; returns the manifest's path.

    Args:
        folder: made where it is missing.
        state: the parameters, by name; written in half precision.
        manifest: the hash of the tensors is filled in.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = save({name: value.detach().cpu().half().contiguous() for name, value in state.items()})
    manifest = manifest.model_copy(update={"sha256": hashlib.sha256(content).hexdigest()})
    base = folder / f"{manifest.family}-{manifest.role}"
    write_bytes(base.with_suffix(".safetensors"), content)
    write_bytes(base.with_suffix(".json"), (manifest.model_dump_json(indent=1) + "\n").encode())
    return base.with_suffix(".json")


def load_weights(role: str, family: Family, weights: str | Path = SHIPPED) -> Trained:
    """Load a trained network, ready to use.

    Raises `UsageError` where there is none, and `DataError` where its files are damaged, do not belong together, or are
    for another family or version.

    Args:
        role: ``encoder``, or ``denoiser_`` and the kind of latents that it has learnt.
        family: the PDE family that it must be for.
        weights: the folder it is in; by default the one that comes with the package.

    Example:
        >>> from latentpde.pde import get_family
        >>> denoiser = load_weights("denoiser_true", get_family("helmholtz"))
        >>> denoiser.schedule
        Schedule(num_steps=400, beta_start=0.00025, beta_end=0.05)
        >>> denoiser.manifest.conditions["noise_std"]
        0.15
    """
    folder = Path(str(files("latentpde.nn") / "trained")) if str(weights) == SHIPPED else Path(weights)
    base = folder / f"{family.name}-{role}"
    manifest = _manifest(base.with_suffix(".json"), role, family, shipped=str(weights) == SHIPPED)
    path = base.with_suffix(".safetensors")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}, which its manifest describes: {error.strerror}") from error
    if hashlib.sha256(content).hexdigest() != manifest.sha256:
        raise DataError(
            f"{path} is not the file that its manifest describes (SHA-256 differs): it is damaged, truncated or was "
            "exchanged; copy both files again or train anew"
        )
    try:
        tensors = load(content)
        _check_depth(manifest.size, len(tensors))
        network = _described(manifest, family)
        network.load_state_dict({name: value.float() for name, value in tensors.items()}, assign=True)
        trained = Trained(network.eval().requires_grad_(False), manifest)
        if role == FUNDPS:
            _ = trained.noise
        elif role != "encoder":
            _ = trained.schedule
    except Exception as error:  # sizes that cannot be make torch raise many kinds
        raise DataError(f"{path} does not hold the network that its manifest describes: {error}") from error
    return trained


def _check_depth(size: dict[str, Any], num_tensors: int) -> None:
    """Refuse a network with more layers than the file has tensors, which would take for ever to put together."""
    for name in ("encoder_layers", "denoiser_blocks", "blocks"):
        if isinstance(depth := size.get(name), int) and depth > num_tensors:
            raise DataError(f"{name} is {depth}, and the file holds {num_tensors} tensors")


def _described(manifest: Manifest, family: Family) -> nn.Module:
    """The network of a manifest without its numbers: a random beginning would touch torch's global randomness."""
    units = _units(manifest, Latent(family))
    with torch.device("meta"):
        if manifest.role == FUNDPS:
            return build_fields(OperatorSize.from_record(manifest.size), (manifest.schedule or {})["sigma_data"])
        return build(manifest.role, NetworkSize.from_record(manifest.size), units.size, units.num_prior)


def _units(manifest: Manifest, latent: Latent) -> Units:
    return Units(latent, manifest.num_modes, raw=not manifest.size.get("told_prior", True))


def _manifest(path: Path, role: str, family: Family, *, shipped: bool) -> Manifest:
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        content = None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {reason(error)}; give another folder as option weights") from error
    if content is None:
        what = f"weights of the {role} for {family.name}"
        where = "come with this version" if shipped else f"are in {path.parent} (no {path.name})"
        raise UsageError(
            f"no {what} {where}; train them with `latentpde train CONFIG.toml`, and give the folder it writes as "
            "option weights"
        )
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        raise DataError(f"{path} is not a manifest of weights, or is damaged: {explain(error)}") from error
    if manifest.format != FORMAT:
        raise DataError(
            f"{path} has format {manifest.format} (written by latentpde {manifest.latentpde}), and this version reads "
            f"format {FORMAT}; train anew or use the other version"
        )
    if manifest.family != family.name or manifest.role != role:
        raise DataError(
            f"{path} is for the {manifest.role} of {manifest.family}, not the {role} of {family.name}; was it renamed?"
        )
    if tuple(manifest.coefficients) != family.coefficient_names:
        raise DataError(
            f"{path} was trained for the coefficients {', '.join(manifest.coefficients)}; {family.name} has "
            f"{', '.join(family.coefficient_names)}"
        )
    if role == FUNDPS:
        counts = {len(part or []) for part in (manifest.mean, manifest.std, manifest.power)}
        if counts != {NUM_CHANNELS} or set(manifest.schedule or {}) != {"sigma_data", "noise_length"}:
            raise DataError(f"{path} lacks the statistics of its {NUM_CHANNELS} channels, or what noise they were in")
        return manifest
    if not 0 <= manifest.num_modes <= MOST_MODES or (manifest.std and min(manifest.std) <= 0):
        raise DataError(f"{path} has a num_modes below 0 or beyond {MOST_MODES}, or a std that is not positive")
    size = len(manifest.coefficients) + 4 * manifest.num_modes**2
    if role != "encoder" and not (len(manifest.mean or []) == len(manifest.std or []) == size and manifest.schedule):
        raise DataError(f"{path} lacks the normalisation of its {size} latent entries, or the noise schedule")
    return manifest
