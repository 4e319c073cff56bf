"""Pasted requests, and the tools they become."""

import pytest

from tools.samples.curl_command import parse_sample_request
from tools.samples.draft_tool import draft_tool_from_sample
from tools.samples.errors import SampleRefused


def drafted(text):
    return draft_tool_from_sample(parse_sample_request(text))


def test_a_url_becomes_a_get_with_its_query_as_arguments():
    draft = drafted("https://api.example.com/v2/orders?status=open&limit=5&tag=a&tag=b")

    assert draft.tool.config == {
        "method": "GET",
        "url": "https://api.example.com/v2/orders",
        "query": {"status": "{status}", "limit": "{limit}", "tag": "{tag}"},
    }
    assert draft.tool.args_schema["properties"]["limit"] == {"type": "integer"}
    assert "required" not in draft.tool.args_schema
    assert draft.values == {"status": "open", "limit": 5, "tag": ["a", "b"]}
    assert (draft.tool.name, draft.tool.effect) == ("get_orders", "read")
    assert draft.tool.approval == "never"


def test_a_json_body_becomes_arguments_that_are_sent_as_json():
    draft = drafted(
        """curl -X POST 'https://api.example.com/orders' \\
          -H 'Content-Type: application/json' -H "Accept-Language: en" \\
          --data-raw $'{"item": "it\\'s", "count": 2, "gift": false, "tags": ["a"]}'"""
    )

    assert draft.tool.config == {
        "method": "POST",
        "url": "https://api.example.com/orders",
        "headers": {"Accept-Language": "en"},
    }
    assert draft.tool.args_schema == {
        "type": "object",
        "properties": {
            "item": {"type": "string"},
            "count": {"type": "integer"},
            "gift": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["item", "count", "gift", "tags"],
    }
    assert draft.values["item"] == "it's"
    assert (draft.tool.effect, draft.tool.approval) == ("side_effect", "always")


def test_names_that_are_no_arguments_are_sent_under_their_own():
    draft = drafted("""curl https://a.example/x --json '{"first-name": "A", "n": 1}'""")

    assert draft.tool.config["json"] == {"first-name": "{first_name}", "n": "{n}"}


def test_a_form_and_a_path_with_placeholders():
    draft = drafted("curl -d a=1 -d 'b=x y' https://a.example/users/:id/{part}")

    assert draft.tool.config["url"] == "https://a.example/users/{id}/{part}"
    assert draft.tool.config["form"] == {"a": "{a}", "b": "{b}"}
    assert draft.tool.args_schema["required"] == ["a", "b", "id", "part"]
    assert draft.values == {"a": 1, "b": "x y"}
    assert draft.tool.name == "post_users"


def test_files_of_a_form_become_arguments_and_are_not_read():
    draft = drafted(
        "curl -F note=hi -F 'photo=@/etc/passwd;type=image/png' a.example/p"
    )

    assert draft.tool.config["url"] == "https://a.example/p"
    assert draft.tool.config["multipart"] == {
        "note": "{note}",
        "photo": {
            **{"content": "{photo}", "encoding": "base64"},
            **{"filename": "passwd", "content_type": "image/png"},
        },
    }
    schema = draft.tool.args_schema["properties"]["photo"]
    assert schema == {"type": "string", "contentEncoding": "base64"}
    assert draft.values == {"note": "hi"}


def test_secrets_stay_behind():
    draft = drafted(
        "curl 'https://ann:pw1@a.example/x?q=1&api_key=k1' -u ann:pw2 -b sid=c1 "
        "-H 'Authorization: Bearer t1' -H 'X-Api-Key: t2' --json "
        """'{"password": "pw3", "name": "n"}'"""
    )

    everything = repr((draft.tool.config, draft.tool.args_schema, draft.values))
    for secret in ("pw1", "pw2", "pw3", "k1", "c1", "t1", "t2"):
        assert secret not in everything
    assert draft.left_out == ["Authorization", "Cookie", "api_key", "X-Api-Key"]
    assert "password" in draft.tool.args_schema["properties"]


def test_what_browsers_add_is_dropped():
    draft = drafted(
        "curl 'https://a.example/x' --compressed -sSL -H 'User-Agent: M' -H 'Host: b' "
        "-H 'sec-ch-ua: x' -H 'Referer: y' -H 'accept: application/json'"
    )

    assert draft.tool.config["headers"] == {"accept": "application/json"}


@pytest.mark.parametrize("after", ["| jq .", "> out.json", "2>/dev/null", ">>a.json"])
def test_what_is_done_with_the_output_is_left_out(after):
    draft = drafted(f"curl https://a.example/orders -X PUT {after}")

    assert draft.tool.config["url"] == "https://a.example/orders"
    assert draft.tool.config["method"] == "PUT"


def test_options_after_the_file_of_the_output_are_read():
    draft = drafted("curl > out.json -X PUT https://a.example/orders")

    assert draft.tool.config["url"] == "https://a.example/orders"
    assert draft.tool.config["method"] == "PUT"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wget https://a.example", "neither curl nor https"),
        ("curl", "no URL"),
        ("curl 'https://a.example", "no closing quotation"),
        ("curl -X", "the option -X has no value"),
        ("curl -X TRACE https://a.example/", "cannot send TRACE"),
        ("curl -d @secrets.txt https://a.example/", "-d @secrets.txt"),
        ("curl --config x https://a.example/", "--config"),
        ("curl ftp://a.example/", "an address begins with https://"),
        ("curl -d '[1]' https://a.example/", "neither a JSON object nor a form"),
        ("curl https://a.example/1 https://b.example/2", "more than one URL"),
        ("curl --url a.example/1 --url a.example/2", "more than one URL"),
        ("curl https://a.example/1 && curl https://b.example/2", "more than one URL"),
        ("https://a.example/1 https://b.example/2", "text after the URL"),
        ("rm -rf /; curl https://a.example/", "neither curl nor https"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(text, said):
    with pytest.raises(SampleRefused) as refused:
        drafted(text)

    assert said in str(refused.value).replace("No closing", "no closing")
