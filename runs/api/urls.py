"""URLs of the API, with or without a last slash; streams are in `runs.live`."""

from django.urls import path, re_path

from runs.api import approvals, forks, runs
from runs.api.door import door, nothing_here

RUN = r"^runs/(?P<pk>\d{1,18})"
APPROVAL = r"^approvals/(?P<pk>\d{1,18})"

urlpatterns = [
    re_path(r"^runs/?$", door(POST=runs.create), name="api-runs"),
    re_path(rf"{RUN}/?$", door(GET=runs.read), name="api-run"),
    re_path(rf"{RUN}/cancel/?$", door(POST=runs.cancel), name="api-run-cancel"),
    re_path(rf"{RUN}/fork/?$", door(POST=forks.fork), name="api-run-fork"),
    re_path(r"^approvals/?$", door(GET=approvals.index), name="api-approvals"),
    re_path(rf"{APPROVAL}/?$", door(GET=approvals.read), name="api-approval"),
    re_path(
        rf"{APPROVAL}/approve/?$", door(POST=approvals.approve), name="api-approve"
    ),
    re_path(rf"{APPROVAL}/reject/?$", door(POST=approvals.reject), name="api-reject"),
    re_path(rf"{APPROVAL}/settle/?$", door(POST=approvals.settle), name="api-settle"),
    path("", nothing_here, name="api"),
    path("<path:rest>", nothing_here, name="api-nothing"),
]
