"""The form of an annotation queue: what people are asked, and who they are."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.forms.group_sharing import (
    add_groups_field,
    require_groups,
    save_shared_groups,
)
from runs.forms.widgets import style_widgets
from runs.models import AnnotationQueue, Dataset

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[AnnotationQueue]
else:
    _ModelForm = forms.ModelForm

MIN_MARKS, MAX_MARKS = 2, 9
"""Each has a digit on the keyboard."""
MAX_LABELS = 8
"""Each has a letter on the keyboard; see `runs.views.annotation.item`."""
MAX_MARK_CHARS = 30
MAX_LABEL_CHARS = 60
MAX_PEOPLE = 20


class AnnotationQueueForm(_ModelForm):
    """A name, a question with a scale, labels, and the sharing."""

    scale_lines = forms.CharField(
        label=gettext_lazy("Scale"),
        help_text=gettext_lazy("The names of the scores from 1 on, one per line."),
        widget=forms.Textarea(attrs={"rows": 5}),
    )
    label_lines = forms.CharField(
        required=False,
        label=gettext_lazy("Labels"),
        help_text=gettext_lazy("What may be wrong with an answer, one per line."),
        widget=forms.Textarea(attrs={"rows": 5}),
    )

    class Meta:
        model = AnnotationQueue
        fields = [
            *("name", "question", "guidelines", "passing_mark", "people_per_run"),
            *("dataset", "visibility"),
        ]
        labels = {
            "name": gettext_lazy("Name"),
            "question": gettext_lazy("Question"),
            "guidelines": gettext_lazy("Guidelines"),
            "passing_mark": gettext_lazy("Passing score"),
            "people_per_run": gettext_lazy("People per run"),
            "dataset": gettext_lazy("Dataset for corrections"),
            "visibility": gettext_lazy("Shared with"),
        }
        help_texts = {
            "passing_mark": gettext_lazy(
                "Answers with at least this score are good. Evaluators are "
                "compared with this."
            ),
            "people_per_run": gettext_lazy(
                "With 2 or more, the queue shows how far people agree."
            ),
        }
        widgets = {"guidelines": forms.Textarea(attrs={"rows": 4})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        queue = self.instance
        if not queue.pk:
            self.initial["question"] = _("How good is the answer?")
        scale = queue.scale or list_default_marks()
        labels = queue.labels if queue.pk else list_default_labels()
        self.fields["scale_lines"].initial = "\n".join(scale)
        self.fields["label_lines"].initial = "\n".join(labels)
        datasets: Any = self.fields["dataset"]
        mine = Dataset.objects.editable_by(queue.owner)
        offered = mine.filter(Q(archived_at=None) | Q(pk=queue.dataset_id))
        datasets.queryset = offered.order_by("name")
        people: Any = self.fields["people_per_run"]
        people.min_value, people.max_value = 1, MAX_PEOPLE
        people.widget.attrs |= {"min": 1, "max": MAX_PEOPLE}
        add_groups_field(self, queue)
        style_widgets(self)

    def clean_scale_lines(self) -> list[str]:
        names = list_nonblank_lines(self.cleaned_data["scale_lines"])
        if not MIN_MARKS <= len(names) <= MAX_MARKS:
            raise forms.ValidationError(
                _("Enter %(least)d to %(most)d names, one per line.")
                % {"least": MIN_MARKS, "most": MAX_MARKS}
            )
        require_short(names, MAX_MARK_CHARS)
        return names

    def clean_label_lines(self) -> list[str]:
        names = list(
            dict.fromkeys(list_nonblank_lines(self.cleaned_data["label_lines"]))
        )
        if len(names) > MAX_LABELS:
            raise forms.ValidationError(
                _("Enter at most %(most)d labels.") % {"most": MAX_LABELS}
            )
        require_short(names, MAX_LABEL_CHARS)
        return names

    def clean_people_per_run(self) -> int:
        people: int = self.cleaned_data["people_per_run"]
        if not 1 <= people <= MAX_PEOPLE:
            raise forms.ValidationError(
                _("Enter a number from 1 to %(most)d.") % {"most": MAX_PEOPLE}
            )
        return people

    def clean(self) -> dict[str, Any]:
        """Keep the scale of scores that people have given already."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        require_groups(self, given)
        scale, passing = given.get("scale_lines"), given.get("passing_mark")
        if scale is None:
            return given
        if passing is not None and not 2 <= passing <= len(scale):
            self.add_error(
                "passing_mark",
                _("Enter a number from 2 to %(most)d.") % {"most": len(scale)},
            )
        queue = self.instance
        is_used = queue.pk and queue.items.filter(done_count__gt=0).exists()
        if is_used and len(scale) != len(queue.scale):
            self.add_error(
                "scale_lines",
                _(
                    "Runs have been scored from 1 to %(most)d. Rename these scores, or "
                    "duplicate the queue to use another scale."
                )
                % {"most": len(queue.scale)},
            )
        return given

    def save(self, commit: bool = True) -> AnnotationQueue:
        self.instance.scale = self.cleaned_data["scale_lines"]
        self.instance.labels = self.cleaned_data["label_lines"]
        saved = super().save(commit)
        if commit:
            save_shared_groups(saved, self.cleaned_data["groups"])
        return saved


def list_nonblank_lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.splitlines()) if line]


def require_short(names: list[str], limit: int) -> None:
    if any(len(name) > limit for name in names):
        raise forms.ValidationError(
            _("Enter at most %(limit)d characters per line.") % {"limit": limit}
        )


def list_default_marks() -> list[str]:
    return [_("harmful"), _("wrong"), _("partly"), _("good"), _("perfect")]


def list_default_labels() -> list[str]:
    return [
        _("Wrong fact"),
        _("Policy not followed"),
        _("Missing tool call"),
        _("Wrong tool call"),
        _("Tone"),
        _("Language"),
        _("Invented"),
        _("Too long"),
    ]
