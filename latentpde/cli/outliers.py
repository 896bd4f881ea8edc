"""Readings that ``--robust`` set aside, on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentpde.errors import UsageError

if TYPE_CHECKING:
    from latentpde.posterior import Posterior


def show_set_aside(posterior: Posterior) -> None:
    """Print which readings were taken for outliers, where these were looked for; at most a few of each case."""
    from latentpde.report.tables import MOST_OUTLIERS, outlier_rows

    for case in range(len(posterior.observation)):
        try:
            aside = posterior.set_aside(case)
        except UsageError:  # they were not looked for
            return
        found = {int(i): float(z) for i, z in zip(aside["reading"].values, aside["z"].values, strict=True)}
        worst = dict(sorted(found.items(), key=lambda item: -abs(item[1])))
        of_case = f"case {case}: " if len(posterior.observation) > 1 else ""
        print(f"{of_case}{len(found)} reading{'' if len(found) == 1 else 's'} set aside as outliers")
        for row in outlier_rows(posterior, case, worst):
            print(f"  {row['value']} at {row['place']}, {row['time']}, where {row['expected']} is expected")
        if len(found) > MOST_OUTLIERS:
            print(f"  ... and {len(found) - MOST_OUTLIERS} more: diagnostic_set_aside in the file has all of them")
