"""The benchmarks themselves, one file for each question; importing this registers all of them."""

from latentpde.bench.studies import ablations, comparison, frontier, gallery, peers, scaling, sweeps, trust

__all__ = ["ablations", "comparison", "frontier", "gallery", "peers", "scaling", "sweeps", "trust"]
