"""All routes of the API, in the order of its document."""

from runs.api import approvals, forks, run_feedback, run_list, run_parts, runs
from runs.api.automation import conversations, schedules, webhooks
from runs.api.definitions import (
    agent_import,
    agent_versions,
    agents,
    credentials,
    mcp_servers,
    prompts,
    providers,
    tool_trials,
    tools,
)
from runs.api.evaluation import (
    bisections,
    datasets,
    evaluators,
    experiments,
    gates,
    queues,
    rules,
)
from runs.api.site import groups, people, person_tokens, state, tokens

ROUTES = [
    *run_list.ROUTES,
    *runs.ROUTES,
    *forks.ROUTES,
    *run_feedback.ROUTES,
    *run_parts.ROUTES,
    *approvals.ROUTES,
    *agents.ROUTES,
    *agent_import.ROUTES,
    *agent_versions.ROUTES,
    *prompts.ROUTES,
    *providers.ROUTES,
    *conversations.ROUTES,
    *schedules.ROUTES,
    *webhooks.ROUTES,
    *tools.ROUTES,
    *tool_trials.ROUTES,
    *credentials.ROUTES,
    *mcp_servers.ROUTES,
    *tokens.ROUTES,
    *people.ROUTES,
    *person_tokens.ROUTES,
    *groups.ROUTES,
    *state.ROUTES,
    *datasets.ROUTES,
    *evaluators.ROUTES,
    *experiments.ROUTES,
    *bisections.ROUTES,
    *gates.ROUTES,
    *queues.ROUTES,
    *rules.ROUTES,
]
