"""What others have published on the same tasks: relative errors in percent from 500 readings without noise.

FunDPS with 500 steps, and DiffusionPDE with 2000 as the authors of FunDPS ran it, are from the main table of Yao et al.
2025 (arXiv 2505.17004); DDIS reports inverse tasks in a paper of its own. DiffusionPDE's own paper (arXiv 2406.17763)
poses Burgers' equation in another way, with five sensors that read at all times.
"""

from __future__ import annotations

METHODS = ("FunDPS", "DiffusionPDE", "DDIS")
#: Forward and inverse error of each method.
LINEAR = {
    "poisson": {"FunDPS": (1.99, 20.47), "DiffusionPDE": (4.88, 21.10), "DDIS": (None, 15.78)},
    "helmholtz": {"FunDPS": (2.13, 17.16), "DiffusionPDE": (12.64, 19.07), "DDIS": (None, 15.08)},
}
NOT_LINEAR = {
    "Darcy flow": {"FunDPS": (2.49, 5.18), "DiffusionPDE": (6.07, 7.87)},
    "Navier-Stokes": {"FunDPS": (3.32, 8.48), "DiffusionPDE": (3.78, 9.63)},
    "Navier-Stokes, walls": {"FunDPS": (4.90, 4.08), "DiffusionPDE": (9.69, 4.18)},
    "Burgers": {},
}
#: What the notebook of boundary-constrained Gaussian processes prints: mean absolute error and diffusivity.
HEAT = (1.24e-3, 0.989)
