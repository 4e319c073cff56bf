"""Fills a site with what a release stores: definitions, and runs in several states."""

from django.contrib.auth.models import Group
from django.core.management import call_command

from runs.models import Conversation, RunTag, SavedFilter
from runs.services.accounts.tokens import create_token
from runs.services.search.index_runs import index_runs
from tests.fakes.model_server import Recorded, model_server
from tests.make import (
    make_delivery,
    make_run,
    make_schedule,
    make_user,
    make_webhook,
)
from tests.worker.run_parts import agent_on, ask_before, call, executed, started


def add_once(asked: Recorded) -> object:
    *_, last = asked.body["messages"]
    return "Done." if last["role"] == "tool" else call("add", a=1, b=2)


def fill_site() -> None:
    call_command("prepare")
    ann = make_user("ann")
    ann.groups.add(Group.objects.create(name="team"))
    with model_server(script=add_once) as model:
        careful = agent_on(model, "add", owner=ann)
        ask_before(careful, "add")
        executed(careful, "Add with approval.")
        agent = agent_on(model, "add", owner=ann)
        done = executed(agent, "Add.")
        started(agent, "Later.")
    make_run(ann, agent=agent, status="failed")
    make_schedule(ann)
    make_delivery(make_webhook(ann))
    Conversation.objects.create(owner=ann, agent=agent, title="Talk")
    RunTag.objects.create(run=done, name="kept")
    SavedFilter.objects.create(owner=ann, name="Mine", query="status=failed")
    create_token(ann, name="script")
    while index_runs():
        continue
