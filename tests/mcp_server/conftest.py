"""The site, the model and the user of clients, as those of the OpenAI endpoint."""

from tests.openai.conftest import agent, ann, model, url

__all__ = ["agent", "ann", "model", "url"]
