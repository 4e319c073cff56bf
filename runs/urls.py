"""URLs of the app `runs`."""

from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, URLResolver, include, path, re_path
from django.views.decorators.cache import cache_control
from django.views.i18n import JavaScriptCatalog

from runs.api.reference import reference
from runs.openai import code_page
from runs.views import (
    accounts,
    health,
    metrics,
    notifications,
    restore,
    retention,
    webhooks,
    workers,
)
from runs.views.agents import archive_duplicate as owned
from runs.views.agents import bulk_actions as agent_bulk
from runs.views.agents import evaluation as agent_evaluation
from runs.views.agents import form as agent_form
from runs.views.agents import import_file as agent_import
from runs.views.agents import library, sub_agent, tool_files
from runs.views.agents import list_page as agent_list
from runs.views.agents import page as agents
from runs.views.agents import test_pane as agent_try
from runs.views.agents import tool as agent_tool
from runs.views.agents import versions as agent_versions
from runs.views.annotation import add_runs as queue_runs
from runs.views.annotation import item as queue_items
from runs.views.annotation import page as queue_page
from runs.views.annotation import queues
from runs.views.approvals import page as approvals
from runs.views.chat import actions as chat_actions
from runs.views.chat import export as chat_export
from runs.views.chat import page as chat
from runs.views.chat import turn_parts
from runs.views.compare import page as run_compare
from runs.views.datasets import add_run as dataset_run
from runs.views.datasets import example as dataset_examples
from runs.views.datasets import export as dataset_files
from runs.views.datasets import import_file as dataset_imports
from runs.views.datasets import list_page as dataset_list
from runs.views.datasets import page as datasets
from runs.views.evaluators import page as evaluators
from runs.views.evaluators.judge_requests import run_judge
from runs.views.experiments import bisect as experiment_bisect
from runs.views.experiments import create as experiment_create
from runs.views.experiments import export as experiment_export
from runs.views.experiments import page as experiments
from runs.views.experiments import unsent_calls
from runs.views.gates import edit as gates
from runs.views.gates import policy as gate_policy
from runs.views.gates import publish as gate_publish
from runs.views.home import first_steps
from runs.views.home import page as home
from runs.views.hooks import form as hook_form
from runs.views.hooks import page as hooks
from runs.views.hooks.receive import hook_receive
from runs.views.lists import actions, selection
from runs.views.ownership import user_erase, user_ownership
from runs.views.prompts import page as prompts
from runs.views.prompts import playground
from runs.views.providers import page as providers
from runs.views.providers import provider_models
from runs.views.rules import rules
from runs.views.rules.scored_runs import scored_run_list
from runs.views.run import children as run_children
from runs.views.run import feedback as run_feedback
from runs.views.run import page as run_page
from runs.views.run import peek as run_peek
from runs.views.run_actions import download as run_file
from runs.views.run_actions import fork as run_fork
from runs.views.run_actions import rerun as run_again
from runs.views.run_actions import resume as run_resume
from runs.views.run_actions import share as run_share
from runs.views.run_actions.read_only import run_read_only
from runs.views.run_list import bulk_actions as run_bulk
from runs.views.run_list import columns as run_list_columns
from runs.views.run_list import export as run_export
from runs.views.run_list import neighbors as run_neighbors
from runs.views.run_list import page as run_list
from runs.views.run_list import saved_filters
from runs.views.schedules import form as schedule_form
from runs.views.schedules import page as schedules
from runs.views.search import page as search
from runs.views.telemetry.receive import receive_traces
from runs.views.tools.bulk_actions import tool_selection
from runs.views.usage import page as usage
from runs.views.user_tokens import (
    user_token_renew,
    user_token_revoke,
    user_tokens,
)

definition_urls: list[URLPattern | URLResolver] = [
    path(f"{noun}s/<int:pk>/{verb}/", view, {"noun": noun}, name=f"{noun}-{verb}")
    for noun in owned.DEFINITION_MODELS
    for verb, view in (
        ("archive", owned.definition_archive),
        ("unarchive", owned.definition_unarchive),
        ("duplicate", owned.definition_duplicate),
        ("rename", owned.definition_rename),
    )
]

selection_urls: list[URLPattern | URLResolver] = [
    path(
        f"{noun}s/selected/",
        selection.row_selection,
        {"noun": noun},
        name=f"{noun}-selection",
    )
    for noun in actions.LISTS
]

urlpatterns: list[URLPattern | URLResolver] = [
    *selection_urls,
    path("healthz", health.health, name="health"),
    path("readyz", health.readiness, name="readiness"),
    path("metrics", metrics.metrics, name="metrics"),
    path("api/v1/", include("runs.api.urls")),
    path("api/docs/", reference, name="reference"),
    re_path(r"^v1/traces/?$", receive_traces, name="telemetry-traces"),
    path("v1/", include("runs.openai.urls")),
    path("", include("runs.mcp_server.urls")),
    path("", include("runs.oauth.urls")),
    path("", home.home, name="home"),
    path("home/attention/", home.home_attention, name="home-attention"),
    path("home/runs/", home.home_runs, name="home-runs"),
    path("first-steps/hide/", first_steps.hide_first_steps, name="hide-first-steps"),
    path("search/", search.search, name="search"),
    path("shortcuts/", search.shortcut_list, name="shortcut-list"),
    path("sign-in/", accounts.sign_in, name="sign-in"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
    path("login/<str:token>/", accounts.login_link, name="login-link"),
    path("account/password/", accounts.set_password, name="set-password"),
    path(
        "account/notifications/",
        notifications.notification_settings,
        name="notification-settings",
    ),
    path(
        "account/notifications/test/",
        notifications.notification_test,
        name="notification-test",
    ),
    path("approve/<str:token>/", notifications.approval_link, name="approve-by-link"),
    path("account/tokens/", accounts.token_list, name="token-list"),
    path("account/tokens/<int:pk>/renew/", accounts.token_renew, name="token-renew"),
    path("account/tokens/<int:pk>/revoke/", accounts.token_revoke, name="token-revoke"),
    path("preferences/language/", accounts.set_language, name="set-language"),
    path(
        "jsi18n/",
        login_not_required(cache_control(max_age=3600)(JavaScriptCatalog.as_view())),
        name="script-translations",
    ),
    path("preferences/theme/", accounts.set_theme, name="set-theme"),
    path("runs/<int:pk>/", run_page.run_detail, name="run-detail"),
    path("runs/<int:pk>/fork/", run_fork.run_fork, name="run-fork"),
    path("runs/<int:pk>/fork/<int:number>/", run_fork.run_fork, name="run-fork"),
    path("runs/<int:pk>/peek/", run_peek.run_peek, name="run-peek"),
    path("runs/<int:pk>/brief/", run_children.run_brief, name="run-brief"),
    path("runs/<int:pk>/outline/", run_children.run_outline, name="run-outline"),
    path("runs/<int:pk>/read-only/", run_read_only, name="run-read-only"),
    path("runs/<int:pk>/share/", run_share.run_share, name="run-share"),
    path(
        "runs/<int:pk>/share/<int:share_pk>/revoke/",
        run_share.run_share_revoke,
        name="run-share-revoke",
    ),
    path("shared/<str:token>/", run_share.run_shared, name="run-shared"),
    path(
        "runs/<int:pk>/export/html/", run_file.run_export_html, name="run-export-html"
    ),
    path(
        "runs/<int:pk>/export/json/", run_file.run_export_json, name="run-export-json"
    ),
    path(
        "runs/<int:pk>/export/scenario/",
        run_file.run_export_scenario,
        name="run-export-scenario",
    ),
    path("runs/<int:pk>/rows/", run_page.run_rows, name="run-rows"),
    path("runs/<int:pk>/next-error/", run_page.run_next_error, name="run-next-error"),
    path("runs/<int:pk>/actions/", run_page.run_actions, name="run-actions"),
    path("runs/<int:pk>/banner/", run_page.run_banner, name="run-banner"),
    path("runs/<int:pk>/stop/", run_page.run_stop, name="run-stop"),
    path("runs/<int:pk>/keep/", run_page.run_keep, name="run-keep"),
    path(
        "runs/<int:pk>/<str:direction>/in-list/",
        run_neighbors.run_neighbor,
        name="run-neighbor",
    ),
    path("runs/<int:pk>/feedback/", run_feedback.run_feedback, name="run-feedback"),
    path("runs/<int:pk>/rate/", run_feedback.run_rate, name="run-rate"),
    path("runs/<int:pk>/tag/", run_feedback.run_tag, name="run-tag"),
    path("runs/<int:pk>/comment/", run_feedback.run_comment, name="run-comment"),
    path(
        "runs/<int:pk>/comments/<int:comment_pk>/delete/",
        run_feedback.run_comment_delete,
        name="run-comment-delete",
    ),
    path("runs/<int:pk>/dataset/", dataset_run.run_dataset, name="run-dataset"),
    path("runs/<int:pk>/judge/<int:revision_pk>/", run_judge, name="run-judge"),
    path("runs/<int:pk>/again/", run_again.run_again, name="run-again"),
    path("runs/<int:pk>/continue/", run_page.run_continue, name="run-continue"),
    path("runs/<int:pk>/resume/", run_resume.run_resume, name="run-resume"),
    path("runs/<int:pk>/answer/", run_page.run_answer, name="run-answer"),
    path(
        "runs/<int:pk>/steps/<int:number>/playground/",
        playground.run_playground,
        name="run-playground",
    ),
    path(
        "runs/<int:pk>/steps/<int:number>/media/<int:position>/",
        run_page.run_media,
        name="run-media",
    ),
    path(
        "runs/<int:pk>/steps/<int:number>/<slug:what>/",
        run_page.run_raw,
        name="run-raw",
    ),
    path("live/runs/<int:pk>/", run_page.run_live, name="run-live"),
    path("live/turns/<slug:key>/", turn_parts.turn_live, name="turn-live"),
    path("runs/<int:pk>/asks/", turn_parts.turn_asks, name="turn-asks"),
    path("live/me/", accounts.live_me, name="live-me"),
    path("parts/health/", accounts.health_part, name="health-part"),
    path("runs/compare/", run_compare.run_compare, name="run-compare"),
    path("runs/", run_list.run_list, name="run-list"),
    path("runs/groups/", run_list.run_groups, name="run-groups"),
    path("runs/figures/", run_list.run_figures, name="run-figures"),
    path("runs/columns/", run_list_columns.run_columns, name="run-columns"),
    path("runs/selected/", run_bulk.run_selection, name="run-selection"),
    path("runs/export/", run_export.run_export, name="run-export"),
    path(
        "runs/filters/new/",
        saved_filters.saved_filter_create,
        name="saved-filter-create",
    ),
    path(
        "runs/filters/<int:pk>/delete/",
        saved_filters.saved_filter_delete,
        name="saved-filter-delete",
    ),
    path("chat/", chat.chat, name="chat"),
    path("chat/<slug:slug>/", chat.chat_agent, name="chat-agent"),
    path("chat/<slug:slug>/say/", chat_actions.chat_say, name="chat-say"),
    path(
        "chat/<slug:slug>/<int:pk>/", chat.chat_conversation, name="chat-conversation"
    ),
    path(
        "chat/<slug:slug>/<int:pk>/newer/<int:after>/",
        chat.chat_newer,
        name="chat-newer",
    ),
    path(
        "chat/<slug:slug>/<int:pk>/export/markdown/",
        chat_export.chat_export_markdown,
        name="chat-export-markdown",
    ),
    path(
        "chat/<slug:slug>/<int:pk>/export/json/",
        chat_export.chat_export_json,
        name="chat-export-json",
    ),
    path("chat/<slug:slug>/<int:pk>/stop/", chat_actions.chat_stop, name="chat-stop"),
    path(
        "chat/<slug:slug>/<int:pk>/resume/<int:run_pk>/",
        chat_actions.chat_resume,
        name="chat-resume",
    ),
    path(
        "chat/<slug:slug>/<int:pk>/continue/<int:run_pk>/",
        chat_actions.chat_continue,
        name="chat-continue",
    ),
    path(
        "chat/<slug:slug>/<int:pk>/rename/",
        chat_actions.chat_rename,
        name="chat-rename",
    ),
    path(
        "chat/<slug:slug>/<int:pk>/archive/",
        chat_actions.chat_archive,
        name="chat-archive",
    ),
    path(
        "chat/<slug:slug>/<int:pk>/unarchive/",
        chat_actions.chat_unarchive,
        name="chat-unarchive",
    ),
    path(
        "chat/<slug:slug>/<int:pk>/branch/<int:run_pk>/",
        chat_actions.chat_branch,
        name="chat-branch",
    ),
    path(
        "chat/<slug:slug>/<int:pk>/rate/<int:run_pk>/",
        chat_actions.chat_rate,
        name="chat-rate",
    ),
    path("approvals/", approvals.approval_list, name="approval-list"),
    path("approvals/head/", approvals.approval_head, name="approval-head"),
    path("approvals/answered/", approvals.approval_answered, name="approval-answered"),
    path("approvals/several/", approvals.approval_several, name="approval-several"),
    path("approvals/<int:pk>/", approvals.approval_detail, name="approval-detail"),
    path(
        "approvals/<int:pk>/arguments/",
        approvals.approval_arguments,
        name="approval-arguments",
    ),
    path(
        "approvals/allowances/<int:pk>/revoke/",
        approvals.allowance_revoke,
        name="allowance-revoke",
    ),
    path(
        "approvals/<int:pk>/decided/",
        approvals.approval_decided,
        name="approval-decided",
    ),
    path(
        "approvals/<int:pk>/answer/", approvals.approval_answer, name="approval-answer"
    ),
    path("users/<int:pk>/owned/", user_ownership, name="user-ownership"),
    path("users/<int:pk>/erase/", user_erase, name="user-erase"),
    path("users/<int:pk>/tokens/", user_tokens, name="user-tokens"),
    path(
        "users/<int:pk>/tokens/<int:token_pk>/renew/",
        user_token_renew,
        name="user-token-renew",
    ),
    path(
        "users/<int:pk>/tokens/<int:token_pk>/revoke/",
        user_token_revoke,
        name="user-token-revoke",
    ),
    path("retention/", retention.retention, name="retention"),
    path("retention/preview/", retention.retention_preview, name="retention-preview"),
    path("retention/prune/", retention.retention_prune, name="retention-prune"),
    path("retention/agents/add/", retention.agent_retention, name="agent-retention"),
    path(
        "retention/agents/<int:pk>/delete/",
        retention.agent_retention_delete,
        name="agent-retention-delete",
    ),
    path(
        "retention/jobs/<int:pk>/stop/",
        retention.deletion_job_stop,
        name="deletion-job-stop",
    ),
    path("agents/", agent_list.agent_list, name="agent-list"),
    path("agents/selected/", agent_bulk.agent_selection, name="agent-selection"),
    path("tool-selection/", tool_selection, name="tool-selection"),
    path("tool-files/export/", tool_files.tool_export, name="tool-export"),
    path("tool-files/import/", tool_files.tool_import, name="tool-import"),
    path("agents/new/", agent_form.agent_create, name="agent-create"),
    path("agents/import/", agent_import.agent_import, name="agent-import"),
    path("agents/preview/", agent_form.agent_preview, name="agent-preview"),
    path("agents/models/", agent_form.agent_models, name="agent-models"),
    path("agents/library/", library.agent_library, name="agent-library"),
    path("agents/<int:pk>/", agents.agent_detail, name="agent-detail"),
    path("agents/<int:pk>/edit/", agent_form.agent_edit, name="agent-edit"),
    path("agents/<int:pk>/save/", agent_form.agent_save, name="agent-save"),
    path("agents/<int:pk>/test/", agent_try.agent_test, name="agent-test"),
    path(
        "agents/<int:pk>/side-by-side/",
        agent_try.agent_side_by_side,
        name="agent-side-by-side",
    ),
    path(
        "agents/<int:pk>/versions/",
        agent_versions.agent_versions,
        name="agent-versions",
    ),
    path("agents/<int:pk>/export/", tool_files.agent_export, name="agent-export"),
    path(
        "agents/<int:pk>/versions/<int:number>/restore/",
        agent_versions.agent_restore,
        name="agent-restore",
    ),
    path(
        "agents/<int:pk>/versions/<int:number>/publish/",
        gate_publish.agent_publish_again,
        name="agent-publish-again",
    ),
    path(
        "agents/<int:pk>/tools/<int:tool_pk>/", agent_tool.agent_tool, name="agent-tool"
    ),
    path("agents/<int:pk>/agents/<int:sub_pk>/", sub_agent.sub_agent, name="sub-agent"),
    path("agents/<int:pk>/code/", code_page.agent_code, name="agent-code"),
    path(
        "agents/<int:pk>/code/send/",
        code_page.agent_code_send,
        name="agent-code-send",
    ),
    path("agents/<int:pk>/run/", agents.agent_run, name="agent-run"),
    path("agents/<int:pk>/publish/", gate_publish.agent_publish, name="agent-publish"),
    path(
        "agents/<int:pk>/publish/gate/",
        gate_publish.agent_gate_run,
        name="agent-gate-run",
    ),
    path(
        "agents/<int:pk>/publish/replay/",
        gate_publish.agent_input_replay,
        name="agent-input-replay",
    ),
    path(
        "agents/<int:pk>/evaluation/",
        agent_evaluation.agent_evaluation,
        name="agent-evaluation",
    ),
    path("agents/<int:pk>/policy/", gate_policy.agent_policy, name="agent-policy"),
    path("agents/<int:pk>/gate/", gates.agent_gate, name="agent-gate"),
    path(
        "agents/<int:pk>/gate/remove/",
        gates.agent_gate_remove,
        name="agent-gate-remove",
    ),
    path("datasets/", dataset_list.dataset_list, name="dataset-list"),
    path("datasets/add/", dataset_run.dataset_add_runs, name="dataset-add-runs"),
    path("datasets/new/", dataset_list.dataset_create, name="dataset-create"),
    path("datasets/<int:pk>/", datasets.dataset_detail, name="dataset-detail"),
    path("datasets/<int:pk>/edit/", dataset_list.dataset_edit, name="dataset-edit"),
    path("datasets/<int:pk>/save/", datasets.dataset_save, name="dataset-save"),
    path(
        "datasets/<int:pk>/discard/", datasets.dataset_discard, name="dataset-discard"
    ),
    path(
        "datasets/<int:pk>/upload/",
        dataset_imports.dataset_upload,
        name="dataset-upload",
    ),
    path(
        "datasets/<int:pk>/import/",
        dataset_imports.dataset_import,
        name="dataset-import",
    ),
    path(
        "datasets/<int:pk>/export/",
        dataset_files.dataset_export,
        name="dataset-export",
    ),
    path(
        "datasets/<int:pk>/examples/new/",
        dataset_examples.dataset_example_create,
        name="dataset-example-create",
    ),
    path(
        "datasets/<int:pk>/examples/<int:number>/",
        dataset_examples.dataset_example,
        name="dataset-example",
    ),
    path(
        "datasets/<int:pk>/examples/<int:number>/cell/",
        dataset_examples.dataset_cell,
        name="dataset-cell",
    ),
    path(
        "datasets/<int:pk>/examples/remove/",
        dataset_examples.dataset_examples_remove,
        name="dataset-examples-remove",
    ),
    path(
        "datasets/<int:pk>/examples/<int:number>/remove/",
        dataset_examples.dataset_example_remove,
        name="dataset-example-remove",
    ),
    path("evaluators/", evaluators.evaluator_list, name="evaluator-list"),
    path("evaluators/new/", evaluators.evaluator_create, name="evaluator-create"),
    path("evaluators/try/<slug:kind>/", evaluators.evaluator_try, name="evaluator-try"),
    path("evaluators/<int:pk>/", evaluators.evaluator_detail, name="evaluator-detail"),
    path("rules/", rules.rule_list, name="rule-list"),
    path("rules/new/", rules.rule_create, name="rule-create"),
    path("rules/runs/", scored_run_list, name="scored-run-list"),
    path("rules/<int:pk>/", rules.rule_detail, name="rule-detail"),
    path("rules/<int:pk>/edit/", rules.rule_edit, name="rule-edit"),
    path("rules/<int:pk>/switch/", rules.rule_switch, name="rule-switch"),
    path("queues/", queues.queue_list, name="queue-list"),
    path("queues/new/", queues.queue_create, name="queue-create"),
    path("queues/add/", queue_runs.queue_add, name="queue-add"),
    path("queues/<int:pk>/", queue_page.queue_detail, name="queue-detail"),
    path("queues/<int:pk>/edit/", queues.queue_edit, name="queue-edit"),
    path("queues/<int:pk>/next/", queue_items.queue_next, name="queue-next"),
    path("queues/<int:pk>/undo/", queue_items.queue_undo, name="queue-undo"),
    path(
        "queues/<int:pk>/runs/<int:item_pk>/",
        queue_items.queue_item,
        name="queue-item",
    ),
    path(
        "queues/<int:pk>/runs/<int:item_pk>/skip/",
        queue_items.queue_skip,
        name="queue-skip",
    ),
    path(
        "queues/<int:pk>/runs/<int:item_pk>/keep/",
        queue_items.queue_keep,
        name="queue-keep",
    ),
    path(
        "queues/<int:pk>/runs/<int:item_pk>/difference/",
        queue_items.queue_difference,
        name="queue-difference",
    ),
    path(
        "queues/<int:pk>/runs/<int:item_pk>/remove/",
        queue_page.queue_item_remove,
        name="queue-item-remove",
    ),
    path("experiments/", experiments.experiment_list, name="experiment-list"),
    path(
        "experiments/new/",
        experiment_create.experiment_create,
        name="experiment-create",
    ),
    path(
        "experiments/<int:pk>/",
        experiments.experiment_detail,
        name="experiment-detail",
    ),
    path(
        "experiments/<int:pk>/bisect/",
        experiment_bisect.experiment_bisect,
        name="experiment-bisect",
    ),
    path(
        "experiments/<int:pk>/export/",
        experiment_export.experiment_export,
        name="experiment-export",
    ),
    path(
        "experiments/<int:pk>/held-back/",
        unsent_calls.experiment_held_back,
        name="experiment-held-back",
    ),
    path(
        "experiments/<int:pk>/not-recorded/",
        unsent_calls.experiment_not_recorded,
        name="experiment-not-recorded",
    ),
    path(
        "experiments/<int:pk>/cells/<int:cell_pk>/score/",
        experiments.experiment_score_again,
        name="experiment-score-again",
    ),
    path(
        "experiments/<int:pk>/stop/",
        experiments.experiment_stop,
        name="experiment-stop",
    ),
    path(
        "experiments/<int:pk>/resume/",
        experiments.experiment_resume,
        name="experiment-resume",
    ),
    path("schedules/", schedules.schedule_list, name="schedule-list"),
    path("schedules/new/", schedule_form.schedule_create, name="schedule-create"),
    path("schedules/times/", schedule_form.schedule_times, name="schedule-times"),
    path("schedules/<int:pk>/", schedules.schedule_detail, name="schedule-detail"),
    path("schedules/<int:pk>/edit/", schedule_form.schedule_edit, name="schedule-edit"),
    path("schedules/<int:pk>/pause/", schedules.schedule_pause, name="schedule-pause"),
    path(
        "schedules/<int:pk>/resume/", schedules.schedule_resume, name="schedule-resume"
    ),
    path("schedules/<int:pk>/run/", schedules.schedule_run, name="schedule-run"),
    path(
        "schedules/<int:pk>/delete/", schedules.schedule_delete, name="schedule-delete"
    ),
    path("playground/", playground.playground, name="playground"),
    path(
        "playground/variables/",
        playground.playground_variables,
        name="playground-variables",
    ),
    path("prompts/", prompts.prompt_list, name="prompt-list"),
    path("prompts/new/", prompts.prompt_create, name="prompt-create"),
    path("prompts/preview/", prompts.prompt_preview, name="prompt-preview"),
    path("prompts/<int:pk>/", prompts.prompt_detail, name="prompt-detail"),
    path("providers/", providers.provider_list, name="provider-list"),
    path("providers/new/", providers.provider_create, name="provider-create"),
    path("providers/found/", providers.provider_found, name="provider-found"),
    path("providers/test/", providers.provider_test_new, name="provider-test-new"),
    path("providers/<int:pk>/", providers.provider_detail, name="provider-detail"),
    path("providers/<int:pk>/test/", providers.provider_test, name="provider-test"),
    path(
        "providers/<int:pk>/models/new/",
        provider_models.provider_model_create,
        name="provider-model-create",
    ),
    path(
        "providers/<int:pk>/models/<int:model_pk>/",
        provider_models.provider_model,
        name="provider-model",
    ),
    path("webhooks/", webhooks.webhook_list, name="webhook-list"),
    path("webhooks/new/", webhooks.webhook_create, name="webhook-create"),
    path("webhooks/<int:pk>/", webhooks.webhook_detail, name="webhook-detail"),
    path("webhooks/<int:pk>/edit/", webhooks.webhook_edit, name="webhook-edit"),
    path("webhooks/<int:pk>/test/", webhooks.webhook_test, name="webhook-test"),
    path("webhooks/<int:pk>/switch/", webhooks.webhook_switch, name="webhook-switch"),
    path("webhooks/<int:pk>/rotate/", webhooks.webhook_rotate, name="webhook-rotate"),
    path("webhooks/<int:pk>/delete/", webhooks.webhook_delete, name="webhook-delete"),
    path("webhooks/<int:pk>/resend/", webhooks.webhook_resend, name="webhook-resend"),
    path(
        "webhooks/<int:pk>/deliveries/<int:delivery_pk>/again/",
        webhooks.delivery_again,
        name="delivery-again",
    ),
    path("in/<str:key>/", hook_receive, name="hook-receive"),
    path("hooks/", hooks.hook_list, name="hook-list"),
    path("hooks/new/", hook_form.hook_create, name="hook-create"),
    path("hooks/preview/<int:pk>/", hook_form.hook_preview, name="hook-preview"),
    path("hooks/<int:pk>/", hooks.hook_detail, name="hook-detail"),
    path("hooks/<int:pk>/edit/", hook_form.hook_edit, name="hook-edit"),
    path("hooks/<int:pk>/switch/", hooks.hook_switch, name="hook-switch"),
    path("hooks/<int:pk>/rotate/", hooks.hook_rotate, name="hook-rotate"),
    path("hooks/<int:pk>/delete/", hooks.hook_delete, name="hook-delete"),
    path("usage/", usage.usage, name="usage"),
    path("usage/export/", usage.usage_export, name="usage-export"),
    path("workers/", workers.worker_list, name="worker-list"),
    path("restore/", restore.restore_confirm, name="restore-confirm"),
    *definition_urls,
]
