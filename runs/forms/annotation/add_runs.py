"""The form that adds runs to an annotation queue."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.models import AnnotationQueue


class QueueRunsForm(forms.Form):
    """One of the queues that the user sees."""

    queue = forms.ModelChoiceField(
        queryset=AnnotationQueue.objects.none(), label=gettext_lazy("Queue")
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        field: Any = self.fields["queue"]
        field.queryset = AnnotationQueue.objects.usable_by(user).order_by("name")
        field.initial = field.queryset.order_by("-updated_at").first()
        style_widgets(self)
