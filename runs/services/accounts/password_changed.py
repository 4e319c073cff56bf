"""What a new password ends, on whatever page or by whatever command it is set."""

from django.contrib.auth.models import User

from runs.models import ApprovalLink, LoginLink
from runs.services.accounts.tokens import revoke_all_tokens
from tools.audit.actor import get_current_actor


class EndOtherAccess:
    """A password validator, as only validators are notified of every new password."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Accept every password."""

    def get_help_text(self) -> str:
        return ""

    def password_changed(self, password: str, user: User) -> None:
        """End one-time links; tokens too, unless users set their own password.

        They are asked whether to revoke them.
        """
        LoginLink.objects.filter(user=user).delete()
        ApprovalLink.objects.filter(user=user).delete()
        if get_current_actor().user != user:
            revoke_all_tokens(user)
