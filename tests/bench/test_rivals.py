"""The rivals' tasks: fields as theirs, and the posterior that plain dense algebra gives."""

import numpy as np
import pytest

from latentpde.bench.rivals.dense import dense_means
from latentpde.bench.rivals.exact import LEAST, solve
from latentpde.bench.rivals.fields import EQUATIONS, SPACING, Layout, relative_errors
from latentpde.bench.rivals.heat import heat_case
from latentpde.bench.rivals.tables import TABLES
from latentpde.bench.rivals.tasks import key, measure_layout, tasks


def test_fields_have_the_statistics_that_are_stored_with_theirs():
    a, u = EQUATIONS["poisson"].expected_stds()
    assert abs(a / 0.29195 - 1) < 0.002
    assert abs(u / 0.004175 - 1) < 0.002


@pytest.mark.parametrize("name", EQUATIONS)
def test_solutions_solve_five_point_differences(name):
    equation = EQUATIONS[name]
    a, u = equation.fields(2, np.random.default_rng(1))
    inner = u[:, 1:-1, 1:-1]
    around = u[:, 2:, 1:-1] + u[:, :-2, 1:-1] + u[:, 1:-1, 2:] + u[:, 1:-1, :-2]
    residual = (around - 4 * inner) / SPACING**2 + equation.shift * inner - a[:, 1:-1, 1:-1]
    assert np.abs(residual).max() < 1e-9 * np.abs(a).max()


@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("direction", ["forward", "both"])
def test_means_are_those_of_dense_algebra(name, direction):
    layout = Layout.draw(name, direction, 0.01, 0, 2)
    (a, u), (drawn, _), *_ = solve(layout)
    dense_a, dense_u, *_ = dense_means(layout, LEAST)
    assert np.abs(a - dense_a).max() < 1e-8 * np.abs(dense_a).max()
    assert np.abs(u - dense_u).max() < 1e-8 * np.abs(dense_u).max()
    ratio = relative_errors(drawn, layout.a).mean() / relative_errors(a, layout.a).mean()
    assert 1.2 < ratio < 1.7  # the square root of 2, up to two fields' chance


def test_heat_finds_the_diffusivity():
    found = heat_case(0)
    assert abs(found["kappa"] - 1) < 4 * found["kappa_std"]
    assert found["mae"] < 5e-3


def test_every_task_is_measured_once_and_what_is_timed_comes_first():
    listed = list(tasks(500))
    assert len({tuple(task.items()) for task in listed}) == len(listed)
    assert [key({**task, "mean_a": 1.0}) for task in listed] == listed
    plain = [task for task in listed[:60] if task["noise"] == 0.0 and task["scheme"] == "five-point"]
    assert len(plain) == 60  # ten layouts of both equations, in three directions
    noisy = {(task["task"], task["direction"], task["noise"]) for task in listed if "noise" in task}
    assert len(noisy) == 2 * 3 * 5


def test_tables_without_lines_are_empty_and_name_what_was_published():
    shown = {table([]).title: table([]) for table in TABLES}
    rows = {row[:2]: row[2:] for row in shown["rivals: relative L2 error, %"].rows}
    assert rows["poisson", "inverse"] == ("-", "-", "20.47", "21.10", "20.00", "15.78")
    assert rows["helmholtz", "both, a"] == ("-", "-", "-", "-", "9.40", "-")
    assert rows["Darcy flow", "forward"] == ("-", "-", "2.49", "6.07", "2.50", "-")
    assert rows["Burgers", "five sensors"] == ("-", "-", "-", "-", "2.68", "-")
    heat = {row[0]: row[1:] for row in shown["rivals: heat between cold walls"].rows}
    assert heat["least that is possible"][0] == "7.60e-04"


def test_noise_that_is_assumed_where_there_is_none_changes_little():
    task = {"task": "poisson", "direction": "forward", "noise": 0.0, "scheme": "five-point", "index": 0}
    errors = [measure_layout({**task, "least": least}, num=2)["mean_u"] for least in (1e-5, 1e-6)]
    assert abs(errors[0] / errors[1] - 1) < 1e-3
