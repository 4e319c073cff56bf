"""The first start."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from runs.models import Agent, Provider
from runs.services.accounts.login_link import is_valid_login_link
from runs.services.bootstrap import bootstrap
from runs.services.runs.start import start_run
from runs.views.agents.kind_suggestion import suggest_kind
from runs.worker.execute_run import execute_run

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _with_demo(settings):
    settings.DEMO = True


def test_makes_a_superuser_who_has_no_password_yet():
    operator = bootstrap().operator

    assert operator.username == "admin"
    assert operator.is_superuser
    assert operator.is_staff
    assert not operator.has_usable_password()


def test_makes_the_demo_that_everyone_may_use():
    bootstrap()

    ann = User.objects.create_user("ann")
    agent = Agent.objects.usable_by(ann).get(slug="travel-planner")
    assert agent.provider.kind == "demo"
    assert agent.kind == "tool-calling"
    assert agent.versions.get().number == 1
    assert [use.tool.slug for use in agent.uses.all()] == ["weather-sample"]


def test_the_kind_that_suits_the_demo_model_is_known():
    operator = bootstrap().operator
    provider = Provider.objects.get(slug="demo")

    found = suggest_kind(operator, str(provider.pk), provider.default_model)

    assert (
        found.reason
        == "Tool calling suits demo-planner: the model supports function calling."
    )


def test_makes_an_agent_that_calls_the_other():
    bootstrap()

    caller = Agent.objects.get(slug="trip-chooser")
    assert [use.sub_agent.slug for use in caller.uses.all()] == ["travel-planner"]
    tool = caller.versions.get().spec.body["tools"][0]
    assert (tool["name"], tool["kind"]) == ("travel-planner", "agent")


def test_a_second_start_changes_nothing():
    bootstrap()
    Agent.objects.update(name="Mine now", archived_at=None)
    before = [list(m.objects.values()) for m in (User, Provider, Agent)]

    done = bootstrap()

    assert not done.has_created_demo
    assert [list(m.objects.values()) for m in (User, Provider, Agent)] == before


def test_a_deleted_demo_agent_stays_deleted():
    bootstrap()
    Agent.objects.all().delete()

    bootstrap()

    assert not Agent.objects.exists()


def test_without_demo_only_the_user_is_made(settings):
    settings.DEMO = False

    bootstrap()

    assert User.objects.count() == 1
    assert not Provider.objects.exists()


def test_an_operator_who_is_there_is_taken():
    User.objects.create_user("zoe")
    ann = User.objects.create_superuser("ann")

    assert bootstrap().operator == ann
    assert User.objects.count() == 2


def test_nobody_is_raised_to_operator_by_a_name():
    User.objects.create_user("admin")

    operator = bootstrap().operator

    assert operator.username == "admin-2"
    assert not User.objects.get(username="admin").is_superuser


def test_the_command_prints_a_login_link_as_its_last_line():
    out = StringIO()

    call_command("bootstrap", stdout=out)

    assert is_valid_login_link(out.getvalue().splitlines()[-1].rsplit("/", 2)[1])


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_the_other_planners_show_what_can_happen_to_a_run():
    bootstrap()

    runs = {}
    planners = Agent.objects.filter(slug__endswith="planner", model="demo-planner")
    for agent in planners:  # the unlucky one would be tried again and again
        question = {"input": "Plan a day out in Oslo that fits the weather"}
        run = start_run(agent, by=agent.owner, inputs=question)
        execute_run(run.pk)
        run.refresh_from_db()
        runs[agent.slug] = (run.status, run.stop_reason)

    assert runs == {
        "travel-planner": ("succeeded", ""),
        "cautious-planner": ("awaiting_approval", ""),
        "hasty-planner": ("limit_reached", "iterations"),
    }
    assert Agent.objects.get(slug="unlucky-planner").model == "demo-fails"
