"""The form that scores one run."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.widgets import style_widgets
from runs.models import Annotation, QueuedRun
from runs.services.annotation.annotate import AnnotationContent
from runs.services.datasets.content import MAX_CELL_CHARS, clean_cell
from runs.services.datasets.from_run import format_run_answer

MAX_COMMENT_CHARS = 4_000


class AnnotationForm(forms.Form):
    """A mark on the scale of the queue, labels, a comment and a corrected answer."""

    mark = forms.TypedChoiceField(coerce=int, widget=forms.RadioSelect)
    labels = forms.MultipleChoiceField(
        required=False, widget=forms.CheckboxSelectMultiple
    )
    comment = forms.CharField(
        required=False,
        max_length=MAX_COMMENT_CHARS,
        label=gettext_lazy("Comment"),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    correction = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_CELL_CHARS,
        label=gettext_lazy("Corrected answer"),
        widget=forms.Textarea(attrs={"rows": 6}),
    )
    is_added = forms.BooleanField(required=False)

    def __init__(
        self, item: QueuedRun, annotation: Annotation, *args: Any, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        queue = item.queue
        mark: Any = self.fields["mark"]
        mark.choices = list(enumerate(queue.scale, 1))
        labels: Any = self.fields["labels"]
        # labels that the queue no longer has stay with what has been said
        names = dict.fromkeys([*queue.labels, *annotation.labels])
        labels.choices = [(name, name) for name in names]
        self.answer = format_run_answer(item.run)
        # a run that is scored has its example already, which others may have edited
        is_undone = annotation.state != Annotation.State.DONE
        self.initial = {
            "mark": annotation.mark,
            "labels": annotation.labels,
            "comment": annotation.comment,
            "correction": annotation.correction or self.answer,
            "is_added": is_undone and annotation.example_number is not None,
        }
        style_widgets(self)
        message = _("Select a score from 1 to %(most)d.") % {"most": len(queue.scale)}
        mark.error_messages |= {"required": message, "invalid_choice": message}

    def build_content(self) -> AnnotationContent:
        given = self.cleaned_data
        correction = clean_cell(given["correction"]).strip()
        return AnnotationContent(
            mark=given["mark"],
            labels=tuple(dict.fromkeys(given["labels"])),
            comment=given["comment"].replace("\0", "").strip(),
            correction="" if correction == self.answer.strip() else correction,
            is_added=given["is_added"],
        )
