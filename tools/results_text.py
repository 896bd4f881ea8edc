"""Texts of README and docs that take more than looking up a number: tables, ratios, ranges. See `write_results.py`."""

import re
import textwrap
from collections.abc import Callable

from results_lookup import ROOT, read_json, tables, value

from latentpde.bench.branches import recorded_choice
from latentpde.bench.paper import TABLE_1
from latentpde.bench.variants import VARIANTS

FAMILIES = {"advection-diffusion": "advection-diffusion", "klein-gordon": "Klein-Gordon", "helmholtz": "Helmholtz"}
BRANCHES = {"map_diffusion": "map", "enc_diffusion": "enc"}  # and the kind of latents that the paper trains each on


def readme() -> str:
    """The README's section of results."""
    by_family = {table["title"].split(",")[0]: table for table in tables("table1")}
    lines = ["| method | " + " | ".join(FAMILIES.values()) + " | seconds per case |", "|---|" + "---:|" * 4]
    for method in (row[0] for row in tables("table1")[0]["rows"]):
        cells, seconds = [], []
        for family in FAMILIES:
            found = [row for row in by_family[family]["rows"] if row[0] == method]
            if not found or found[0][1] == "-":
                cells.append("-")
                continue
            printed = "" if found[0][2] == "-" else f" ({found[0][2]})"
            cells.append(found[0][1].split(" ±")[0] + printed)
            seconds.append(float(found[0][7]))
        if seconds:
            name = f"`{method}`" + _fewer(method, by_family)
            lines.append(f"| {name} | " + " | ".join(cells) + f" | {min(seconds):.2g} to {max(seconds):.2g} |")
    before = (
        "Error (RMSE at 128 x 128) from 5 % of a 32 x 32 grid with noise 0.15, on the masks that the paper evaluates "
        "with; in brackets what the paper prints. `3dvar`, `enkf` and `pinn` are given the fine initial state, as "
        "there, the others the coarse one. `latentpde` is the learned branch that validation chose for each regime, "
        "as in the paper. Rows in `-paper` are a method as the paper describes it, as far as it does; the networks of "
        f"the learned ones have had {denoiser_epochs()} of the paper's 600 epochs. Rows in "
        "`-target-map` and `-target-enc` are ours with training targets of the paper's kind "
        "([what differs](docs/paper.md#rows-as-the-paper-has-them)). The data are simulated anew, with what the paper "
        "leaves open chosen here, so its figures are a yardstick and not a race: predicting zero scores "
        f"{zero('table1', 'helmholtz')} on our Helmholtz cases, below {above_zero()} of the paper's five figures for "
        "it. Times are per case in batches, on one core; the paper's, 0.23 to 91.21 s, are for one case on a GPU, "
        "beside which `latentpde bench runtime` puts ours."
    )
    after = (
        f"The 90 % intervals of `exact` cover {covered()} % of the field, regime by regime ({num_covered()} cases). "
        "More in [docs/benchmarks.md](docs/benchmarks.md); `make results` writes this section from `results/`."
    )
    figure = "![RMSE of each method in each family, beside the paper's](results/figures/table1.png)"
    parts = [textwrap.fill(before, 120), "\n".join(lines), figure, textwrap.fill(after, 120)]
    return "\n" + "\n\n".join(parts) + "\n"


def variants() -> str:
    """Rows that are a method in another form than ours, and what differs."""
    lines = ["| row | what differs from ours |", "| --- | --- |"]
    lines += [f"| `{name}` | {variant.differs} |" for name, variant in VARIANTS.items()]
    return "\n" + "\n".join(lines) + "\n"


def whole_table(benchmark: str, title: str = "", num_labels: int = 2) -> str:
    """A table as it is, the first whose title begins so; its first columns are words."""
    table = next(table for table in tables(benchmark) if table["title"].startswith(title))
    heads, numbers = table["columns"], table["columns"][num_labels:]
    lines = [heads, [*("---" for _ in heads[:num_labels]), *("---:" for _ in numbers)], *table["rows"]]
    return "\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n\n"


def denoiser_epochs() -> str:
    """How many epochs the denoisers of the paper's size were trained for, over all families and both branches."""
    records = [read_json(path) for path in sorted((ROOT / "results" / "training").glob("*-paper.json"))]
    epochs = [record[stage]["epochs"] for record in records for stage in record if stage.startswith("denoiser")]
    return f"{min(epochs)} to {max(epochs)}"


def training() -> str:
    """How far the training of the paper's networks has come, stage by stage."""
    lines = [
        "| networks | epochs | of | hours | validation loss, first epoch | last epoch |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for path in sorted((ROOT / "results" / "training").glob("*.json")):
        for stage, found in read_json(path).items():
            first, last = (found["curve"][place]["validation"]["loss"] for place in (0, -1))
            cells = (found["epochs"], found["epochs_wanted"], found["hours"], f"{first:.4g}", f"{last:.4g}")
            lines.append(f"| `{path.stem}`, {stage} | " + " | ".join(map(str, cells)) + " |")
    return "\n" + "\n".join(lines) + "\n"


def encoder_losses() -> str:
    """The loss that the paper's encoders ended with, beside what it is for other answers to the same readings."""
    lines = [
        "| family | the encoder | zero | MAP estimates | the simulator's latents |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for path in sorted((ROOT / "results" / "training").glob("*-paper.json")):
        encoder = read_json(path)["encoder"]
        losses = (encoder["curve"][-1]["validation"]["loss"], *encoder["losses_of"].values())
        family = FAMILIES[path.stem.removesuffix("-paper").replace("_", "-")]
        lines.append(f"| {family} | " + " | ".join(f"{loss:.4g}" for loss in losses) + " |")
    return "\n" + "\n".join(lines) + "\n"


def tuning() -> str:
    """What each recorded search has tried, on how many validation cases, and what it chose for each family."""
    lines = [
        "| search | cases of each regime | tried | chosen for advection-diffusion | Klein-Gordon | Helmholtz |",
        "| --- | ---: | --- | --- | --- | --- |",
    ]
    for path in sorted((ROOT / "results" / "tuning").glob("*.json")):
        found = read_json(path)
        if "best" not in found:  # `branch` and `subgrid` choose no settings of a family
            continue
        names = dict.fromkeys(name for trial in found["trials"] for name in trial["settings"])
        values = {name: {trial["settings"][name] for trial in found["trials"]} for name in names}
        tried = {name: sorted(some) for name, some in values.items() if len(some) > 1}
        words = "; ".join(f"`{name}` {', '.join(map(_word, some))}" for name, some in tried.items())
        # as the benchmark has it; `map` has one setting for all of them
        chosen = [
            ", ".join(_word(found["best"][family if path.stem != "map" else "all"]["settings"][name]) for name in tried)
            for family in ("advection_diffusion", "klein_gordon", "helmholtz")
        ]
        lines.append(f"| `{path.stem}` | {found['num']} | {words} | " + " | ".join(chosen) + " |")
    return "\n" + "\n".join(lines) + "\n"


def not_tuned() -> str:
    """Settings that `tools/tune.py` searches or sets and that the recorded searches do not hold, search by search."""
    from tune import SEARCHES

    missing = []
    for name, search in SEARCHES.items():
        path = ROOT / "results" / "tuning" / f"{name}.json"
        trials = read_json(path)["trials"] if path.exists() else []
        held = {setting for trial in trials for setting in trial["settings"]}
        wanted = dict.fromkeys([*search.start, *(setting for stage in search.stages for setting in stage)])
        if absent := [f"`{setting}`" for setting in wanted if setting not in held]:
            missing.append(f"`{name}` ({', '.join(absent) if trials else 'all of it'})")
    return ", ".join(missing) or "none"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def unknown_code() -> str:
    """How many lines of table 1 were made by code that they do not name, of how many."""
    versions = read_json(ROOT / "results" / "tables" / "table1.json")["versions"]
    counts = [(name, count) for some in versions.values() for name, count in some.items()]
    unknown = sum(count for name, count in counts if name.endswith("code unknown"))
    return f"{unknown:,} of {sum(count for _, count in counts):,}"


def _fewer(method: str, by_family: dict) -> str:
    """How many cases a method had in all, where others had more."""
    counts: dict[str, int] = {}
    for table in by_family.values():
        for row in table["rows"]:
            counts[row[0]] = counts.get(row[0], 0) + int(row[8].split(",")[0])
    return "" if counts[method] == max(counts.values()) else f" ({counts[method]} cases)"


def covered() -> str:
    """The lowest and the highest coverage of a regime by 90 % intervals, in percent."""
    ninety = [100 * float(row[tables("coverage")[0]["columns"].index("90 %")]) for row in tables("coverage")[0]["rows"]]
    return f"{min(ninety):.1f} to {max(ninety):.1f}"


def num_covered() -> str:
    """How many cases that is."""
    return f"{sum(int(row[1].replace(',', '')) for row in tables('coverage')[0]['rows']):,}"


def many_cases() -> tuple[int, float]:
    """Cases and mean RMSE of the regimes of advection-diffusion in the study of coverage."""
    names = ("diffusion", "advection", "balanced", "forcing")
    errors = [value("coverage", "", name, "RMSE") for name in names]
    cases = [int(value("coverage", "", name, "cases")) for name in names]
    return sum(cases), sum(errors) / len(errors)


def zero(table: str, family: str) -> str:
    """The RMSE of predicting zero, which a note below a table says."""
    (found,) = [t for t in tables(table) if t["title"].startswith(family)]
    return re.search(r"Predicting zero has the RMSE ([\d.]+)\.", " ".join(found["notes"]))[1]


def above_zero() -> str:
    """How many of the paper's errors on Helmholtz predicting zero is below, as a word."""
    printed = [scores["rmse"] for scores in TABLE_1["helmholtz"].values()]
    return ("none", "one", "two", "three", "four", "all")[sum(v > float(zero("table1", "helmholtz")) for v in printed)]


def closest() -> str:
    """The least ratio to the error of `exact` that any other method has in any regime."""
    return f"{min(float(c) for row in tables('limit')[0]['rows'] if row[0] != 'exact' for c in row[1:]):.2f}"


def first_in(regime: str) -> str:
    """In how many cases the evidence puts the family first that made them."""
    table = next(t for t in tables("evidence") if t["title"] == "which PDE: 15% of the cells, 3 snapshots")
    (row,) = [row for row in table["rows"] if row[0] == regime]
    (own,) = [text for text in row if text.startswith("[")]
    return re.search(r"\((\d+)\)", own)[1]


def odds_of_nine_tenths() -> str:
    """The mean of odds from 90 to 99 %, and the share of them that was right."""
    table = next(t for t in tables("evidence") if t["title"] == "are the odds right?")
    (row,) = [row for row in table["rows"] if row[0].startswith("90%")]
    return row[-1]


def stages() -> str:
    """Learned methods with the simulator's latents and with the paper's."""
    lines = [
        "| | CRPS, `true` | paper's target | 90 % intervals cover, `true` | paper's target |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for family, name in FAMILIES.items():
        for branch, target in BRANCHES.items():
            rows = [f"{branch}, {kind}, guided, refined" for kind in ("true", target)]
            crps = [value("stages", _title(family), row, "CRPS") for row in rows]
            ninety = [100 * value("stages", _title(family), row, "90 %") for row in rows]
            cells = [*(f"{v:.3g}" for v in crps), *(f"{v:.0f} %" for v in ninety)]
            lines.append(f"| {name}, {'MAP' if target == 'map' else 'encoder'} | " + " | ".join(cells) + " |")
    return "\n" + "\n".join(lines) + "\n"


def _title(family: str) -> str:
    return f"what each stage of the learned methods is worth: {family}"


def _gains(before: str, after: str, families=tuple(FAMILIES)) -> list[float]:
    """Shares of the RMSE, in percent, that one variant of the learned methods takes off another, branch by branch.

    ``{branch}`` and ``{paper}`` in the names of the variants stand for the branch and for the paper's latents of it.
    """
    found = []
    for family in families:
        for branch, paper in BRANCHES.items():
            rows = [name.format(branch=branch, paper=paper) for name in (before, after)]
            first, second = (value("stages", _title(family), row, "RMSE") for row in rows)
            found.append(100 * (1 - second / first))
    return found


def _range(values: list[float], unit: str = "") -> str:
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return low if low == high else f"{low} to {high}{unit}"


def guided(family: str) -> str:
    """What guidance takes off the error, in percent."""
    return _range(_gains("{branch}, true, alone", "{branch}, true, guided", (family,)))


def refined() -> str:
    """What refinement takes off the error behind guidance, in percent."""
    return _range(_gains("{branch}, true, guided", "{branch}, true, guided, refined"))


def better_than_the_papers_latents() -> str:
    """What training on the simulator's latents takes off the error, in percent."""
    return _range(_gains("{branch}, {paper}, guided, refined", "{branch}, true, guided, refined"))


def from_noise() -> str:
    """What 90 % intervals of a chain from noise alone cover, in percent."""
    row = "enc_diffusion, true, from noise alone"
    return _range([100 * value("stages", _title(family), row, "90 %") for family in FAMILIES])


def learned_coverage() -> str:
    """What 90 % intervals of the learned methods cover, in percent."""
    return _range([100 * value("calibration", "", branch, "90 %") for branch in BRANCHES])


def encoder_speed() -> str:
    """How many times as fast as `map` the encoder is on Helmholtz."""
    return f"{value('table1', 'helmholtz', 'map', 'seconds') / value('table1', 'helmholtz', 'enc', 'seconds'):.0f}"


def speed_ratios() -> str:
    """The time of `exact` as a share of that of `map`, regime by regime."""
    ratios = [100 * value("speed", "", row[0], "ratio") for row in tables("speed")[0]["rows"]]
    return _range(ratios)


def retrained(what: str) -> str:
    """Of the networks that were trained again: how many, how many the same, and the largest difference in percent."""
    ratios = [entry["ratio"] for entry in read_json(ROOT / "results" / "retraining.json").values()]
    found = {
        "all": len(ratios),
        "same": sum(ratio == 1 for ratio in ratios),
        "most": round(100 * max(abs(r - 1) for r in ratios)),
    }
    return str(found[what])


def millions(method: str) -> str:
    """Parameters of a learned method."""
    return f"{value('runtime', '', method, 'parameters') / 1e6:.1f}"


def change(benchmark: str, row: str, place: int) -> str:
    """A change that an ablation makes, ours (2) or the paper's (4), in percent and without a plus."""
    (found,) = [cells for cells in tables(benchmark)[0]["rows"] if cells[0] == row]
    return f"{float(found[place].rstrip('%')):.0f}"


TEXTS: dict[str, Callable[[], str]] = {
    "readme": readme,
    "variants": variants,
    "rivals": lambda: whole_table("rivals"),
    "rivals-noise": lambda: whole_table("rivals", "rivals: noise"),
    "rivals-inferred": lambda: whole_table("rivals", "rivals: levels"),
    "rivals-time": lambda: whole_table("rivals", "rivals: time"),
    "rivals-heat": lambda: whole_table("rivals", "rivals: heat", 1),
    "rivals-scheme": lambda: whole_table("rivals", "rivals: the discretised", 1),
    "rivals-least": lambda: whole_table("rivals", "rivals: noise that is assumed"),
    "walls": lambda: whole_table("walls"),
    "outliers": lambda: whole_table("outliers", "", 1),
    "cost": lambda: whole_table("cost", "", 1),
    "real-air": lambda: whole_table("real", "air temperature", 1),
    "real-pm": lambda: whole_table("real", "PM10", 1),
    "training": training,
    "encoder-losses": encoder_losses,
    "tuning": tuning,
    "not tuned": not_tuned,
    "branch map": lambda: str(list(recorded_choice().values()).count("map_diffusion")),
    "branch all": lambda: str(len(recorded_choice())),
    "unknown code": unknown_code,
    "stages": stages,
    "covered": covered,
    "num covered": num_covered,
    "many cases": lambda: f"{many_cases()[0]:,}",
    "many cases RMSE": lambda: f"{many_cases()[1]:.4f}",
    "closest": closest,
    "refined": refined,
    "simulator's latents": better_than_the_papers_latents,
    "from noise": from_noise,
    "learned coverage": learned_coverage,
    "encoder speed": encoder_speed,
    "speed ratios": speed_ratios,
    "speed slower": lambda: str(
        sum(int(value("speed", "", r[0], "slower than map")) for r in tables("speed")[0]["rows"])
    ),
    "speed cases": lambda: str(sum(int(r[8].split()[-1]) for r in tables("speed")[0]["rows"])),
    "simulated": lambda: f"{value('core', '', 'balanced', 'cases'):,.0f}",
    "zero table1 advection": lambda: zero("table1", "advection"),
    "zero table1 klein": lambda: zero("table1", "klein"),
    "zero table1 helmholtz": lambda: zero("table1", "helmholtz"),
    **{f"guided {family}": (lambda family=family: guided(family)) for family in FAMILIES},
    "evidence odds": odds_of_nine_tenths,
    "suggest cases": lambda: tables("suggest")[0]["notes"][0].split()[0],
    **{
        f"evidence {name}": (lambda name=name: first_in(name))
        for name in ("balanced", "klein_gordon", "helmholtz", "telegraph", "fractional_diffusion")
    },
    **{f"retrained {what}": (lambda what=what: retrained(what)) for what in ("all", "same", "most")},
    **{f"millions {method}": (lambda method=method: millions(method)) for method in ("enc", "map_diffusion")},
    **{
        f"change {which} {branch}{' paper' * (place == 4)}": (
            lambda which=which, row=f"{branch}-target-{target}, 0", place=place: change(f"ablation-{which}", row, place)
        )
        for which in ("guidance", "refinement")
        for branch, target in BRANCHES.items()
        for place in (2, 4)
    },
}
