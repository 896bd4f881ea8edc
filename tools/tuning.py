"""The one loop of all searches for settings: trials are made, kept and not repeated, and the best of them found."""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from latentpde.simulation import regimes

Settings = dict[str, Any]
#: What a trial gives for each of some groups of cases, such as the RMSE for each regime.
Evaluate = Callable[[Settings, Sequence[str]], Mapping[str, Any]]


class Trials:
    """Trials of settings, in a file that is written after each, so that a search goes on where it was stopped.

    Args:
        path: of the file.
        header: what holds for all trials. An earlier file is used where it has the same.
        evaluate: what gives the outcome of settings for some groups of cases.
        outcome: what it is called in the file.
    """

    def __init__(self, path: Path, header: dict[str, Any], evaluate: Evaluate, outcome: str = "rmse"):
        self.path, self.header, self.evaluate, self.outcome = path, json.loads(json.dumps(header)), evaluate, outcome
        self.made: list[dict[str, Any]] = []
        if path.exists():
            earlier = json.loads(path.read_text())
            if all(earlier.get(name) == value for name, value in self.header.items()):
                self.made = earlier["trials"]

    def __call__(self, settings: Settings, groups: Sequence[str]) -> dict[str, Any]:
        """The trial of some settings, with an outcome for each group; what is known is not run again."""
        trial = next((t for t in self.made if t["settings"] == settings), None)
        if trial is None:
            trial = {"settings": settings, self.outcome: {}}
            self.made.append(trial)
        if missing := [group for group in groups if group not in trial[self.outcome]]:
            trial[self.outcome] |= self.evaluate(settings, missing)
            print(json.dumps(trial), flush=True)
            self.write()
        return trial

    def write(self, **more: Any) -> None:
        """Write all trials, a line for each, and whatever else there is to say."""
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in (self.header | more).items()]
        body = ",\n  ".join(json.dumps(trial) for trial in self.made)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("{" + "\n ".join(["", *(f"{line}," for line in lines), f'"trials": [\n  {body}]']) + "}\n")


def product(grid: Mapping[str, Iterable[Any]]) -> Iterator[Settings]:
    """Every combination of some values of some settings."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def best(trials: Iterable[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """The trial of the lowest geometric mean RMSE over some regimes, of those that have all of them."""
    able = [trial for trial in trials if set(names) <= set(trial["rmse"])]
    return min(able, key=lambda trial: float(np.mean(np.log([trial["rmse"][name] for name in names]))))


def search(
    trials: Trials, start: Settings, stages: Sequence[Mapping[str, Iterable[Any]]], names: Sequence[str]
) -> dict:
    """The best trial over some regimes, found in stages: each varies some settings around the best so far."""
    found = {"settings": dict(start)}
    for grid in stages:
        found = best([trials({**found["settings"], **values}, names) for values in product(grid)], names)
    return found


def by_family(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Regimes of each family, and all of them under ``all``."""
    names = tuple(names)
    groups: dict[str, tuple[str, ...]] = {"all": names}
    for name in names:
        family = regimes.get(name).family
        groups[family] = (*groups.get(family, ()), name)
    return groups
