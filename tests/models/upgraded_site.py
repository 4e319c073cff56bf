"""What the new release does with the data of the previous one, in its own process."""

from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from runs.models import AgentStep, Decision, Provider, Run, Webhook
from runs.services.approvals.answer import approve_step
from runs.worker.execute_run import execute_run
from tests.fakes.model_server import model_server
from tests.models.release_site import add_once

PAGES = (
    *("/", "/runs/", "/approvals/", "/agents/", "/prompts/", "/providers/"),
    *("/schedules/", "/webhooks/", "/tools/", "/chat/", "/workers/"),
)


def open_pages() -> None:
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.get(username="ann"))
    own = [f"/runs/{pk}/" for pk in Run.objects.values_list("pk", flat=True)]
    for page in (*PAGES, *own):
        assert client.get(page).status_code == 200, page


def finish_runs() -> None:
    """Approve what awaits approval, and execute what was queued."""
    with model_server(script=add_once) as model:
        Provider.objects.filter(kind="openai").update(base_url=model.base_url)
        ann = User.objects.get(username="ann")
        for decision in Decision.objects.filter(answer=""):
            approve_step(decision, by=ann)
        for run in Run.objects.filter(status=Run.Status.QUEUED):
            execute_run(run.pk)
    found = Run.objects.order_by("pk").values_list("status", flat=True)
    assert sorted(found) == ["failed", "succeeded", "succeeded", "succeeded"]
    assert not AgentStep.objects.exclude(status="succeeded").exists()


def use_upgraded_site() -> None:
    assert Webhook.objects.get().url() == "https://a.example/hook"
    open_pages()
    finish_runs()
    open_pages()
    call_command("check_invariants")
