"""Programs that call an agent, written out for its address, version and variables."""

import json
from collections.abc import Callable
from typing import NamedTuple

from django.conf import settings

from runs.models import Agent
from runs.services.spec.freeze import build_agent_tool_spec

SAMPLE_MESSAGE = "Hello"
"""Sent if the agent suggests no question."""


class CodeExample(NamedTuple):
    """A file, and what it needs."""

    title: str
    language: str
    """Of its colors."""
    install: str
    code: str


class ExampleCall(NamedTuple):
    model: str
    """Slug, with the number of a pinned version."""
    tool: str
    """Name of the agent for MCP clients."""
    message: str
    variables: dict[str, str]
    stream: bool
    url: str = ""

    @property
    def body(self) -> dict[str, object]:
        more: dict[str, object] = {}
        if self.variables:
            more["metadata"] = self.variables
        if self.stream:
            more["stream"] = True
        messages = [{"role": "user", "content": self.message}]
        return {"model": self.model, "messages": messages, **more}


def build_agent_call(
    agent: Agent, names: tuple[str, ...], *, version: int | None, stream: bool
) -> ExampleCall:
    asked = get_message_variable(names)
    return ExampleCall(
        model=agent.slug if version is None else f"{agent.slug}@{version}",
        tool=build_agent_tool_spec(agent).name,
        message=next(iter(agent.suggested_questions), SAMPLE_MESSAGE),
        variables={name: f"<{name}>" for name in names if name != asked},
        stream=stream,
        url=settings.PUBLIC_URL,
    )


def get_message_variable(names: tuple[str, ...]) -> str:
    """Return the variable that the last message is: `input`, or the first one."""
    return "input" if "input" in names or not names else names[0]


def build_curl_example(call: ExampleCall) -> CodeExample:
    body = json.dumps(call.body, ensure_ascii=False, indent=2).replace("'", "'\\''")
    option = "-N " if call.stream else ""
    code = (
        f"curl {option}{call.url}/v1/chat/completions \\\n"
        '  -H "Authorization: Bearer $AGENTSITE_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d '{body}'\n"
    )
    return CodeExample("Shell", "bash", "", code)


def build_python_example(call: ExampleCall) -> CodeExample:
    lines = [
        f"model={quote(call.model)},",
        f'messages=[{{"role": "user", "content": {quote(call.message)}}}],',
    ]
    if call.variables:
        lines.append(f"metadata={quote(call.variables)},")
    if call.stream:
        lines.append("stream=True,")
    name = "stream" if call.stream else "answer"
    arguments = "".join(f"    {line}\n" for line in lines)
    end = PYTHON_STREAM if call.stream else PYTHON_WHOLE
    code = (
        "import os\n\nfrom openai import OpenAI\n\n"
        "client = OpenAI(\n"
        f"    base_url={quote(call.url + '/v1')},\n"
        '    api_key=os.environ["AGENTSITE_TOKEN"],\n'
        ")\n"
        f"{name} = client.chat.completions.create(\n{arguments})\n{end}"
    )
    return CodeExample("Python", "python", "pip install openai", code)


PYTHON_WHOLE = "print(answer.choices[0].message.content)\n"
PYTHON_STREAM = (
    "for chunk in stream:\n"
    '    print(chunk.choices[0].delta.content or "", end="", flush=True)\n'
)


def build_javascript_example(call: ExampleCall) -> CodeExample:
    lines = [
        f"model: {quote(call.model)},",
        f'messages: [{{ role: "user", content: {quote(call.message)} }}],',
    ]
    if call.variables:
        lines.append(f"metadata: {quote(call.variables)},")
    if call.stream:
        lines.append("stream: true,")
    name = "stream" if call.stream else "answer"
    arguments = "".join(f"  {line}\n" for line in lines)
    end = JAVASCRIPT_STREAM if call.stream else JAVASCRIPT_WHOLE
    code = (
        'import OpenAI from "openai";\n\n'
        "const client = new OpenAI({\n"
        f"  baseURL: {quote(call.url + '/v1')},\n"
        "  apiKey: process.env.AGENTSITE_TOKEN,\n"
        "});\n"
        f"const {name} = await client.chat.completions.create({{\n{arguments}}});\n"
        f"{end}"
    )
    return CodeExample("JavaScript", "javascript", "npm install openai", code)


JAVASCRIPT_WHOLE = "console.log(answer.choices[0].message.content);\n"
JAVASCRIPT_STREAM = (
    "for await (const chunk of stream) {\n"
    '  process.stdout.write(chunk.choices[0]?.delta?.content ?? "");\n'
    "}\n"
)


def build_mcp_example(call: ExampleCall) -> CodeExample:
    headers = {"Authorization": "Bearer ${AGENTSITE_TOKEN}"}
    server = {"type": "http", "url": f"{call.url}/mcp", "headers": headers}
    config = {"mcpServers": {"agentsite": server}}
    code = json.dumps(config, ensure_ascii=False, indent=2) + "\n"
    return CodeExample("mcp.json", "json", "", code)


EXAMPLES: dict[str, Callable[[ExampleCall], CodeExample]] = {
    "curl": build_curl_example,
    "python": build_python_example,
    "javascript": build_javascript_example,
    "mcp": build_mcp_example,
}
LABELS = {
    "curl": "curl",
    "python": "Python",
    "javascript": "JavaScript",
    "mcp": "MCP",
}


def quote(value: object) -> str:
    """Return a text or object as a literal of Python and JavaScript."""
    return json.dumps(value, ensure_ascii=False)
