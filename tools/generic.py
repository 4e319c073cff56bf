"""Django's form and admin classes, which are generic for the type checker only."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[Any]
    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    ModelForm = forms.ModelForm
    ModelAdmin = admin.ModelAdmin
    TabularInline = admin.TabularInline
