"""The preview renders exactly what the engine would send."""

from runs.engine.types import AgentSpec, PromptMessage, PromptSpec
from runs.views.prompts.preview import build_first_request


def spec(*templates: str) -> AgentSpec:
    messages = tuple(PromptMessage(role="user", template=text) for text in templates)
    return AgentSpec(kind="tool-calling", prompt=PromptSpec(messages=messages))


def test_variables_without_a_value_stay_as_they_are_written():
    request = build_first_request(spec("{input} in {city}"))

    assert request is not None
    assert request.messages[0].text == "{input} in {city}"


def test_given_values_are_filled_in():
    request = build_first_request(spec("{input} in {city}"), {"city": "北京"})

    assert request is not None
    assert request.messages[0].text == "{input} in 北京"


def test_an_agent_that_cannot_run_has_no_request():
    assert (
        build_first_request(AgentSpec(kind="react", prompt=PromptSpec(template="x")))
        is None
    )
