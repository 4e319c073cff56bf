"""URLs of the app `tools`.

No slug hides a page: below the page of a tool there are only verbs, and no kind of tool
is called like one.
"""

from django.urls import URLPattern, URLResolver, path

from tools.views import browse, create, page, paste, switch, trial

urlpatterns: list[URLPattern | URLResolver] = [
    path("tools/", browse.tool_list, name="tool-list"),
    path("tools/new/from-request/", paste.tool_from_request, name="tool-from-request"),
    path("tools/new/<slug:kind>/", create.tool_create, name="tool-create"),
    path("tools/new/<slug:kind>/try/", trial.try_new_tool, name="tool-create-try"),
    path("tools/<slug:slug>/", page.tool_detail, name="tool-detail"),
    path("tools/<slug:slug>/try/", trial.try_saved_tool, name="tool-try"),
    path("tools/<slug:slug>/enable/", switch.enable_tool, name="tool-enable"),
    path("tools/<slug:slug>/revisions/", switch.tool_revisions, name="tool-revisions"),
]
