"""Choosing who may use an agent, a prompt or a provider, on each of their forms."""

import pytest
from django.contrib.auth.models import Group

from runs.models import Agent, PromptTemplate, Provider
from tests.make import make_user
from tests.views.agents.test_form import typed
from tests.views.prompts.test_page import TEXT as PROMPT
from tests.views.providers.test_page import GOOD as PROVIDER

pytestmark = pytest.mark.django_db

FORMS = pytest.mark.parametrize(
    ("model", "address", "given"),
    [
        pytest.param(Agent, "/agents/new/", {}, id="agent"),
        pytest.param(PromptTemplate, "/prompts/new/", PROMPT, id="prompt"),
        pytest.param(Provider, "/providers/new/", PROVIDER, id="provider"),
    ],
)


@pytest.fixture
def ann(client):
    """Ann is in two of three groups."""
    user = make_user("ann")
    user.groups.add(*(Group.objects.create(name=n) for n in ("Support", "Sales")))
    Group.objects.create(name="Board")
    client.force_login(user)
    return user


def filled(model, given, ann, **more):
    if model is Agent:
        given = typed(ann)
    return given | {"visibility": "groups"} | more


def pk(name: str) -> int:
    return Group.objects.get(name=name).pk


@FORMS
def test_the_chosen_groups_are_kept_and_shown(client, ann, model, address, given):
    answer = client.post(address, filled(model, given, ann, groups=[pk("Support")]))

    thing = model.objects.exclude(slug__startswith="instructions-").latest("pk")
    assert answer.status_code == 302
    assert [group.name for group in thing.groups.all()] == ["Support"]
    there = f"/{address.split('/')[1]}/{thing.pk}/"
    page = client.get(f"{there}edit/" if model is Agent else there).content.decode()
    assert f'value="{pk("Support")}" id="id_groups_1" checked' in page


@FORMS
def test_no_group_is_asked_for(client, ann, model, address, given):
    page = client.post(address, filled(model, given, ann)).content.decode()

    assert "Select at least one group." in page


@FORMS
def test_a_group_of_others_cannot_be_chosen(client, ann, model, address, given):
    answer = client.post(address, filled(model, given, ann, groups=[pk("Board")]))

    assert answer.status_code == 200
    assert "Board" not in client.get(address).content.decode()


@FORMS
def test_who_is_in_no_group_is_informed(client, model, address, given):
    bob = make_user("bob")
    client.force_login(bob)

    page = client.post(address, filled(model, given, bob)).content.decode()

    assert "You are not a member of any group." in page


@FORMS
def test_groups_are_left_when_it_is_no_longer_shared(
    client, ann, model, address, given
):
    group = pk("Support")
    client.post(
        address, filled(model, given, ann, visibility="private", groups=[group])
    )

    thing = model.objects.exclude(slug__startswith="instructions-").latest("pk")
    assert not thing.groups.exists()
