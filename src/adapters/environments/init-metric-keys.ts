/** Most names that one object gives. */
const mostNames = 50;

/** Dotted names of the leaves of an object or dict literal that starts at `start`; what it cannot follow it leaves out. */
export function literalKeys(text: string, start: number): string[] {
  const found: string[] = [];
  const path: string[] = [];
  const opened: { readonly named: boolean; readonly bracket: string }[] = [];
  let key: string | null = null;
  const tokens = /\\.|(["'`])((?:\\.|(?!\1)[^\\\n])*)\1|[{}()[\],:]|[A-Za-z_$][\w$]*|\.\.\.|[^\s]/g;
  tokens.lastIndex = start;
  let before = "{";
  for (let token = tokens.exec(text); token !== null && token.index < start + 10_000; token = tokens.exec(text)) {
    const [word, quote, quoted] = token;
    const inObject = opened.at(-1)?.bracket === "{";
    if (/^[{([]$/.test(word)) {
      const named = word === "{" && key !== null && before === ":";
      if (named && key !== null) path.push(key);
      else if (key !== null) found.push([...path, key].join(".")); // a call or a list is a value as well
      opened.push({ named, bracket: word });
      key = null;
    } else if (/^[})\]]$/.test(word)) {
      if (inObject && key !== null) found.push([...path, key].join("."));
      key = null;
      if (opened.pop()?.named === true) path.pop();
      if (opened.length === 0) break;
    } else if (inObject && word === ",") {
      if (key !== null) found.push([...path, key].join("."));
      key = null;
    } else if (inObject && /^[{,]$/.test(before) && (quote !== undefined || /^[A-Za-z_$]/.test(word))) {
      key = quoted ?? word;
    }
    before = word;
  }
  return [...new Set(found)].slice(0, mostNames);
}

/** Dotted names of the numbers in a JSON document, two levels deep and one more. */
export function numberKeys(text: string): string[] {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return [];
  }
  const found: string[] = [];
  const visit = (value: unknown, path: readonly string[]): void => {
    if (typeof value === "number" && Number.isFinite(value) && path.length > 0) found.push(path.join("."));
    if (typeof value !== "object" || value === null || Array.isArray(value) || path.length >= 3) return;
    for (const [name, inner] of Object.entries(value).slice(0, mostNames)) visit(inner, [...path, name]);
  };
  visit(document, []);
  return found.slice(0, mostNames);
}
