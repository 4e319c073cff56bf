"""URLs of the app `tools`."""

from django.urls import URLPattern, URLResolver, path

from tools import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("tools/", views.tool_list, name="tool-list"),
    path("tools/<slug:slug>/", views.tool_detail, name="tool-detail"),
]
