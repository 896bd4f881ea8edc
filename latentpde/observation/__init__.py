"""What was measured."""

from latentpde.observation.checks import Observed, some_of
from latentpde.observation.observation import Observation

__all__ = ["Observation", "Observed", "some_of"]
