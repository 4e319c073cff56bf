"""The sentence above a form: how many fields are wrong, and where they are."""

import pytest
from django import forms
from django.template import Context, Template

from runs.forms.widgets import style_widgets


class Form(forms.Form):
    name = forms.CharField()
    how = forms.ChoiceField(choices=[("a", "A")], widget=forms.RadioSelect)
    kept = forms.CharField(widget=forms.HiddenInput)


def shown(data, said=""):
    form = Form(data)
    style_widgets(form)
    tag = f'{{% mistakes form "{said}" %}}' if said else "{% mistakes form %}"
    html = Template("{% load ui_tags %}" + tag).render(Context({"form": form}))
    return " ".join(html.split())


def test_invalid_fields_are_counted_and_linked():
    page = shown({"kept": "x"})

    assert "Not saved. Fix 2 fields:" in " ".join(page.split())
    assert '<a href="#id_name">Name</a>, <a href="#id_how_0">How</a>' in page


def test_errors_of_hidden_fields_are_shown_above_the_form():
    page = shown({"name": "x", "how": "a"}, "Nothing was created.")

    assert "Nothing was created. Enter a value for “Kept”." in page
    assert "<a " not in page


@pytest.mark.parametrize("data", [None, {"name": "x", "how": "a", "kept": "x"}])
def test_a_form_without_errors_shows_no_message(data):
    assert shown(data) == ""


def test_an_input_refers_to_the_id_of_its_errors():
    form = Form({"kept": "x"})
    page = Template(
        "{% load ui_tags %}{{ form.name }}{% field_errors form.name %}"
    ).render(Context({"form": form}))

    assert 'aria-describedby="id_name_error"' in page
    assert '<ul class="errorlist" id="id_name_error"><li class="error"><svg' in page
