"""What every page of the admin has in common: plain words, and nothing in passing."""

import re
from typing import Any

from django.contrib import admin
from django.contrib.admin.widgets import RelatedFieldWidgetWrapper
from django.forms import Media, ModelChoiceField
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeData, SafeString

from tools.forms.missing import say_what_is_right
from tools.generic import ModelAdmin

FIRST_ACTION = ("", "choose what to do")
IN_OUR_WORDS = {
    "Items must be selected in order to perform actions on them. No items have been "
    "changed.": "Choose at least one of the list. Nothing was changed.",
    "No action selected.": "Choose what to do. Nothing was changed.",
}
"""What Django says, and what we say instead."""
DONE = re.compile(
    r"The .+? “(?P<thing>.*)” was (?P<verb>added|changed|deleted) successfully\..*",
    re.S,
)


def in_our_words(message: Any) -> Any:
    """Return what a person is told, as markup where it was markup."""
    text = str(message)
    if done := DONE.fullmatch(text):
        verb = "deleted" if done["verb"] == "deleted" else "saved"
        told = f"{done['thing']} is {verb}."
        return SafeString(told) if isinstance(message, SafeData) else told
    return IN_OUR_WORDS.get(text, message)


def quiet(words: str) -> SafeString:
    """Return what a cell says that has nothing to say."""
    return format_html('<span class="quiet">{}</span>', words)


def titled(filter_class: Any, words: str) -> Any:
    """Return a filter under a title of ours."""

    class Titled(filter_class):  # type: ignore[misc]  # one of Django's
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self.title = words

    return Titled


class PlainAdmin(ModelAdmin):
    """Works without a script; what became of a thing is told by the audit log."""

    show_facets = admin.ShowFacets.NEVER
    empty_value_display = quiet("none")
    noun = ""
    """What the audit log calls one of them."""

    @property
    def media(self) -> Media:
        """Leave out the scripts of Django's forms: no field here needs them."""
        return Media()

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **more: Any
    ) -> Any:
        """Leave out the buttons that make and change another thing in passing."""
        field = super().formfield_for_dbfield(db_field, request, **more)
        if field is not None and isinstance(field.widget, RelatedFieldWidgetWrapper):
            field.widget = field.widget.widget
        if isinstance(field, ModelChoiceField) and field.empty_label is not None:
            field.empty_label = "None"
        return field

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **more: Any
    ) -> Any:
        """Say of an empty field what to do, in our words."""
        form = super().get_form(request, obj, change=change, **more)
        for name, field in form.base_fields.items():
            say_what_is_right(name, field)
        return form

    def get_action_choices(
        self, request: HttpRequest, default_choices: Any = (FIRST_ACTION,)
    ) -> Any:
        """Say in words that none is chosen yet."""
        return super().get_action_choices(request, list(default_choices))

    def message_user(
        self, request: HttpRequest, message: Any, *args: Any, **more: Any
    ) -> None:
        """Say it in our words where we have some."""
        super().message_user(request, in_our_words(message), *args, **more)

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **more: Any
    ) -> Any:
        """Offer two ways to save, not three."""
        context["show_save_and_add_another"] = False
        return super().render_change_form(request, context, *args, **more)

    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Lead to the audit log, where the person may read it."""
        user: Any = request.user
        if self.noun and user.has_perm("tools.view_auditentry"):
            query = urlencode({"noun": self.noun, "thing_number": object_id})
            return redirect(f"{reverse('admin:tools_auditentry_changelist')}?{query}")
        return super().history_view(request, object_id, extra_context)
