"""Why a service refuses.

RunsError
  FieldsRefused        fields are not valid
    InputsRefused      an input is missing, unknown or not a text
    SpecRefused        the agent cannot run as it is
    ExampleRefused     a field of an example is empty, too long or not valid
      ExampleConflict  a field was changed elsewhere since it was opened
  NotAllowed           the user may not do this
    RecordingNotFound  the run to replay does not exist for the user
    AnswerUnfinished   the previous message of the conversation has no answer yet
  MessagesMissing      those of an example were deleted, or belong to others
  TooManyRuns          the user has as many unfinished runs as are allowed
  TooManyTokens        the user has as many API tokens as are allowed
  BackupError          a backup cannot be created or restored
  CannotTransfer       the receiver cannot own these rows
  CannotSignIn         a service account gets no login link
  CannotShare          the run has too many links, or the lifetime is out of range
  CannotFork           the run has no such step, or an edit does not fit it
  CannotExportScenario the run would not end the same way as a scenario
  CannotResume         a limit is too low or not valid
    NotResumable       the run did not fail or reach a limit, or has a parent
  AlreadyDecided       another person, or another click, was first
  ShownCallChanged     the answer is to another call than the pending one
  ArgumentsRefused     edited arguments do not fit the tool
  AgentCycle           an agent would call itself
  DraftConflict        the draft was saved elsewhere since it was opened
  DraftNotShown        a test would run a later draft than the page shows
  ScheduleConflict     the schedule was changed elsewhere since it was opened
  ScheduleNameInUse    the owner has another schedule with that name
  CronRefused          a cron expression is not valid, one class for each reason
    NotFiveFields      fewer or more than five fields
    BadCronField       a field has a value that is not allowed
    CronTooLong        the expression is too long
    NeverDue           a day that no month has
  VersionNotFound      the agent has no published version with that number
  VersionConflict      another version was published since the page was loaded
  VersionUnchanged     an older version has the same as the newest one
  VersionUnreadable    a version was stored by another release and cannot run
  NotPublished         a schedule runs published versions only
  OwnerDisabled        the account of a schedule's owner is disabled
  PreviousRunActive    an earlier run of the schedule has not ended
  DatasetFileRefused   a file cannot be read as a table of examples
  DatasetFull          the dataset would have too many examples
  VersionRefused       a version of a dataset cannot be saved
  GateNotMet           the draft has not passed what its agent requires

Messages are for people and are translated when the error is raised. One that may be
stored is written with `translatable`, so that pages translate it again.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tools.accounts.person_name import get_person_name
from tools.text.translatable import join_sentences, localize_text, translatable

if TYPE_CHECKING:
    from runs.models import Decision

MAX_LATER_TEXT = 300
"""Characters of a stored text in a message."""


class FieldError(NamedTuple):
    field: str
    message: str


class RunsError(Exception):
    """A service refused; the message is for the person who asked."""

    def __init__(self, message: str = "") -> None:
        super().__init__(localize_text(message, _))


class FieldsRefused(RunsError):
    """Fields are not valid; `errors` says which, and why."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = [
            error._replace(message=localize_text(error.message, _)) for error in errors
        ]
        super().__init__(join_sentences(error.message for error in self.errors))


class InputsRefused(FieldsRefused):
    """Inputs of a run do not fit the agent's prompt."""


class SpecRefused(FieldsRefused):
    """An agent, as it is, would fail before its first model call."""


class NotAllowed(RunsError):
    """The user may not do this."""


class AnswerUnfinished(NotAllowed):
    """The previous message of the conversation has no complete answer yet."""


class RecordingNotFound(NotAllowed):
    """The run to replay was deleted, or the user may not see it."""

    def __init__(self, number: int) -> None:
        super().__init__(
            translatable(
                "The recording was not found: run %(run)s was deleted, or you cannot "
                "see it.",
                run=number,
            )
        )


class MessagesMissing(RunsError):
    """The example continues a conversation whose messages cannot be read."""


class BackupError(RunsError):
    """A backup cannot be created or restored; the sentence is for an operator."""


class TooManyRuns(RunsError):
    """The user has as many unfinished runs as are allowed."""

    retry_seconds = 10
    """After which some may have ended."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            ngettext(
                "You already have %(count)s unfinished run. Try again after it ends.",
                "You already have %(count)s unfinished runs. Try again after some of "
                "them end.",
                limit,
            )
            % {"count": limit}
        )


class TooManyTokens(RunsError):
    """The user has as many valid API tokens as are allowed."""

    def __init__(self, limit: int) -> None:
        text = _("At most %(count)s tokens per user. Revoke one first.")
        super().__init__(text % {"count": limit})


class CannotResume(RunsError):
    """A run cannot be resumed, or not with these limits."""


class NotResumable(CannotResume):
    """A run is not in a state in which it can be resumed."""


class CannotShare(RunsError):
    """A link to a run cannot be created."""


class CannotFork(RunsError):
    """A run cannot be forked there, or not with these edits."""


class CannotExportScenario(RunsError):
    """A run cannot be exported as a scenario that leads to its end."""


class AlreadyDecided(RunsError):
    """A decision had an answer already; `decision` is as it is now."""

    def __init__(self, decision: "Decision") -> None:
        decision.refresh_from_db()
        self.decision = decision
        words = {
            "answer": decision.get_answer_display(),
            "name": get_person_name(decision.by) if decision.by else "",
        }
        if decision.answer == "withdrawn" and decision.by:
            message = _("%(name)s ended the run, so no decision is needed.") % words
        elif decision.answer == "withdrawn":
            message = _("The run has ended, so no decision is needed.")
        elif decision.by:
            message = _("%(name)s already answered this: %(answer)s.") % words
        else:
            message = _("Already answered: %(answer)s.") % words
        super().__init__(message)


class ShownCallChanged(RunsError):
    """What a person was shown is not the pending call."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "The pending call is no longer the one you were shown. Your answer "
                "was not saved. Review the call again."
            )
        )


class ArgumentsRefused(RunsError):
    """Edited arguments do not fit the tool's schema."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = list(errors)
        super().__init__(
            " ".join(
                f"{error.field}: {error.message}" if error.field else error.message
                for error in self.errors
            )
        )


class AgentCycle(RunsError):
    """Agents would call one another without end."""

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(
            _(
                "An agent cannot call itself, directly or through others: %(path)s. "
                "Remove one of these agents."
            )
            % {"path": " → ".join(names)}
        )


class DraftConflict(RunsError):
    """Saving would overwrite a later draft."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "This draft was saved in another tab or by another user after you "
                "opened this page. Your changes are not saved."
            )
        )


class DraftNotShown(RunsError):
    """A test would run a later draft than the page shows."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "Not started: this draft was saved in another tab or by another user "
                "after you opened this page. Reload the page to test the later draft."
            )
        )


class ScheduleConflict(RunsError):
    """Saving would overwrite later changes of a schedule."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "This schedule was changed in another tab or by another user after "
                "you opened this page. Your changes are not saved."
            )
        )


class ScheduleNameInUse(RunsError):
    """The owner has another schedule with that name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            _('The owner already has a schedule named "%(name)s". Enter another name.')
            % {"name": name}
        )


class CronRefused(RunsError):
    """A cron expression is not valid."""


class NotFiveFields(CronRefused):
    """An expression has another number of fields."""

    def __init__(self, number: int) -> None:
        message = (
            _(
                "Enter five fields, not %(number)s: minute, hour, day of the month, "
                "month and day of the week. Seconds are not supported."
            )
            if number == 6
            else _(
                "Enter five fields, not %(number)s: minute, hour, day of the month, "
                "month and day of the week. Example: 0 9 * * 1-5."
            )
        )
        super().__init__(message % {"number": number})


class BadCronField(CronRefused):
    """A field of an expression has a value that is not allowed."""

    def __init__(self, name: str, written: str, allowed: str) -> None:
        value = written if len(written) <= 20 else f"{written[:20]}…"
        super().__init__(
            _(
                '%(field)s: "%(value)s" is not valid. Enter %(allowed)s, a list like '
                "1,2, a range like 1-5, a step like */10, or * for every value."
            )
            % {"field": name, "value": value, "allowed": allowed}
        )


class CronTooLong(CronRefused):
    def __init__(self, most: int) -> None:
        super().__init__(
            _("Enter at most %(limit)s characters for the five fields.")
            % {"limit": most}
        )


class NeverDue(CronRefused):
    """The fields are valid one by one, but no day fits all of them."""

    def __init__(self) -> None:
        super().__init__(
            _(
                "No date matches this expression, so the schedule would never run. "
                "Choose a day that the selected months have."
            )
        )


class VersionNotFound(RunsError):
    """An agent has no published version with that number."""

    def __init__(self, name: str, number: int) -> None:
        super().__init__(
            _('The agent "%(name)s" has no version %(number)s.')
            % {"name": name, "number": number}
        )


class VersionConflict(RunsError):
    """Another version was published since the page was loaded."""

    def __init__(self, number: int) -> None:
        super().__init__(
            _(
                "Not published: runs use version %(number)d by now. Compare it first, "
                "then publish again."
            )
            % {"number": number}
        )


class VersionUnchanged(RunsError):
    """An older version has the same as the newest one."""

    def __init__(self, number: int, newest: int) -> None:
        text = _("Not published: version %(newest)d is the same as version %(number)d.")
        super().__init__(text % {"number": number, "newest": newest})


class VersionUnreadable(RunsError):
    """A version was stored by another release, in a form that cannot run."""

    def __init__(self, number: int) -> None:
        super().__init__(
            _(
                "Version %(number)d was stored by another release and cannot be "
                "published again. Restore it to the draft and check it."
            )
            % {"number": number}
        )


class NotPublished(RunsError):
    """A schedule runs published versions only."""

    def __init__(self, name: str) -> None:
        super().__init__(
            translatable(
                'The agent "%(name)s" has no published version. Publish one first: '
                "schedules do not run drafts.",
                name=name,
            )
        )


class OwnerDisabled(RunsError):
    """Nothing is started for a user whose account is disabled."""

    def __init__(self, name: str) -> None:
        super().__init__(
            _(
                "The account of %(name)s, who owns the schedule, is disabled. Ask an "
                "administrator to enable it."
            )
            % {"name": name}
        )


class PreviousRunActive(RunsError):
    """No other run is started while an earlier one has not ended."""

    def __init__(self, run_id: int) -> None:
        super().__init__(
            _(
                "Run %(run)s of this schedule has not ended, so no other run was "
                "started."
            )
            % {"run": run_id}
        )


class ExampleRefused(FieldsRefused):
    """Fields of an example are empty, too long or not valid."""


class ExampleConflict(ExampleRefused):
    """Saving would overwrite later changes of an example; nothing was stored.

    `stored` has the later texts by field.
    """

    def __init__(self, stored: Mapping[str, str]) -> None:
        self.stored = dict(stored)
        super().__init__(
            FieldError(field, describe_later_text(text))
            for field, text in stored.items()
        )


def describe_later_text(text: str) -> str:
    """Say what is stored in a field that somebody else has changed."""
    if not text:
        return _(
            "This field was changed in another tab or by another user after you "
            "opened it. It is empty now. Save again to replace that."
        )
    return _(
        "This field was changed in another tab or by another user after you opened "
        "it. It is now: “%(text)s”. Save again to replace that."
    ) % {"text": Truncator(text).chars(MAX_LATER_TEXT)}


class DatasetFileRefused(RunsError):
    """A file cannot be read as a table of examples; nothing was stored."""


class DatasetFull(RunsError):
    """The dataset would have too many examples; nothing was stored."""

    def __init__(self, *, would_be: int, limit: int) -> None:
        super().__init__(
            translatable(
                "The dataset would have %(count)s examples, at most %(limit)s "
                "are allowed. Nothing was added. Use several datasets.",
                count=f"{would_be:,}",
                limit=f"{limit:,}",
            )
        )


class VersionRefused(RunsError):
    """A version of a dataset cannot be saved; its changes stay unsaved."""


class GateNotMet(RunsError):
    """The draft has not passed what its agent requires; a reason overrides it."""


class ScoringInterrupted(Exception):
    """Whoever scores a run here has to stop: another worker scores it, or it ends."""


class ScoringPostponed(ScoringInterrupted):
    """The run is scored later: no request to the judge's provider is allowed yet."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"{seconds:.0f} s")
        self.seconds = seconds
        """Until it is worth trying again."""
