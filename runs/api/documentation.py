"""The OpenAPI document."""

from functools import cache

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse

from runs.api.dispatch import json_response
from runs.api.openapi import Json, build_document
from runs.api.registry import ROUTES
from runs.api.route import Route


@cache
def get_document() -> Json:
    return build_document(ROUTES, server=settings.PUBLIC_URL)


def read_document(request: HttpRequest, user: User) -> HttpResponse:
    """This document."""
    return json_response(get_document())


DOCUMENT_ROUTE = Route("GET", "openapi.json", read_document, "Read the document")
