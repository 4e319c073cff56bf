"""Evaluators: list, form, revisions, and a trial on a past run."""

from html import unescape

import pytest

from runs.evaluation.registry import EVALUATOR_KINDS
from runs.models import Evaluator
from runs.services.evaluators.save import save_evaluator
from tests.make import make_provider, make_run, make_user
from tools.models import AuditEntry

pytestmark = pytest.mark.django_db

FORM = {"name": "Polite", "visibility": "private", "config-needs": "all"}


def make_evaluator(owner, **fields) -> Evaluator:
    defaults = {"name": "Mine", "kind": "contains", "config": {"texts": ["please"]}}
    return save_evaluator(Evaluator(owner=owner, **{**defaults, **fields}), by=owner)


def test_shows_the_list_and_hides_what_is_someone_elses(client, ann):
    make_evaluator(ann, name="My evaluator")
    make_evaluator(make_user(), name="Their evaluator")

    page = client.get("/evaluators/").content.decode()

    assert "My evaluator" in page
    assert "Their evaluator" not in page


@pytest.mark.parametrize("kind", EVALUATOR_KINDS)
def test_each_kind_has_a_form_with_labels(client, ann, kind):
    page = client.get(f"/evaluators/new/?kind={kind}").content.decode()

    for name in EVALUATOR_KINDS[kind].config_model.model_fields:
        assert f'name="config-{name}"' in page
        assert f">{name}<" not in page


def test_saves_the_settings(client, ann):
    form = {**FORM, "config-texts": "please\r\n thanks ", "config-ignore_case": "on"}
    client.post("/evaluators/new/?kind=contains", form)

    found = Evaluator.objects.get()
    assert found.config["texts"] == ["please", "thanks"]
    assert (found.config["ignore_case"], found.config["ignore_space"]) == (True, False)
    assert found.revisions.get().config == found.config
    assert AuditEntry.objects.get(noun="evaluator").action == "made"


def test_a_judge_needs_a_provider_that_its_owner_may_use(client, ann):
    theirs = make_provider(make_user(), slug="theirs")
    form = {
        **FORM,
        "config-provider": "theirs",
        "config-model": "m",
        "config-rubric": "Polite?",
        "config-form": "rubric",
        "config-votes": "1",
        "config-threshold": "0.5",
    }
    page = client.post("/evaluators/new/?kind=judge", form).content.decode()

    assert "The judge's provider 'theirs' was not found." in unescape(page)
    assert not Evaluator.objects.exists()

    type(theirs).objects.update(visibility="everyone")
    client.post("/evaluators/new/?kind=judge", form)

    assert Evaluator.objects.get().config["provider"] == "theirs"


def test_settings_that_are_not_valid_are_refused_at_their_field(client, ann):
    form = {**FORM, "config-pattern": "(", "config-is_found": "on"}
    page = client.post("/evaluators/new/?kind=regex", form).content.decode()

    assert "The pattern is invalid" in page
    assert not Evaluator.objects.exists()


def test_a_rubric_with_a_variable_is_refused_at_its_field(client, ann):
    page = client.get("/evaluators/new/?kind=judge")
    form = page.context["form"]
    fields = {form.add_prefix(name): form[name].value() for name in form.fields}
    fields = {name: value for name, value in fields.items() if value}
    fields |= {"name": "Judge", "config-rubric": "Is {answer} right?"}

    answer = client.post("/evaluators/new/?kind=judge", fields).content.decode()

    assert "nothing replaces {answer}" in answer
    assert not Evaluator.objects.exists()


def test_a_change_of_the_settings_is_a_revision_and_a_name_is_not(client, ann):
    found = make_evaluator(ann)
    url = f"/evaluators/{found.pk}/"
    kept = {"config-texts": "please", "config-ignore_case": "on"}
    kept |= {"config-ignore_space": "on", "config-line": "all"}
    client.post(url, {**FORM, **kept})
    before = found.revisions.count()

    client.post(url, {**FORM, **kept, "name": "Renamed"})
    assert found.revisions.count() == before
    client.post(url, {**FORM, **kept, "config-texts": "thanks"})
    assert found.revisions.count() == before + 1


def test_others_can_see_a_shared_evaluator_and_not_change_it(client, ann):
    found = make_evaluator(make_user(), visibility="everyone")
    url = f"/evaluators/{found.pk}/"

    client.post(url, {**FORM, "name": "Stolen", "config-texts": "x"})

    found.refresh_from_db()
    assert found.name == "Mine"
    assert "Only the owner can edit" in client.get(url).content.decode()


def try_on(client, run, **fields) -> str:
    form = {**FORM, "config-texts": "please", "trial-run": run.pk, **fields}
    return client.post("/evaluators/try/contains/", form).content.decode()


def test_an_unsaved_evaluator_is_tried_on_a_run(client, ann):
    good = make_run(owner=ann, status="succeeded", output="Wait, please.")
    bad = make_run(owner=ann, status="succeeded", output="Wait.")

    assert "Passed" in try_on(client, good)
    page = try_on(client, bad)
    assert "Failed" in page
    assert "Not found" in page
    assert not Evaluator.objects.exists()


def test_a_chinese_viewer_reads_the_result_of_a_trial_in_chinese(client, ann):
    bad = make_run(owner=ann, status="succeeded", output="Wait.")
    failed = make_run(owner=ann, status="failed", error_message="No model.")
    client.post("/preferences/language/", {"language": "zh-hans"})

    assert "未找到：'please'。" in unescape(try_on(client, bad))
    assert "运行失败：No model." in try_on(client, failed)


def test_a_chinese_viewer_reads_what_is_wrong_with_settings_in_chinese(client, ann):
    client.post("/preferences/language/", {"language": "zh-hans"})

    page = client.post("/evaluators/new/?kind=limits", FORM).content.decode()

    assert "请至少输入一项限制。" in page


def test_runs_of_others_and_unfinished_ones_are_not_scored(client, ann):
    assert "not found" in try_on(client, make_run(status="succeeded"))
    assert "has not ended yet" in try_on(client, make_run(owner=ann))


def test_a_copy_begins_with_its_first_revision(client, ann):
    found = make_evaluator(ann)

    client.post(f"/evaluators/{found.pk}/duplicate/")

    copy = Evaluator.objects.exclude(pk=found.pk).get()
    assert copy.revision == 1
    assert copy.revisions.get().config == found.config
