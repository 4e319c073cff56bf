"""The example in the documentation of tools that use a secret."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.tools.rows import make_tool, make_user
from tools import registry
from tools.definition.freeze import freeze_tool
from tools.kinds.registry import call_tool
from tools.models import Credential
from tools.net.deadline import Deadline
from tools.registry import ToolUser
from tools.secrets import seal

PAGE = Path(__file__).parent.parent.parent / "docs/writing-tools.md"


class InvoiceClient:
    """A service with two pages of invoices, which repeats the key it was given."""

    pages = 2

    def __init__(self, *, host: str, api_key: str) -> None:
        self.host, self.api_key = host, api_key

    def read(self, number: int, *, year: int, user: str) -> list[str]:
        return [f"{self.host} {year}-{number} for {user} by {self.api_key}"]


@pytest.mark.django_db(transaction=True)
def test_the_documented_function_works(monkeypatch: pytest.MonkeyPatch):
    (code,) = re.findall(
        r"```python\n(# invoice_tools.py\n.*?)```", PAGE.read_text(), re.S
    )
    service, module = ModuleType("invoices"), ModuleType("invoice_tools")
    service.InvoiceClient = InvoiceClient  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "invoices", service)
    monkeypatch.setitem(sys.modules, "invoice_tools", module)
    known = dict(registry._registered_functions)
    monkeypatch.setattr(registry, "_registered_functions", known)
    exec(compile(code, "invoice_tools.py", "exec"), module.__dict__)
    credential = Credential.objects.create(
        name="Invoices",
        owner=make_user(),
        hosts=["api.example.com"],
        sealed=seal("k3y-of-the-shop"),
    )
    config = {"function": "invoice_tools:list_invoices"}
    tool = make_tool(config=config, credential=credential)
    progress: list[Any] = []

    found = call_tool(
        freeze_tool(tool),
        {"year": 2026},
        deadline=Deadline(),
        user=ToolUser(4, "bo"),
        on_progress=progress.append,
    )

    assert found == [
        "api.example.com 2026-1 for bo by [secret]",
        "api.example.com 2026-2 for bo by [secret]",
    ]
    assert progress == ["1 of 2 pages", "2 of 2 pages"]
