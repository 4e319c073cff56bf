"""What waits for a person, and the answers."""

import json
import re
from html import unescape

import pytest
from django.contrib.auth.models import Group

from runs.models import AgentStep, Allowance, Decision
from tests.make import make_decision, make_run, make_step, make_tool, make_user
from tests.support.html import Fields

pytestmark = pytest.mark.django_db


def asking(owner, **fields):
    run = make_run(owner, status="awaiting_approval", title="Pay it back")
    call = {"tool": "refund", "tool_input": {"amount": 49}}
    step = make_step(run, status="awaiting_approval", effect="side_effect", **call)
    return make_decision(step, shown=call, **fields)


def test_shows_the_exact_call(client, ann):
    asking(ann)

    page = client.get("/approvals/").content.decode()

    assert "Pay it back" in page
    assert '&quot;amount&quot;</span>: <span class="n">49</span>' in page


def test_a_question_is_titled_by_its_tool_and_says_what_that_does(client, ann):
    words = "Send money back to a customer. Takes a day or two."
    decision = asking(ann)
    tool = make_tool(ann, name="refund", description=words)
    AgentStep.objects.filter(pk=decision.step_id).update(tool_ref=tool)

    pages = [client.get(path).content.decode() for path in ("/approvals/", "/")]

    for page in pages:
        assert "Approval required: <code>refund</code>" in page
        assert "Send money back to a customer" in page
        assert "Takes a day or two" not in page


def test_shows_the_part_to_htmx(client, ann):
    decision = asking(ann)
    of_list = client.get("/approvals/", headers={"HX-Request": "true"})
    of_one = client.get(f"/approvals/{decision.pk}/", headers={"HX-Request": "true"})
    of_all = client.get("/approvals/answered/", headers={"HX-Request": "true"})

    assert of_list.content.decode().strip().startswith('<form id="approval-list"')
    assert 'id="approval-detail"' in of_one.content.decode()[:60]
    assert 'id="approval-answered"' in of_all.content.decode()[:60]


def test_the_numbers_above_the_list_are_a_part(client, ann):
    asking(ann)

    part = client.get("/approvals/head/", {"tab": "mine"}).content.decode()

    assert part.strip().startswith('<header class="run-head" id="approval-head">')
    assert "Open 1\n" in part
    assert '?tab=mine" aria-current="page"> For me 1 <' in " ".join(part.split())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ""),
        ({"answer": "approved", "by": "ann"}, ""),
        ({"answer": "rejected", "by": "bob"}, "bob already answered this: Rejected."),
        ({"answer": "expired"}, "Already answered: Expired."),
        ({"answer": "withdrawn"}, "The run has ended, so no decision is needed."),
        ({"answer": "withdrawn", "by": "ann"}, ""),
        (
            {"answer": "withdrawn", "by": "bob"},
            "bob ended the run, so no decision is needed.",
        ),
    ],
)
def test_says_who_else_made_the_decision_that_one_was_making(
    client, ann, fields, expected
):
    people = {None: None, "ann": ann, "bob": make_user("bob")}
    decision = asking(ann)
    decision.answer = fields.get("answer", "")
    decision.by = people[fields.get("by")]
    decision.save()

    response = client.get(f"/approvals/{decision.pk}/decided/")

    text = f"refund: {expected} What you typed was not used." if expected else ""
    assert response.content.decode() == text
    assert response.status_code == 200


def test_hides_what_is_someone_elses_and_takes_no_answer(client, ann):
    decision = asking(make_user())

    page = client.get("/approvals/").content.decode()
    url = f"/approvals/{decision.pk}/"
    answer = client.post(f"{url}answer/", {"answer": "approve"})

    assert "Pay it back" not in page
    assert answer.status_code == 404
    assert client.get(url).status_code == 404
    assert client.get(f"{url}arguments/").status_code == 404
    client.post("/approvals/several/", {"pick": decision.pk, "answer": "approve"})
    assert AgentStep.objects.get().status == "awaiting_approval"


def test_an_approval_sends_the_run_on(client, ann):
    decision = asking(ann)
    shown = json.dumps(decision.shown["tool_input"], indent=2)

    client.post(
        f"/approvals/{decision.pk}/answer/", {"answer": "approve", "edited": shown}
    )

    step = AgentStep.objects.select_related("run").get()
    decision.refresh_from_db()
    assert (step.status, step.run.status) == ("planned", "queued")
    assert (decision.answer, decision.edited_input, decision.by) == (
        "approved",
        None,
        ann,
    )


def test_changed_arguments_are_what_runs(client, ann):
    decision = asking(ann)

    client.post(
        f"/approvals/{decision.pk}/answer/",
        {"answer": "approve", "edited": '{"amount": 9}'},
    )

    assert AgentStep.objects.get().tool_input == {"amount": 9}


def test_arguments_that_are_no_json_answer_nothing_and_are_kept(client, ann):
    decision = asking(ann)

    answer = client.post(
        f"/approvals/{decision.pk}/answer/", {"answer": "approve", "edited": "{amount"}
    )

    page = answer.content.decode()
    decision.refresh_from_db()
    assert answer.status_code == 200
    assert "Not valid JSON. Line 1, column 2: a name in double quotes" in page
    assert "Correct them and submit again." in page
    assert "{amount" in page
    assert decision.answer == ""


def test_a_no_tells_the_model_why(client, ann):
    decision = asking(ann)

    client.post(
        f"/approvals/{decision.pk}/answer/", {"answer": "reject", "reason": "too much"}
    )

    assert "too much" in AgentStep.objects.get().observation


@pytest.mark.parametrize("word", ["", "fail", "happened", "Approve"])
def test_only_an_approval_approves(client, ann, word):
    decision = asking(ann)
    answer = {"answer": word} if word else {}

    url = f"/approvals/{decision.pk}/answer/"
    page = client.post(url, answer, follow=True).content.decode()

    assert "Select Approve or Reject." in page
    assert AgentStep.objects.get().status == "awaiting_approval"


@pytest.mark.parametrize(
    ("status", "question"),
    [("awaiting_approval", "approval"), ("awaiting_decision", "outcome")],
)
def test_enter_in_a_note_answers_nothing(client, ann, status, question):
    step = make_step(make_run(ann, status=status), status="unknown")
    decision = make_decision(step, question=question)

    page = client.get(f"/approvals/{decision.pk}/").content.decode()

    assert page.count('name="reason"') == 1
    assert '<textarea class="input" id="approval-' in page
    assert '<input class="input"' not in page


def test_what_led_to_it_links_to_its_row(client, ann):
    run = make_run(ann, status="awaiting_approval")
    make_step(run, observation="first")
    make_decision(make_step(run, status="awaiting_approval"))

    page = client.get("/approvals/").content.decode()

    assert f"/runs/{run.pk}/?step=2" in page


def test_the_second_answer_shows_who_was_first(client, ann):
    decision = asking(ann)
    url = f"/approvals/{decision.pk}/answer/"

    client.post(url, {"answer": "reject", "reason": "too much"})
    second = client.post(url, {"answer": "approve"})

    page = second.content.decode()
    assert second.status_code == 409
    assert "ann already answered this: Rejected." in page
    assert "too much" in page
    assert AgentStep.objects.get().status == "rejected"


def test_an_answer_to_another_call_than_was_shown_is_refused(client, ann):
    decision = asking(ann)

    answer = client.post(
        f"/approvals/{decision.pk}/answer/", {"answer": "approve", "shown": "old"}
    )

    assert answer.status_code == 409
    assert "no longer the one you were shown" in answer.content.decode()
    assert AgentStep.objects.get().status == "awaiting_approval"


def test_arguments_that_do_not_fit_are_reported_at_the_field(client, ann):
    decision = asking(ann)
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    spec = decision.step.run.spec
    spec.body["tools"] = [{"name": "refund", "asks": True, "args_schema": schema}]
    spec.save()
    typed = {"answer": "approve", "edited": '{"amount": "much"}', "reason": "hm"}

    page = client.post(f"/approvals/{decision.pk}/answer/", typed).content.decode()

    assert "<code>amount</code>" in page
    assert "is not of type" in page
    assert "{&quot;amount&quot;: &quot;much&quot;}</textarea>" in page
    assert "hm</textarea>" in page


def test_true_instead_of_one_is_a_change(client, ann):
    decision = asking(ann)
    decision.shown["tool_input"] = {"amount": 1}
    decision.save()

    client.post(
        f"/approvals/{decision.pk}/answer/",
        {"answer": "approve", "edited": '{"amount": true}'},
    )
    decision.refresh_from_db()

    assert decision.edited_input == {"amount": True}


def test_characters_that_hide_are_shown_by_their_numbers(client, ann):
    decision = asking(ann)
    decision.shown["tool_input"] = {"to": "ann\u202egro.live\u200b", "b": "<b>&"}
    decision.save()

    page = client.get(f"/approvals/{decision.pk}/").content.decode()

    code = page.split('id="approval-code-')[1].split("</pre>")[0].split(">", 1)[1]
    assert 'title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>' in code
    assert 'title="ZERO WIDTH SPACE">U+200B</span>' in code
    assert "\u202e" not in code
    assert "&lt;b&gt;&amp;" in code
    assert "2 characters that are invisible" in page


def test_values_under_names_of_secrets_are_covered(client, ann):
    decision = asking(ann)
    decision.shown["tool_input"] = {"api_key": "abc123", "q": "x"}
    decision.save()

    page = client.get(f"/approvals/{decision.pk}/").content.decode()

    assert "<details><summary>hidden, 6 characters</summary>" in page


def test_shows_target_and_expiry(client, ann):
    decision = asking(ann, expires_at="2999-01-01T00:00:00Z", at_expiry="stop")
    decision.shown["target"] = "POST https://billing.example.com/refunds"
    decision.save()

    page = client.get(f"/approvals/{decision.pk}/").content.decode()

    assert "<code>POST https://billing.example.com/refunds</code>" in page
    assert "The run ends <time" in page


def test_the_exact_arguments_are_a_file(client, ann):
    decision = asking(ann)

    answer = client.get(f"/approvals/{decision.pk}/arguments/")

    assert json.loads(answer.content) == {"amount": 49}


def test_a_group_of_approvers_sees_and_answers_and_the_owner_only_sees(client, ann):
    billing = Group.objects.create(name="billing")
    bob = make_user("bob")
    bob.groups.add(billing)
    decision = asking(ann, approvers=billing)
    url = f"/approvals/{decision.pk}/"

    assert "The group billing decides this." in client.get(url).content.decode()
    client.post(f"{url}answer/", {"answer": "approve"})
    assert AgentStep.objects.get().status == "awaiting_approval"

    client.force_login(bob)
    assert "Approve and continue" in client.get(url).content.decode()
    client.post(f"{url}answer/", {"answer": "approve"})
    assert AgentStep.objects.get().status == "planned"


def test_an_approver_reads_the_run_but_cannot_change_or_follow_it(client, ann):
    billing = Group.objects.create(name="billing")
    bob, cleo = make_user("bob"), make_user("cleo")
    bob.groups.add(billing)
    decision = asking(ann, approvers=billing)
    run = decision.step.run
    url = f"/runs/{run.pk}/read-only/"
    assert client.get(url).headers["Location"] == f"/runs/{run.pk}/"

    client.force_login(bob)
    assert url in client.get(f"/approvals/{decision.pk}/").content.decode()
    page = client.get(url).content.decode()
    assert "refund" in page
    assert "because you approve calls of its tools" in page
    assert client.get(f"/runs/{run.pk}/").status_code == 404
    assert client.post(f"/runs/{run.pk}/stop/").status_code == 404

    client.force_login(cleo)
    assert client.get(url).status_code == 404


def test_the_list_says_that_the_chosen_one_was_answered_meanwhile(client, ann):
    decision = asking(ann)
    client.post(f"/approvals/{decision.pk}/answer/", {"answer": "reject"})

    part = client.get(
        "/approvals/", {"chosen": decision.pk}, headers={"HX-Request": "true"}
    ).content.decode()

    assert "was decided by ann: Rejected." in part


def test_several_are_answered_together(client, ann):
    first, second, third = asking(ann), asking(ann), asking(ann)
    picked = {"pick": [first.pk, second.pk]}

    page = client.get("/approvals/several/", picked).content.decode()
    assert "Review 2 calls" in page
    assert page.count('class="figure"') == 2
    client.post(
        "/approvals/several/",
        {**picked, "answer": "reject", "reason": "no"},
    )

    answers = Decision.objects.order_by("pk").values_list("answer", "reason")
    assert list(answers) == [("rejected", "no"), ("rejected", "no"), ("", "")]
    assert third.answer == ""


def answer_several(client, decisions):
    picked = {"pick": [one.pk for one in decisions], "answer": "approve"}
    return client.post("/approvals/several/", picked, follow=True).content.decode()


def test_the_message_links_to_the_runs_of_all_calls_answered_together(client, ann):
    billing = Group.objects.create(name="billing")
    bob = make_user("bob")
    bob.groups.add(billing)
    decisions = [asking(ann, approvers=billing) for _ in range(2)]
    urls = [f"/runs/{one.step.run_id}/read-only/" for one in decisions]
    client.force_login(bob)

    page = answer_several(client, decisions)

    assert "2 calls approved." in page
    for url in urls:
        assert f'<a href="{url}">' in page
        assert client.get(url).status_code == 200
        assert (
            f'<a href="{url}">' in client.get("/approvals/answered/").content.decode()
        )


def test_the_message_about_one_call_links_to_a_run_that_its_approver_can_open(
    client, ann
):
    billing = Group.objects.create(name="billing")
    bob = make_user("bob")
    bob.groups.add(billing)
    decision = asking(ann, approvers=billing)
    client.force_login(bob)

    path = f"/approvals/{decision.pk}/answer/"
    page = client.post(path, {"answer": "approve"}, follow=True).content.decode()

    assert f'<a href="/runs/{decision.step.run_id}/read-only/">' in page


def test_many_runs_are_linked_through_the_list_of_decisions(client, ann):
    page = answer_several(client, [asking(ann) for _ in range(12)])

    assert page.count(">Open run ") == 10
    assert '<a href="/approvals/answered/">All decisions</a>' in page


def test_one_answered_meanwhile_does_not_spoil_the_others(client, ann):
    first, second = asking(ann), asking(ann)
    client.post(f"/approvals/{first.pk}/answer/", {"answer": "reject"})

    page = client.post(
        "/approvals/several/",
        {"pick": [first.pk, second.pk], "answer": "approve"},
        follow=True,
    ).content.decode()

    assert "1 call was already decided." in page
    assert "1 call approved." in page
    first.refresh_from_db()
    assert first.answer == "rejected"


def test_calls_that_are_not_decided_are_counted_by_reason(client, ann):
    mine, outcome = asking(ann), asking(ann, question="outcome")
    hidden = asking(make_user())

    page = answer_several(client, [mine, outcome, hidden])

    assert "1 call approved." in page
    assert "You cannot approve or reject 1 of the selected calls." in page
    assert "1 selected call was not found." in page
    assert "already decided" not in page


def test_calls_beyond_the_most_that_are_decided_at_once_stay_open(
    client, ann, monkeypatch
):
    monkeypatch.setattr("runs.views.approvals.page.MAX_LISTED", 2)
    decisions = [asking(ann) for _ in range(3)]

    page = answer_several(client, decisions)

    assert "2 calls approved." in page
    assert "1 call stays open: at most 2 are decided at once." in page
    assert "already decided" not in page


def test_the_open_ones_are_searched_and_stay_so_in_links(client, ann):
    found, other = asking(ann), asking(ann)
    AgentStep.objects.filter(pk=other.step_id).update(tool="send_email")

    page = client.get("/approvals/", {"q": "REFUND pay"}).content.decode()

    assert f'href="/approvals/{found.pk}/?q=REFUND+pay"' in page
    assert f'id="approval-item-{other.pk}"' not in page
    assert 'name="q" value="REFUND pay"' in page
    nothing = client.get("/approvals/", {"q": "zebra"}).content.decode()
    assert "Nothing found" in nothing
    assert "No open approvals" not in nothing


def test_an_approval_for_every_call_is_kept_and_taken_back(client, ann):
    decision = asking(ann)

    client.post(
        f"/approvals/{decision.pk}/answer/", {"answer": "approve", "alike": "on"}
    )
    allowance = Allowance.objects.get()
    assert (allowance.tool, allowance.by) == ("refund", ann)

    client.force_login(make_user("eve"))
    url = f"/approvals/allowances/{allowance.pk}/revoke/"
    assert client.post(url).status_code == 404
    client.force_login(ann)
    client.post(url)
    allowance.refresh_from_db()
    assert allowance.revoked_by == ann


def test_answered_says_who_when_and_why(client, ann):
    decision = asking(ann)
    client.post(
        f"/approvals/{decision.pk}/answer/", {"answer": "reject", "reason": "too much"}
    )

    page = client.get("/approvals/answered/").content.decode()
    row = re.search(r'<td class="muted c-ag">.*?</tr>', page, re.DOTALL)
    assert "</span> · ann · " in " ".join(row[0].split())  # on a phone
    assert '<span class="clip">too much<' in row[0]
    whole = client.get(f"/approvals/{decision.pk}/").content.decode()

    for text in (page, whole):
        assert "Rejected" in text
        assert "too much" in text
        assert ">ann<" in text


def test_older_answers_are_on_the_next_page(client, ann, monkeypatch):
    monkeypatch.setattr("runs.views.approvals.page.ANSWERED_PER_PAGE", 1)
    for n in (1, 2):
        asking(ann, answer="approved", at=f"2026-01-0{n}T00:00:00Z", reason=f"note{n}")

    page = client.get("/approvals/answered/").content.decode()
    link = page.split('href="?before=')[1].split('"')[0]
    older = client.get("/approvals/answered/", {"before": link}).content.decode()

    assert "note2" in page
    assert "note1" not in page
    assert "note1" in older


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param("happened", "succeeded", id="happened"),
        pytest.param("retry", "planned", id="retry"),
        pytest.param("skip", "skipped", id="skip"),
    ],
)
def test_an_unknown_outcome_is_settled(client, ann, answer, status):
    run = make_run(ann, status="awaiting_decision")
    decision = make_decision(make_step(run, status="unknown"), question="outcome")

    client.post(f"/approvals/{decision.pk}/answer/", {"answer": answer})

    assert AgentStep.objects.get().status == status


def test_a_nonsense_answer_changes_nothing(client, ann):
    run = make_run(ann, status="awaiting_decision")
    decision = make_decision(make_step(run, status="unknown"), question="outcome")

    client.post(f"/approvals/{decision.pk}/answer/", {"answer": "maybe"})

    assert AgentStep.objects.get().status == "unknown"


def test_the_number_of_questions_is_on_every_page(client, ann):
    asking(ann)

    assert "1 approval needs your attention" in client.get("/agents/").content.decode()


def test_after_an_answer_the_inbox_links_to_the_run(client, ann):
    decision = asking(ann)
    url = f"/approvals/{decision.pk}/answer/"
    page = client.post(url, {"answer": "approve"}, follow=True).content.decode()
    run = decision.step.run_id

    assert "refund approved. The run continues." in page
    assert f'<a href="/runs/{run}/">Open run {run}</a>' in page


def test_an_answer_says_that_the_arguments_were_edited(client, ann):
    decision = asking(ann)
    typed = {"answer": "approve", "edited": '{"amount": 9}'}
    url = f"/approvals/{decision.pk}/answer/"
    page = client.post(url, typed, follow=True).content.decode()

    assert "refund approved with the edited arguments. The run continues." in page


def asking_with_schema(owner, properties, arguments, **more):
    """Return a decision about a call whose tool has these arguments."""
    decision = asking(owner)
    spec = decision.step.run.spec
    schema = {"type": "object", "properties": properties, **more}
    spec.body["tools"] = [{"name": "refund", "asks": True, "args_schema": schema}]
    spec.save()
    decision.shown = {**decision.shown, "tool_input": arguments}
    decision.save()
    return decision


PROPERTIES = {
    "amount": {"type": "integer"},
    "note": {"type": "string"},
    "speed": {"enum": ["slow", "fast"]},
    "to": {"type": "object", "properties": {"name": {"type": "string"}}},
    "tags": {"type": "array", "items": {"type": "string"}},
}
ARGUMENTS = {
    "amount": 49,
    "note": "two\nlines",
    "speed": "fast",
    "to": {"name": "Ann"},
    "tags": ["a"],
}


GEO = {
    "type": "object",
    "properties": {
        "lat": {"type": "number"},
        "lon": {"type": ["number", "null"]},
        "name": {"type": "string"},
        "at": {"type": "object", "properties": {"zone": {"type": "number"}}},
    },
}


def answer_as_shown(client, decision, **typed):
    """Approve as a browser does that changes only some fields."""
    sent = Fields(client.get(f"/approvals/{decision.pk}/").text).sent
    assert sent["edit_as"] == ["fields"]
    sent |= {f"arg-{decision.pk}-{name}": value for name, value in typed.items()}
    url = f"/approvals/{decision.pk}/answer/"
    answered = client.post(url, sent | {"answer": "approve"})
    decision.refresh_from_db()
    return answered


def fields_of(decision, **typed):
    """Return the form as a browser sends it, with changed fields."""
    names = {"amount": "49", "note": "two\r\nlines", "speed": "fast", "to.name": "Ann"}
    sent = names | {"tags": '["a"]'} | typed
    fields = {f"arg-{decision.pk}-{name}": value for name, value in sent.items()}
    return {"answer": "approve", "edit_as": "fields", "edited": "{}"} | fields


def test_each_argument_has_a_field(client, ann):
    decision = asking_with_schema(ann, PROPERTIES, ARGUMENTS)

    page = client.get(f"/approvals/{decision.pk}/").content.decode()

    assert f'name="arg-{decision.pk}-amount" value="49"' in page
    assert '<option value="fast" selected>' in page
    assert f'name="arg-{decision.pk}-to.name"' in page


def test_untouched_fields_are_no_edit(client, ann):
    decision = asking_with_schema(ann, PROPERTIES, ARGUMENTS)

    client.post(f"/approvals/{decision.pk}/answer/", fields_of(decision))
    decision.refresh_from_db()

    assert (decision.answer, decision.edited_input) == ("approved", None)


TEXTS = {"type": "array", "items": {"type": "string"}}


SHOWN = {
    "list": (TEXTS, ["a", "é"]),
    "list_with_a_line_break": (TEXTS, ["one\r\ntwo", " a "]),
    "list_with_an_empty_text": (TEXTS, ["a", ""]),
    "list_with_a_text_that_is_a_JSON_list": (TEXTS, ["[1]"]),
    "empty_list_of_texts": (TEXTS, []),
    "list_of_other_values": (TEXTS, [1]),
    "list_of_any_type": ({}, ["a", {"b": None}]),
    "text_of_any_type": ({}, "text"),
    "text_that_is_JSON": ({}, "[1]"),
    "empty_text": ({}, ""),
    "false": ({}, False),
    "object": ({"type": "object"}, {"a": "<b>&'\""}),
    "empty_object": ({"type": "object"}, {}),
    "either": ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 7),
    "empty_list": ({"type": ["array", "null"]}, []),
    "boolean": ({"type": "boolean"}, False),
    "choice": ({"enum": [1, "1"]}, 1),
    "number": ({"type": "number"}, 0.25),
    "line_break": ({"type": "string"}, "\nfirst line is empty"),
    "break_in_an_object": ({"type": "object"}, {"a": "one\r\ntwo"}),
    "whole_number": ({"type": "number"}, 50),
    "number_with_a_point": ({"type": "number"}, 50.0),
    "number_with_an_exponent": ({"type": "number"}, 1e22),
    "number_instead_of_an_integer": ({"type": "integer"}, 1.5),
    "integer_with_a_point": ({"type": "integer"}, 1.0),
    "text_instead_of_an_integer": ({"type": "integer"}, ""),
    "text_instead_of_yes": ({"type": "boolean"}, "Yes"),
    "integer_instead_of_a_text": ({"type": "string"}, 7),
    "empty_text_of_a_text_field": ({"type": "string"}, ""),
    "line_breaks": ({"type": "string"}, "x\r\ny"),
    "old_line_break": ({"type": "string"}, "x\ry"),
    "null": ({"type": ["string", "null"]}, None),
    "null_for_a_number": ({"type": ["number", "null"]}, None),
    "null_for_yes_or_no": ({"type": "boolean"}, None),
    "null_as_a_choice": ({"enum": ["a", None]}, None),
    "no_choice": ({"enum": ["a"]}, "b"),
    "null_of_any_type": ({}, None),
    "nested": (GEO, {"lat": 50, "lon": None, "name": ""}),
    "nested_and_unknown": (GEO, {"lat": 1.5, "extra": [""]}),
    "nested_twice": (GEO, {"at": {"zone": 1}}),
    "empty_object_within_an_object": (GEO, {"at": {}}),
    "empty_object_with_fields": (GEO, {}),
    "null_for_an_object_with_fields": (GEO, None),
    "text_instead_of_an_object": (GEO, "here"),
}
"""The schema of an argument, and its value."""


@pytest.mark.parametrize("required", [False, True], ids=["optional", "required"])
def test_a_form_sent_as_it_is_shown_is_no_edit(client, ann, required):
    """All arguments stand on one page, each in fields of its own."""
    properties = {name: part for name, (part, _) in SHOWN.items()}
    arguments = {name: value for name, (_, value) in SHOWN.items()}
    names = list(SHOWN) if required else []
    decision = asking_with_schema(ann, properties, arguments, required=names)

    answered = answer_as_shown(client, decision)

    sent = decision.edited_input or arguments
    assert [one for one in SHOWN if repr(sent.get(one)) != repr(arguments[one])] == []
    assert decision.answer == "approved", refused_fields(answered)
    assert decision.edited_input is None


def refused_fields(answered):
    """Return the names of the fields that a page marks."""
    return re.findall(r'name="arg-\d+-([^"]*)"[^>]*aria-invalid', answered.text)


@pytest.mark.parametrize(
    "shown",
    [{}, {"x": "a"}, {"y": "a"}, {"y": "a", "z": [None, 1.0]}, {"x": "", "z.a": 1}],
    ids=str,
)
def test_arguments_that_are_missing_or_unknown_are_sent_as_shown(client, ann, shown):
    properties = {"x": {"type": "string"}, "in": {**GEO, "required": ["at"]}}
    required = ["x", "in"]
    decision = asking_with_schema(ann, properties, shown, required=required)

    answer_as_shown(client, decision)

    assert (decision.answer, decision.edited_input) == ("approved", None)


def test_only_the_value_that_no_field_expresses_is_entered_as_json(client, ann):
    shown = ARGUMENTS | {"note": "one\r\ntwo", "speed": None, "to": {"name": ""}}
    speed = {"type": ["string", "null"], "enum": ["slow", None]}
    decision = asking_with_schema(ann, PROPERTIES | {"speed": speed}, shown)

    page = client.get(f"/approvals/{decision.pk}/").text
    answer_as_shown(client, decision, **{"amount": "7", "to.name": "Bo"})

    assert f'name="arg-{decision.pk}-amount" value="49"' in page
    assert "&quot;one\\r\\ntwo&quot;</textarea>" in page
    assert '<option value="" selected>null</option>' in page
    assert 'placeholder="empty text"' in page
    assert decision.edited_input == shown | {"amount": 7, "to": {"name": "Bo"}}


def test_a_changed_field_is_what_runs(client, ann):
    decision = asking_with_schema(ann, PROPERTIES, ARGUMENTS)
    typed = fields_of(decision, amount="7", **{"to.name": "Bo"})

    client.post(f"/approvals/{decision.pk}/answer/", typed)
    decision.refresh_from_db()

    assert decision.edited_input == ARGUMENTS | {"amount": 7, "to": {"name": "Bo"}}


def test_a_wrong_field_is_named_and_everything_is_kept(client, ann):
    decision = asking_with_schema(ann, PROPERTIES, ARGUMENTS)
    typed = fields_of(decision, amount="much", note="typed here")

    page = client.post(f"/approvals/{decision.pk}/answer/", typed).content.decode()
    decision.refresh_from_db()

    assert decision.answer == ""
    assert "Enter a whole number" in page.split("-amount-error")[1].split("</p>")[0]
    assert "typed here</textarea>" in page
    assert re.findall(r'name="([\w.-]+)"[^>]*autofocus', page) == [
        f"arg-{decision.pk}-amount"
    ]


def test_a_missing_argument_is_named_as_the_tool_does(client, ann):
    decision = asking_with_schema(
        ann,
        {"payment_id": {"type": "string"}},
        {"payment_id": "p"},
        required=["payment_id"],
    )
    sent = {
        "answer": "approve",
        "edit_as": "fields",
        f"arg-{decision.pk}-payment_id": "",
    }

    page = client.post(f"/approvals/{decision.pk}/answer/", sent).text

    assert "Enter a value for “payment_id”." in page


def test_two_arguments_with_the_same_name_are_edited_as_json(client, ann):
    inner = {"type": "object", "properties": {"b": {"type": "integer"}}}
    properties = {"a": inner, "a.b": {"type": "integer"}}
    decision = asking_with_schema(ann, properties, {"a": {"b": 1}, "a.b": 2})

    page = client.get(f"/approvals/{decision.pk}/").text

    assert 'name="edit_as"' not in page
    assert 'name="edited"' in page


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"tags": "[1]"}, "tags", "tags.0: 1 is not of type"),
        ({"any": "not json"}, "any", "Not valid JSON."),
        ({"to.name": "x" * 9}, "to.name", "'xxxxxxxxx' is too long."),
    ],
    ids=["in a list", "no JSON", "nested"],
)
def test_a_refused_form_of_a_run_is_shown_there_at_the_field(
    client, ann, typed, field, said
):
    name = {"type": "string", "maxLength": 8}
    to = {"type": "object", "properties": {"name": name}}
    properties = PROPERTIES | {"to": to, "any": {}}
    decision = asking_with_schema(ann, properties, ARGUMENTS | {"any": 1})
    run = f"/runs/{decision.step.run_id}/"
    sent = fields_of(decision, **typed) | {"next": run, "reason": "why"}

    answer = client.post(f"/approvals/{decision.pk}/answer/", sent)
    page, again = client.get(run).text, client.get(run).text

    assert answer.headers["Location"] == run
    shown = page.split(f"-{field}-error")[1].split("</p>")[0]
    assert said in unescape(shown)
    assert re.findall(r'name="([\w.-]+)"[^>]*autofocus', page) == [
        f"arg-{decision.pk}-{field}"
    ]
    assert f'id="approval-edit-{decision.pk}" open' in page
    assert "why</textarea>" in page
    assert "why</textarea>" not in again


def test_only_the_page_of_its_run_shows_a_refused_form(client, ann):
    decision = asking_with_schema(ann, PROPERTIES, ARGUMENTS)
    run = f"/runs/{decision.step.run_id}/"
    sent = fields_of(decision, amount="no") | {"next": run, "edit_as": "fields"}

    client.post(f"/approvals/{decision.pk}/answer/", sent)
    client.get(f"/runs/{asking(ann).step.run_id}/")
    client.get(run, headers={"HX-Request": "true"})

    assert "Enter a whole number" in client.get(run).text


def test_a_refusal_without_a_field_is_listed(client, ann):
    decision = asking_with_schema(ann, PROPERTIES, ARGUMENTS, maxProperties=4)
    sent = fields_of(decision, amount="7")

    page = client.post(f"/approvals/{decision.pk}/answer/", sent).text

    errors = page.split(f'id="approval-wrong-{decision.pk}"')[1].split("</div>")[0]
    assert "has too many properties" in errors
    assert "autofocus" in errors


def test_the_address_of_a_refused_form_opens_the_decision(client, ann):
    decision = asking(ann)

    answer = client.get(f"/approvals/{decision.pk}/answer/")

    assert answer.headers["Location"] == f"/approvals/{decision.pk}/"


@pytest.mark.parametrize(
    "padding",
    [" " * 10_000, "\n" * 3_000, "\u200b" * 3_000, "x" * 50_000],
    ids=["spaces", "lines", "invisible", "letters"],
)
def test_what_comes_after_padding_is_shown_too(client, ann, padding):
    decision = asking(ann)
    decision.shown["tool_input"] = {"note": f"Thanks!{padding}Pay 9000 to eve"}
    decision.save()

    page = client.get(f"/approvals/{decision.pk}/").content.decode()

    code = page.split('id="approval-code-')[1].split("</pre>")[0]
    assert "Thanks!" in code
    assert "Pay 9000 to eve" in code
