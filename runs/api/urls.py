"""URLs of the API, with or without a trailing slash; streams are in `runs.live`."""

from django.urls import path, re_path

from runs.api import approvals, forks, providers, runs
from runs.api.dispatch import api_view, url_not_found

RUN = r"^runs/(?P<pk>\d{1,18})"
APPROVAL = r"^approvals/(?P<pk>\d{1,18})"

urlpatterns = [
    re_path(r"^runs/?$", api_view(POST=runs.create_run), name="api-runs"),
    re_path(rf"{RUN}/?$", api_view(GET=runs.read_run), name="api-run"),
    re_path(
        rf"{RUN}/cancel/?$",
        api_view(POST=runs.cancel_run_for_user),
        name="api-run-cancel",
    ),
    re_path(
        rf"{RUN}/resume/?$",
        api_view(POST=runs.resume_run_for_user),
        name="api-run-resume",
    ),
    re_path(
        rf"{RUN}/keep/?$",
        api_view(POST=runs.keep_run_for_user),
        name="api-run-keep",
    ),
    re_path(rf"{RUN}/fork/?$", api_view(POST=forks.create_fork), name="api-run-fork"),
    re_path(
        r"^providers/?$", api_view(GET=providers.list_providers), name="api-providers"
    ),
    re_path(
        r"^approvals/?$", api_view(GET=approvals.list_approvals), name="api-approvals"
    ),
    re_path(
        rf"{APPROVAL}/?$", api_view(GET=approvals.read_approval), name="api-approval"
    ),
    re_path(
        rf"{APPROVAL}/approve/?$",
        api_view(scope="approve", POST=approvals.approve_call),
        name="api-approve",
    ),
    re_path(
        rf"{APPROVAL}/reject/?$",
        api_view(scope="approve", POST=approvals.reject_call),
        name="api-reject",
    ),
    re_path(
        rf"{APPROVAL}/settle/?$",
        api_view(scope="approve", POST=approvals.settle_call),
        name="api-settle",
    ),
    path("", url_not_found, name="api"),
    path("<path:rest>", url_not_found, name="api-nothing"),
]
