"""What leaves the site with a run has no secrets in it."""

import pytest

from runs.engine.types import ModelSettings
from runs.models import Run
from runs.services.runs.mask_secrets import SecretMask
from runs.store.sanitizer import HIDDEN
from tests.make import (
    make_agent,
    make_provider,
    make_run,
    make_spec,
    make_step,
    make_tool,
    make_user,
)
from tools.models import Credential, McpServer, McpSignIn
from tools.secrets import seal
from tools.spec import ToolSpec

pytestmark = pytest.mark.django_db


@pytest.fixture
def mask():
    """The mask of a run whose owner has an address."""
    return SecretMask(make_run(make_user(email="ann@example.com")))


SECRETS = [
    "sk-proj-abcdefghijklmnop1234",
    "ghp_abcdefghijklmnopqrstuvwx",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-abcdef",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig_nature1",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabc\n-----END RSA PRIVATE KEY-----",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_hides_what_has_the_shape_of_a_secret(mask, secret):
    assert mask.text(f"before {secret} after") == f"before {HIDDEN} after"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        pytest.param(
            "Authorization: Bearer abcdefghijkl123",
            f"Authorization: Bearer {HIDDEN}",
            id="bearer",
        ),
        pytest.param("password=hunter22 ok", f"password={HIDDEN} ok", id="assigned"),
        pytest.param('"api_key": "k-12345"', f'"api_key": "{HIDDEN}"', id="json"),
        pytest.param(
            "postgres://ann:s3cret@db/x", f"postgres://{HIDDEN}@db/x", id="address"
        ),
        pytest.param(
            r"{\"password\": \"hunter22\"}",
            rf"{{\"password\": \"{HIDDEN}\"}}",
            id="json in json",
        ),
        pytest.param("DB_PASSWORD: abcd1234", f"DB_PASSWORD: {HIDDEN}", id="variable"),
        pytest.param("mail ann@example.com", f"mail {HIDDEN}", id="e-mail"),
    ],
)
def test_hides_the_value_beside_its_name(mask, text, masked):
    assert mask.text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "The tokens: 1200 in, 30 out.",
        "A secret garden is open.",
        "Bearer of good news",
        "2 + 2 = 4; total=1200",
        "https://example.com/a:b",
    ],
)
def test_leaves_plain_words_alone(mask, text):
    assert mask.text(text) == text


def make_credential(secret, **more):
    values = {"owner": make_user(), "name": "c", "kind": "bearer", **more}
    return Credential.objects.create(sealed=seal(secret), **values)


def make_provider_with(owner, *, key, header):
    provider = make_provider(owner)
    provider.set_key(key)
    provider.set_headers(f"X-Org: {header}")
    provider.save()
    return provider


def test_hides_the_secrets_of_the_owner():
    owner = make_user()
    make_provider_with(owner, key="provider-key-1", header="header-value-2")
    make_credential("credential-3", owner=owner)

    text = SecretMask(make_run(owner)).text(
        "provider-key-1 header-value-2 credential-3"
    )

    assert text == " ".join([HIDDEN] * 3)


def test_hides_the_secrets_that_the_run_can_use():
    theirs = make_user()
    provider = make_provider_with(
        theirs, key="long-provider-key-1", header="long-header-value-2"
    )
    credential = make_credential("long-credential-three", owner=theirs)
    server = McpServer.objects.create(
        owner=theirs, name="s", credential=make_credential("long-credential-four")
    )
    tools = (
        ToolSpec(name="a", config={"credential": credential.pk}),
        ToolSpec(name="b", tool_id=make_tool(theirs, mcp_server=server).pk),
    )
    spec = make_spec(
        model=ModelSettings(model="m", provider_id=provider.pk), tools=tools
    )
    McpSignIn.objects.create(server=server, sealed_access_token=seal("access-five"))
    texts = "long-provider-key-1 long-header-value-2 long-credential-three access-five"

    run = make_run(spec=spec)
    parent = make_run(run.owner)
    Run.objects.filter(pk=run.pk).update(parent_step=make_step(parent))

    for one in (run, parent):
        text = SecretMask(one).text(f"{texts} long-credential-four")
        assert text == " ".join([HIDDEN] * 5)


def test_the_secrets_of_others_cannot_be_guessed():
    theirs = make_user()
    make_provider_with(theirs, key="20481234", header="Autumn2026")
    make_credential("a-long-secret-of-another", owner=theirs)
    used = make_provider_with(theirs, key="customer", header="internal")
    spec = make_spec(model=ModelSettings(model="m", provider_id=used.pk))
    text = "20481234 Autumn2026 a-long-secret-of-another customer internal"

    assert SecretMask(make_run(spec=spec)).text(text) == text


def test_the_address_of_the_agents_owner_cannot_be_guessed():
    agent = make_agent(make_user(email="bob@example.com"))
    run = make_run(make_user(email="ann@example.com"), agent=agent)
    guesses = "ann@example.com bea@example.com bob@example.com"

    masked = SecretMask(run).text(guesses)

    assert masked == f"{HIDDEN} bea@example.com bob@example.com"


def test_hides_values_by_their_name_in_json(mask):
    value = {"user": "ann", "auth": {"Api-Key": "x", "token": 7}, "list": [{"pin": 1}]}

    assert mask.json(value) == {
        "user": "ann",
        "auth": {"Api-Key": HIDDEN, "token": HIDDEN},
        "list": [{"pin": 1}],
    }
    assert HIDDEN in mask.mask_text_or_json('{"session_token": "abc"}')
    assert mask.mask_text_or_json('{"a":1}') == '{"a":1}'


@pytest.mark.parametrize(
    "piece", ["a-", "a_", "a", "eyJ-", "eyJa.", "://a:", "sk-", "bearer ", "token="]
)
def test_hostile_repetitions_are_masked_without_delay(mask, piece):
    assert mask.text(piece * 50_000)
