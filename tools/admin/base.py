"""The base class of all admin pages."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.core.exceptions import BadRequest
from django.db.models import Model
from django.forms import Media, ModelChoiceField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from tools.forms.error_messages import set_error_messages
from tools.typed_generics import ModelAdmin, StrOrPromise


def _build_muted(text: StrOrPromise) -> SafeString:
    return format_html('<span class="quiet">{}</span>', text)


render_muted = lazy(_build_muted, SafeString)
"""Return the text of an empty cell, translated when it is shown."""


def filter_with_title(filter_class: Any, title: StrOrPromise) -> Any:
    """Return a subclass of a Django filter with another title."""

    class Titled(filter_class):  # type: ignore[misc]  # one of Django's
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self.title = title

    return Titled


def redirect_to_new_tools(
    request: HttpRequest, made: Sequence[Model], *, kind: str
) -> HttpResponse:
    """Say how many tools an import created, and redirect to their list."""
    text = ngettext(
        "Created %(count)d tool. It is disabled until you enable it.",
        "Created %(count)d tools. They are disabled until you enable them.",
        len(made),
    )
    messages.success(request, text % {"count": len(made)})
    there = reverse("admin:tools_tool_changelist")
    return redirect(f"{there}?kind__exact={kind}&enabled__exact=0")


class ProductAdmin(ModelAdmin):
    """Pages that need no JavaScript and show history in the audit log."""

    show_facets = admin.ShowFacets.NEVER
    empty_value_display = render_muted(gettext_lazy("none"))
    noun = ""
    """The code of the model in the audit log."""

    def changeform_view(self, request: HttpRequest, *args: Any, **more: Any) -> Any:
        """Refuse to save a copy: Django does not ask `save_as` before it tries."""
        if "_saveasnew" in request.POST:
            raise BadRequest("A copy cannot be saved here.")
        return super().changeform_view(request, *args, **more)

    @property
    def media(self) -> Media:
        """Omit the scripts of Django's forms: no field here needs them."""
        return Media()

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **more: Any
    ) -> Any:
        """Omit the buttons that create and change related rows."""
        field = super().formfield_for_dbfield(db_field, request, **more)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        if isinstance(field, ModelChoiceField) and field.empty_label is not None:
            field.empty_label = _("None")
        return field

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> Any:
        """Set error messages that name the field."""
        form = super().get_form(request, obj, change=change, **more)
        for name, field in form.base_fields.items():
            set_error_messages(name, field)
        return form

    def get_action_choices(
        self, request: HttpRequest, default_choices: Any = ()
    ) -> Any:
        """Give the empty choice a label."""
        return super().get_action_choices(request, [("", _("Select an action"))])

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Hide “Save and add another”."""
        context["show_save_and_add_another"] = False
        return super().render_change_form(request, context, *args, **more)

    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Redirect to the audit log, if the person has access to it."""
        user: Any = request.user
        if self.noun and user.has_perm("tools.view_auditentry"):
            query = urlencode({"noun": self.noun, "thing_number": object_id})
            return redirect(f"{reverse('admin:tools_auditentry_changelist')}?{query}")
        return super().history_view(request, object_id, extra_context)
