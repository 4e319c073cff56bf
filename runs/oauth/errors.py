"""Errors in the shape of RFC 6749, which clients read by their code.

OAuthError              a request of a client is refused
"""


class OAuthError(Exception):
    """Raised with a code of RFC 6749, 7591 or 8707 and a sentence for developers."""

    def __init__(self, code: str, description: str) -> None:
        self.code, self.description = code, description
        super().__init__(description)

    @property
    def body(self) -> dict[str, str]:
        return {"error": self.code, "error_description": self.description}
