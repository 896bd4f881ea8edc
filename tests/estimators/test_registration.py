"""The table of methods knows them all and imports those alone that are asked for."""

from __future__ import annotations

import subprocess
import sys

from latentpde.estimators import methods


def test_methods_are_registered_by_their_own_names():
    assert [method.name for method in methods] == list(methods.names())


def test_exact_imports_no_network_and_no_other_method():
    code = """
import sys, numpy as np, latentpde as lp
data = lp.Observation.from_arrays(np.ones((4, 4)), initial=np.eye(4), noise_std=0.1)
lp.reconstruct(data, "helmholtz", method="exact", num_modes=1, num_draws=2)
others = ("nn", "diffusion", "training", "estimators.map", "estimators.learned", "estimators.pinn",
          "estimators.assimilation", "estimators.kriging")
unwanted = ["safetensors", *(f"latentpde.{name}" for name in others)]
print(*(name for name in unwanted if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
