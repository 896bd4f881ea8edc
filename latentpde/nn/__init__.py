"""Networks: an encoder from readings and initial state to a latent, and a denoiser from a noisy latent to its noise."""

from latentpde.nn.denoiser import Denoiser
from latentpde.nn.encoders import Conditions, SparseEncoder, StateEncoder
from latentpde.nn.inference import InferenceEncoder
from latentpde.nn.presets import PRESETS, NetworkSize
from latentpde.nn.units import Units

__all__ = [
    "PRESETS",
    "Conditions",
    "Denoiser",
    "InferenceEncoder",
    "NetworkSize",
    "SparseEncoder",
    "StateEncoder",
    "Units",
]
