"""Types of Django that exist, or are generic, for the type checker only."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm as DjangoPasswordForm
from django.contrib.auth.forms import UserCreationForm as DjangoUserCreationForm

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise as StrOrPromise

    ModelForm = forms.ModelForm[Any]
    ModelAdmin = admin.ModelAdmin[Any]
    ModelMultipleChoiceField = forms.ModelMultipleChoiceField[Any]
    UserAdmin = DjangoUserAdmin[Any]
    PasswordChangeForm = DjangoPasswordForm[Any]
    UserCreationForm = DjangoUserCreationForm[Any]
else:
    StrOrPromise = str
    ModelForm = forms.ModelForm
    ModelAdmin = admin.ModelAdmin
    ModelMultipleChoiceField = forms.ModelMultipleChoiceField
    UserAdmin = DjangoUserAdmin
    PasswordChangeForm = DjangoPasswordForm
    UserCreationForm = DjangoUserCreationForm
