"""Why a service refuses.

RunsError
  InputsRefused        an input is missing, unknown or not a text
  SpecRefused          the agent cannot run as it is
  NotAllowed           the person may not do this
  CannotShare          the run has too many links, or the time makes no sense
  CannotFork           the run has no such step, or an edit does not fit it
  CannotResume         the run is not stopped or failed, or a limit is too low
  AlreadyDecided       another person, or another click, was first
  NotShown             the answer is to another call than the one that waits
  ArgumentsRefused     arguments a person has changed do not fit the tool
  AgentCircle          an agent would come to call itself
  DraftMoved           the draft was saved elsewhere since it was opened
  ScheduleMoved        the schedule was changed elsewhere since it was opened
  NameTaken            the owner has another schedule of that name
  CronRefused          times of a schedule that cannot be, one class for each reason
    NotFiveFields      fewer or more than five fields
    BadCronField       a field says what it cannot
    CronTooLong        more than anybody means
    NeverDue           a day that no month has
  NotPublished         a schedule runs published versions only
  OwnerAway            the account of a schedule's owner is switched off
  StillAtWork          an earlier run of the schedule is not over
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from runs.models import Decision


class FieldError(NamedTuple):
    """What is wrong with one field."""

    field: str
    message: str


class RunsError(Exception):
    """A service refused; the message is for the person who asked."""


class InputsRefused(RunsError):
    """Inputs of a run do not fit the agent's prompt."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = list(errors)
        super().__init__(" ".join(error.message for error in self.errors))


class SpecRefused(RunsError):
    """An agent, as it is, would fail before its first model call."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = list(errors)
        super().__init__(" ".join(error.message for error in self.errors))


class NotAllowed(RunsError):
    """The person may not do this."""


class CannotResume(RunsError):
    """A run cannot be continued this way."""


class CannotShare(RunsError):
    """A link to a run cannot be made."""


class CannotFork(RunsError):
    """A run cannot be forked there, or not like this."""


class AlreadyDecided(RunsError):
    """The question had an answer already; `decision` is as it is now."""

    def __init__(self, decision: "Decision") -> None:
        decision.refresh_from_db()
        self.decision = decision
        who = (
            decision.by.get_full_name() or decision.by.get_username()
            if decision.by
            else ""
        )
        word = decision.get_answer_display()
        if decision.answer == "withdrawn":
            told = "The run has ended, so nothing needs an answer here any more."
        elif not who:
            told = f"This was answered before: {word}."
        else:
            told = f"{who} has answered this before: {word}."
        super().__init__(told)


class NotShown(RunsError):
    """What a person was shown is not what waits for an answer."""

    def __init__(self) -> None:
        super().__init__(
            "The call that waits is not the one you were shown. Nothing was answered; "
            "look at it again."
        )


class ArgumentsRefused(RunsError):
    """Arguments that a person has changed do not fit the tool's schema."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = list(errors)
        super().__init__(
            " ".join(
                f"{error.field}: {error.message}" if error.field else error.message
                for error in self.errors
            )
        )


class AgentCircle(RunsError):
    """Agents would call one another without end."""

    def __init__(self, names: Iterable[str]) -> None:
        way = " → ".join(names)
        super().__init__(
            f"An agent cannot call itself, and it would: {way}. Take one of them out."
        )


class DraftMoved(RunsError):
    """A later draft would be overwritten by one that does not know it."""

    def __init__(self) -> None:
        super().__init__(
            "This draft was saved somewhere else after this page was opened: in "
            "another tab, or by somebody else. What is typed here is not saved."
        )


class ScheduleMoved(RunsError):
    """Later changes of a schedule would be overwritten."""

    def __init__(self) -> None:
        super().__init__(
            "This schedule was changed somewhere else after this page was opened: in "
            "another tab, or by somebody else. What is typed here is not saved."
        )


class NameTaken(RunsError):
    """The owner has another schedule of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"There is a schedule {name!r} of the same owner already. Give this one "
            "another name."
        )


class CronRefused(RunsError):
    """Times of a schedule that cannot be."""


class NotFiveFields(CronRefused):
    """An expression has another number of fields."""

    def __init__(self, number: int) -> None:
        fields = "minute, hour, day of the month, month and day of the week"
        more = (
            " There are no seconds: once a minute is the most."
            if number == 6
            else " Write for example 0 9 * * 1-5."
        )
        super().__init__(f"Write five fields: {fields}. These are {number}.{more}")


class BadCronField(CronRefused):
    """One of the five fields says what it cannot."""

    def __init__(self, name: str, written: str, allowed: str) -> None:
        shown = written if len(written) <= 20 else f"{written[:20]}…"
        super().__init__(
            f"The {name} cannot be {shown!r}. Write {allowed}; lists like 1,2, ranges "
            "like 1-5, steps like */10, or * for every one."
        )


class CronTooLong(CronRefused):
    """An expression that nobody could read."""

    def __init__(self, most: int) -> None:
        super().__init__(f"The five fields together have at most {most} characters.")


class NeverDue(CronRefused):
    """The fields are right one by one, but no day fits all of them."""

    def __init__(self) -> None:
        super().__init__(
            "No day fits this, so it would never start. Choose a day of the month "
            "that one of the months has."
        )


class NotPublished(RunsError):
    """A schedule runs published versions only."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The agent {name!r} has no published version. Publish one on its page: "
            "a schedule runs what is published, not the draft."
        )


class OwnerAway(RunsError):
    """Nothing is started for a person whose account is switched off."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The account of {name}, who owns the schedule, is switched off. An "
            "administrator can switch it on."
        )


class StillAtWork(RunsError):
    """Another run was not asked for while an earlier one is not over."""

    def __init__(self, run_id: int) -> None:
        super().__init__(
            f"Run {run_id} of this schedule is still at work, or waits for a person. "
            "Nothing was started beside it."
        )
