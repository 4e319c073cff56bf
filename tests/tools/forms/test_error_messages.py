"""Messages name their field, in the language in which they are shown."""

from django import forms
from django.utils import translation
from django.utils.translation import gettext_lazy

from tools.forms.error_messages import set_error_messages


class Form(forms.Form):
    tool = forms.CharField(label=gettext_lazy("Tool"))


def test_a_field_that_forms_share_has_messages_in_each_language():
    with translation.override("zh-hans"):
        set_error_messages("tool", Form.base_fields["tool"])
        chinese = list(Form({}).errors["tool"])
    with translation.override("en"):
        english = list(Form({}).errors["tool"])

    assert english == ["Enter a value for “Tool”."]
    assert chinese != english
