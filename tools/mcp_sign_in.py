"""An account that an administrator connected to an MCP server, with its tokens."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class McpSignIn(models.Model):
    """Beside a server that was signed in to with OAuth."""

    server = models.OneToOneField(
        "tools.McpServer", on_delete=models.CASCADE, related_name="sign_in"
    )
    resource = models.CharField(max_length=500)
    """The address that the tokens are for; they are sent to its host only."""
    token_endpoint = models.CharField(max_length=500)
    client_id = models.CharField(max_length=500)
    client_auth = models.CharField(max_length=30)
    """How the client proves itself: none, client_secret_post or client_secret_basic."""
    sealed_client_secret = models.TextField(blank=True)
    sealed_access_token = models.TextField()
    sealed_refresh_token = models.TextField(blank=True)
    renew_at = models.DateTimeField(null=True, blank=True)
    """When to get a new access token, a little before it expires; null: unknown."""
    renewing_until = models.DateTimeField(null=True, blank=True)
    """Until when one worker has the sole right to get a new one."""
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
    )
    connected_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = "sign-in of an MCP server"

    def __str__(self) -> str:
        return f"sign-in of {self.server_id}"
