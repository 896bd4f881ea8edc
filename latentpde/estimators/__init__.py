"""Methods. A new one is a file like its neighbours and a line below; packages add theirs with an entry point of
the group ``latentpde.methods``."""

from latentpde.estimators.base import Estimator, make_estimator, methods, reconstruct

__all__ = ["Estimator", "make_estimator", "methods", "reconstruct"]

# Places, not classes: a method's networks and solvers are imported when it is asked for.
for _name, _place in (
    ("exact", "exact.estimator:Exact"),
    ("map", "map:Map"),
    ("enc", "learned.enc:Enc"),
    ("map_diffusion", "learned.diffusion:MapDiffusion"),
    ("enc_diffusion", "learned.diffusion:EncDiffusion"),
    ("pinn", "pinn.estimator:Pinn"),
    ("3dvar", "assimilation.var3d:Var3D"),
    ("enkf", "assimilation.enkf:EnKF"),
    ("kriging", "kriging:Kriging"),
    ("fundps", "fundps.estimator:FunDPS"),
):
    methods.declare(_name, f"{__name__}.{_place}")
