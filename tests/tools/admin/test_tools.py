"""Managing tools in the admin."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from runs.models import AgentTool
from tests.make import make_agent
from tests.tools import functions  # noqa: F401  # registers them
from tests.tools.rows import make_tool, make_user
from tools.definition.save import save_tool
from tools.models import Credential, Tool, ToolUsage
from tools.secrets import seal, unseal

pytestmark = pytest.mark.django_db

LIST = "/admin/tools/tool/"
ADD = "tests.tools.functions:add"


def signed_in(name="admin", **more):
    client = Client()
    client.force_login(make_user(name, is_staff=True, is_superuser=True, **more))
    return client


def page(client, address, **query):
    response = client.get(address, query)
    assert response.status_code == 200
    return response.content.decode()


def filled(**changes):
    """Return the form of a function tool as a browser sends it."""
    return {
        **{"name": "plus", "slug": "", "description": "Adds.", "enabled": "on"},
        **{"function": ADD, "effect": "read", "approval": "never", "timeout": "5"},
        **{"retries": "0", "on_error": "feed_back", "visibility": "private"},
        **{"revisions-TOTAL_FORMS": "0", "revisions-INITIAL_FORMS": "0"},
        **changes,
    }


def use(tool, calls, failures, days_ago=1):
    hour = timezone.now() - timedelta(days=days_ago)
    ToolUsage.objects.create(tool=tool, hour=hour, calls=calls, failures=failures)


def test_the_list_shows_use_and_failures():
    use(make_tool(name="flaky"), calls=8, failures=2)

    shown = page(signed_in(), LIST)

    assert "flaky" in shown
    assert "25.0%" in shown
    assert "Python function" in shown


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"failing": "yes"}, {"flaky"}),
        ({"failing": "no"}, {"steady"}),
        ({"used": "yes"}, {"steady"}),
        ({"used": "no"}, {"flaky", "idle"}),
        ({"enabled__exact": "0"}, {"idle"}),
        ({"effect__exact": "read"}, {"steady"}),
        ({"kind__exact": "function"}, {"flaky", "steady", "idle"}),
        ({"archived": "yes"}, {"old"}),
    ],
)
def test_the_list_can_be_filtered(query, names):
    use(make_tool(name="flaky"), calls=10, failures=5)
    use(make_tool(name="steady", effect="read", last_used_at=timezone.now()), 10, 0)
    make_tool(name="idle", enabled=False)
    make_tool(name="old", archived_at=timezone.now())

    shown = page(signed_in(), LIST, **query)

    all_names = {"flaky", "steady", "idle", "old"}
    assert {n for n in all_names if f"<code>{n}</code>" in shown} == names


def test_a_tool_without_calls_leaves_no_cell_to_guess_at():
    make_tool(name="idle")

    shown = page(signed_in(), LIST)

    for words in ("never", "none", "no calls"):
        assert f'<span class="quiet">{words}</span>' in shown


def test_the_list_says_what_went_wrong_last():
    make_tool(last_error="The shop is closed.")

    assert "Last error: The shop is closed." in page(signed_in(), LIST)


def test_filters_and_buttons_speak_the_language_of_the_product():
    client = signed_in()
    shown = page(client, LIST) + page(client, f"{LIST}{make_tool().pk}/change/")

    assert "HTTP request" in shown
    assert "Save and continue editing" in shown
    for jargon in ("Select tool", "Show counts", "View on site"):
        assert jargon not in shown
    assert "Save and add another" not in shown
    assert "---------" not in shown


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"action": "disable"}, "Items must be selected"),
        ({"action": "", "_selected_action": ["1"]}, "No action selected."),
    ],
)
def test_half_an_order_for_many_is_answered_in_plain_words(sent, message):
    make_tool()

    answer = signed_in().post(LIST, {"index": "0", **sent}, follow=True)

    assert message in answer.content.decode()


def test_what_was_saved_is_reported_in_plain_words_and_its_name_is_no_markup():
    client = signed_in()
    make_user("admin")
    name = "<b>key</b>"

    sent = credential_form(name=name, _continue="1")
    shown = client.post("/admin/tools/credential/add/", sent, follow=True)

    assert (
        "&lt;b&gt;key&lt;/b&gt;</a>” was added successfully." in shown.content.decode()
    )
    assert name not in shown.content.decode()


def test_numbers_are_written_as_people_write_them():
    shown = page(signed_in(), f"{LIST}add/", kind="http")

    assert 'name="timeout" value="60"' in shown


def test_use_of_more_than_30_days_ago_does_not_count():
    use(make_tool(name="flaky"), calls=8, failures=8, days_ago=40)

    assert "100%" not in page(signed_in(), LIST)


def test_a_function_is_made_a_tool():
    response = signed_in().post(f"{LIST}add/", filled())

    tool = Tool.objects.get(name="plus")
    assert response.status_code == 302
    assert tool.config == {"function": ADD}
    assert (tool.owner.username, tool.slug, tool.revision) == ("admin", "plus", 1)
    assert tool.revisions.count() == 1


def test_what_is_left_empty_is_as_the_function_declares():
    signed_in().post(
        f"{LIST}add/", filled(name="", description="", effect="", timeout="")
    )

    tool = Tool.objects.get(name="add")
    assert (tool.description, tool.effect, tool.timeout) == (
        *("Return the sum.", "side_effect"),
        60.0,
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"name": "no[brackets]"}, "Enter 1 to 64 characters"),
        ({"name": "a" * 65}, "at most 64 characters"),
        ({"function": "os:system"}, "os:system is not one of the available choices"),
        ({"hosts": "a.example"}, "it cannot be restricted to these hosts"),
        ({"function": ""}, "Select a value for “Function”."),
        ({"timeout": "-1"}, "Enter 0.1 or more."),
        ({"retries": "9"}, "Enter 5 or less."),
        ({"slug": "taken"}, "already exists"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(changes, sentence):
    make_tool(name="other", slug="taken")

    response = signed_in().post(f"{LIST}add/", filled(**changes))

    assert response.status_code == 200
    assert sentence in response.content.decode()
    assert not Tool.objects.exclude(name="other").exists()


def test_a_change_is_a_revision_with_its_note():
    tool = save_tool(make_tool(), by=None)

    signed_in().post(
        f"{LIST}{tool.pk}/change/", filled(timeout="7", note="too slow", slug="add")
    )

    newest = tool.revisions.first()
    assert (newest.number, newest.note, newest.by.username) == (2, "too slow", "admin")
    shown = page(signed_in(), f"{LIST}{tool.pk}/change/")
    shown = re.sub(r">\s+<", "><", shown)
    assert "<dt>Timeout (seconds)</dt><dd><del>60</del> → <ins>7</ins>" in shown


def test_a_long_value_is_compared_by_line():
    tool = make_tool(kind="python", config={"code": "a = 1\nb = 2\na + b"})
    save_tool(tool, by=None)
    tool.config = {"code": "a = 1\nb = 3\na + b"}
    save_tool(tool, by=None)

    shown = page(signed_in(), f"{LIST}{tool.pk}/change/")

    assert '<span class="del">b = <del>2</del></span>' in shown
    assert '<span class="ins">b = <ins>3</ins></span>' in shown
    assert '<span class="same">a = 1</span>' in shown


def test_the_form_shows_use_and_the_last_error():
    tool = make_tool(last_error="The shop is closed.")
    use(tool, calls=10, failures=5)

    shown = page(signed_in(), f"{LIST}{tool.pk}/change/")

    assert "10 calls in 30 days, 50.0% failed" in shown
    assert "The shop is closed." in shown
    assert '<svg class="spark"' in shown


def test_a_tool_is_shared_with_the_chosen_groups():
    support = Group.objects.create(name="Support")
    client = signed_in()

    refused = client.post(f"{LIST}add/?kind=function", filled(visibility="groups"))
    client.post(
        f"{LIST}add/?kind=function",
        filled(visibility="groups", groups=[support.pk]),
    )

    assert "Select at least one group." in refused.content.decode()
    assert list(Tool.objects.get().groups.all()) == [support]


def test_staff_share_with_their_own_groups_only():
    mine, other = (Group.objects.create(name=name) for name in ("Support", "Board"))
    bob = make_user("bob", is_staff=True)
    bob.groups.add(mine)
    bob.user_permissions.add(Permission.objects.get(codename="add_tool"))
    client = Client()
    client.force_login(bob)

    shown = client.post(
        f"{LIST}add/?kind=function", filled(visibility="groups", groups=[other.pk])
    )

    form = client.get(f"{LIST}add/?kind=function").context["adminform"].form
    assert list(form.fields["groups"].queryset) == [mine]
    assert "is not one of the available choices" in shown.content.decode()


def test_an_earlier_revision_can_be_restored():
    client = signed_in()
    tool = save_tool(make_tool(), by=None)
    tool.timeout, tool.enabled = 5, False
    save_tool(tool, by=None)
    first = tool.revisions.get(number=1)

    assert f'form="restore-{first.pk}"' in page(client, f"{LIST}{tool.pk}/change/")
    client.post(reverse("admin:tools_restore", args=[first.pk]))

    tool.refresh_from_db()
    assert (tool.timeout, tool.revision, tool.enabled) == (60, 3, False)
    assert tool.revisions.first().note == "Restored revision 1"


def test_a_revision_of_a_hidden_tool_cannot_be_restored():
    tool = save_tool(make_tool(), by=None)
    client = Client()
    bob = make_user("bob", is_staff=True)
    bob.user_permissions.add(*permissions("view_tool", "change_tool"))
    client.force_login(bob)

    address = reverse("admin:tools_restore", args=[tool.revisions.get().pk])

    assert client.post(address).status_code == 404


def test_the_list_draws_the_calls_by_day():
    tool = make_tool(name="flaky")
    use(tool, calls=8, failures=2)
    use(tool, calls=4, failures=0, days_ago=3)

    shown = page(signed_in(), LIST)

    assert "12 calls in 30 days, 2 failed; at most 8 per day" in shown
    assert shown.count('class="bad"/>') == 1


def test_the_form_shows_the_arguments_of_the_function():
    shown = page(signed_in(), f"{LIST}{make_tool().pk}/change/")

    assert "<code>a</code>" in shown
    assert "integer" in shown


def test_a_function_that_is_gone_is_still_shown():
    tool = make_tool(config={"function": "gone:away"})

    assert "No longer registered" in page(signed_in(), f"{LIST}{tool.pk}/change/")


@pytest.mark.parametrize(
    ("action", "is_true"),
    [
        ("disable", lambda tool: not tool.enabled),
        ("archive", lambda tool: tool.archived_at is not None),
    ],
)
def test_many_tools_are_changed_at_once(action, is_true):
    tools = [make_tool(name=name) for name in ("a", "b")]

    signed_in().post(
        LIST, {"action": action, "_selected_action": [t.pk for t in tools]}
    )

    assert all(is_true(tool) for tool in Tool.objects.all())
    assert all(tool.revisions.count() == 1 for tool in tools)


def test_a_copy_is_private_and_switched_off():
    tool = make_tool(visibility="everyone")

    signed_in().post(reverse("admin:tools_tool_duplicate", args=[tool.pk]))

    copy = Tool.objects.get(name="add_copy")
    assert (copy.enabled, copy.visibility, copy.config) == (
        *(False, "private"),
        tool.config,
    )
    assert copy.slug != tool.slug


def test_tools_cannot_be_deleted():
    tool = make_tool()

    assert signed_in().post(f"{LIST}{tool.pk}/delete/").status_code == 403


def test_staff_see_only_what_is_theirs_or_shared():
    private = make_tool(name="secret")
    shared = make_tool(name="shared", visibility="everyone")
    client = Client()
    bob = make_user("bob", is_staff=True)
    bob.user_permissions.add(*permissions("view_tool", "change_tool"))
    client.force_login(bob)

    shown = page(client, LIST)

    assert "shared" in shown
    assert "secret" not in shown
    assert client.get(f"{LIST}{private.pk}/change/").status_code == 302
    assert "_save" not in page(client, f"{LIST}{shared.pk}/change/")
    assert client.post(f"/tools/{private.slug}/try/").status_code == 404


def permissions(*names):
    from django.contrib.auth.models import Permission  # noqa: PLC0415

    return Permission.objects.filter(codename__in=names)


def credential_form(**changes):
    return {
        **{"name": "orders", "kind": "bearer", "field": "", "secret": "s3cret"},
        **{"hosts": "api.example.com\n*.example.org", "visibility": "private"},
        **changes,
    }


def test_a_secret_is_sealed_and_never_shown():
    client = signed_in()
    client.post("/admin/tools/credential/add/", credential_form())

    row = Credential.objects.get(name="orders")
    assert unseal(row.sealed) == "s3cret"
    assert row.hosts == ["api.example.com", "*.example.org"]
    shown = page(client, f"/admin/tools/credential/{row.pk}/change/")
    assert "s3cret" not in shown
    assert row.sealed not in shown


def test_an_empty_secret_keeps_the_stored_one():
    admin = signed_in()
    row = Credential.objects.create(
        name="orders", owner=make_user("admin"), sealed=seal("old"), hosts=["a.example"]
    )

    admin.post(f"/admin/tools/credential/{row.pk}/change/", credential_form(secret=""))

    row.refresh_from_db()
    assert unseal(row.sealed) == "old"
    assert row.hosts == ["api.example.com", "*.example.org"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"secret": ""}, "Enter the secret."),
        ({"secret": "ключ"}, "Use only printable ASCII"),
        ({"hosts": ""}, "Enter a value for “Hosts”."),
        ({"hosts": "https://x/y"}, "is not a host."),
        ({"hosts": "ftp://x"}, "is not a host."),
        ({"hosts": "x:99999999"}, "is not a host."),
        ({"kind": "header"}, "Enter the name of the header"),
        ({"kind": "header", "field": "a b"}, "is not a valid header name"),
        ({"kind": "header", "field": "Host"}, "is set by the connection"),
        ({"kind": "basic"}, "Enter the user name."),
    ],
)
def test_a_flaw_of_a_credential_is_said_at_its_field(changes, sentence):
    response = signed_in().post(
        "/admin/tools/credential/add/", credential_form(**changes)
    )

    assert sentence in response.content.decode().replace("&#x27;", "'")
    assert not Credential.objects.exists()


@pytest.mark.parametrize(
    ("address", "title"),
    [
        ("/admin/tools/tool/", "Tools"),
        ("/admin/tools/credential/", "Credentials"),
        ("/admin/tools/auditentry/", "Audit log"),
        ("/admin/auth/user/", "Users"),
    ],
)
def test_each_list_is_called_by_what_it_lists(address, title):
    assert f"<h1>{title}</h1>" in page(signed_in(), address)


def test_the_list_names_the_owner_of_each_tool():
    for name in ("ann", "bob"):
        make_tool(name=f"{name}s", slug=f"{name}s", owner=make_user(name))

    shown = page(signed_in(), LIST)

    owners = re.findall(r'class="field-owner_name">(\w+)<', shown)
    assert sorted(owners) == ["ann", "bob"]


def test_the_list_is_filtered_by_owner_credential_and_sharing():
    client, ann = signed_in(), make_user("ann")
    credential = Credential.objects.create(owner=ann, name="key", slug="key")
    make_tool(name="anns", slug="anns", owner=ann, credential=credential)
    make_tool(name="bobs", slug="bobs", owner=make_user("bob"), visibility="everyone")

    def named(**query):
        shown = page(client, LIST, **query)
        return [name for name in ("anns", "bobs") if f"<code>{name}</code>" in shown]

    assert named(owner=ann.pk) == ["anns"]
    assert named(credential=credential.pk) == ["anns"]
    assert named(visibility__exact="everyone") == ["bobs"]
    assert named(owner="²") == ["anns", "bobs"]


@pytest.mark.parametrize(
    ("action", "field", "value"),
    [
        ("share", "visibility", "everyone"),
        ("unshare", "visibility", "private"),
        ("ask_always", "approval", "always"),
        ("ask_never", "approval", "never"),
    ],
)
def test_several_tools_are_shared_or_need_approval_at_once(action, field, value):
    client, ann = signed_in(), make_user("ann")
    start = {"visibility": "groups", "approval": "side_effects"}
    tools = [make_tool(name=n, slug=n, owner=ann, **start) for n in ("a", "b")]
    chosen = {"action": action, "_selected_action": [tool.pk for tool in tools]}

    client.post(LIST, chosen)

    assert set(Tool.objects.values_list(field, flat=True)) == {value}


def test_a_tool_without_a_description_is_warned_about():
    client = signed_in()
    code = {"code": "1", "memory_mb": "64", "args_schema": ""}
    form = filled(description="", **code)

    saved = client.post(f"{LIST}add/?kind=python", form, follow=True)

    assert "plus has no description." in saved.content.decode()


def test_a_function_that_keeps_to_hosts_can_have_a_credential():
    client = signed_in()
    shop = Credential.objects.create(
        name="Shop", owner=make_user("admin"), hosts=["api.example.com"]
    )
    asked = filled(function="tests.tools.functions:uses_secret", credential=shop.pk)

    assert client.post(f"{LIST}add/", asked).status_code == 302

    tool = Tool.objects.get(name="plus")
    assert tool.credential == shop
    assert "Shop" in page(client, f"{LIST}{tool.pk}/change/")


@pytest.mark.parametrize(
    ("function", "hosts", "sentence"),
    [
        ("add", "", "it cannot be given a credential"),
        ("uses_secret", "b.example", "bound to api.example.com, none of which"),
    ],
)
def test_a_credential_that_no_call_could_use_is_refused(function, hosts, sentence):
    client = signed_in()
    shop = Credential.objects.create(
        name="Shop", owner=make_user("admin"), hosts=["api.example.com"]
    )
    path = f"tests.tools.functions:{function}"

    asked = filled(function=path, hosts=hosts, credential=shop.pk)
    response = client.post(f"{LIST}add/", asked)

    assert sentence in response.content.decode()
    assert not Tool.objects.exists()


def test_filters_by_an_agent_that_one_may_see():
    used, other = make_tool(name="used_one"), make_tool(name="other_one")
    ours = make_agent(make_user("zoe"), name="our desk", visibility="everyone")
    AgentTool.objects.create(agent=ours, tool=used)
    secret = make_agent(make_user("eve"), name="secret desk")
    AgentTool.objects.create(agent=secret, tool=other)
    for tool in (used, other):
        Tool.objects.filter(pk=tool.pk).update(visibility="everyone")
    helper = make_user("helper", is_staff=True)
    helper.user_permissions.add(Permission.objects.get(codename="view_tool"))
    client = Client()
    client.force_login(helper)

    shown = page(client, LIST)
    assert "our desk" in shown
    assert "secret desk" not in shown
    shown = page(client, LIST, agent=ours.pk)
    assert "used_one" in shown
    assert "other_one" not in shown
    assert "other_one" not in page(client, LIST, agent=secret.pk)
    assert "other_one" in page(client, LIST, agent="²")


def test_the_list_shows_the_slug_that_agent_files_use():
    make_tool(name="plus", slug="plus-of-the-desk")

    shown = page(signed_in(), LIST)
    assert '<td class="field-slug_text">plus-of-the-desk</td>' in shown
