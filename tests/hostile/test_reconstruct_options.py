"""Options of `reconstruct` that cannot be meant, a row each: the command, and words of the message."""

import pytest

HUGE = str(10**30)
DIGITS = "9" * 5000
SURROGATE = "\udcff"  # how Python shows a byte that is no UTF-8

COUNTS = {
    option: [*values, HUGE, "-5", "abc", "", "1e3", "nan", "0x10"]
    for option, values in {
        "--num-draws": ["0", "1000000000"],
        "--resolution": ["0", "1000000000", "1.5"],
        "--seed": ["-1", "4294967296"],
        "--num-modes": ["-1", "1000000000"],
    }.items()
}
REALS = {
    "--noise-std": [
        "5e-324",
        "1e-300",
        "1e-200",
        "1e300",
        "1e308",
        "1e400",
        "0",
        "-0.0",
        "-1",
        "nan",
        "abc",
        "",
        "1,5",
    ],
    "--time": ["1e300", "1e308", "1e50", "-1", "nan", "inf", "abc", ""],
    "--source-prior-std": ["5e-324", "1e-300", "1e300", "1e308", "0", "-1", "nan", "inf", "abc", ""],
}
BOUNDS = [
    "kappa",
    "kappa=1:",
    "kappa=:1",
    "kappa=1:1",
    "kappa=0.2:0.1",
    "kappa=1:2:3",
    "kappa=nan:1",
    "kappa=0:inf",
    "kappa=-1e300:1e300",
    "kappa=0:1e308",
    "=1:2",
    "foo=1:2",
    "KAPPA=0.1:0.2",
    f"{SURROGATE}=1:2",
    "",
]
NAMES = ["", " ", "foo", "../exact", "exact,map", "a" * 300, "a" * 5000, SURROGATE, "ü", "exact\0"]

METHOD_OPTIONS = {
    "exact": [
        "fixed=5",
        'fixed={"kappa":"a"}',
        'fixed={"foo":1}',
        'fixed={"kappa":1e30}',
        'fixed={"kappa":1e300}',
        'fixed={"kappa":NaN}',
        "fixed=[1]",
        'gaussian={"kappa":[1]}',
        'gaussian={"kappa":[0.1,0]}',
        'gaussian={"kappa":[0.1,-1]}',
        'gaussian={"kappa":[1e300,1]}',
        'gaussian={"kappa":[0.1,0.1,0.1]}',
        'gaussian={"kappa":{"a":1}}',
        'gaussian={"foo":[0.1,0.1]}',
        "gaussian=[1]",
        "initial_prior=abc",
        "initial_prior=[1]",
        "initial_prior=[-1,2]",
        "initial_prior=[1e300,2]",
        "initial_noise_std=-1",
        "initial_noise_std=1e300",
        "num_mean_nodes=0",
        f"num_mean_nodes={HUGE}",
        f"num_mean_nodes={DIGITS}",
        "sweep=1",
        f"sweep={HUGE}",
        "target=0",
        "target=1e300",
        "detail=5",
        "detail=yes",
        "detail=null",
        "=",
        "sweep",
        "",
    ],
    "map": [
        "num_steps=0",
        "num_steps=null",
        "num_steps=[1]",
        'num_steps={"a":1}',
        f"num_steps={HUGE}",
        f"num_steps={DIGITS}",
        "num_steps=" + "[" * 5000,
        "num_restarts=10000000",
        f"num_restarts={HUGE}",
        "weight=-1",
        "weight=1e300",
        "weight=-Infinity",
        "learning_rate=1e300",
        "start_std=-1",
        "start_std=1e300",
        f"{SURROGATE}=1",
    ],
    "kriging": ["variogram=foo", "variogram=5", "variogram=", "foo=1"],
    "enkf": [
        "background_options=5",
        'background_options={"foo":1}',
        'background_options={"num_steps":-1}',
        'background_options={"background":"enkf"}',
        "background=enkf",
        "background=foo",
    ],
    "3dvar": ["background_options=5", "background=3dvar", 'background_options={"num_steps":1.5}', "spread=5"],
    "enc": ["weights=foo", "weights=/", "weights=/dev/null", "weights=" + "a" * 300, f"weights={SURROGATE}"],
    "map_diffusion": ["weights=foo", f"num_members={HUGE}"],
    "enc_diffusion": ["weights=foo"],
    "pinn": [f"num_steps={HUGE}", "num_steps=-1"],
    "fundps": ["weights=foo", f"num_steps={HUGE}"],
}


def _rows():
    for table in (COUNTS, REALS):
        for option, values in table.items():
            yield from ([option, value] for value in values)
    yield from (["--bounds", value] for value in BOUNDS)
    yield ["--bounds", "kappa=0.1:0.2", "--bounds", "kappa=0.3:0.4"]
    yield from ([option, name] for option in ("--pde", "--method") for name in NAMES)
    yield ["--observed", "foo"]
    yield ["--foo"]
    yield ["another.nc"]
    for method, options in METHOD_OPTIONS.items():
        yield from (["--method", method, "-O", option] for option in options)
    yield ["--method", "map", "-O", "num_steps=2", "-O", "num_steps=3"]


def _name(row: list[str]) -> str:
    return " ".join(row).encode("ascii", "replace")[:60].decode()


@pytest.mark.parametrize("arguments", list(_rows()), ids=_name)
def test_options_are_refused(refuses, case_file, arguments):
    quick = [] if "--method" in arguments else ["--method", "map"]
    refuses(2, [], "reconstruct", case_file, "-o", "o.nc", *quick, *arguments)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("not enough memory to decode 1 draw(s) at 1000000 x 1000000", ["--method", "map", "--resolution", "1000000"]),
        ("not enough memory to decode 10000000 draw(s)", ["--num-draws", "10000000"]),
        ("not enough memory for exact", ["--num-draws", "10000000", "--resolution", "2"]),
        ("not enough memory for exact", ["--num-modes", "9999"]),
        ("not enough memory for map", ["--num-modes", "9999", "--method", "map", "-O", "num_restarts=100000"]),
        ("a report needs at least 2 x 2 cells", ["--method", "map", "--resolution", "1", "--report", "r.html"]),
        ("must be different files", ["--method", "map", "--report", "o.nc"]),
        ("fixed must be names with values", ["-O", "fixed=5"]),
        ("initial_prior", ["-O", "initial_prior=abc"]),
        ("noise-std must be positive and finite, at least 1e-100, got 5e-324", ["--noise-std", "5e-324"]),
        ("--bounds names 'kappa' twice", ["--bounds", "kappa=0.1:0.2", "--bounds", "kappa=0.3:0.4"]),
    ],
)
def test_messages_say_what_was_expected(refuses, case_file, words, arguments):
    refuses(2, words, "reconstruct", case_file, "-o", "o.nc", *arguments)
