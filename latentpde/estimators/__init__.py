"""Methods. A new one is a file like its neighbours and a line below; packages add theirs with an entry point of
the group ``latentpde.methods``."""

from latentpde.estimators.assimilation.enkf import EnKF
from latentpde.estimators.assimilation.var3d import Var3D
from latentpde.estimators.base import Estimator, make_estimator, methods, reconstruct
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.kriging import Kriging
from latentpde.estimators.learned.diffusion import EncDiffusion, MapDiffusion
from latentpde.estimators.learned.enc import Enc
from latentpde.estimators.map import Map
from latentpde.estimators.pinn.estimator import Pinn

__all__ = ["Estimator", "make_estimator", "methods", "reconstruct"]

for _method in (Exact, Map, Enc, MapDiffusion, EncDiffusion, Pinn, Var3D, EnKF, Kriging):
    methods.register(_method.name, _method)
