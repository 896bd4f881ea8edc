"""Diffusion over latents: the noise schedule, the reverse chain, and guidance by the readings."""

from latentpde.diffusion.guidance import Guidance
from latentpde.diffusion.sampler import ReverseChain
from latentpde.diffusion.schedule import Schedule

__all__ = ["Guidance", "ReverseChain", "Schedule"]
