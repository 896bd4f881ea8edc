"""The exact posterior: the source is integrated out, the coefficients are sampled globally."""

from latentpde.estimators.exact.estimator import Exact, ExactPosterior

__all__ = ["Exact", "ExactPosterior"]
