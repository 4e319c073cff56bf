"""Prompt templates: placeholders, braces, mistakes."""

import pytest

from runs.engine.prompts import (
    flaws_of,
    input_variables_of,
    render,
    templates_of,
    variables_of,
)
from runs.engine.types import PromptMessage, PromptSpec


@pytest.mark.parametrize(
    ("template", "text"),
    [
        pytest.param("Hello {name}!", "Hello Bo!", id="variable"),
        pytest.param("{name} and {name}", "Bo and Bo", id="twice"),
        pytest.param('{{"k": "{name}"}}', '{"k": "Bo"}', id="doubled braces"),
        pytest.param("{{name}}", "{name}", id="escaped variable"),
        pytest.param("{{{name}}}", "{Bo}", id="variable in braces"),
        pytest.param("{unknown}", "{unknown}", id="unknown variable stays"),
        pytest.param("{tricky}", "{name} {{x}}", id="value is not expanded again"),
        pytest.param("{number}", '{"n":1}', id="value that is no text"),
    ],
)
def test_variables_are_replaced_once(template, text):
    values = {"name": "Bo", "tricky": "{name} {{x}}", "number": {"n": 1}}

    assert render(template, values) == text


def test_variables_are_named_once_in_order():
    prompt = PromptSpec(
        messages=(
            PromptMessage(role="system", template="{tools} {city} {{no}}"),
            PromptMessage(role="user", template="{input} {city} {agent_scratchpad}"),
        ),
        partials={"city": "Rome"},
    )

    assert variables_of(prompt) == ("tools", "city", "input", "agent_scratchpad")
    assert input_variables_of(prompt) == ("input",)


def test_a_prompt_without_anything_has_one_empty_template():
    assert templates_of(PromptSpec()) == ("",)


@pytest.mark.parametrize(
    "template", ['{ "a": 1 }', "{}", "{0}", "{a.b}", "{a!r}", "{a:>3}", "{", "}", "a}b"]
)
def test_a_single_brace_around_no_name_is_a_flaw(template):
    assert list(flaws_of(f"first line\n{template}")) != []


def test_a_flaw_tells_where_it_is_and_what_to_write():
    flaw = next(flaws_of('fine {name}\nthen { "a": 1 }\nmore'))

    assert str(flaw) == (
        "Line 2: '{ \"a\": 1 }' is no variable. Write {name} for a variable "
        "(letters, digits and underscores), {{ and }} for braces as text."
    )


@pytest.mark.parametrize(
    ("template", "excerpts"),
    [
        pytest.param(
            "Hi {unknown thing} {", ["{unknown thing}", "{"], id="closed, then open"
        ),
        pytest.param("{a b {c} d", ["{a b"], id="never closed"),
        pytest.param("a} b", ["}"], id="never opened"),
    ],
)
def test_a_flaw_quotes_its_own_brace_and_no_other(template, excerpts):
    assert [flaw.excerpt for flaw in flaws_of(template)] == excerpts


def test_doubled_braces_and_variables_are_no_flaws():
    assert list(flaws_of('{{"a": {{"b": "{name}"}}}}')) == []
