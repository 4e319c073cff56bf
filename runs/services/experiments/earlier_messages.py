"""The earlier messages of a conversation, which are part of an example from a run.

They are those of the source run. Without them, the example would ask something else, so
it is refused.
"""

from django.contrib.auth.models import User

from runs.models import Example, Run
from runs.services.errors import MessagesMissing
from runs.services.tool_modes.select_mode import is_visible
from tools.text.translatable import translatable


def find_messages_run(example: Example, *, by: User) -> Run | None:
    """Return the run whose earlier messages a run of the example gets, if it has some.

    Raises `MessagesMissing`.
    """
    run = example.source_run
    if run is None:
        if example.source == Example.Source.CONVERSATION:
            raise MessagesMissing(
                translatable(
                    "The source run of the example was deleted, and with it the "
                    "earlier messages of its conversation. Without them the example "
                    "would be a different question."
                )
            )
        return None
    if not run.has_earlier_messages:
        return None
    if not is_visible(run, by):
        raise MessagesMissing(
            translatable(
                "The example continues a conversation. You cannot see run %(run)s, "
                "from which it was created, so its earlier messages cannot be sent.",
                run=run.pk,
            )
        )
    if Run.objects.filter(pk__in=run.turn_ids).count() < len(set(run.turn_ids)):
        raise MessagesMissing(
            translatable(
                "The example continues the conversation of run %(run)s, of which an "
                "earlier run was deleted. Without its messages the example would be a "
                "different question.",
                run=run.pk,
            )
        )
    return run
