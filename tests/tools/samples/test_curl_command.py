"""Pasted requests, and the tools they become."""

import json

import pytest

from tools.kinds.http_config import HttpConfig
from tools.kinds.http_request import build_http_request
from tools.samples.curl_command import parse_sample_request, split_command
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


def test_repeated_fields_of_a_form_become_a_list():
    draft = drafted("curl https://a.example/x -d label=bug -d label=urgent -d n=1")

    assert draft.tool.config["form"] == {"label": "{label}", "n": "{n}"}
    assert draft.values == {"label": ["bug", "urgent"], "n": 1}
    assert draft.tool.args_schema["properties"]["label"]["type"] == "array"


def test_repeated_fields_of_a_multipart_form_become_a_list():
    draft = drafted("curl https://a.example/x -F label=bug -F label=urgent")

    assert draft.tool.config["multipart"] == {"label": "{label}"}
    assert draft.values == {"label": ["bug", "urgent"]}


def test_a_form_string_is_text():
    draft = drafted("curl https://a.example/x --form-string 'to=@ann;type=a'")

    assert draft.tool.config["multipart"] == {"to": "{to}"}
    assert draft.values == {"to": "@ann;type=a"}


def test_encoded_data_has_the_name_before_the_equals_sign():
    draft = drafted("curl https://a.example/x --data-urlencode 'to=a@b=c&d'")

    assert draft.values == {"to": "a@b=c&d"}


def test_the_body_of_delete_is_sent():
    of_json = drafted("""curl -X DELETE https://a.example/x --json '{"n": 1}'""")
    of_form = drafted("curl -X DELETE https://a.example/x -d n=1")

    assert of_json.tool.config["json"] == {"n": "{n}"}
    assert of_form.tool.config["form"] == {"n": "{n}"}


def test_the_name_of_a_file_is_the_one_that_is_sent():
    draft = drafted("curl https://a.example/x -F 'f=@/a/b.png;filename=c.png'")

    assert draft.tool.config["multipart"]["f"]["filename"] == "c.png"


@pytest.mark.parametrize(
    ("header", "headers"),
    [
        ("X-Empty;", {"X-Empty": ""}),
        ("Accept:", None),
        ("Accept", None),
        ("X-Colon: a:b", {"X-Colon": "a:b"}),
    ],
)
def test_headers_are_sent_as_curl_sends_them(header, headers):
    draft = drafted(f"curl https://a.example/x -H '{header}'")

    assert draft.tool.config.get("headers") == headers


def test_lines_continue_after_a_backslash_with_spaces_behind_it():
    draft = drafted("curl https://a.example/x \\ \t\n  -H 'A: b' \\  \r\n  -d x=1")

    assert draft.tool.config["headers"] == {"A": "b"}
    assert draft.values == {"x": 1}


def test_characters_that_bash_escapes_are_read():
    draft = drafted(r"curl https://a.example/x --data-raw $'a=\u4f60\U0001F600\041'")

    assert draft.values == {"a": "你\U0001f600!"}


@pytest.mark.parametrize(
    ("word", "text"),
    [
        (r"$'{\"a\": \"\ud83d\ude00\"}'", '{"a": "\U0001f600"}'),
        (r"a=$'it\'s'' fine'", "a=it's fine"),
        (r"'a=b'$'\t''c'", "a=b\tc"),
        (r"""'a='"'"$'x'""", "a='x"),
        ("'a=$'b", "a=$b"),
        (r"""\"a=$'b'\"""", '"a=b"'),
        ("\"a=$'b'\"", "a=$'b'"),
        (r"$'a=\xc3\xa9\303\251\e\q'", "a=éé\x1b\\q"),
        (r'"a=\$b\n"', r"a=$b\n"),
        ("'a=1\\\n2'", "a=1\\\n2"),
    ],
)
def test_quoted_parts_of_a_word_are_joined_as_bash_does(word, text):
    assert split_command(f"curl -d {word} x") == ["curl", "-d", text, "x"]


def test_a_json_type_that_tools_do_not_send_stays_a_header():
    kind = "application/merge-patch+json"
    config = drafted(
        f"""curl -X PATCH a.example/x -H 'Content-Type: {kind}' -d '{{"n": 1}}'"""
    ).tool.config

    request = build_http_request(HttpConfig.model_validate(config), {"n": 2})
    assert request.headers == {"Content-Type": kind}
    assert request.content == b'{"n":2}'


@pytest.mark.parametrize(
    "query",
    ["{user{name}}", "query{me}", "query Q($id: ID!) { user(id: $id) {name} }"],
)
def test_the_braces_of_graphql_are_no_placeholders(query):
    body = json.dumps({"query": query, "variables": {"id": 7}})
    draft = drafted(f"curl https://a.example/graphql --json '{body}'")

    assert list(draft.tool.args_schema["properties"]) == ["query", "variables"]
    assert draft.values == {"query": query, "variables": {"id": 7}}
    config = HttpConfig.model_validate(draft.tool.config)
    assert (
        json.loads(build_http_request(config, draft.values).content)["query"] == query
    )


def test_a_placeholder_of_path_and_body_is_sent_in_both():
    draft = drafted("""curl -X PUT a.example/x/{id} --json '{"id": "{id}", "n": 1}'""")

    config = HttpConfig.model_validate(draft.tool.config)
    request = build_http_request(config, {"id": "a", "n": 1})
    assert request.url == "https://a.example/x/a"
    assert request.content == b'{"id":"a","n":1}'
    assert draft.tool.args_schema["required"] == ["n", "id"]


def test_a_value_of_the_body_is_not_the_placeholder_of_the_path():
    draft = drafted("""curl -X PUT a.example/x/{id} --json '{"id": 5}'""")

    assert draft.tool.config["json"] == {"id": "{id_}"}
    assert draft.values == {"id_": 5}


@pytest.mark.parametrize("place", ["{order-id}", ":order-id"])
def test_placeholders_with_hyphens_are_arguments(place):
    draft = drafted(
        f"curl 'https://a.example/orders/{place}/x?by={{user.name}}' "
        "-d 'note={order-id}' -H 'X-Order: {order-id}'"
    )

    assert draft.tool.config == {
        "method": "POST",
        "url": "https://a.example/orders/{order_id}/x",
        "query": {"by": "{user_name}"},
        "headers": {"X-Order": "{order_id}"},
        "form": {"note": "{order_id}"},
    }
    assert sorted(draft.tool.args_schema["properties"]) == ["order_id", "user_name"]


def test_a_field_can_have_the_name_of_a_number():
    assert drafted("curl https://a.example/x -d NaN=1").values == {"NaN": 1}


def test_the_prompt_of_a_shell_is_not_part_of_the_command():
    assert drafted("$ curl https://a.example/x").tool.name == "get_x"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "curl https://a.example/ --data-urlencode 'hello world'",
            "“--data-urlencode hello world” has no name",
        ),
        ("curl https://a.example/ --data-urlencode =a", "“--data-urlencode =a” has no"),
        (
            "curl https://a.example/ --data-urlencode name@a.txt",
            "Replace “--data-urlencode name@a.txt” with the content of the file",
        ),
        ("curl https://a.example/ --json @a.json", "Replace “--json @a.json” with"),
        ("curl https://a.example/ -H @a.txt", "Replace “-H @a.txt” with"),
        ("curl https://a.example/ -F 'a=<a.txt'", "Replace “-F a=<a.txt” with"),
        ("curl https://a.example/ -F 'a=b;type=text/csv'", "option ;type=text/csv"),
        (
            "curl -X GET https://a.example/ -d a=1",
            "Remove the data, or send it in the query with -G.",
        ),
        ("curl -I https://a.example/ -d a=1", "no body with HEAD"),
        ("curl -X GET https://a.example/ -F a=1", "no body with GET"),
        ("curl -F a=@b -F a=@c https://a.example/", "“a” has a file and another value"),
        ("curl -F a=@b -F a=c https://a.example/", "“a” has a file and another value"),
        ("curl -F 'a=@b;encoder=base64' https://a.example/", "option ;encoder=base64"),
        (
            'curl ^"https://a.example/?a=1^&b=2^" ^\r\n  -H ^"accept: */*^"',
            "Copy as cURL (bash)",
        ),
        ("wget https://a.example", "neither curl nor https"),
        ("curl", "no URL"),
        ("curl 'https://a.example", "no closing quotation"),
        ("curl -X", "the option -X has no value"),
        ("curl -X TRACE https://a.example/", "cannot send TRACE"),
        ("curl -d @secrets.txt https://a.example/", "Replace “-d @secrets.txt” with"),
        ("curl --config x https://a.example/", "--config"),
        ("curl ftp://a.example/", "an address begins with https://"),
        ("curl -d '[1]' https://a.example/", "neither a JSON object nor a form"),
        (
            "curl -H 'Content-Type: application/xml' -d '<a b=\"c\"/>' a.example",
            "cannot send a body of the type application/xml. They send JSON objects",
        ),
        ("curl -d '<a b=\"c\"/>' a.example", "neither a JSON object nor a form"),
        ("curl --json 'a=1' a.example", "neither a JSON object nor a form"),
        ("""curl -d '{"x": NaN}' https://a.example/""", "contains “NaN”, which tools"),
        ("""curl --json '{"x": [-Infinity]}' a.example/""", "contains “-Infinity”"),
        ("""curl --json '{"x": 1e999}' https://a.example/""", "contains “1e999”"),
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
