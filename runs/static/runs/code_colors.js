// The colors of Python code: in the editor, and before it is loaded.
export const KEYWORDS =
  "and|as|assert|async|await|break|class|continue|def|del|elif|else|except|False|" +
  "finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|" +
  "return|True|try|while|with|yield";
const TOKEN = new RegExp(
  [
    /(?<comment>#.*)/,
    /(?<string>[bfruBFRU]{0,2}(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?))/,
    /(?<=\b(?:def|class)\s+)(?<defined>[\p{L}_][\p{L}\p{N}_]*)/u,
    new RegExp(`(?<keyword>\\b(?:${KEYWORDS})\\b)`),
    /(?<number>\b\d[\d_.xboa-fA-FeEjJ]*)/,
    /[\p{L}_][\p{L}\p{N}_]*/u,
  ]
    .map((one) => one.source)
    .join("|"),
  "gu",
);
const COLORS = ["comment", "string", "defined", "keyword", "number"];

// What is colored in `text`, in order.
export function* findColors(text) {
  for (const { groups, index, 0: token } of text.matchAll(TOKEN)) {
    const name = COLORS.find((one) => groups[one] !== undefined);
    if (name) yield { from: index, to: index + token.length, name };
  }
}
