"""Sealing secrets again under a newer key."""

from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from runs.management.commands.rotate_keys import add_encryption_key
from tests.make import make_provider, make_user
from tools.audit.entry import AuditEntry
from tools.models import Credential
from tools.secrets import SecretUnreadable, seal, unseal
from tools.services.rotate_keys import iter_sealed_columns, rotate_keys

pytestmark = pytest.mark.django_db

OLD, NEW = (Fernet.generate_key().decode() for _ in range(2))


@pytest.fixture
def secrets(settings):
    """Store secrets under an old key, and put a new one before it."""
    settings.ENCRYPTION_KEYS = [OLD]
    provider = make_provider()
    provider.set_key("sk-1")
    provider.set_headers("X-Org: 7")
    provider.save()
    row = Credential.objects.create(
        name="shop", owner=make_user(), hosts=["a.example"], sealed=seal("s3cret")
    )
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    return provider, row


def test_every_column_that_holds_secrets_is_known():
    names = {f"{model.__name__}.{column}" for model, column in iter_sealed_columns()}

    assert names >= {
        "Provider.sealed_key",
        "Provider.sealed_headers",
        "Credential.sealed",
    }


def test_every_secret_opens_with_the_new_key_alone(secrets, settings):
    done = rotate_keys()

    settings.ENCRYPTION_KEYS = [NEW]
    for row in secrets:
        row.refresh_from_db()
    provider, credential = secrets
    assert (done.resealed, done.already_newest, done.unreadable) == (3, 0, [])
    assert (provider.key(), provider.headers()) == ("sk-1", (("X-Org", "7"),))
    assert unseal(credential.sealed) == "s3cret"


def test_a_second_rotation_changes_nothing(secrets):
    rotate_keys()
    before = Credential.objects.get().sealed

    done = rotate_keys()

    assert (done.resealed, done.already_newest) == (0, 3)
    assert Credential.objects.get().sealed == before
    assert AuditEntry.objects.filter(action="rotated").count() == 1


def test_what_no_key_opens_is_named_and_left(secrets, settings):
    settings.ENCRYPTION_KEYS = [NEW]
    before = Credential.objects.get().sealed

    with pytest.raises(CommandError, match=r"secret of credential shop \(\d+\)"):
        call_command("rotate_keys", stdout=StringIO())

    assert Credential.objects.get().sealed == before
    with pytest.raises(SecretUnreadable):
        unseal(before)


def test_the_command_says_what_it_did(secrets):
    message = StringIO()

    call_command("rotate_keys", stdout=message)

    assert "Secrets encrypted with the newest key: 3 now" in message.getvalue()


def test_a_new_key_stands_first_in_a_file_only_we_read(tmp_path, settings):
    settings.KEYS_ARE_FILES = True
    path = tmp_path / "encryption_keys"
    path.write_text(f"{OLD}\n")

    message = add_encryption_key(path)

    new, old = path.read_text().split()
    assert Fernet(new)
    assert (old, path.stat().st_mode & 0o777) == (OLD, 0o600)
    assert "Restart Agentsite" in message


def test_keys_from_the_environment_are_left_to_the_operator(tmp_path, settings):
    settings.KEYS_ARE_FILES = False

    with pytest.raises(CommandError, match="Add a new one at its beginning"):
        add_encryption_key(tmp_path / "encryption_keys")
