"""URLs of the authorization server. Those below `.well-known` are fixed by RFCs."""

from django.urls import path

from runs.oauth import views
from runs.oauth.metadata import RESOURCES

urlpatterns = [
    *(
        path(
            f".well-known/oauth-protected-resource/{resource}",
            views.resource_metadata,
            {"path": resource},
            name=f"oauth-resource-{resource.replace('/', '-')}",
        )
        for resource in RESOURCES
    ),
    path(
        ".well-known/oauth-authorization-server",
        views.server_metadata,
        name="oauth-server",
    ),
    path("oauth/register", views.register, name="oauth-register"),
    path("oauth/authorize", views.authorize, name="oauth-authorize"),
    path("oauth/token", views.token, name="oauth-token"),
]
