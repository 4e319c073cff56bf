"""Ownership: who may see, use and change a row."""

from collections.abc import Collection, Iterable
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db import models
from django.db.models import Q
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

M = TypeVar("M", bound=models.Model)
Rows = TypeVar("Rows", bound=models.QuerySet[Any])


class Visibility(models.TextChoices):
    """Who else may see and use a row."""

    PRIVATE = "private", _("Only the owner")
    GROUPS = "groups", _("Selected groups")
    EVERYONE = "everyone", _("Everyone")


def filter_own_rows(rows: Rows, user: User | AnonymousUser) -> Rows:
    """Return the rows of `user`, or all for superusers, of rows nobody shares."""
    if not user.is_authenticated:
        return rows.none()
    return rows if user.is_superuser else rows.filter(owner=user)


class OwnedQuerySet(models.QuerySet[M]):
    """Access as a queryset method, so that a page, a list and a count agree."""

    def visible_to(self, user: User | AnonymousUser) -> "OwnedQuerySet[M]":
        """Return the rows `user` owns or has access to, or all for superusers."""
        if not user.is_authenticated:
            return self.none()
        if user.is_superuser:
            return self
        shared = self.model._default_manager.filter(
            visibility=Visibility.GROUPS, groups__in=user.groups.values("pk")
        )
        return self.filter(
            Q(owner=user)
            | Q(visibility=Visibility.EVERYONE)
            | Q(pk__in=shared.values("pk"))
        )

    def usable_by(self, user: User | AnonymousUser) -> "OwnedQuerySet[M]":
        """Return the visible rows that are not archived."""
        return self.visible_to(user).filter(archived_at=None)

    def editable_by(self, user: User | AnonymousUser) -> "OwnedQuerySet[M]":
        """Return the rows `user` owns, or all for superusers."""
        return filter_own_rows(self, user)


class Owned(models.Model):
    """A definition with an owner, a slug unique per table, and a visibility."""

    slug = models.SlugField(max_length=80, unique=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    visibility = models.CharField(
        max_length=10, choices=Visibility, default=Visibility.PRIVATE
    )
    groups = models.ManyToManyField(Group, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    """Runs may refer to the row, so it is archived instead of deleted."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row; an empty slug is filled with a free one."""
        if not self.slug:
            self.slug = free_slug(type(self), str(self))
        super().save(*args, **kwargs)


def free_slug(model: type[models.Model], name: str) -> str:
    """Return an unused slug made from `name`."""
    stem = make_slug_stem(model, name)
    slugs = model._default_manager.values_list("slug", flat=True)
    return number_slug(set(slugs.filter(slug__startswith=stem)), stem)


def free_slugs(model: type[models.Model], names: Iterable[str]) -> list[str]:
    """Return an unused slug for each name, with one query."""
    taken = set(model._default_manager.values_list("slug", flat=True))
    found = []
    for name in names:
        found.append(number_slug(taken, make_slug_stem(model, name)))
        taken.add(found[-1])
    return found


def make_slug_stem(model: type[models.Model], name: str) -> str:
    """Return the beginning of all slugs made from `name`."""
    return slugify(name)[:72].strip("-") or model._meta.model_name or "thing"


def number_slug(taken: Collection[str], stem: str) -> str:
    """Return `stem`, with a number if it is taken."""
    if stem not in taken:
        return stem
    return next(
        s for n in range(2, len(taken) + 3) if (s := f"{stem}-{n}") not in taken
    )
