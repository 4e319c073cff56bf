// The variables of a prompt: found by the editor, and shown before it is loaded.
export const ENGINE = {
  input: gettext("the question of the run"),
  tools: gettext("names and descriptions of the tools, filled in by the engine"),
  tool_names: gettext("names of the tools, filled in by the engine"),
  agent_scratchpad: gettext("the steps so far, filled in by the engine"),
  chat_history: gettext(
    "earlier messages of the conversation, filled in by the engine",
  ),
};
export const PIECE = /\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|[{}]/g;

// As runs/engine/prompts.py reads it.
export function variableNames(text) {
  return [
    ...new Set([...text.matchAll(PIECE)].map((match) => match[1]).filter(Boolean)),
  ];
}
