"""Run an experiment again, with what its dataset and its evaluators are now."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from runs.models import (
    Agent,
    Dataset,
    Evaluator,
    EvaluatorRevision,
    Experiment,
    ExperimentCandidate,
)
from runs.services.errors import VersionNotFound
from runs.services.experiments.changes import CandidateChanges
from runs.services.experiments.create import (
    CandidateChoice,
    ExperimentPlan,
    ExperimentRefused,
    create_experiment,
)

DRAFT = "draft"
"""The candidate that is an agent's draft."""


class ExperimentNotFound(ExperimentRefused):
    """There is no experiment with that name or number, or not of that owner."""

    def __init__(self, name: str, owner: str = "") -> None:
        values = {"name": name, "owner": owner}
        super().__init__(
            _('%(owner)s has no experiment "%(name)s". Enter its name or its number.')
            % values
            if owner
            else _('Experiment "%(name)s" not found. Enter its name or its number.')
            % values
        )


class ExperimentNameShared(ExperimentRefused):
    """Experiments of several owners have that name."""

    def __init__(self, name: str, owners: Sequence[str]) -> None:
        super().__init__(
            _(
                'Several users have an experiment "%(name)s": %(owners)s. Add --owner '
                "USERNAME, or enter the number of the experiment."
            )
            % {"name": name, "owners": ", ".join(owners)}
        )


def find_experiment(name: str, *, owner: str = "") -> Experiment:
    """Return the experiment with this number, or the newest one with this name.

    `owner` is a user name; without it, a name that several owners use is refused.
    """
    rows = Experiment.objects.select_related("dataset", "owner")
    if owner:
        rows = rows.filter(owner__username=owner)
    if name.isascii() and name.isdecimal() and len(name) <= 18:
        numbered = rows.filter(pk=int(name)).first()
        if numbered is not None:
            return numbered
    named = rows.filter(name=name, bisection=None)
    owners = named.order_by("owner__username").values_list("owner__username", flat=True)
    if len(several := list(owners.distinct())) > 1:
        raise ExperimentNameShared(name, several)
    found = named.order_by("-pk").first()
    if found is None:
        raise ExperimentNotFound(name, owner)
    return found


def repeat_experiment(
    experiment: Experiment, *, by: User, candidate: str = ""
) -> Experiment:
    """Create an experiment like `experiment` that runs now.

    `candidate` is `draft` or the number of a version: it is compared with the newest
    published version. Without it, the candidates are those of `experiment`. Raises
    what `create_experiment` raises, and `VersionNotFound`.
    """
    if experiment.is_bisection:
        raise ExperimentRefused(
            _(
                "Experiment %(number)d searches for a failing version. Enter one that "
                "runs a whole dataset."
            )
            % {"number": experiment.pk}
        )
    former = list(experiment.candidates.select_related("agent", "version__spec"))
    choices = (
        list_compared_candidates(former[0].agent, candidate)
        if candidate
        else [rebuild_choice(one) for one in former]
    )
    revisions = experiment.evaluators.select_related("evaluator")
    return create_experiment(
        Dataset.objects.get(pk=experiment.dataset_id),
        choices,
        list_newest_revisions([one.evaluator for one in revisions]),
        by=by,
        plan=ExperimentPlan(
            tool_mode=experiment.tool_mode,
            repetitions=experiment.repetitions,
            concurrency=experiment.concurrency,
            budget=experiment.budget,
        ),
        name=experiment.name,
    )


def list_newest_revisions(evaluators: Sequence[Evaluator]) -> list[EvaluatorRevision]:
    return [one.revisions.get(number=one.revision) for one in evaluators]


def list_compared_candidates(agent: Agent, candidate: str) -> list[CandidateChoice]:
    """Return the newest version as the baseline, if it is another one, and `candidate`.

    Raises `ExperimentRefused` or `VersionNotFound`.
    """
    newest = agent.versions.select_related("spec").first()
    if candidate == DRAFT:
        version = None
    elif candidate.isascii() and candidate.isdecimal() and len(candidate) <= 9:
        version = agent.versions.filter(number=int(candidate)).first()
        if version is None:
            raise VersionNotFound(agent.name, int(candidate))
    else:
        raise ExperimentRefused(
            _("A candidate is draft or the number of a version, not %(text)r.")
            % {"text": candidate}
        )
    choice = CandidateChoice(agent, version)
    if newest is None or newest == version:
        return [choice]
    return [CandidateChoice(agent, newest), choice]


def rebuild_choice(candidate: ExperimentCandidate) -> CandidateChoice:
    """Return what the candidate was created from; a draft as it is now."""
    changes = CandidateChanges.model_validate(candidate.changes)
    return CandidateChoice(candidate.agent, candidate.version, changes)
