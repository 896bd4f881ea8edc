"""Methods. A new one is a file like its neighbours and a line below; packages add theirs with an entry point of
the group ``latentpde.methods``."""

from latentpde.estimators.base import Estimator, make_estimator, methods, reconstruct
from latentpde.estimators.exact import Exact
from latentpde.estimators.map import Map

__all__ = ["Estimator", "make_estimator", "methods", "reconstruct"]

for _method in (Exact, Map):
    methods.register(_method.name, _method)
