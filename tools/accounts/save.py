"""Creating a service account, and changing its description."""

from django.contrib.auth.models import User
from django.db import transaction

from tools.accounts.service_account import ServiceAccount
from tools.audit.changes import FieldChanges
from tools.audit.write import write_entry


def create_service_account(user: User, *, description: str = "") -> ServiceAccount:
    """Store `user`, who is new, as a service account without a password."""
    user.set_unusable_password()
    user.is_superuser = False
    with transaction.atomic():
        user.save()
        account = ServiceAccount.objects.create(user=user, description=description)
        changes: FieldChanges = {
            "service_account": [None, True],
            "description": ["", description],
        }
        write_entry("changed", "user", user, changes=changes)
    return account


def change_description(account: ServiceAccount, description: str) -> None:
    """Save a description; the audit log has it as a change of the user."""
    if description == account.description:
        return
    changes = {"description": [account.description, description]}
    with transaction.atomic():
        account.description = description
        account.save()
        write_entry("changed", "user", account.user, changes=changes)
