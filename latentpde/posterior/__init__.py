"""What an estimator returns."""

from latentpde.posterior.pde import InitialStates, LatentPosterior, PDEPosterior
from latentpde.posterior.posterior import CHUNK_VALUES, DEFAULT_RESOLUTION, Posterior, Resolution, output_grid

__all__ = [
    "CHUNK_VALUES",
    "DEFAULT_RESOLUTION",
    "InitialStates",
    "LatentPosterior",
    "PDEPosterior",
    "Posterior",
    "Resolution",
    "output_grid",
]
