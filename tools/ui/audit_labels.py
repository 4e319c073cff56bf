"""Translated labels for the codes of the audit log."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

ACTION_LABELS = {
    "made": gettext_lazy("created"),
    "changed": gettext_lazy("changed"),
    "deleted": gettext_lazy("deleted"),
    "enabled": gettext_lazy("enabled"),
    "disabled": gettext_lazy("disabled"),
    "archived": gettext_lazy("archived"),
    "brought back": gettext_lazy("restored"),
    "published": gettext_lazy("published"),
    "exported": gettext_lazy("exported"),
    "tried": gettext_lazy("tested"),
    "kept off": gettext_lazy("rejected a change of"),
    "rotated": gettext_lazy("rotated"),
    "revoked": gettext_lazy("revoked"),
    "allowed": gettext_lazy("granted"),
    "approved": gettext_lazy("approved"),
    "rejected": gettext_lazy("rejected"),
    "expired": gettext_lazy("expired"),
    "withdrawn": gettext_lazy("withdrawn"),
    "settled as happened": gettext_lazy("settled as happened"),
    "settled: retry": gettext_lazy("retried"),
    "settled: skip": gettext_lazy("skipped"),
    "settled: fail": gettext_lazy("failed"),
    "canceled": gettext_lazy("canceled"),
    "forked": gettext_lazy("forked"),
    "shared": gettext_lazy("shared"),
    "paused": gettext_lazy("paused"),
    "resumed": gettext_lazy("resumed"),
}
NOUN_LABELS = {
    "tool": gettext_lazy("tool"),
    "credential": gettext_lazy("credential"),
    "MCP server": gettext_lazy("MCP server"),
    "encryption key": gettext_lazy("encryption key"),
    "user": gettext_lazy("user"),
    "group": gettext_lazy("group"),
    "API token": gettext_lazy("API token"),
    "provider": gettext_lazy("provider"),
    "model": gettext_lazy("model"),
    "prompt": gettext_lazy("prompt"),
    "agent": gettext_lazy("agent"),
    "agent tool": gettext_lazy("agent tool"),
    "agent version": gettext_lazy("agent version"),
    "schedule": gettext_lazy("schedule"),
    "webhook": gettext_lazy("webhook"),
    "run": gettext_lazy("run"),
    "tool call": gettext_lazy("tool call"),
    "allowance": gettext_lazy("allowance"),
}


def label_action(code: str) -> str:
    """Return the label of an action; an unknown code as it is."""
    return str(ACTION_LABELS.get(code, code))


def label_noun(code: str) -> str:
    """Return the label of a type of object; an unknown code as it is."""
    return str(NOUN_LABELS.get(code, code))


def format_action(action: str, noun: str) -> str:
    """Return what was done to which type of object: `created tool`."""
    return _("%(action)s %(object)s") % {
        "action": label_action(action),
        "object": label_noun(noun),
    }
