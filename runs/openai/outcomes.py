"""How a run ended, in the words of OpenAI: finish reasons, errors and links."""

from typing import Any

from runs.live.run_links import build_run_url
from runs.models import Run
from runs.openai.errors import OpenAiError

Json = dict[str, Any]

FINISH_REASONS = {"length": "length", "content_filter": "content_filter"}
NOT_AGAIN = {"x-should-retry": "false"}
"""Keeps OpenAI's clients from starting another run, which would cost money again."""


def find_run_error(run: Json) -> OpenAiError | None:
    """Return why the run has no answer; None if it has one."""
    match run["status"]:
        case Run.Status.FAILED:
            error = run["error"] or {"code": "run_failed", "message": "Run failed."}
            message, code, status = error["message"], error["code"], 500
        case Run.Status.CANCELED:
            message, code, status = "The run was canceled.", "run_canceled", 409
        case _:
            return None
    found = f"{message} See {build_run_url(run['id'])}"
    return OpenAiError(found, code=code, status=status, headers=NOT_AGAIN)


def get_finish_reason(run: Json) -> str:
    """Return `stop`, or why the answer may be incomplete."""
    if run["status"] == Run.Status.LIMIT_REACHED:
        return "length"
    return FINISH_REASONS.get(run["finish_reason"] or "", "stop")
