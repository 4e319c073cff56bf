"""Datasets and their examples in the API: create, share, edit, save versions."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from pydantic import Field

from runs.api.bodies import StrictBody
from runs.api.definitions.common import (
    Definition,
    DefinitionShape,
    Name,
    SharingBody,
    build_common_routes,
    definition_json,
    save_groups,
    share_definition,
)
from runs.api.dispatch import json_response, no_content
from runs.api.problems import ApiProblem, field_problem, not_found
from runs.api.queries import MAX_PAGE, Id, Page, PageQuery, paginate_by_id
from runs.api.route import Route
from runs.api.shapes import Shape
from runs.models import Dataset, DatasetVersion, Example, Run
from runs.serializers import Json, format_timestamp
from runs.services.datasets.content import (
    DEFAULT_INPUT,
    MAX_CALLS,
    MAX_CELL_CHARS,
    MAX_INPUTS,
    MAX_NAME_CHARS,
    MAX_TAG_CHARS,
    MAX_TAGS,
    ExampleContent,
    StoredCall,
    clean_cell,
    find_name_problems,
)
from runs.services.datasets.duplicate import duplicate_dataset
from runs.services.datasets.edit import (
    add_examples,
    edit_example,
    remove_example,
    set_input_names,
)
from runs.services.datasets.save_version import save_dataset_version
from runs.services.datasets.working_copy import count_unsaved_changes, select_examples
from runs.services.errors import (
    DatasetFull,
    ExampleRefused,
    FieldError,
    VersionRefused,
)

MAX_ADDED = 1_000
"""Examples of one request."""

CellText = Annotated[str, Field(max_length=MAX_CELL_CHARS)]
ShortName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]
Tag = Annotated[str, Field(min_length=1, max_length=MAX_TAG_CHARS)]


class DatasetFields(SharingBody):
    """What can be changed of a dataset; what is left out stays."""

    description: Annotated[str, Field(max_length=10_000)] = ""
    inputs: Annotated[list[ShortName], Field(max_length=MAX_INPUTS)] = [DEFAULT_INPUT]
    """The variables of its examples; those that examples use stay."""


class NewDatasetBody(DatasetFields):
    """The body of `POST /api/v1/datasets`."""

    name: Name


class DatasetBody(DatasetFields):
    """The body of `PATCH /api/v1/datasets/{id}`."""

    name: Name = ""


class ExpectedCallBody(StrictBody):
    """A call that is expected."""

    tool: ShortName
    tool_input: dict[str, Any] | None = None
    """Null for any arguments."""


class ExampleBody(StrictBody):
    """Inputs, and what is expected."""

    inputs: Annotated[dict[ShortName, CellText], Field(max_length=MAX_INPUTS)]
    expected_answer: CellText = ""
    expected_calls: Annotated[list[ExpectedCallBody], Field(max_length=MAX_CALLS)] = []
    tags: Annotated[list[Tag], Field(max_length=MAX_TAGS)] = []

    @property
    def content(self) -> ExampleContent:
        return ExampleContent(
            inputs={
                name: clean_cell(text)
                for name, text in self.inputs.items()
                if text.strip()
            },
            expected_answer=clean_cell(self.expected_answer),
            expected_calls=tuple(
                StoredCall(tool=call.tool, tool_input=call.tool_input)
                for call in self.expected_calls
            ),
            tags=tuple(dict.fromkeys(self.tags)),
        )


class NewExampleBody(ExampleBody):
    """Inputs, and what is expected; perhaps with the run that it comes from."""

    source_run: Id | None = None
    """A run that you may see; replays answer tool calls from it."""


class ExamplesBody(StrictBody):
    """New examples, all or none."""

    examples: Annotated[list[NewExampleBody], Field(min_length=1, max_length=MAX_ADDED)]


class SaveVersionBody(StrictBody):
    """What the client has seen."""

    seen: Annotated[int, Field(ge=0)]
    """The newest version when it read the examples; 0 before the first."""


class ExamplesQuery(PageQuery):
    """Which examples, and which part of the list."""

    version: Id | None = None
    """A saved version; by default the examples with unsaved changes."""


class ExampleShape(Shape):
    """Inputs, and what is expected."""

    id: int
    number: int
    """The same in all versions."""
    change: Literal["", "added", "edited", "removed"]
    """What the next version changes; empty for a saved example."""
    inputs: dict[str, str]
    expected_answer: str
    expected_calls: list[dict[str, Any]]
    tags: list[str]
    source_run: int | None


class DatasetShape(DefinitionShape):
    """A set of examples; `version` is the newest saved one, 0 before the first."""

    description: str
    version: int
    inputs: list[str]
    unsaved_changes: int


class DatasetVersionShape(Shape):
    """A saved version, and how it differs from the one before."""

    number: int
    examples: int
    added: int
    edited: int
    removed: int
    by: str | None
    at: str | None


def dataset_json(row: Dataset) -> Json:
    return {
        **definition_json(row),
        "description": row.description,
        "version": row.version,
        "inputs": row.input_names,
        "unsaved_changes": count_unsaved_changes(row).total,
    }


def example_json(row: Example) -> Json:
    return {
        "id": row.pk,
        "number": row.number,
        "change": row.change,
        "inputs": row.inputs,
        "expected_answer": row.expected_answer,
        "expected_calls": row.expected_calls,
        "tags": row.tags,
        "source_run": row.source_run_id,
    }


def dataset_version_json(row: DatasetVersion) -> Json:
    return {
        "number": row.number,
        "examples": row.example_count,
        "added": row.added,
        "edited": row.edited,
        "removed": row.removed,
        "by": row.by.get_username() if row.by else None,
        "at": format_timestamp(row.at),
    }


DATASETS = Definition(
    "dataset",
    Dataset,
    dataset_json,
    lambda row, _user: dataset_json(row),
    duplicate=duplicate_dataset,
)


def create_dataset(
    request: HttpRequest, user: User, body: NewDatasetBody
) -> HttpResponse:
    """Create a dataset without examples."""
    dataset = Dataset(owner=user, input_names=[DEFAULT_INPUT])
    with transaction.atomic():
        store_dataset(dataset, body)
    return DATASETS.respond(user, dataset.pk, 201)


def change_dataset(
    request: HttpRequest, user: User, pk: str, body: DatasetBody
) -> HttpResponse:
    """Change a dataset; its examples and versions stay."""
    with DATASETS.edit(request, user, pk) as dataset:
        store_dataset(dataset, body)
    return DATASETS.respond(user, dataset.pk)


def store_dataset(dataset: Dataset, body: NewDatasetBody | DatasetBody) -> None:
    """Save the dataset in the caller's transaction; raise a 422."""
    sent = body.model_fields_set
    for name in sent & {"name", "description"}:
        setattr(dataset, name, getattr(body, name))
    share_definition(dataset, body)
    if "inputs" in sent and dataset.pk:
        set_input_names(dataset, body.inputs or [DEFAULT_INPUT])
    elif "inputs" in sent:
        dataset.input_names = list(dict.fromkeys(body.inputs)) or [DEFAULT_INPUT]
    dataset.save()
    save_groups(dataset, body)


def list_examples(
    request: HttpRequest, user: User, pk: str, query: ExamplesQuery
) -> HttpResponse:
    """The examples of a version, or with the changes that are not saved."""
    dataset = DATASETS.find(user, pk)
    if query.version is not None and query.version > dataset.version:
        raise field_problem("version", f"There is no version {query.version}.")
    rows = select_examples(dataset, query.version)
    return json_response(paginate_by_id(rows, query, example_json, oldest_first=True))


def add_examples_to_dataset(
    request: HttpRequest, user: User, pk: str, body: ExamplesBody
) -> HttpResponse:
    """Add examples; they belong to the next version that is saved."""
    dataset = DATASETS.require_editable(user, pk)
    runs = find_source_runs(user, body.examples)
    contents = [one.content for one in body.examples]
    check_names(contents, place="examples.{}.")
    try:
        rows = add_examples(dataset, contents, by=user, runs=runs)
    except ExampleRefused as refused:
        raise ApiProblem(422, refused.errors) from None
    except DatasetFull as refused:
        raise field_problem("examples", str(refused)) from None
    shape = {"data": [example_json(row) for row in rows], "next": None}
    place = urlencode({"cursor": rows[0].pk - 1, "limit": min(len(rows), MAX_PAGE)})
    location = f"{reverse('api-dataset-examples', args=[pk])}?{place}"
    return json_response(shape, 201, Location=location)


def find_source_runs(
    user: User, examples: Sequence[NewExampleBody]
) -> list[Run | None]:
    """Return the source run of each example; a problem names those not found."""
    asked = [one.source_run for one in examples]
    found = Run.objects.visible_to(user).in_bulk([pk for pk in asked if pk])
    missing = [
        FieldError(f"examples.{n}.source_run", f"Run {pk} was not found.")
        for n, pk in enumerate(asked)
        if pk is not None and pk not in found
    ]
    if missing:
        raise ApiProblem(422, missing)
    return [None if pk is None else found[pk] for pk in asked]


def change_example(
    request: HttpRequest, user: User, pk: str, number: str, body: ExampleBody
) -> HttpResponse:
    """Replace an example in the next version."""
    dataset = DATASETS.require_editable(user, pk)
    check_names([body.content])
    try:
        row = edit_example(dataset, int(number), body.content, by=user)
    except Example.DoesNotExist:
        raise not_found("Example", number) from None
    except ExampleRefused as refused:
        raise ApiProblem(422, refused.errors) from None
    return json_response(example_json(row))


def check_names(contents: Sequence[ExampleContent], *, place: str = "") -> None:
    """Raise a 422 for tags and tools that an export could not hold."""
    errors = [
        one._replace(field=f"{place.format(n)}{one.field}")
        for n, content in enumerate(contents)
        for one in find_name_problems(content)
    ]
    if errors:
        raise ApiProblem(422, errors)


def delete_example(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """Leave an example out of the next version."""
    dataset = DATASETS.require_editable(user, pk)
    try:
        remove_example(dataset, int(number), by=user)
    except Example.DoesNotExist:
        raise not_found("Example", number) from None
    return no_content()


def list_dataset_versions(
    request: HttpRequest, user: User, pk: str, query: PageQuery
) -> HttpResponse:
    """The saved versions, the newest first."""
    rows = DATASETS.find(user, pk).versions.select_related("by")
    return json_response(paginate_by_id(rows, query, dataset_version_json))


def save_dataset_changes(
    request: HttpRequest, user: User, pk: str, body: SaveVersionBody
) -> HttpResponse:
    """Save the changes as the next version; 409 if there is a newer one than seen."""
    dataset = DATASETS.require_editable(user, pk)
    try:
        version = save_dataset_version(dataset, seen=body.seen, by=user)
    except VersionRefused as refused:
        raise field_problem("seen", str(refused), 409) from None
    location = reverse("api-dataset-version", args=[pk, version.number])
    return json_response(dataset_version_json(version), 201, Location=location)


def read_dataset_version(
    request: HttpRequest, user: User, pk: str, number: str
) -> HttpResponse:
    """One saved version."""
    rows = DATASETS.find(user, pk).versions.select_related("by")
    found = rows.filter(number=int(number)).first()
    if found is None:
        raise not_found("Version", number)
    return json_response(dataset_version_json(found))


ROUTES = [
    *build_common_routes(DATASETS, DatasetShape, DatasetShape),
    Route(
        *("POST", "datasets", create_dataset, "Create a dataset", DatasetShape),
        scope="build",
        body=NewDatasetBody,
        status=201,
        is_idempotent=True,
        has_etag=True,
    ),
    Route(
        *("PATCH", "datasets/{id}", change_dataset, "Change a dataset", DatasetShape),
        scope="build",
        body=DatasetBody,
        has_etag=True,
    ),
    Route(
        "GET",
        "datasets/{id}/examples",
        list_examples,
        "List examples",
        Page[ExampleShape],
        query=ExamplesQuery,
    ),
    Route(
        "POST",
        "datasets/{id}/examples",
        add_examples_to_dataset,
        "Add examples",
        Page[ExampleShape],
        scope="build",
        body=ExamplesBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "PUT",
        "datasets/{id}/examples/{number}",
        change_example,
        "Replace an example",
        ExampleShape,
        scope="build",
        body=ExampleBody,
    ),
    Route(
        "DELETE",
        "datasets/{id}/examples/{number}",
        delete_example,
        "Remove an example",
        scope="build",
        status=204,
    ),
    Route(
        "GET",
        "datasets/{id}/versions",
        list_dataset_versions,
        "List versions of a dataset",
        Page[DatasetVersionShape],
        query=PageQuery,
    ),
    Route(
        "POST",
        "datasets/{id}/versions",
        save_dataset_changes,
        "Save a version of a dataset",
        DatasetVersionShape,
        scope="build",
        body=SaveVersionBody,
        status=201,
        is_idempotent=True,
    ),
    Route(
        "GET",
        "datasets/{id}/versions/{number}",
        read_dataset_version,
        "Read a version of a dataset",
        DatasetVersionShape,
    ),
]
