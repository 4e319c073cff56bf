"""The form of a schedule: agent choice, times, and validation."""

import pytest
from django.test import Client

from runs.models import Preferences, Schedule
from runs.services.schedules.save import get_schedule_token
from runs.services.spec.freeze import freeze_agent
from runs.store.specs import get_or_create_spec
from tests.make import make_agent, make_prompt, make_schedule, make_user, make_version

HTMX = {"headers": {"HX-Request": "true"}}
DAILY = {"kind": "daily", "at": "09:00", "time_zone": "UTC", "overlap": "skip"}


def published(owner, **fields):
    """Make an agent that is published as it is."""
    agent = make_agent(owner, **fields)
    make_version(agent, spec=get_or_create_spec(freeze_agent(agent)))
    return agent


def typed(**fields):
    return {**DAILY, "name": "Morning news", "input": "What is new?", **fields}


@pytest.fixture
def new(ann) -> str:
    """The address of the form for a published agent of Ann's."""
    return f"/schedules/new/?agent={published(ann).pk}"


def test_without_an_agent_the_page_offers_agents(client: Client, ann):
    agent, draft = published(ann, name="Reporter"), make_agent(ann, name="Sketch")
    page = client.get("/schedules/new/").text

    assert f'href="?agent={agent.pk}"' in page
    assert f'href="?agent={draft.pk}"' not in page
    assert f"/agents/{draft.pk}/#agent-versions" in page


def test_without_any_agent_the_page_links_to_creating_one(client: Client, ann):
    assert "/agents/new/" in client.get("/schedules/new/").text


def test_a_draft_has_to_be_published_first(client: Client, ann):
    draft = make_agent(ann, name="Sketch")
    page = client.get(f"/schedules/new/?agent={draft.pk}").text

    assert "Sketch has no published version" in page
    assert f"/agents/{draft.pk}/#agent-versions" in page
    client.post(f"/schedules/new/?agent={draft.pk}", typed())
    assert not Schedule.objects.exists()


@pytest.mark.parametrize("agent", ["private", "archived", "none"])
def test_an_agent_one_may_not_use_is_404(client: Client, ann, agent: str):
    found = published(make_user("bob") if agent == "private" else ann)
    if agent == "archived":
        client.post(f"/agents/{found.pk}/archive/")
    number = 10**9 if agent == "none" else found.pk

    assert client.get(f"/schedules/new/?agent={number}").status_code == 404
    assert client.post(f"/schedules/new/?agent={number}", typed()).status_code == 404


def test_the_form_asks_for_the_inputs_and_shows_the_next_times(client: Client, new):
    page = client.get(new).text

    assert 'name="input"' in page
    assert "Every day at 09:00" in page
    assert page.count(", 09:00</span>") == 5


def test_a_new_schedule_is_on_and_redirects_to_its_page(client: Client, ann, new):
    answer = client.post(new, typed(time_zone="Europe/Berlin"))

    made = Schedule.objects.get()
    assert answer.headers["Location"] == f"/schedules/{made.pk}/"
    assert (made.owner, made.name, made.cron) == (ann, "Morning news", "0 9 * * *")
    assert (made.time_zone, made.overlap) == ("Europe/Berlin", "skip")
    assert made.inputs == {"input": "What is new?"}
    assert made.is_on


def test_submitting_twice_creates_one_schedule(client: Client, new):
    first, second = client.post(new, typed()), client.post(new, typed())

    assert first.headers["Location"] == second.headers["Location"]
    assert Schedule.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "cron"),
    [
        pytest.param({"kind": "minutes", "every": "15"}, "*/15 * * * *", id="minutes"),
        pytest.param({"kind": "minutes", "every": "1"}, "* * * * *", id="each minute"),
        pytest.param({"kind": "hourly", "minute": "5"}, "5 * * * *", id="hourly"),
        pytest.param({"kind": "weekdays"}, "0 9 * * 1-5", id="weekdays"),
        pytest.param(
            {"kind": "weekly", "days": ["0", "3"]}, "0 9 * * 3,0", id="weekly"
        ),
        pytest.param({"kind": "monthly", "day": "L"}, "0 9 L * *", id="monthly"),
        pytest.param(
            {"kind": "cron", "cron": " 0 9  * * mon "}, "0 9 * * MON", id="cron"
        ),
    ],
)
def test_simple_choices_are_stored_as_cron(client: Client, new, fields, cron: str):
    client.post(new, typed(**fields))

    assert Schedule.objects.get().cron == cron


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"name": ""}, "Enter a name.", id="no name"),
        pytest.param({"name": "n" * 121}, "at most 120 characters", id="long name"),
        pytest.param({"input": " "}, "Enter a message", id="no question"),
        pytest.param({"input": "q" * 1_000_001}, "at most 1000000", id="huge question"),
        pytest.param({"kind": "never"}, "not one of the available", id="kind"),
        pytest.param({"at": "9 o'clock"}, "Enter a time such as 09:00.", id="time"),
        pytest.param({"at": ""}, "Enter a time such as 09:00.", id="no time"),
        pytest.param({"kind": "minutes", "every": "7"}, "not one of", id="minutes"),
        pytest.param({"kind": "hourly", "minute": "60"}, "59 or less.", id="minute"),
        pytest.param(
            {"kind": "hourly", "minute": ""}, "Enter a value for", id="no minute"
        ),
        pytest.param({"kind": "weekly"}, "Select at least one weekday.", id="no day"),
        pytest.param({"kind": "weekly", "days": ["9"]}, "not one of", id="day"),
        pytest.param({"kind": "monthly", "day": "31"}, "not one of", id="day of month"),
        pytest.param({"kind": "cron", "cron": ""}, "Enter five fields", id="no cron"),
        pytest.param(
            {"kind": "cron", "cron": "@daily"}, "five fields, not 1", id="nickname"
        ),
        pytest.param(
            {"kind": "cron", "cron": "0 0 30 2 *"}, "No date matches", id="never"
        ),
        pytest.param(
            {"kind": "cron", "cron": "* * * * * *"},
            "Seconds are not supported",
            id="seconds",
        ),
        pytest.param(
            {"kind": "cron", "cron": "1," * 5000}, "at most 120 characters", id="long"
        ),
        pytest.param({"time_zone": "../etc/passwd"}, "Select a time zone", id="path"),
        pytest.param({"time_zone": ""}, "Select a value for", id="no zone"),
        pytest.param({"overlap": "both"}, "not one of", id="overlap"),
    ],
)
def test_invalid_input_is_explained_and_not_stored(
    client: Client, new, fields, message: str
):
    answer = client.post(new, typed(**fields))

    assert answer.status_code == 200
    assert message in answer.text
    assert not Schedule.objects.exists()


def test_fields_of_other_kinds_are_ignored(client: Client, new):
    other = {"minute": "99", "every": "x", "day": "40", "cron": "nonsense"}
    client.post(new, typed(**other))

    assert Schedule.objects.get().cron == "0 9 * * *"


def test_a_duplicate_name_is_refused_at_its_field(client: Client, new):
    client.post(new, typed())
    answer = client.post(new, typed(at="10:00"))

    assert "Enter another name." in answer.text
    assert Schedule.objects.count() == 1


def test_a_new_schedule_starts_with_the_zone_of_the_last_one(client: Client, ann, new):
    assert 'value="UTC" selected' in client.get(new).text
    Preferences.objects.create(user=ann, time_zone="Asia/Tokyo")
    assert 'value="Asia/Tokyo" selected' in client.get(new).text
    client.post(new, typed(time_zone="Europe/Berlin"))
    assert 'value="Europe/Berlin" selected' in client.get(new).text


def test_an_agent_without_variables_needs_no_inputs(client: Client, ann):
    prompt = make_prompt(ann, messages=[{"role": "user", "template": "Report."}])
    agent = published(ann, prompt=prompt)
    client.post(f"/schedules/new/?agent={agent.pk}", {**DAILY, "name": "Report"})

    assert Schedule.objects.get().inputs == {}


def test_every_variable_of_the_published_version_is_required(client: Client, ann):
    prompt = make_prompt(
        ann, messages=[{"role": "user", "template": "{input} in {city}"}]
    )
    agent = published(ann, prompt=prompt)
    new = f"/schedules/new/?agent={agent.pk}"

    assert "Enter a value for" in client.post(new, typed()).text
    client.post(new, typed(**{"in-city": "Oslo"}))
    assert Schedule.objects.get().inputs == {"input": "What is new?", "city": "Oslo"}


def test_the_edit_form_shows_the_stored_values(client: Client, ann):
    schedule = make_schedule(ann, cron="30 6 * * 0,1", time_zone="Asia/Shanghai")
    page = client.get(f"/schedules/{schedule.pk}/edit/").text

    assert 'value="weekly" selected' in page
    assert 'value="06:30"' in page
    assert page.count("checked") == 3  # two days and the overlap
    assert 'value="Asia/Shanghai" selected' in page
    assert "What is new?" in page


def test_saving_redirects_to_the_schedule(client: Client, ann):
    schedule = make_schedule(ann)
    seen = get_schedule_token(schedule)
    path = f"/schedules/{schedule.pk}/edit/"

    answer = client.post(path, typed(seen=seen, kind="hourly", minute="0"))

    assert answer.headers["Location"] == f"/schedules/{schedule.pk}/"
    assert Schedule.objects.get().cron == "0 * * * *"


def test_a_save_from_a_second_tab_is_refused_and_keeps_its_input(client: Client, ann):
    schedule = make_schedule(ann)
    path, seen = f"/schedules/{schedule.pk}/edit/", get_schedule_token(schedule)
    client.post(path, typed(seen=seen, name="First tab"))
    answer = client.post(path, typed(seen=seen, name="Second tab"))

    assert "changed in another tab" in answer.text
    assert "Second tab" in answer.text
    assert Schedule.objects.get().name == "First tab"
    assert "changed in another tab" in client.post(path, typed(seen=seen)).text


def test_a_schedule_of_an_agent_that_lost_its_versions_can_be_opened(
    client: Client, ann
):
    schedule = make_schedule(ann)
    schedule.agent.versions.all().delete()

    assert client.get(f"/schedules/{schedule.pk}/edit/").status_code == 200


def test_the_preview_shows_the_times_of_the_unsaved_form(client: Client, ann):
    part = client.post("/schedules/times/", typed(kind="weekdays"), **HTMX).text

    assert part.lstrip().startswith('<section class="card" id="schedule-times"')
    assert "Monday to Friday at 09:00" in part
    assert part.count(", 09:00</span>") == 5


def test_the_preview_is_a_page_without_a_script(client: Client, ann):
    page = client.post("/schedules/times/", typed()).text

    assert "<html" in page
    assert page.count(", 09:00</span>") == 5


def test_the_preview_explains_invalid_times(client: Client, ann):
    wrong = typed(kind="cron", cron="0 25 * * *")

    assert "Hour: " in client.post("/schedules/times/", wrong, **HTMX).text
