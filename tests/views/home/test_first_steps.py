"""Which of the first steps somebody has done."""

import pytest

from runs.services.approvals.answer import approve_step
from runs.services.runs.cancel import cancel_run
from runs.views.home.first_steps import find_done_steps
from tests.make import make_decision, make_run, make_step, make_user

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("is_stopped", [True, False])
def test_only_a_decision_is_an_answer(is_stopped):
    run = make_run(make_user("ann"), status="awaiting_approval")
    decision = make_decision(make_step(run, status="awaiting_approval"))

    if is_stopped:
        cancel_run(run, by=run.owner)
    else:
        approve_step(decision, by=run.owner)

    assert find_done_steps(run.owner).answer is not is_stopped
