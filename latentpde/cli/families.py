"""Several families on the command line: `--pde auto`, `--pde a,b,c` and `--average`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentpde.errors import UsageError

if TYPE_CHECKING:
    from latentpde.posterior import Posterior


def one_family(pde: str | None, average: bool) -> str | None:
    """The family to read files with; none where several are compared.

    >>> one_family("auto", average=False), one_family("helmholtz", average=False)
    (None, 'helmholtz')
    """
    several = pde is not None and (pde == "auto" or "," in pde)
    if average and not several:
        raise UsageError("--average is over several families: give --pde auto, or names with commas")
    return None if several else pde


def show_families(posterior: Posterior, quiet: bool) -> None:
    """Print the odds where families were compared."""
    found = posterior.settings.get("families")
    if not found or quiet:
        return
    print("Which PDE, all families alike beforehand:")
    for name, one in found.items():
        wide = one.get("log_evidence_wide")
        also = "" if wide is None else f"; with bounds twice as wide {wide:.1f}"
        print(
            f"  {name}: probability {one['probability']:.3g}, log evidence {one['log_evidence']:.1f} "
            f"± {one['error']:.2f}{also}"
        )
    for sentence in posterior.settings.get("families_notes", ()):
        print(sentence)
