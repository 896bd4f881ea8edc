"""Scores that the paper prints, to stand beside ours in tables.

The paper is that of Tsao, Chaney and Veveakis. Its methods are named as ours: ``map_diffusion`` is their LatentPDE-MAP
and ``enc_diffusion`` their LatentPDE-Enc.
"""

from __future__ import annotations

_COLUMNS = ("rmse", "psd", "mae", "crps")
_FAMILIES = ("advection_diffusion", "klein_gordon", "helmholtz")

Scores = dict[str, dict[str, dict[str, float | None]]]


def _table(rows: dict[str, tuple[float | None, ...]]) -> Scores:
    """Rows of four numbers per family, as printed, to ``[family][method][score]``."""
    return {
        family: {
            method: dict(zip(_COLUMNS, numbers[4 * i : 4 * i + 4], strict=True)) for method, numbers in rows.items()
        }
        for i, family in enumerate(_FAMILIES)
    }


#: Its table 1: cases with a source.
TABLE_1 = _table(
    {
        "map_diffusion": (0.128, 2.442, None, 0.087, 0.601, 3.952, None, 0.388, 0.088, 3.628, None, 0.071),
        "enc_diffusion": (0.103, 1.570, None, 0.056, 0.743, 4.042, None, 0.458, 0.052, 3.433, None, 0.025),
        "enkf": (0.134, 10.819, None, 0.104, 0.626, 3.736, None, 0.484, 0.044, 7.474, None, 0.031),
        "3dvar": (0.112, 7.322, 0.104, None, 0.605, 3.554, 0.507, None, 0.038, 4.265, 0.028, None),
        "pinn": (0.170, 7.767, 0.137, None, 0.732, 6.113, 0.573, None, 0.083, 5.662, 0.071, None),
    }
)

#: Its table of cases without a source.
TABLE_NO_SOURCE = _table(
    {
        "map_diffusion": (0.080, 1.049, None, 0.058, 0.626, 3.932, None, 0.415, 0.023, 2.918, None, 0.020),
        "enc_diffusion": (0.082, 1.092, None, 0.062, 0.653, 3.982, None, 0.453, 0.022, 2.893, None, 0.018),
        "enkf": (0.082, 12.500, None, 0.064, 0.631, 3.709, None, 0.491, 0.039, 7.467, None, 0.025),
        "3dvar": (0.131, 9.012, 0.069, None, 0.628, 3.413, 0.496, None, 0.031, 4.310, 0.029, None),
        "pinn": (0.169, 8.224, 0.136, None, 0.743, 6.221, 0.585, None, 0.080, 5.500, 0.067, None),
    }
)

#: RMSE over advection-diffusion; keys are Adam steps of the MAP initialisation.
MAP_BUDGET = {"map_diffusion": {80: 0.1223, 40: 0.1332, 20: 0.1103}}

#: RMSE over advection-diffusion; keys are the guidance scale.
GUIDANCE = {
    "map_diffusion": {80.0: 0.1223, 40.0: 0.1216, 0.0: 0.1210},
    "enc_diffusion": {80.0: 0.1033, 40.0: 0.1045, 0.0: 0.1073},
}

#: RMSE over advection-diffusion; keys are the refinement's anchor weight, 0 for no refinement.
REFINEMENT = {"map_diffusion": {0.01: 0.1223, 0.0: 0.1027}, "enc_diffusion": {0.01: 0.1033, 0.0: 0.1347}}

#: Seconds for one advection-diffusion case on one A5000 GPU, and millions of parameters.
RUNTIME = {
    "map_diffusion": (78.65, 7.06),
    "enc_diffusion": (33.12, 9.62),
    "fundps": (91.21, 184.6),
    "enkf-map": (3.15, None),
    "enkf-enc": (0.23, None),
    "3dvar-map": (3.84, None),
    "3dvar-enc": (0.92, None),
    "pinn": (1.68, 0.058757),
}
