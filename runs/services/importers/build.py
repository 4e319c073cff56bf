"""A converted file as an agent file: slugs, providers and tools that fit this site."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Model
from django.utils.text import slugify
from django.utils.translation import gettext as _

from runs.llm.presets import ProviderPreset
from runs.models import Agent, PromptTemplate, Provider
from runs.models.agents import INLINE_SLUG
from runs.services.agentfile.checks import find_tool_entry_errors
from runs.services.agentfile.literal_secrets import remove_literal_secrets
from runs.services.agentfile.schema import (
    AgentEntry,
    AgentFile,
    PromptEntry,
    ProviderEntry,
    ToolEntry,
    ToolUseEntry,
)
from runs.services.importers.conversion import (
    Conversion,
    ConvertedAgent,
    ConvertedModel,
    ConvertedTool,
    SkippedPart,
)
from runs.services.importers.errors import ForeignFileRefused
from runs.services.importers.known_providers import find_known_provider
from runs.services.importers.skipped import (
    explain_separate_agents,
    skip_setting,
    skip_tool,
)
from tools.models import Tool
from tools.net.address_flaw import find_address_flaw
from tools.registry import get_registered_functions
from tools.tool_name import MAX_TOOL_NAME_LENGTH, build_function_name

MAX_NAME = 120
MAX_MODEL = 200
MAX_SLUG = 60
PENALTIES = ("frequency_penalty", "presence_penalty")
KINDS_WITH_PENALTIES = ("openai", "gemini", "ollama")


TakenSlug = tuple[type[Model], str]


class ChosenModel(NamedTuple):
    """The provider of an agent, its kind, and the model."""

    provider: str
    kind: str
    model: str


@dataclass
class AgentFileBuilder:
    owner: User
    skipped: list[SkippedPart] = field(default_factory=list)
    providers: dict[str, ProviderEntry] = field(default_factory=dict)
    prompts: list[PromptEntry] = field(default_factory=list)
    tools: dict[str, ToolEntry] = field(default_factory=dict)
    taken: set[TakenSlug] = field(default_factory=set)
    """Slugs that this file uses already, or must not use."""
    reuses_own: bool = True
    """Whether slugs can be those of own rows: repeating an import changes nothing."""
    slugs_of_tools: dict[str, str] = field(default_factory=dict)
    """By the tool itself: agents of one file share their tools."""

    def __post_init__(self) -> None:
        found = list(Provider.objects.usable_by(self.owner).order_by("pk"))
        self.rows = sorted(found, key=lambda row: row.owner_id != self.owner.pk)
        """Providers that the owner can use, the own ones first."""

    def build_file(self, conversion: Conversion) -> AgentFile:
        """Return the agent file; raise `ForeignFileRefused` without a provider."""
        slugs = {
            one.key: self.name_slug(Agent, one.name, "agent")
            for one in conversion.agents
        }
        agents = [self.build_agent(one, slugs) for one in self.drop_cycles(conversion)]
        self.list_separate_agents(conversion)
        for prompt in conversion.prompts:
            entry = PromptEntry(
                slug=self.name_slug(PromptTemplate, prompt.name, "prompt"),
                name=shorten(prompt.name),
                kind="tool-calling",
                messages=prompt.messages,
            )
            self.prompts.append(entry)
        return AgentFile(
            agentfile=1,
            providers=tuple(self.providers.values()),
            prompts=tuple(self.prompts),
            tools=tuple(self.tools.values()),
            agents=tuple(agents),
        )

    def list_separate_agents(self, conversion: Conversion) -> None:
        """List that agents which do not call one another have lost their order."""
        called = {key for one in conversion.agents for key in one.agents}
        apart = [one for one in conversion.agents if one.key not in called]
        reason = explain_separate_agents()
        if len(apart) > 1 and all(one.reason != reason for one in conversion.skipped):
            self.skipped.append(SkippedPart(_("Connections between agents"), reason))

    def drop_cycles(self, conversion: Conversion) -> list[ConvertedAgent]:
        """Return the agents without calls that lead back to their caller."""
        calls = {one.key: list(one.agents) for one in conversion.agents}
        for key, callees in calls.items():
            for callee in list(callees):
                if callee not in calls or callee == key or reaches(calls, callee, key):
                    callees.remove(callee)
                    reason = _(
                        "An agent cannot call itself, directly or through others."
                    )
                    self.skipped.append(
                        skip_setting(f"{key} → {callee}", reason=reason)
                    )
        return [replace(one, agents=tuple(calls[one.key])) for one in conversion.agents]

    def build_agent(self, one: ConvertedAgent, slugs: dict[str, str]) -> AgentEntry:
        slug = slugs[one.key]
        name = shorten(one.name) or slug
        provider, kind, model = self.choose_model(one.model)
        prompt = PromptEntry(
            slug=self.name_slug(PromptTemplate, f"{slug}-instructions", "instructions"),
            name=shorten(name),
            kind="tool-calling",
            messages=one.messages,
        )
        self.prompts.append(prompt)
        return AgentEntry(
            slug=slug,
            name=name,
            description=one.description.strip(),
            kind="tool-calling",
            provider=provider,
            model=model,
            parameters=self.pick_parameters(one.model, kind),
            prompt=prompt.slug,
            tools=(
                *self.build_uses(one),
                *(ToolUseEntry(agent=slugs[key]) for key in one.agents),
            ),
            executor=one.executor,  # type: ignore[arg-type]  # pydantic makes the options
            memory=one.memory,
            suggested_questions=one.suggested_questions,
        )

    def build_uses(self, agent: ConvertedAgent) -> Iterator[ToolUseEntry]:
        """Yield the tools of an agent, each once and with a name of its own."""
        names: set[str] = set()
        for tool in agent.tools:
            name = build_function_name(tool.name)
            slug = None if name in names else self.add_tool(tool)
            if slug is not None:
                names.add(name)
                yield ToolUseEntry(tool=slug)

    def add_tool(self, tool: ConvertedTool) -> str | None:
        """Return the slug of a tool; None if it cannot be a tool here."""
        key = repr(tool)
        if key in self.slugs_of_tools:
            return self.slugs_of_tools[key]
        if tool.kind == "function":
            return self.add_function_tool(tool)
        entry = ToolEntry(
            slug="tool",
            name=tool.name[:MAX_TOOL_NAME_LENGTH],
            kind=tool.kind,
            description=tool.description,
            effect=tool.effect,
            args_schema=tool.args_schema,
            config=tool.config,
        )
        errors = list(find_tool_entry_errors(entry, {"name": entry.name}))
        if errors:
            reason = " ".join(error.message for error in errors)
            self.skipped.append(skip_tool(tool.name, tool.kind, reason=reason))
            return None
        slug = self.name_slug(Tool, tool.name, "tool")
        entry = remove_literal_secrets(entry.model_copy(update={"slug": slug})).entry
        self.tools[slug] = entry
        self.slugs_of_tools[key] = slug
        return slug

    def add_function_tool(self, tool: ConvertedTool) -> str | None:
        """Return the slug of a built-in tool, of this site if it has one already."""
        path = tool.config["function"]
        rows = Tool.objects.usable_by(self.owner).filter(
            kind="function", config__function=path
        )
        row = rows.order_by("-enabled", "pk").first()
        if row is not None:
            slug = str(row.slug)
        elif path not in get_registered_functions():
            reason = _(
                "The built-in tool is not enabled here. An operator can add its module "
                "to AGENTSITE_TOOL_MODULES."
            )
            self.skipped.append(skip_tool(tool.name, reason=reason))
            return None
        else:
            slug = self.name_slug(Tool, tool.name, "tool")
            self.tools[slug] = ToolEntry(slug=slug, config=tool.config)
        self.slugs_of_tools[repr(tool)] = slug
        return slug

    def pick_parameters(self, choice: ConvertedModel, kind: str) -> dict[str, Any]:
        """Return the parameters of a model that providers of this kind accept."""
        if kind in KINDS_WITH_PENALTIES:
            return choice.parameters
        given = choice.parameters
        dropped = [name for name in PENALTIES if given.get(name)]
        self.skipped += [skip_setting(name) for name in dropped]
        return {name: given[name] for name in given if name not in PENALTIES}

    def choose_model(self, choice: ConvertedModel) -> ChosenModel:
        """Return the provider and the model of an agent.

        A provider of this site with the same address is preferred; for a well-known
        model server that is not here yet, one is added to the file.
        """
        preset = find_known_provider(choice.provider, choice.model)
        if is_own_address(choice, preset):
            name = choice.provider or "Server"
            preset = ProviderPreset(name, "openai", choice.base_url)
        if choice.model and preset is not None:
            same = [row for row in self.rows if uses_preset_server(row, preset)]
            slug = str(same[0].slug) if same else self.add_provider(preset)
            kind = same[0].kind if same else preset.kind
            return ChosenModel(slug, kind, choice.model[:MAX_MODEL])
        row = self.find_default_provider(preset)
        model = choice.model[:MAX_MODEL] or row.default_model
        if choice.provider or not choice.model:
            self.skipped.append(explain_selection(choice, row, model))
        return ChosenModel(str(row.slug), row.kind, model)

    def find_default_provider(self, preset: ProviderPreset | None) -> Provider:
        """Return a provider of this site for an agent without a known model."""
        rows = [row for row in self.rows if row.default_model]
        if preset is not None:
            rows.sort(key=lambda row: not uses_preset_server(row, preset))
        if not rows:
            raise ForeignFileRefused(
                _(
                    "The file names no model that is known here. Create a provider "
                    "with a default model, then import the file again."
                )
            )
        return rows[0]

    def add_provider(self, preset: ProviderPreset) -> str:
        """Return the slug of a provider that the file creates."""
        for slug, entry in self.providers.items():
            if (entry.kind, entry.base_url) == (preset.kind, preset.base_url):
                return slug
        slug = self.name_slug(Provider, preset.title, "provider")
        self.providers[slug] = ProviderEntry(
            slug=slug,
            name=shorten(preset.title),
            kind=preset.kind,
            base_url=preset.base_url,
        )
        return slug

    def name_slug(self, model: Any, name: str, fallback: str) -> str:
        """Return a slug that this file does not use yet, nor another user."""
        stem = slugify(name)[:MAX_SLUG].strip("-_") or fallback
        if re.match(INLINE_SLUG, stem):
            stem = f"prompt-{stem}"
        number, slug = 1, stem
        while (model, slug) in self.taken or self.is_used(model, slug):
            number += 1
            slug = f"{stem}-{number}"
        self.taken.add((model, slug))
        return slug

    def is_used(self, model: Any, slug: str) -> bool:
        rows = model._default_manager.filter(slug=slug)
        if self.reuses_own:
            rows = rows.exclude(owner=self.owner, archived_at=None)
        return bool(rows.exists())


def shorten(text: str) -> str:
    return " ".join(text.split())[:MAX_NAME].strip()


def reaches(calls: dict[str, list[str]], start: str, end: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        for callee in calls.get(todo.pop(), ()):
            if callee == end:
                return True
            if callee not in seen:
                seen.add(callee)
                todo.append(callee)
    return False


def explain_selection(choice: ConvertedModel, row: Provider, model: str) -> SkippedPart:
    """Return a note on the model that stands for one that is not known here."""
    given = " ".join(filter(None, (choice.provider, choice.model))) or "model"
    reason = _("%(model)s of the provider %(provider)s was selected.") % {
        "model": model,
        "provider": row.slug,
    }
    return skip_setting(given, reason=reason)


def is_own_address(choice: ConvertedModel, preset: ProviderPreset | None) -> bool:
    """Whether the file names a server of its own instead of the product's service."""
    if not choice.base_url or find_address_flaw(choice.base_url):
        return False
    return preset is None or choice.base_url.rstrip("/") != preset.base_url


def uses_preset_server(row: Provider, preset: ProviderPreset) -> bool:
    """Whether a provider reaches the server of a preset, by whichever API."""
    return row.base_url.rstrip("/") == preset.base_url.rstrip("/")
