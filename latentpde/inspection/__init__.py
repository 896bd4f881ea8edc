"""What a file holds, what will be assumed of it, and what cannot work, before anything is reconstructed."""

from latentpde.inspection.findings import Findings, check

__all__ = ["Findings", "check"]
