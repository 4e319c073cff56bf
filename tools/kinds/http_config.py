"""The definition of an HTTP tool, as it is stored."""

import json
import re
from typing import Any, Literal

from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tools.errors import ToolFailed
from tools.kinds.multipart import MultipartPart
from tools.kinds.parameter_styles import ParameterStyle
from tools.kinds.placeholders import PLACEHOLDER
from tools.net.address_flaw import find_address_flaw
from tools.net.reserved_headers import is_reserved_header
from tools.net.web_address import has_userinfo
from tools.text.json_pointer import parse_json_pointer

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
METHODS_WITHOUT_BODY = ("GET", "HEAD", "DELETE")
FORM_TYPE = "application/x-www-form-urlencoded"
MAX_BYTES = 20 << 20


class HttpConfig(BaseModel):
    """The definition, as it is stored and frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    method: Method = "GET"
    url: str
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    joined: tuple[str, ...] = ()
    """Parameters whose lists are sent as `a,b`; others are repeated."""
    styles: dict[str, ParameterStyle] = {}
    """How lists and objects in other parameters of the query or form are written."""
    body: Any = Field(default=None, alias="json")
    """JSON with placeholders; a text that is one placeholder becomes the value."""
    form: dict[str, str] | None = None
    """Fields of a form, with placeholders, instead of JSON."""
    multipart: dict[str, MultipartPart] | None = None
    """Fields and files of a form of the type multipart/form-data."""
    pick: str = ""
    """JSON pointer to the part of the response that is the result."""
    max_bytes: int = Field(default=1 << 20, ge=1, le=MAX_BYTES)
    hosts: tuple[str, ...] = ()
    credential: int | None = None

    @field_validator("url")
    @classmethod
    def check_url(cls, url: str) -> str:
        """Refuse a URL without a server, or with a server from an argument."""
        url = url.strip()
        if "{" in url.partition("://")[2].partition("/")[0].partition("?")[0]:
            raise ValueError(_("the host cannot come from an argument"))
        if flaw := find_address_flaw(url):
            raise ValueError(flaw)
        if has_userinfo(url):
            raise ValueError(_("store a password in a credential"))
        return url

    @field_validator("headers")
    @classmethod
    def check_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        """Refuse invalid names, and headers that belong to the connection."""
        for name, value in headers.items():
            if not HEADER_NAME.fullmatch(name) or is_reserved_header(name):
                raise ValueError(
                    _("the header “%(name)s” cannot be set") % {"name": name}
                )
            if not is_header_value(value):
                raise ValueError(
                    _("the value of the header “%(name)s” cannot be sent")
                    % {"name": name}
                )
        return headers

    @field_validator("pick")
    @classmethod
    def check_pointer(cls, pick: str) -> str:
        """Refuse what is not a JSON pointer."""
        try:
            parse_json_pointer(pick)
        except ToolFailed as error:
            raise ValueError(str(error).rstrip(".")) from None
        return pick

    @model_validator(mode="after")
    def check_body(self) -> "HttpConfig":
        """Refuse two bodies, and one if none is sent."""
        bodies = [
            one for one in (self.body, self.form, self.multipart) if one is not None
        ]
        if len(bodies) > 1:
            raise ValueError(_("a request has one body: JSON, a form or multipart"))
        if bodies and self.method in ("GET", "HEAD"):
            raise ValueError(_("%(method)s sends no body") % {"method": self.method})
        return self

    @model_validator(mode="after")
    def check_styles(self) -> "HttpConfig":
        """Refuse a name with two styles."""
        if both := sorted(set(self.joined) & set(self.styles)):
            raise ValueError(
                _("“%(name)s” has two styles; remove one") % {"name": both[0]}
            )
        return self

    @property
    def placeholders(self) -> set[str]:
        shape = self.model_dump(
            include={"url", "headers", "query", "body", "form", "multipart"}
        )
        return set(PLACEHOLDER.findall(json.dumps(shape, ensure_ascii=False)))

    @property
    def written_styles(self) -> dict[str, str]:
        """The style of each parameter that has one, for `write_parameter`."""
        return {**dict.fromkeys(self.joined, "form"), **self.styles}


def is_header_value(value: str) -> bool:
    return value.isascii() and (value.isprintable() or value == "")
