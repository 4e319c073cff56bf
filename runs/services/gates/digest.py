"""What a gate requires, as a digest that is the same on every site."""

import hashlib
import json

from runs.evaluation.gate import GateRules
from runs.models import Example, Gate


def compute_gate_digest(gate: Gate) -> str:
    """Return the SHA-256 of the rules, the examples and the evaluators, in hex.

    A result counts only as long as they are those that it was reached with.
    """
    examples = Example.objects.filter(dataset=gate.dataset_id)
    rows = examples.in_version(gate.dataset.version).order_by()
    fields = ("inputs", "expected_answer", "expected_calls", "tags")
    evaluators = gate.evaluators.order_by("slug")
    parts = [
        GateRules.model_validate(gate.rules).model_dump(mode="json"),
        gate.tool_mode,
        gate.repetitions,
        sorted(map(dump, rows.values_list(*fields).iterator(500))),
        list(map(dump, evaluators.values_list("slug", "kind", "config"))),
    ]
    return hashlib.sha256(dump(parts).encode()).hexdigest()


def dump(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
