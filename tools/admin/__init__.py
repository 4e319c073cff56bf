"""The Django admin of tools, credentials, servers and people."""

from tools.admin import tools

__all__ = ["tools"]
