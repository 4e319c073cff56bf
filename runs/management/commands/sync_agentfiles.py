"""`sync_agentfiles FOLDER|URL [--apply]`: show what files would change, or do it."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.management.users import get_active_user, get_first_superuser
from runs.services.agentfile.git_source import (
    GitFailed,
    is_git_url,
    open_git_branch,
)
from runs.services.agentfile.sync import (
    NoAgentFiles,
    SyncResult,
    sync_agentfiles,
)
from runs.services.agentfile.text import AgentFileRefused


class Command(BaseCommand):
    """Synchronize with a folder or a branch, all or nothing."""

    help = (
        "Show how the agent files of a folder or a git branch differ from this site; "
        "with --apply, create, update and publish what they define."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("source", help="A folder, or the URL of a git repository.")
        parser.add_argument(
            "--branch", default="", help="Of the repository (default: its own default)."
        )
        parser.add_argument(
            "--path", default=".", help="Folder within the source (default: all of it)."
        )
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
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            "--apply", action="store_true", help="Make the changes of the plan."
        )
        group.add_argument(
            "--check",
            action="store_true",
            help="Fail if this site differs from the files.",
        )

    def handle(self, *_: Any, source: str, owner: str | None, **options: Any) -> None:
        person = get_first_superuser() if owner is None else get_active_user(owner)
        with ExitStack() as stack:
            try:
                root = (
                    stack.enter_context(open_git_branch(source, options["branch"]))
                    if is_git_url(source)
                    else Path(source)
                )
                found = sync_agentfiles(
                    find_folder(root, options["path"]),
                    person,
                    draft=options["draft"],
                    dry_run=not options["apply"],
                )
            except AgentFileRefused as error:
                raise CommandError(f"Nothing was changed.\n{error}") from None
            except (GitFailed, NoAgentFiles) as error:
                raise CommandError(str(error)) from None
        self.print_result(found, is_plan=not options["apply"])
        if options["check"] and has_changes(found):
            raise CommandError("This site differs from the agent files.")

    def print_result(self, found: SyncResult, *, is_plan: bool) -> None:
        """Print each change, with the fields that differ."""
        self.stdout.write(f"Agent files: {', '.join(found.files)}")
        done = found.done
        for verb, names in (
            ("create", done.created),
            ("update", done.updated),
            ("publish", done.published),
        ):
            message = f"would {verb}" if is_plan else f"{verb.rstrip('e')}ed"
            for name in names:
                fields = ", ".join(done.changed_fields.get(name, ()))
                differs = f" ({fields})" if verb == "update" and fields else ""
                self.stdout.write(f"{message} {name}{differs}")
        for slug in found.only_here:
            self.stdout.write(f"only here: agent {slug}")
        for sentence in done.missing:
            self.stderr.write(f"Warning: {sentence}.")
        if not has_changes(found):
            self.stdout.write("No changes.")
        elif is_plan:
            self.stdout.write("Nothing was changed. Add --apply to make these changes.")


def has_changes(found: SyncResult) -> bool:
    done = found.done
    return bool(done.created or done.updated or done.published)


def find_folder(root: Path, path: str) -> Path:
    """Return a folder within the source; raise `CommandError` if there is none."""
    folder = root / path
    if not folder.is_dir() or not folder.resolve().is_relative_to(root.resolve()):
        raise CommandError(f"There is no folder {path!r} in the source.")
    return folder
