"""Save the unsaved changes of a dataset as its next version."""

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from runs.models import Dataset, DatasetVersion, Example
from runs.services.datasets.edit import lock_dataset
from runs.services.datasets.working_copy import count_unsaved_changes
from runs.services.errors import VersionRefused
from tools.accounts.person_name import get_person_name


def save_dataset_version(dataset: Dataset, *, seen: int, by: User) -> DatasetVersion:
    """Make the unsaved changes version `seen` + 1; raise `VersionRefused`.

    `seen` is the newest version when the page was opened: if another window or person
    has saved since, the changes stay as they are.
    """
    with transaction.atomic():
        locked = lock_dataset(dataset)
        changes = count_unsaved_changes(locked)
        if locked.version != seen:
            raise VersionRefused(describe_newer_version(locked))
        if not changes.total:
            raise VersionRefused(_("Nothing has changed since the last version."))
        number = locked.version + 1
        apply_example_changes(locked.examples.all(), number)
        locked.version = number
        locked.save(update_fields=["version", "updated_at"])
        return DatasetVersion.objects.create(
            dataset=locked,
            number=number,
            example_count=locked.examples.in_version(number).count(),
            added=changes.added,
            edited=changes.edited,
            removed=changes.removed,
            by=by,
        )


def apply_example_changes(examples: "QuerySet[Example]", number: int) -> None:
    """End the saved rows that have a change, and begin the changed ones."""
    unsaved = examples.filter(from_version=None)
    examples.filter(
        from_version__isnull=False,
        until_version=None,
        number__in=unsaved.values("number"),
    ).update(until_version=number)
    unsaved.filter(change=Example.Change.REMOVED).delete()
    unsaved.update(from_version=number, change="")


def describe_newer_version(dataset: Dataset) -> str:
    """Say who has saved a version meanwhile."""
    newest = dataset.versions.select_related("by").first()
    by = newest.by if newest else None
    return _(
        "%(name)s saved version %(number)d meanwhile, with the changes made until "
        "then. Review the examples, then save again."
    ) % {
        "name": get_person_name(by) if by else _("Someone"),
        "number": dataset.version,
    }
