"""Requests that follow the API's own description, and requests that do not: every answer is one that it promises."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

#: Which regimes there are is for the catalogue to say, and what is in a file for its reader.
NOT_PROMISED = [positive_data_acceptance]


def ask_everything(server, num, mode):
    """A number of requests of each operation, with Schemathesis's checks of every answer."""
    found = schemathesis.openapi.from_url(f"{server}api/openapi.json").get_all_operations()
    operations = [one.ok() for one in found]
    assert len(operations) == 10
    for operation in operations:

        @settings(
            max_examples=num,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def answer(case):
            case.call_and_validate(timeout=60, excluded_checks=NOT_PROMISED)

        if mode == GenerationMode.POSITIVE or operation.label != "GET /api/catalogue":  # which takes nothing to break
            answer()


@pytest.mark.parametrize("mode", list(GenerationMode))
@pytest.mark.parametrize("num", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_answers_are_those_that_the_description_promises(server, num, mode):
    ask_everything(server, num, mode)
