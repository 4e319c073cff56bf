"""Calls an agent through the official Python clients; runs in their environment.

Reads a JSON object per line: which function, and its arguments. Writes its result.
"""

import json
import os
import re
import sys
import time
import urllib.request
from contextlib import redirect_stdout
from io import StringIO

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # nothing is downloaded


def connect(call):
    from openai import OpenAI

    return OpenAI(
        base_url=call["url"] + "/v1", api_key=call["token"], max_retries=0, timeout=60
    )


def user(text):
    return [{"role": "user", "content": text}]


def parameters(call):
    names = ("model", "metadata", "extra_body", "tools", "n")
    found = {name: call[name] for name in names if name in call}
    return {"messages": call.get("messages") or user(call.get("text", "Hi")), **found}


def models(call):
    client = connect(call)
    return [one.id for one in client.models.list()] + [
        client.models.retrieve(call["model"]).id
    ]


def chat(call):
    return connect(call).chat.completions.create(**parameters(call)).model_dump()


def chat_stream(call):
    """Return all chunks; `approve` answers whatever the run waits for."""
    chunks, options = [], {"include_usage": True}
    stream = connect(call).chat.completions.create(
        **parameters(call), stream=True, stream_options=options
    )
    for chunk in stream:
        chunks.append(chunk.model_dump())
        if chunks[-1].get("approval"):
            answer_approval(call, chunks[-1]["approval"]["url"], call["answer"])
    return chunks


def chat_leave(call):
    """Close the connection at the first text; return the run's state a little later."""
    client = connect(call)
    stream = client.chat.completions.create(**parameters(call), stream=True)
    for chunk in stream:
        if chunk.choices[0].delta.content:
            break
    stream.close()
    return wait_until_over(client, "resp_" + chunk.id.removeprefix("chatcmpl-"))


def chat_leave_early(call):
    """Close the connection before the answer; the run has started."""
    client = connect(call)
    stream = client.chat.completions.create(
        **parameters(call), stream=True, extra_headers=call.get("headers")
    )
    next(iter(stream))
    stream.close()


def wait_until_over(client, response_id):
    for _ in range(600):
        response = client.responses.retrieve(response_id)
        if response.status not in ("queued", "in_progress"):
            break
        time.sleep(0.05)
    return response.status


def answer_approval(call, url, answer):
    pk = url.rstrip("/").rpartition("/")[2]
    request = urllib.request.Request(
        f"{call['url']}/api/v1/approvals/{pk}/{answer}",
        data=b"{}",
        headers={"Authorization": f"Bearer {call['token']}"},
    )
    urllib.request.urlopen(request, timeout=30).close()


def response_parameters(call):
    names = ("model", "metadata", "reasoning", "instructions", "previous_response_id")
    names += ("background",)
    found = {name: call[name] for name in names if name in call}
    return {"input": call.get("text", "Hi"), **found}


def response(call):
    found = connect(call).responses.create(**response_parameters(call))
    return {**found.model_dump(), "output_text": found.output_text}


def response_stream(call):
    """Return all events, up to the first text if it `leaves` then."""
    events = []
    with connect(call).responses.stream(**response_parameters(call)) as stream:
        for event in stream:
            events.append(json.loads(event.model_dump_json()))
            if call.get("leaves") and event.type == "response.output_text.delta":
                break
            item = events[-1].get("item") or {}
            if event.type.endswith("item.done") and item.get("url"):
                answer_approval(call, item["url"], call["answer"])
    return events


def response_background(call):
    client = connect(call)
    first = client.responses.create(**response_parameters(call), background=True)
    last = wait_until_over(client, first.id)
    return [first.status, last, client.responses.retrieve(first.id).output_text]


def litellm_ask(call, **more):
    import litellm

    litellm.suppress_debug_info = True  # which it would print
    return litellm.completion(
        model="openai/" + call["model"],
        messages=call.get("messages") or user(call["text"]),
        api_base=call["url"] + "/v1",
        api_key=call["token"],
        max_retries=0,
        **more,
    )


def litellm_chat(call):
    return litellm_ask(call).choices[0].message.content


def litellm_stream(call):
    stream = litellm_ask(call, stream=True)
    pieces = (chunk.choices[0].delta.content for chunk in stream)
    return read_pieces(call, pieces, leave=stream.completion_stream.close)


def langchain_model(call):
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=call["model"],
        base_url=call["url"] + "/v1",
        api_key=call["token"],
        max_retries=0,
    )


def langchain_chat(call):
    model = langchain_model(call)
    return model.invoke(call.get("messages") or call["text"]).content


def langchain_stream(call):
    stream = langchain_model(call).stream(call["text"])
    return read_pieces(call, (one.content for one in stream), leave=stream.close)


def read_pieces(call, pieces, *, leave):
    """Return the text; answer the approval that it links to, or leave at once."""
    text, is_open = "", "answer" in call
    for piece in pieces:
        text += piece or ""
        link = re.search(r"http\S+/approvals/\d+/", text) if is_open else None
        if link:
            answer_approval(call, link[0], call["answer"])
            is_open = False
        if text and call.get("leaves"):
            leave()
            break
    return text


def run_example(call):
    """Run a program as it is shown; return what it prints."""
    os.environ["AGENTSITE_TOKEN"] = call["token"]
    with redirect_stdout(StringIO()) as printed:
        exec(compile(call["code"], "example", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


def describe(error):
    """Return the fields of an exception of the client."""
    fields = ("status_code", "code", "param", "type", "message")
    found = {name: getattr(error, name, None) for name in fields}
    return {"name": type(error).__name__, **found}


for line in sys.stdin:
    call = json.loads(line)
    try:
        done = {"result": globals()[call["do"]](call)}
    except Exception as error:  # the test looks at it
        done = {"error": describe(error)}
    print(json.dumps(done, default=str), flush=True)
