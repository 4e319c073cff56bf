"""What the commands that store agent files share."""

from django.core.management.base import BaseCommand, CommandParser

from runs.services.agentfile.load import ImportResult


def add_storing_options(parser: CommandParser) -> None:
    """Add `--owner` and `--draft`."""
    parser.add_argument(
        "--owner",
        metavar="USERNAME",
        help="Owner of what is imported (default: the first administrator).",
    )
    parser.add_argument(
        "--draft",
        action="store_true",
        help="Import agents without publishing them.",
    )


def write_changes(
    command: BaseCommand, done: ImportResult, *, is_plan: bool, with_fields: bool
) -> None:
    """Write a line for each change; `with_fields` names what differs in an update."""
    for verb, names in (
        ("create", done.created),
        ("update", done.updated),
        ("publish", done.published),
    ):
        message = f"would {verb}" if is_plan else f"{verb.rstrip('e')}ed"
        for name in names:
            fields = ", ".join(done.changed_fields.get(name, ()))
            differs = with_fields and verb == "update" and fields
            command.stdout.write(f"{message} {name}{f' ({fields})' if differs else ''}")


def write_missing(command: BaseCommand, done: ImportResult) -> None:
    """Write a warning for each thing that a file names and the site does not have."""
    for sentence in done.missing:
        command.stderr.write(f"Warning: {sentence}.")
