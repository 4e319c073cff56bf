"""Results of tool calls in the words of MCP."""

from typing import Any

from runs.live.narration import get_output_text
from runs.live.run_links import build_run_url
from runs.models import Run

Json = dict[str, Any]


def tool_error(message: str) -> Json:
    """Return a result that a model can read, and correct its call."""
    return {"content": [text_block(message)], "isError": True}


def tool_result(text: str, structured: Json | None = None) -> Json:
    result: Json = {"content": [text_block(text)], "isError": False}
    if structured is not None:
        result["structuredContent"] = structured
    return result


def run_result(run: Json, *, has_schema: bool) -> Json:
    """Return the answer of a run that is over, or why there is none."""
    url = build_run_url(run["id"])
    if run["status"] == Run.Status.FAILED:
        message = (run["error"] or {}).get("message") or "The run failed."
        return with_run(tool_error(f"{message} See {url}"), url)
    if run["status"] == Run.Status.CANCELED:
        return with_run(tool_error(f"The run was canceled. See {url}"), url)
    output, text = run["output"], get_output_text(run)
    is_structured = has_schema and isinstance(output, dict)
    if run["status"] == Run.Status.LIMIT_REACHED and not is_structured:
        note = f"The run reached a limit ({run['stop_reason']}). See {url}"
        result = tool_error(f"{text}\n\n{note}".strip())
    else:
        result = tool_result(text, output if is_structured else None)
    return with_run(result, url)


def with_run(result: Json, url: str) -> Json:
    return {**result, "_meta": {"agentsite/run": url}}


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}
