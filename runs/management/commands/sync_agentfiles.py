"""`sync_agentfiles FOLDER|URL [--apply]`: show what files would change, or do it."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from runs.management.agentfiles import add_storing_options, write_changes, write_missing
from runs.management.site_command import SiteCommand
from runs.management.users import get_owner
from runs.services.agentfile.git_source import GitFailed, is_git_url, open_git_branch
from runs.services.agentfile.sync import NoAgentFiles, SyncResult, sync_agentfiles
from runs.services.agentfile.text import AgentFileRefused


class Command(SiteCommand):
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
        add_storing_options(parser)
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
        person = get_owner(owner)
        with ExitStack() as stack:
            try:
                root = (
                    stack.enter_context(open_git_branch(source, options["branch"]))
                    if is_git_url(source)
                    else find_root(source)
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
        if options["check"] and found.done.has_changes:
            raise CommandError("This site differs from the agent files.")

    def print_result(self, found: SyncResult, *, is_plan: bool) -> None:
        """Print each change, with the fields that differ."""
        self.stdout.write(f"Agent files: {', '.join(found.files)}")
        write_changes(self, found.done, is_plan=is_plan, with_fields=True)
        for slug in found.only_here:
            self.stdout.write(f"only here: agent {slug}")
        write_missing(self, found.done)
        if not found.done.has_changes:
            self.stdout.write("No changes.")
        elif is_plan:
            self.stdout.write("Nothing was changed. Add --apply to make these changes.")


def find_root(source: str) -> Path:
    """Return a source that is not a URL; raise `CommandError` if it is not a folder."""
    root = Path(source)
    if not root.is_dir():
        raise CommandError(
            f"{source!r} is neither a folder nor the URL of a git repository, which "
            "begins with https://, http://, ssh://, file:// or USER@HOST:."
        )
    return root


def find_folder(root: Path, path: str) -> Path:
    """Return a folder within the source; raise `CommandError` if there is none."""
    folder = root / path
    if not folder.is_dir() or not folder.resolve().is_relative_to(root.resolve()):
        raise CommandError(f"There is no folder {path!r} in the source.")
    return folder
