"""All URLs: the admin, and those of each app."""

from django.contrib import admin
from django.urls import include, path

from runs.views.accounts import admin_sign_in

urlpatterns = [
    path("admin/login/", admin_sign_in, name="admin-sign-in"),  # instead of Django's
    path("admin/", admin.site.urls),
    path("", include("tools.urls")),
    path("", include("runs.urls")),
]

handler400 = "runs.views.error_pages.bad_request"
handler500 = "runs.views.error_pages.server_error"
