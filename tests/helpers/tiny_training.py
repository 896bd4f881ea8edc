"""A training run that takes a second."""

from latentpde.training.config import TrainingConfig

DATA = {"num_per_regime": 8, "num_validation": 3, "shape": [32, 32], "num_modes": 2}
DENOISER = {"epochs": 3, "batch_size": 4, "num_steps": 20, "beta_end": 0.3, "map_steps": 5, "map_restarts": 1}


def config(folder, **tables):
    known = {"family": "helmholtz", "preset": "tiny", "output": str(folder), "data": DATA}
    return TrainingConfig.model_validate({**known, **tables})
