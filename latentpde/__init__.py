"""Reconstruct whole fields, their PDE's coefficients and its source from sparse readings.

The public names load on first use, so that importing the package costs nothing.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "Coefficient": "latentpde.pde",
    "DataError": "latentpde.errors",
    "Decoder": "latentpde.decoder",
    "Domain": "latentpde.domain",
    "Estimator": "latentpde.estimators",
    "Family": "latentpde.pde",
    "Frame": "latentpde.frame",
    "Grid": "latentpde.grid",
    "Latent": "latentpde.latent",
    "LatentPDEError": "latentpde.errors",
    "LatentPDEWarning": "latentpde.errors",
    "Matern": "latentpde.spectra",
    "Observation": "latentpde.observation",
    "Posterior": "latentpde.posterior",
    "PowerLaw": "latentpde.spectra",
    "Spectrum": "latentpde.spectra",
    "UsageError": "latentpde.errors",
    "WhiteBand": "latentpde.spectra",
    "check": "latentpde.inspection",
    "check_model": "latentpde.questions.model_check",
    "compare": "latentpde.questions.families",
    "holdout": "latentpde.scores.holdout",
    "identifiability": "latentpde.questions.identifiability",
    "open_cases": "latentpde.io.netcdf",
    "read": "latentpde.io.read",
    "reconstruct": "latentpde.questions.families",
    "reconstruct_many": "latentpde.scheduling.reconstruct",
    "register_family": "latentpde.pde",
    "suggest": "latentpde.questions.design",
    "simulate": "latentpde.simulation",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'latentpde' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
