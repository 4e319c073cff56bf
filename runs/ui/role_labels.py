"""Labels of the roles of chat messages, in the active language."""

from django.utils.translation import gettext_lazy

ROLE_LABELS = {
    "system": gettext_lazy("System"),
    "user": gettext_lazy("User"),
    "assistant": gettext_lazy("Assistant"),
    "tool": gettext_lazy("Tool"),
}


def get_role_label(role: str) -> str:
    return str(ROLE_LABELS.get(role, role))
