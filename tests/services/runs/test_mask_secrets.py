"""What leaves the site with a run has no secrets in it."""

import pytest

from runs.services.runs.mask_secrets import SecretMask
from runs.store.sanitizer import HIDDEN
from tests.make import make_provider, make_run, make_user
from tools.models import Credential
from tools.secrets import seal

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


def test_hides_every_secret_the_site_knows():
    owner = make_user()
    provider = make_provider(owner)
    provider.set_key("provider-key-1")
    provider.set_headers("X-Org: header-value-2")
    provider.save()
    Credential.objects.create(
        owner=owner, name="c", kind="bearer", sealed=seal("credential-3")
    )
    text = SecretMask(make_run()).text("provider-key-1 header-value-2 credential-3")

    assert text == " ".join([HIDDEN] * 3)


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
