"""Every table and figure of the paper, and those it lacks, from one command each."""

from latentpde.bench import studies  # importing them registers them
from latentpde.bench.benchmark import Benchmark, benchmarks
from latentpde.bench.runner import run_benchmark, run_benchmarks

__all__ = ["Benchmark", "benchmarks", "run_benchmark", "run_benchmarks", "studies"]
