"""LangChain: prompts."""

from typing import Any

import pytest

from runs.services.importers.errors import ForeignFileRefused
from tests.services.importers.convert import convert, get_messages, get_skipped

pytestmark = pytest.mark.django_db


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    path = ["langchain_core", "prompts", kind]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": kwargs}


def template(text: str, syntax: str = "f-string") -> dict[str, Any]:
    return lc("PromptTemplate", template=text, template_format=syntax)


def test_a_plain_prompt_has_the_name_of_its_file():
    found = convert(
        "input_variables: [who]\ntemplate: 'Greet {who} as {{x}}.'\n",
        name="prompts/greeting.yaml",
    )

    (prompt,) = found.file.prompts
    assert (found.product, prompt.slug, found.file.agents) == (
        "LangChain",
        "greeting",
        (),
    )
    assert get_messages(found) == [("user", "Greet {who} as {{x}}.")]


def test_a_chat_prompt_keeps_roles_and_leaves_places_of_messages_to_the_engine():
    found = convert(
        lc(
            "ChatPromptTemplate",
            metadata={"lc_hub_repo": "greeter"},
            messages=[
                lc(
                    "SystemMessagePromptTemplate",
                    prompt=template("Be {{tone}}", "mustache"),
                ),
                lc("MessagesPlaceholder", variable_name="chat_history"),
                lc("MessagesPlaceholder", variable_name="examples"),
                lc("AIMessage", content="{as it is}"),
                lc("HumanMessagePromptTemplate", prompt=template("{input}")),
            ],
        )
    )

    assert found.file.prompts[0].slug == "greeter"
    assert get_messages(found) == [
        ("system", "Be {tone}"),
        ("assistant", "{{as it is}}"),
        ("user", "{input}"),
    ]
    assert list(get_skipped(found)) == ["Setting “MessagesPlaceholder: examples”"]


def test_a_prompt_that_was_saved_with_a_model_is_found():
    prompt = lc("ChatPromptTemplate", messages=[lc("HumanMessage", content="Hi")])

    found = convert(lc("RunnableSequence", first=prompt, last={}))

    assert get_messages(found) == [("user", "Hi")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"_type": "llm_chain", "llm": {}}, "of the type “llm_chain”; only prompts"),
        ({"_type": "few_shot", "examples": []}, "from other files"),
        (lc("ChatOpenAI"), "of the type “ChatOpenAI”; only prompts"),
        (
            {"input_variables": [], "template": "", "template_format": "jinja2"},
            "the syntax “jinja2”",
        ),
        (lc("ChatPromptTemplate", messages=[]), "only placeholders"),
    ],
    ids=["chain", "few-shot", "model", "jinja", "empty"],
)
def test_other_files_are_recognized_by_name(given, message):
    with pytest.raises(ForeignFileRefused, match=message):
        convert(given)


def test_a_syntax_that_is_not_a_text_is_no_syntax():
    found = convert({"input_variables": [], "template": "{a}", "template_format": []})

    assert get_messages(found) == [("user", "{{a}}")]
