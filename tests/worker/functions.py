"""Registered functions that runs of the tests call."""

import threading
import time

from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from runs.models import AgentStep, Run
from runs.store.claims import worker_state
from tools.errors import ToolFailed
from tools.registry import ToolContext, tool

mails: list[str] = []
"""What `send_mail` has sent, in this process."""
counted: list[str] = []
"""The calls of `count_call`, in this process."""
progress_seen = threading.Event()
"""Ends the calls of `count_pages`."""
together = threading.Barrier(3, timeout=30)
"""Lets three calls pass only side by side."""


@tool(effect="read")
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool
def send_mail(to: str) -> str:
    """Send a mail: a side effect."""
    mails.append(to)
    return f"sent to {to}"


@tool
def pay_out(amount: float, rate: float) -> str:
    """Pay an amount: a side effect."""
    return f"paid {amount} at {rate}"


@tool(effect="read")
def count_call(label: str) -> str:
    """Note the call; the first one of `b` fails."""
    counted.append(label)
    if counted == ["b"]:
        raise ToolFailed("Try again.")
    return label


@tool(effect="read")
def meet(who: str) -> str:
    """Wait until three calls run at the same time."""
    together.wait()
    return who


@tool(effect="read", timeout=0.3)
def hang() -> str:
    """Take far longer than allowed."""
    time.sleep(3)
    return "late"


@tool(effect="read")
def refuse(why: str) -> str:
    """Fail, with a sentence for the model."""
    raise ToolFailed(why)


@tool(effect="read")
def odd() -> str:
    """Return what no database takes as it is."""
    return "a\x00b\ud800c"


@tool(effect="read")
def steal(context: ToolContext) -> str:
    """Take the run away from the worker that runs this, as another worker would."""
    Run.objects.filter(pk=context.run_id).update(fence=F("fence") + 1)
    connection.close()
    return "stolen"


@tool(effect="read")
def stop_me(context: ToolContext) -> str:
    """Ask for the end of the run that runs this, as a person does meanwhile."""
    Run.objects.filter(pk=context.run_id).update(cancel_requested_at=Now())
    connection.close()
    return "stopping"


@tool(effect="read")
def refuse_oddly() -> str:
    """Fail with a text that no database takes."""
    raise ToolFailed("odd \ud800 text")


@tool(effect="read")
def echo_back(text: str) -> str:
    """Say it again."""
    return text


@tool(effect="read")
def count_pages(context: ToolContext) -> str:
    """Report progress, and wait until a page can show it."""
    for number in range(1, 4):
        context.report_progress(f"{number} of 10\n pages ")
    progress_seen.wait(55)
    return context.user.username if context.user else ""


@tool(effect="read")
def status_of_own_step(context: ToolContext) -> str:
    """Wait until the step of this call is stored; return its status."""
    context.report_progress("looking")
    for _ in range(3000):
        if step := AgentStep.objects.filter(run=context.run_id).first():
            return step.status
        time.sleep(0.01)
    return "not stored"


@tool(effect="read")
def cancel_own_run(context: ToolContext) -> str:
    """Stop the run of this call, as a person does, and wait for that."""
    Run.objects.filter(pk=context.run_id).update(cancel_requested_at=Now())
    for claim in worker_state.list_claims():
        if claim.run_id == context.run_id:
            claim.end("canceled")
    context.deadline.sleep(10)
    return "late"


@tool(effect="read")
def steal_slowly(context: ToolContext) -> str:
    """Take the run away from its worker, and work on for a while."""
    Run.objects.filter(pk=context.run_id).update(fence=F("fence") + 1)
    for _ in range(500):
        context.deadline.check()
        time.sleep(0.01)
    return "late"
