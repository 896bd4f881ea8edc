"""What others have published on the same tasks: relative errors in percent from 500 readings without noise.

FunDPS with 500 steps, and DiffusionPDE with 2000 as the authors of FunDPS ran it, are from the main table of Yao et al.
2025 (arXiv 2505.17004); what DiffusionPDE's own authors report is from table 1 and sections 4.6 and 4.7 of Huang et al.
2024 (arXiv 2406.17763, second version), where Darcy's inverse error is the share of wrong cells, and walled
Navier-Stokes has readings of 1 % of the points; DDIS reports inverse tasks in a paper of its own (arXiv 2601.23280).
"""

from __future__ import annotations

METHODS = ("FunDPS", "DiffusionPDE", "DiffusionPDE, own", "DDIS")
#: Errors of these by task and direction; ``None`` where nothing was found.
PUBLISHED: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("poisson", "forward"): (1.99, 4.88, 4.5, None),
    ("poisson", "inverse"): (20.47, 21.10, 20.0, 15.78),
    ("helmholtz", "forward"): (2.13, 12.64, 8.8, None),
    ("helmholtz", "inverse"): (17.16, 19.07, 22.6, 15.08),
    ("helmholtz", "both, u"): (None, None, 0.6, None),
    ("helmholtz", "both, a"): (None, None, 9.4, None),
    ("Darcy flow", "forward"): (2.49, 6.07, 2.5, None),
    ("Darcy flow", "inverse"): (5.18, 7.87, 3.2, None),
    ("Navier-Stokes", "forward"): (3.32, 3.78, 6.9, None),
    ("Navier-Stokes", "inverse"): (8.48, 9.63, 10.4, None),
    ("Navier-Stokes, walls", "forward"): (4.90, 9.69, 3.9, None),
    ("Navier-Stokes, walls", "inverse"): (4.08, 4.18, 2.7, None),
    ("Burgers", "five sensors"): (None, None, 2.68, None),
}
#: Equations that are not linear in what is asked for.
NOT_LINEAR = ("Darcy flow", "Navier-Stokes", "Navier-Stokes, walls", "Burgers")
#: What the notebook of boundary-constrained Gaussian processes prints: mean absolute error and diffusivity.
HEAT = (1.24e-3, 0.989)
