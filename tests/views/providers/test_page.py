"""Providers: list, form, test."""

import html
import re
from contextlib import contextmanager

import pytest
from django.conf import settings
from django.utils.html import escape

from runs.forms.provider import may_reuse_secret
from runs.llm.base import ModelCard
from runs.llm.presets import PRESETS
from runs.llm.registry import PROVIDER_KINDS
from runs.models import Provider
from runs.services.providers.refresh_models import refresh_models
from tests.make import make_agent, make_provider, make_user
from tests.tools.http_server import Answer, serve

pytestmark = pytest.mark.django_db

PORT = settings.OWN_PORTS[0]
PART = {"HX-Request": "true"}

GOOD = {
    "name": "local",
    "kind": "openai",
    "base_url": "http://127.0.0.1:9/v1",
    "timeout": "60",
    "outage_minutes": "30",
    "visibility": "private",
}


def test_shows_the_list_and_hides_what_is_someone_elses(client, ann):
    make_provider(ann, name="Mine")
    make_provider(name="Not mine")

    page = client.get("/providers/").content.decode()

    assert "Mine" in page
    assert "Not mine" not in page


def test_makes_a_provider_and_goes_to_it(client, ann):
    answer = client.post("/providers/new/", GOOD | {"key": "sk-secret"})

    provider = Provider.objects.get()
    assert answer.headers["Location"] == f"/providers/{provider.pk}/"
    assert provider.owner == ann
    assert provider.key() == "sk-secret"


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        pytest.param("base_url", "no url", "is not a valid web address", id="no-url"),
        pytest.param(
            "base_url", "ftp://x/v1", "is not a valid web address", id="scheme"
        ),
        pytest.param("base_url", "http://", "is not a valid web address", id="no-host"),
        pytest.param(
            "base_url", "http://x:99999/", "is not a valid web address", id="port"
        ),
        pytest.param(
            "base_url", "http://u:pw@h/", "Remove the user name", id="password"
        ),
        pytest.param(
            "base_url", "http://[::1", "is not a valid web address", id="bracket"
        ),
        pytest.param(
            "base_url", "http://x/v1?key=a", "cannot be a base URL", id="query"
        ),
        pytest.param(
            "base_url", "http://x/v1#a", "cannot be a base URL", id="fragment"
        ),
        pytest.param(
            "base_url", "http://x/ v1", "is not a valid web address", id="space"
        ),
        pytest.param(
            "base_url", "http://169.254.169.254/v1", "hand out cred", id="metadata"
        ),
        pytest.param(
            "base_url", "http://2852039166/v1", "hand out cred", id="metadata-decimal"
        ),
        pytest.param(
            "base_url",
            f"http://localhost:{PORT}/v1",
            "application&#x27;s own",
            id="own",
        ),
        pytest.param(
            "base_url", f"http://[::1]:{PORT}/v1", "application&#x27;s own", id="own-v6"
        ),
        pytest.param("name", "", "Enter a name.", id="no-name"),
        pytest.param("timeout", "-1", "or more", id="timeout"),
        pytest.param("key", "sk\x07x", "one line of ASCII", id="key"),
        pytest.param("headers", "nonsense", "Line 1 is not a header", id="header"),
        pytest.param(
            "headers", "X-A: b\nhost : c", "Line 2: the header", id="reserved-header"
        ),
        pytest.param("kind", "abc", "Select a valid choice", id="kind"),
        pytest.param("name", "a\0b", "Null characters", id="nul"),
    ],
)
def test_refuses_bad_input_at_its_field_and_keeps_the_rest(
    client, ann, field, value, says
):
    answer = client.post(
        "/providers/new/", GOOD | {"default_model": "m7", field: value}
    )

    page = answer.content.decode()
    assert answer.status_code == 200
    assert says in page
    assert 'value="m7"' in page
    assert not Provider.objects.exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        pytest.param("sk-1234", "name of an environment", id="a-key"),
        pytest.param(
            "SECRET_KEY", "is not allowed to hold a provider", id="agentsites-own"
        ),
        pytest.param("HOME", "is not allowed to hold a provider", id="any"),
    ],
)
def test_a_superuser_learns_which_variables_are_allowed(client, name, says):
    client.force_login(make_user(is_superuser=True))

    page = client.post("/providers/new/", GOOD | {"key_env": name}).content.decode()

    assert says in page
    assert not Provider.objects.exists()


def test_only_superusers_name_a_variable(client, ann, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-operators")

    client.post("/providers/new/", GOOD | {"key_env": "OPENAI_API_KEY"})
    page = client.get("/providers/new/").content.decode()

    assert Provider.objects.get().key_env == ""
    assert 'name="key_env"' not in page
    assert "OPENAI_API_KEY</span> is set" not in page


def test_a_variable_does_not_stay_with_a_url_of_somebody_who_may_not_read_it(
    client, ann
):
    provider = make_provider(
        ann, base_url="https://models.example/v1", key_env="OPENAI_API_KEY"
    )

    client.post(f"/providers/{provider.pk}/", GOOD)

    provider.refresh_from_db()
    assert (provider.base_url, provider.key_env) == (GOOD["base_url"], "")


def test_without_an_address_the_kinds_own_is_meant(client, ann):
    client.post("/providers/new/", GOOD | {"kind": "anthropic", "base_url": ""})

    assert Provider.objects.get().base_url == PROVIDER_KINDS["anthropic"].base_url


def test_the_demo_is_asked_for_no_address(client, ann):
    page = client.get("/providers/new/?kind=demo").content.decode()

    assert 'name="base_url"' not in page


def test_never_shows_a_stored_secret(client, ann):
    provider = make_provider(ann)
    provider.set_key("sk-very-secret")
    provider.set_headers("X-Org: hidden-org")
    provider.save()

    page = client.get(f"/providers/{provider.pk}/").content.decode()

    assert "sk-very-secret" not in page
    assert "hidden-org" not in page
    assert "A key is stored" in page


def test_saving_without_a_new_key_keeps_the_stored_one(client, ann):
    provider = make_provider(ann)
    provider.set_key("sk-old")
    provider.save()

    client.post(f"/providers/{provider.pk}/", GOOD | {"name": "Renamed"})

    provider.refresh_from_db()
    assert (provider.name, provider.key()) == ("Renamed", "sk-old")


def test_a_stored_key_can_be_removed(client, ann):
    provider = make_provider(ann)
    provider.set_key("sk-old")
    provider.save()

    client.post(f"/providers/{provider.pk}/", GOOD | {"forget_key": "on"})

    provider.refresh_from_db()
    assert provider.key() == ""


def test_a_shared_provider_is_shown_but_only_its_owner_edits_it(client, ann):
    provider = make_provider(name="Shared", visibility="everyone")

    page = client.get(f"/providers/{provider.pk}/").content.decode()
    client.post(f"/providers/{provider.pk}/", GOOD)

    provider.refresh_from_db()
    assert "Only the owner can edit" in page
    assert provider.name == "Shared"


def test_a_stranger_gets_404_everywhere(client, ann):
    pk = make_provider().pk

    codes = {
        client.get(f"/providers/{pk}/").status_code,
        client.post(f"/providers/{pk}/test/").status_code,
        client.post(f"/providers/{pk}/archive/").status_code,
        client.post(f"/providers/{pk}/duplicate/").status_code,
        client.post(f"/providers/{pk}/rename/", {"name": "x"}).status_code,
    }

    assert codes == {404}


def test_says_in_words_that_no_server_is_there(client, ann):
    provider = make_provider(ann, base_url="http://127.0.0.1:9/v1")

    part = connect(client, provider)

    assert part.strip().startswith('<section class="card" id="provider-test"')
    assert 'data-tone="bad"' in part
    assert "127.0.0.1:9" in part


def test_the_demo_answers_the_test_and_its_models_are_kept(client, ann):
    provider = make_provider(ann, kind="demo", base_url="")

    typed = GOOD | {"kind": "demo", "base_url": ""}
    page = client.post(f"/providers/{provider.pk}/test/", typed).content.decode()

    assert "<html" in page
    assert "Connected. The server" in page
    assert provider.models.exists()


def test_the_page_shows_the_result_of_the_last_test(client, ann):
    provider = make_provider(ann, base_url="http://127.0.0.1:9/v1")
    address = f"/providers/{provider.pk}/"

    assert "Not tested since" in client.get(address).content.decode()
    connect(client, provider)
    error = Provider.objects.get().test_error
    page = client.get(address).content.decode()
    assert re.search(rf" ago</time>\.\s+{re.escape(escape(error))}</span>", page)
    Provider.objects.update(test_error="")
    assert "The server responded." in client.get(address).content.decode()


def test_a_secret_that_the_server_echoes_is_neither_shown_nor_kept(client, ann):
    refusal = {"error": {"message": "It is not open-sesame-and-more"}}
    with serve(lambda _: Answer(refusal, status=401)) as server:
        provider = make_provider(ann, base_url=f"{server.url}/v1")
        provider.set_headers("X-Team: open-sesame-and-more")
        provider.save()

        page = connect(client, provider, base_url=provider.base_url)

    kept = Provider.objects.get().test_error
    assert server.got[0].headers["x-team"] == "open-sesame-and-more"
    assert "open-sesame-and-more" not in page + kept
    assert "It is not [secret removed]" in kept


def test_a_test_of_another_address_counts_no_more_and_of_the_same_does(client, ann):
    provider = make_provider(ann, base_url="http://127.0.0.1:9/v1")
    connect(client, provider)
    form = {**GOOD, "base_url": provider.base_url, "kind": provider.kind}

    client.post(f"/providers/{provider.pk}/", {**form, "timeout": "7"})
    assert Provider.objects.get().tested_at is not None
    client.post(f"/providers/{provider.pk}/", {**form, "key": "another"})
    assert Provider.objects.get().tested_at is None
    connect(client, provider)
    other = {**form, "base_url": "http://127.0.0.1:8/v1"}
    client.post(f"/providers/{provider.pk}/", other)
    assert Provider.objects.get().tested_at is None


@contextmanager
def model_server():
    """A server that lists one model and records what it gets."""
    with serve(lambda _: Answer({"data": [{"id": "m1"}]})) as server:
        yield server


def make_saved(owner, url):
    provider = make_provider(owner, base_url=url)
    provider.set_key("sk-stored")
    provider.set_headers("X-Team: stored-team")
    provider.save()
    return provider


def connect(client, provider, **typed):
    """Press Test connection; return the part."""
    return client.post(
        f"/providers/{provider.pk}/test/", GOOD | typed, headers=PART
    ).content.decode()


def test_the_test_uses_the_typed_url_and_saves_nothing(client, ann):
    provider = make_provider(ann, base_url="http://127.0.0.1:9/v1")

    with model_server() as server:
        part = connect(client, provider, base_url=f"{server.url}/v1")

    assert "Connected. The server offers 1 model." in part
    assert "unsaved values" in part
    provider.refresh_from_db()
    assert provider.base_url == "http://127.0.0.1:9/v1"
    assert provider.tested_at is None
    assert not provider.models.exists()


def test_a_provider_is_tested_before_it_is_saved(client, ann):
    with model_server() as server:
        typed = GOOD | {"name": "", "base_url": f"{server.url}/v1", "key": "sk-new"}
        part = client.post("/providers/test/", typed, headers=PART).content.decode()
        page = client.post("/providers/test/", typed).content.decode()

    assert "Connected" in part
    assert server.got[0].headers["authorization"] == "Bearer sk-new"
    assert not Provider.objects.exists()
    assert f"{server.url}/v1" in page
    assert "Enter the key again" in page
    assert "sk-new" not in page


@pytest.mark.parametrize(("name", "shown"), [("Local", "Local"), ("", "new")])
def test_a_failed_test_names_the_provider_before_it_is_saved(client, ann, name, shown):
    typed = GOOD | {"name": name, "base_url": "http://127.0.0.1:9/v1"}

    page = client.post("/providers/test/", typed, headers=PART).content.decode()

    assert f"provider &#x27;{shown}&#x27;" in page


def test_an_empty_key_field_means_the_stored_key_on_the_same_host(client, ann):
    with model_server() as server:
        provider = make_saved(ann, "http://127.0.0.1:9/v1")
        part = connect(client, provider, base_url=f"{server.url}/v1")

    assert server.got[0].headers["authorization"] == "Bearer sk-stored"
    assert server.got[0].headers["x-team"] == "stored-team"
    assert "not sent" not in part


def test_a_stored_key_is_never_sent_to_a_newly_typed_host(client, ann):
    with model_server() as server:
        provider = make_saved(ann, "https://models.example/v1")
        part = connect(client, provider, base_url=f"{server.url}/v1")

    assert "sk-stored" not in str(server.got[0].headers)
    assert "stored-team" not in str(server.got[0].headers)
    assert "The stored key and headers were not sent" in part


def test_a_variable_is_not_sent_to_a_newly_typed_host(client, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-operators")
    admin = make_user(is_superuser=True)
    client.force_login(admin)
    with model_server() as server:
        provider = make_provider(
            admin, base_url="https://models.example/v1", key_env="OPENAI_API_KEY"
        )
        there = {"base_url": f"{server.url}/v1", "key_env": "OPENAI_API_KEY"}
        part = connect(client, provider, **there)

    assert "authorization" not in server.got[0].headers
    assert "were not sent" in part


@pytest.mark.parametrize(
    ("stored", "typed", "same"),
    [
        ("https://a.example/v1", "https://A.example:8443/v2", True),
        ("http://a.example/v1", "https://a.example/v1", True),
        ("https://a.example/v1", "http://a.example/v1", False),
        ("https://a.example/v1", "https://a.example.evil.example/v1", False),
        ("", "https://a.example/v1", False),
    ],
)
def test_the_host_decides_whether_stored_secrets_are_sent(stored, typed, same):
    assert may_reuse_secret(stored, typed) is same


def test_a_test_with_wrong_values_names_the_field(client, ann):
    provider = make_provider(ann)

    part = connect(client, provider, base_url="no url", key="sk\x07x")

    assert "Base URL: &#x27;no url&#x27; is not a valid web address" in part
    assert "API key: Enter the key as one line" in part


def test_archives_and_takes_out_again(client, ann):
    provider = make_provider(ann, name="Old one")

    client.post(f"/providers/{provider.pk}/archive/")
    assert "Old one" not in client.get("/providers/").content.decode().split("main")[2]
    assert "Old one" in client.get("/providers/?archived=1").content.decode()

    client.post(f"/providers/{provider.pk}/unarchive/")
    provider.refresh_from_db()
    assert provider.archived_at is None


def test_renames_and_refuses_an_empty_name(client, ann):
    provider = make_provider(ann, name="Before")

    client.post(f"/providers/{provider.pk}/rename/", {"name": " "})
    assert Provider.objects.get().name == "Before"

    client.post(f"/providers/{provider.pk}/rename/", {"name": "After"})
    assert Provider.objects.get().name == "After"


def test_a_copy_of_a_shared_one_comes_without_its_key(client, ann):
    provider = make_provider(visibility="everyone")
    provider.set_key("sk-of-the-owner")
    provider.save()

    client.post(f"/providers/{provider.pk}/duplicate/")

    copy = Provider.objects.get(owner=ann)
    assert (copy.key(), copy.visibility) == ("", "private")


def test_offers_a_key_found_in_the_environment(client, ann, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")

    page = client.get("/providers/new/").content.decode()

    assert "OPENAI_API_KEY" in page
    assert "sk-env" not in page


def test_lists_the_agents_that_use_it(client, ann):
    provider = make_provider(ann)
    make_agent(ann, provider=provider, name="planner")

    assert "planner" in client.get(f"/providers/{provider.pk}/").content.decode()


def test_a_server_that_names_nonsense_does_no_harm():
    provider = make_provider()
    cards = (
        ModelCard("same", context_tokens=-1),
        ModelCard("same", context_tokens=10**12),
        ModelCard("a\0b" + "x" * 300),
        ModelCard(""),
    )

    refresh_models(provider, cards)
    refresh_models(provider, cards)

    sizes = provider.models.values_list("context_tokens", flat=True)
    assert (len(sizes), set(sizes)) == (2, {None})


def test_archiving_says_which_agents_cannot_run_and_their_pages_warn(client, ann):
    provider = make_provider(ann, name="Old one")
    agents = [make_agent(ann, provider=provider) for _ in range(2)]

    client.post(f"/providers/{provider.pk}/archive/")

    assert "2 agents cannot run" in client.get("/providers/").content.decode()
    page = client.get(f"/agents/{agents[0].pk}/").content.decode()
    assert "Provider Old one is archived" in page


def test_found_servers_stand_below_the_list_and_the_form(client, ann):
    page = client.get("/providers/found/").content.decode()
    crumbs = page.partition('class="crumbs"')[2].partition("</nav>")[0]

    assert re.findall(r'href="([^"]+)"', crumbs) == ["/providers/", "/providers/new/"]


def test_a_sentence_for_the_operator_can_be_copied(client, ann):
    there = {"base_url": "http://10.0.0.7:8000/v1"}

    part = connect(client, make_provider(ann), **there)

    assert "AGENTSITE_PRIVATE_HOSTS=provider=10.0.0.7:8000" in part
    assert 'data-copy="#provider-test-result"' in part


def test_private_agents_of_others_are_counted_and_not_named(client, ann):
    provider = make_provider(ann, visibility="everyone")
    make_agent(ann, provider=provider, name="Own agent")
    make_agent(provider=provider, name="Their secret plan", model="secret-model")

    page = client.get(f"/providers/{provider.pk}/").content.decode()

    assert "Own agent" in page
    assert "Their secret plan" not in page
    assert "secret-model" not in page
    assert "1 agent of other users" in " ".join(page.split())


def test_offers_to_start_with_well_known_services_and_servers(client, ann):
    page = client.get("/providers/new/").content.decode()

    assert re.findall(r'href="\?[^"]*">([^<]+)</a>', page) == [
        "OpenAI",
        "Anthropic",
        "Google Gemini",
        "OpenRouter",
        "Mistral",
        "DeepSeek",
        "Groq",
        "Azure OpenAI",
        "Ollama",
        "vLLM",
        "llama.cpp",
    ]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.title)
def test_a_preset_fills_in_what_the_form_accepts(client, ann, preset):
    page = client.get("/providers/new/").content.decode()
    link = re.search(rf'href="(\?[^"]*)">{re.escape(preset.title)}</a>', page)[1]

    fields = client.get(f"/providers/new/{html.unescape(link)}").context["form"]
    filled = {name: fields[name].value() for name in ("name", "kind", "base_url")}

    assert filled == {
        "name": preset.title,
        "kind": preset.kind,
        "base_url": preset.base_url,
    }
    assert fields["kind"].field.valid_value(preset.kind)
