"""The sentence above a form: how many fields are wrong, and where they are."""

import pytest
from django import forms
from django.template import Context, Template

from runs.forms.looks import dress


class Form(forms.Form):
    name = forms.CharField()
    how = forms.ChoiceField(choices=[("a", "A")], widget=forms.RadioSelect)
    kept = forms.CharField(widget=forms.HiddenInput)


def shown(data, said=""):
    form = Form(data)
    dress(form)
    tag = f'{{% mistakes form "{said}" %}}' if said else "{% mistakes form %}"
    html = Template("{% load look %}" + tag).render(Context({"form": form}))
    return " ".join(html.split())


def test_each_wrong_field_is_counted_and_linked():
    page = shown({"kept": "x"})

    assert "Not saved yet. 2 fields need a look:" in page
    assert '<a href="#id_name">Name</a>, <a href="#id_how_0">How</a>.' in page


def test_a_field_nobody_sees_says_what_is_wrong_here():
    page = shown({"name": "x", "how": "a"}, "Nothing was made.")

    assert "Nothing was made. Kept is empty: fill it in." in page
    assert "<a " not in page


@pytest.mark.parametrize("data", [None, {"name": "x", "how": "a", "kept": "x"}])
def test_without_a_mistake_nothing_is_said(data):
    assert shown(data) == ""


def test_what_is_wrong_with_a_field_stands_where_its_input_refers_to():
    form = Form({"kept": "x"})
    page = Template("{% load look %}{{ form.name }}{% errors_of form.name %}").render(
        Context({"form": form})
    )

    assert 'aria-describedby="id_name_error"' in page
    assert '<ul class="errorlist" id="id_name_error"><li class="error"><svg' in page
