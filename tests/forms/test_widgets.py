"""What all forms share."""

import pytest
from django import forms

from runs.forms.widgets import style_widgets
from runs.models import Agent, Dataset

pytestmark = pytest.mark.django_db


class Choices(forms.Form):
    agent = forms.ModelChoiceField(Agent.objects.all())
    dataset = forms.ModelChoiceField(Dataset.objects.all(), required=False)
    other = forms.ModelChoiceField(
        Agent.objects.all(), required=False, empty_label="All agents"
    )
    several = forms.ModelMultipleChoiceField(Agent.objects.all())


def test_the_choice_of_nothing_has_a_name():
    form = Choices()

    style_widgets(form)

    labels = {name: field.empty_label for name, field in form.fields.items()}
    assert labels == {
        "agent": "Select one",
        "dataset": "None",
        "other": "All agents",
        "several": None,
    }
