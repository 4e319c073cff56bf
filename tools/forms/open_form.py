"""Opening the form of a tool for one person."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from tools.forms.error_messages import set_error_messages
from tools.forms.kinds import TOOL_FORMS
from tools.forms.tool import ToolForm
from tools.models import Credential, Tool


def open_tool_form(
    kind: str,
    *,
    user: User,
    tool: Tool | None = None,
    data: Any = None,
    files: Any = None,
) -> ToolForm:
    """Return the form that the admin shows too, with what `user` may select.

    Whether the tool is enabled has a switch of its own, so the form leaves it.
    """
    form = TOOL_FORMS[kind](data, files, instance=tool)
    del form.fields["enabled"]
    limit_choices(form, user)
    for name, field in form.fields.items():
        set_error_messages(name, field)
    return form


def limit_choices(form: ToolForm, user: User) -> None:
    """Offer only the credentials and groups that `user` may use."""
    credential, groups = form.fields.get("credential"), form.fields["groups"]
    if isinstance(credential, forms.ModelChoiceField):
        credential.queryset = Credential.objects.usable_by(user)
        credential.empty_label = _("None")
    if isinstance(groups, forms.ModelMultipleChoiceField):
        groups.widget = forms.CheckboxSelectMultiple()
        queryset = groups.queryset if user.is_superuser else user.groups.all()
        groups.queryset = queryset  # also gives the choices to the new widget
