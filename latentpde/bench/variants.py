"""Rows that are a method in another form than ours: as the paper has it, or with one thing changed.

A name in ``-paper`` is a method as the paper describes it, as far as that says; docs/paper.md lists what it leaves
open. The others change one thing, which their name says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PAPER = "-paper"
#: The suffix of learned rows whose denoiser has learnt the paper's target latents, in all else ours.
TARGET = {"map_diffusion": "-target-map", "enc_diffusion": "-target-enc"}


@dataclass(frozen=True)
class Variant:
    """What a row changes of a method.

    Args:
        method: the name that the method is registered under.
        differs: in what it differs from our row of that method, in words.
        options: what is changed of the method's options, whatever was tuned.
        tuned: the name that its tuned options are kept under; None for its own.
        family_bounds: whether coefficients are bounded by the family's bounds in place of the regime's.
        trained: the training configuration whose networks it uses, with ``{family}`` for the family's name.
        comparable: whether the paper's figures for the method stand beside it.
    """

    method: str
    differs: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    tuned: str | None = None
    family_bounds: bool = False
    trained: str | None = None
    comparable: bool = True


_CHAIN = {"guidance_guard": False, "guidance_space": "normalised"}
_NETWORKS = (
    "the paper's networks, without probes, skip connection or prior, trained on its targets; plain guidance where the "
    "chain runs; the family's bounds"
)
_FILTER = {"localisation": 0.0, "inflation": 1.0, "tempered": False, "centred_noise": False, "correction": 1.0}

VARIANTS: dict[str, Variant] = {
    "map_diffusion-paper": Variant(
        "map_diffusion",
        _NETWORKS,
        {"target": "map", **_CHAIN},
        family_bounds=True,
        trained="{family}-paper",
    ),
    "enc_diffusion-paper": Variant(
        "enc_diffusion",
        _NETWORKS,
        {"target": "enc", **_CHAIN},
        family_bounds=True,
        trained="{family}-paper",
    ),
    "map_diffusion-target-map": Variant(
        "map_diffusion",
        "our networks and guidance; the denoiser has learnt MAP estimates, of 80 steps from one start",
        {"target": "map"},
    ),
    "enc_diffusion-target-enc": Variant(
        "enc_diffusion", "our networks and guidance; the denoiser has learnt the encoder's latents", {"target": "enc"}
    ),
    "3dvar-paper": Variant("3dvar", "a Laplacian with Neumann edges", {"edges": "neumann"}),
    "enkf-paper": Variant(
        "enkf",
        "neither localisation nor inflation; independent perturbations of the readings; the mean is made to meet the "
        "readings in the end",
        _FILTER,
    ),
    "pinn-paper": Variant(
        "pinn",
        "bare coordinates (58,757 parameters), no moving frame, no search for the drift, no prior in the loss",
        {
            "num_harmonics": 0,
            "moving_frame": False,
            "warm_up": 0.0,
            "source_weight": 0.0,
            "coefficient_weight": 0.0,
        },
    ),
    **{
        f"{name}-{background}": Variant(
            name,
            f"as {name}{PAPER}, with the background of `{background}`",
            {**options, "background": background},
            tuned=f"{name}{PAPER}",
            comparable=False,
        )
        for name, options in (("3dvar", {"edges": "neumann"}), ("enkf", _FILTER))
        for background in ("map", "enc")
    },
}
