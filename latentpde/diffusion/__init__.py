"""Diffusion over latents: the schedule of noise, the reverse chain, and the physics that guides it."""

from latentpde.diffusion.guidance import Guidance
from latentpde.diffusion.sampler import ReverseChain
from latentpde.diffusion.schedule import Schedule

__all__ = ["Guidance", "ReverseChain", "Schedule"]
