"""The load of the run page's bench: two long runs, and commits to one of them."""

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection, transaction
from django.utils import timezone

from runs import redis_streams as stream
from runs.models import AgentStep, ModelCall, Run
from tests.bench.loads.big_run import make_big_run
from tests.make import make_agent, make_user


def prepare(steps: int) -> tuple[int, int, str]:
    """Make a run that is over and one that runs; return them and a session's cookie."""
    ann = make_user()
    agent = make_agent(ann)
    done = make_big_run(ann, steps=steps, agent=agent)
    running = make_big_run(ann, steps=steps, agent=agent, status="running")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    cookie = open_session(ann)
    connection.close()
    return done.pk, running.pk, cookie


def open_session(user: User) -> str:
    """Sign `user` in; return the cookie."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return f"{settings.SESSION_COOKIE_NAME}={session.session_key}"


def commit_round(run_id: int, number: int) -> str:
    """Commit one reply with one answered step; return the mark that names it."""
    mark, now = f"mark-of-{number}", timezone.now()
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        seq, index = run.seq + 1, run.next_index
        Run.objects.filter(pk=run_id).update(
            seq=seq,
            next_index=index + 1,
            next_number=run.next_number + 1,
            rounds=run.rounds + 1,
        )
        call = ModelCall.objects.create(
            run=run,
            number=run.next_number,
            at_index=index,
            round=run.rounds + 1,
            reply={
                "text": "On it goes.",
                "tool_calls": [{"id": "c1", "name": "look_up", "arguments": "{}"}],
            },
            digest="0" * 64,
            started_at=now,
            elapsed=0.01,
            created_seq=seq,
            changed_seq=seq,
        )
        AgentStep.objects.create(
            run=run,
            index=index,
            model_call=call,
            round=run.rounds + 1,
            tool="look_up",
            tool_input={"word": f"{mark}."},
            status="succeeded",
            observation="Found.",
            started_at=now,
            duration=0.01,
            created_seq=seq,
            changed_seq=seq,
        )
    stream.publish_run_notice(run_id, seq)
    return mark


def seq_of(run_id: int) -> int:
    """Return up to where a page that is opened now has seen the run."""
    return Run.objects.values_list("seq", flat=True).get(pk=run_id)
