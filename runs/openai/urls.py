"""URLs of the OpenAI-compatible endpoints, below `/v1/`."""

from django.urls import path, re_path

from runs.openai import views
from runs.openai.dispatch import openai_view, unknown_url

READ = ("read",)
RUN = ("run", "read")
"""A caller starts a run and is sent what it does."""
RESPONSE = r"^responses/resp_(?P<pk>\d{1,18})"

urlpatterns = [
    re_path(
        r"^models/?$",
        openai_view(scopes=READ, GET=views.list_models),
        name="openai-models",
    ),
    re_path(
        r"^models/(?P<model>[^/]+)/?$",
        openai_view(scopes=READ, GET=views.read_model),
        name="openai-model",
    ),
    re_path(
        r"^chat/completions/?$",
        openai_view(scopes=RUN, POST=views.create_chat_completion),
        name="openai-chat-completions",
    ),
    re_path(
        r"^responses/?$",
        openai_view(scopes=RUN, POST=views.create_response),
        name="openai-responses",
    ),
    re_path(
        rf"{RESPONSE}/?$",
        openai_view(scopes=READ, GET=views.read_response),
        name="openai-response",
    ),
    re_path(
        rf"{RESPONSE}/cancel/?$",
        openai_view(scopes=RUN, POST=views.cancel_response),
        name="openai-response-cancel",
    ),
    path("", unknown_url, name="openai"),
    # `<path:rest>` matches no line break.
    re_path(r"^(?P<rest>[\s\S]+)$", unknown_url, name="openai-nothing"),
]
