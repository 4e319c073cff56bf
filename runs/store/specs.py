"""Specs as rows: equal specs share one, found by its digest."""

import hashlib
import json
from typing import Any

from runs.engine.types import AgentSpec, ExecutorOptions
from runs.models import Spec
from runs.store.fast_select import select_row


def get_or_create_spec(spec: AgentSpec) -> Spec:
    body = dump_spec(spec)
    digest = compute_spec_digest(body)
    if row := select_row(Spec, digest=digest):
        return row
    # another process may do the same at this moment
    Spec.objects.bulk_create([Spec(digest=digest, body=body)], ignore_conflicts=True)
    row = select_row(Spec, digest=digest)
    assert row is not None
    return row


def dump_spec(spec: AgentSpec) -> dict[str, Any]:
    """Return the stored form: without defaults, but always with the loop guard."""
    body = spec.model_dump(mode="json", exclude_defaults=True)
    executor = {**body.pop("executor", {})}
    executor.pop("loop_guard", None)
    if (guard := spec.executor.loop_guard) is not None:
        executor["loop_guard"] = guard.model_dump(mode="json", exclude_defaults=True)
    return body | {"kind": spec.kind} | ({"executor": executor} if executor else {})


def compute_spec_digest(body: dict[str, Any]) -> str:
    """Return the SHA-256 of the body; equal bodies have equal digests."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def load_spec(row: Spec) -> AgentSpec:
    options = load_executor_options(row.body)
    return AgentSpec.model_validate({**row.body, "executor": options})


def load_executor_options(body: dict[str, Any]) -> ExecutorOptions:
    """Return the options of a stored spec, in which no loop guard means none."""
    stored = body.get("executor") or {}
    return ExecutorOptions.model_validate({"loop_guard": None, **stored})
