"""The form of a fork: what is changed at the step, and what counts from there on."""

import json
from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.engine.kinds.registry import AGENT_KINDS, get_prompt_of_spec
from runs.engine.parsing.clean import clean_json
from runs.engine.prompts import input_variables_of_prompt
from runs.engine.types import (
    AgentSpec,
    ModelSettings,
    PromptMessage,
    PromptSpec,
    ToolCall,
)
from runs.forms.runs.fork_tools import ForkTools
from runs.forms.runs.inputs import input_field_name
from runs.forms.widgets import monospace_textarea, style_widgets
from runs.models import Provider
from runs.services.forks.edits import ForkEdits
from runs.services.forks.point import ForkPoint
from runs.ui.role_labels import get_role_label
from tools.text.parse_errors import NOT_JSON, find_json_error


class ForkForm(forms.Form):
    """Everything that can differ; what stays as it is makes no edit."""

    at_step = forms.ChoiceField(
        choices=[
            ("write", gettext_lazy("Use this result")),
            ("call", gettext_lazy("Call the tool again")),
        ],
        widget=forms.RadioSelect,
        required=False,
    )
    observation = forms.CharField(
        required=False,
        strip=False,
        label=gettext_lazy("Result"),
        widget=monospace_textarea(12),
        help_text=gettext_lazy("Sent to the model, which continues from there."),
    )
    has_failed = forms.BooleanField(
        required=False, label=gettext_lazy("Report the call to the model as failed")
    )
    at_call = forms.ChoiceField(
        choices=[
            ("ask", gettext_lazy("Call the model again")),
            ("write", gettext_lazy("Use this reply")),
        ],
        widget=forms.RadioSelect,
        required=False,
    )
    reply_text = forms.CharField(
        required=False,
        strip=False,
        label=gettext_lazy("Reply"),
        widget=monospace_textarea(8),
    )
    reply_calls = forms.CharField(
        required=False,
        label=gettext_lazy("Tool calls"),
        widget=monospace_textarea(6),
        help_text=gettext_lazy(
            "A JSON list of calls with name and arguments. Leave empty for none; the "
            "text is then the answer."
        ),
    )
    model = forms.CharField(required=False, max_length=200, label=gettext_lazy("Model"))
    parameters = forms.CharField(
        required=False,
        label=gettext_lazy("Parameters"),
        widget=monospace_textarea(3),
        help_text=gettext_lazy(
            'JSON, sent unchanged, for example {"temperature": 0.2}.'
        ),
    )

    def __init__(
        self,
        point: ForkPoint,
        spec: AgentSpec,
        *args: Any,
        user: User,
        may_edit: bool,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.point, self.spec, self.user = point, spec, user
        self.may_edit = may_edit
        self.prompt = get_prompt_of_spec(spec)
        self.tools = ForkTools(
            spec, self.data, run=point.run, user=user, may_edit=may_edit
        )
        kind = AGENT_KINDS.get(spec.kind)
        self.has_calls = kind is not None and kind.needs_functions
        self._set_step_initial()
        self._set_reply_initial()
        self._add_model_fields()
        self.prompt_names = list(self._add_prompt())
        self.input_names = list(self._add_inputs())
        for field in self.fields.values():
            field.is_needed = True  # type: ignore[attr-defined]  # none says "optional"
        style_widgets(self)

    def _set_step_initial(self) -> None:
        step = self.point.step
        if step is None:
            return
        self.initial["at_step"] = "write" if step.is_answered else "call"
        self.initial["observation"] = step.observation
        self.initial["has_failed"] = step.has_failed

    def _set_reply_initial(self) -> None:
        call = self.point.call
        self.initial["at_call"] = "ask"
        if call is None:
            return
        self.initial["reply_text"] = call.reply.get("text", "")
        self.initial["reply_calls"] = format_tool_calls(
            call.reply.get("tool_calls") or []
        )

    def _add_model_fields(self) -> None:
        model = self.spec.model
        owner = self.point.run.agent.owner
        mine = Provider.objects.usable_by(self.user)
        theirs = Provider.objects.usable_by(owner)
        offered = mine.filter(pk__in=theirs.values("pk"))
        offered |= Provider.objects.filter(pk=model.provider_id or 0)
        self.fields["provider"] = forms.ModelChoiceField(
            offered.distinct().order_by("name"),
            required=False,
            empty_label=None,
            label=_("Provider"),
        )
        self.initial["provider"] = model.provider_id
        self.initial["model"] = model.model
        self.initial["parameters"] = (
            json.dumps(model.parameters, ensure_ascii=False) if model.parameters else ""
        )
        self.fields["model"].widget.attrs["list"] = "fork-models"

    def _add_prompt(self) -> Iterator[str]:
        messages = self.prompt.messages
        if messages is None:
            yield self._add_text("prompt-0", _("Prompt"), self.prompt.template or "")
            return
        for place, message in enumerate(messages):
            yield self._add_text(
                f"prompt-{place}", get_role_label(message.role), message.template
            )

    def _add_text(self, name: str, label: str, text: str) -> str:
        rows = min(14, max(2, text.count("\n") + 1 + len(text) // 90))
        widget = monospace_textarea(rows)
        self.fields[name] = forms.CharField(
            required=False, strip=False, label=label, widget=widget, initial=text
        )
        return name

    def _add_inputs(self) -> Iterator[str]:
        """Add the run's variables, and those that a typed prompt has beside them."""
        given = self.point.run.inputs
        typed = "\n".join(self.data.get(name, "") for name in self.prompt_names)
        prompt = PromptSpec(template=typed, partials=self.prompt.partials)
        for name in dict.fromkeys([*given, *input_variables_of_prompt(prompt)]):
            text = str(given.get(name, ""))
            field = forms.CharField(
                required=False,
                strip=False,
                label=_("Question") if name == "input" else name,
                widget=forms.Textarea(attrs={"rows": min(8, 1 + text.count("\n"))}),
                initial=text,
            )
            self.fields[input_field_name(name)] = field
            yield name

    def input_fields(self) -> list[forms.BoundField]:
        return [self[input_field_name(name)] for name in self.input_names]

    @property
    def inputs_are_open(self) -> bool:
        names = {input_field_name(name) for name in self.input_names}
        new = set(self.input_names) - set(self.point.run.inputs)
        return bool(new or names & set(self.errors) or self._input_edit())

    def prompt_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in self.prompt_names]

    def model_names(self) -> list[str]:
        field: Any = self.fields["provider"]
        names = field.queryset.values_list("models__name", flat=True)
        return sorted({name for name in names if name})

    @property
    def prompt_is_open(self) -> bool:
        return bool(
            self._is_prompt_edited() or set(self.prompt_names) & set(self.errors)
        )

    def _is_prompt_edited(self) -> bool:
        return any(
            normalize_newlines(str(self.data[name]))
            != normalize_newlines(str(self.fields[name].initial))
            for name in self.prompt_names
            if name in self.data
        )

    def clean_reply_calls(self) -> tuple[ToolCall, ...]:
        text: str = self.cleaned_data["reply_calls"].strip()
        if not text or self.data.get("at_call") != "write":
            return ()
        message = _(
            'Enter a list, for example [{"name": "add", "arguments": {"a": 1}}].'
        )
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(
                f"{NOT_JSON} {find_json_error(text)}"
            ) from error
        if not isinstance(found, list):
            raise forms.ValidationError(message)
        return tuple(
            parse_tool_call(one, place, message) for place, one in enumerate(found)
        )

    def clean_parameters(self) -> dict[str, Any]:
        text: str = self.cleaned_data["parameters"].strip()
        try:
            found = json.loads(text) if text else {}
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(
                f"{NOT_JSON} {find_json_error(text)}"
            ) from error
        if not isinstance(found, dict):
            raise forms.ValidationError(
                _('Enter a JSON object, for example {"top_p": 0.9}.')
            )
        clean: dict[str, Any] = clean_json(found)
        return clean

    def clean(self) -> dict[str, Any]:
        """Refuse an empty reply and an empty model."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        writes = self.point.step is None and given.get("at_call") == "write"
        if writes and not (given.get("reply_text") or given.get("reply_calls")):
            self.add_error("reply_text", _("Enter a reply, or call the model again."))
        if "model" in self.data and not given.get("model"):
            self.add_error("model", _("Enter a model."))
        return given

    def edits(self, limits: dict[str, Any]) -> ForkEdits:
        return ForkEdits(
            **self._step_edits(),
            **self._reply_edits(),
            inputs=self._input_edit(),
            prompt=self._prompt_edit() if self.may_edit else None,
            model=self._model_edit() if self.may_edit else None,
            tools=self.tools.edited_tools() if self.may_edit else None,
            limits=limits,
        )

    def _step_edits(self) -> dict[str, Any]:
        step, given = self.point.step, self.cleaned_data
        if step is None:
            return {}
        if given["at_step"] == "call":
            return {"calls_again": True}
        text, failed = given["observation"], given["has_failed"]
        same = (
            normalize_newlines(text) == normalize_newlines(step.observation)
            and failed == step.has_failed
        )
        if step.is_answered and same:
            return {}
        return {"observation": normalize_newlines(text), "has_failed": failed}

    def _reply_edits(self) -> dict[str, Any]:
        given = self.cleaned_data
        if self.point.step is not None or self.point.call is None:
            return {}
        if given["at_call"] != "write":
            return {}
        return {
            "reply_text": normalize_newlines(given["reply_text"]),
            "reply_calls": given["reply_calls"] if self.has_calls else (),
        }

    def _input_edit(self) -> dict[str, str] | None:
        given, found = self.point.run.inputs, dict[str, str]()
        for name in self.input_names:
            text, old = (
                normalize_newlines(self.data.get(input_field_name(name), "")),
                given.get(name, ""),
            )
            if input_field_name(name) in self.data and text != normalize_newlines(
                str(old)
            ):
                found[name] = text
        return found or None

    def _prompt_edit(self) -> PromptSpec | None:
        texts = [
            normalize_newlines(self.cleaned_data[name]) for name in self.prompt_names
        ]
        sent = all(name in self.data for name in self.prompt_names)
        messages = self.prompt.messages
        old = (
            [self.prompt.template or ""]
            if messages is None
            else [message.template for message in messages]
        )
        if not sent or texts == [normalize_newlines(text) for text in old]:
            return None
        if messages is None:
            return self.prompt.model_copy(update={"template": texts[0]})
        new = tuple(
            PromptMessage(role=message.role, template=text)
            for message, text in zip(messages, texts, strict=True)
        )
        return self.prompt.model_copy(update={"messages": new})

    def _model_edit(self) -> ModelSettings | None:
        given, old = self.cleaned_data, self.spec.model
        if "model" not in self.data:
            return None
        provider = given["provider"]
        new = old.model_copy(
            update={"model": given["model"], "parameters": given["parameters"]}
        )
        if provider is not None and provider.pk != old.provider_id:
            new = new.model_copy(
                update={
                    "provider": provider.slug,
                    "provider_id": provider.pk,
                    "stream": provider.stream,
                }
            )
        return None if new == old else new

    def add_field_error(self, path: str, message: str) -> None:
        if path.startswith("inputs."):
            path = input_field_name(path.removeprefix("inputs."))
        name = path.removeprefix("prompt.messages.")
        if path.startswith("prompt"):
            name = f"prompt-{name}" if name.isdigit() else "prompt-0"
        self.add_error(name if name in self.fields else None, message)


def normalize_newlines(text: str) -> str:
    """Return `text` with the line ends that a browser has changed."""
    return text.replace("\r\n", "\n")


def format_tool_calls(calls: list[dict[str, Any]]) -> str:
    shown = [
        {"name": call.get("name", ""), "arguments": decode_call_arguments(call)}
        for call in calls
    ]
    return json.dumps(shown, ensure_ascii=False, indent=2) if shown else ""


def decode_call_arguments(call: dict[str, Any]) -> Any:
    """Return arguments as JSON, or as the text that is none."""
    raw = call.get("arguments", "")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def parse_tool_call(value: Any, place: int, message: str) -> ToolCall:
    """Return one typed call; raise `message` if it is none."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise forms.ValidationError(message)
    if set(value) - {"name", "arguments"}:
        raise forms.ValidationError(message)
    arguments = value.get("arguments", {})
    raw = (
        arguments
        if isinstance(arguments, str)
        else json.dumps(clean_json(arguments), ensure_ascii=False)
    )
    return ToolCall(id=f"edited_{place}", name=value["name"], arguments=raw)
