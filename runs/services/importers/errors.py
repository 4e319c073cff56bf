"""Why a file of another product is refused.

RunsError
  ForeignFileRefused   nothing of the file can be imported
"""

from runs.services.errors import RunsError


class ForeignFileRefused(RunsError):
    """A file cannot be read, is not known, or has nothing that can be imported."""
