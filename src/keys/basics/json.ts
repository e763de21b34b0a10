/** True if an object in a JSON text has a field twice, of which `JSON.parse` keeps the last. */
export function hasFieldTwice(text: string, parsed: unknown): boolean {
  return countJson(text).fields !== countFields(parsed);
}

const [QUOTE, BACKSLASH, COLON, COMMA, BRACKET, BRACE] = Array.from('"\\:,[{', (character) => character.charCodeAt(0));

/**
 * The number of fields in a JSON text, duplicates included, and an upper bound of its values, from the colons, commas
 * and brackets outside strings.
 */
export function countJson(text: string): { fields: number; values: number } {
  let [fields, values] = [0, 1];
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at);
    else if (character === COLON) fields += 1;
    else if (character === COMMA || character === BRACKET || character === BRACE) values += 1;
  }
  return { fields, values };
}

/** The end of the JSON string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === BACKSLASH) at += 1;
    else if (character === QUOTE) return at;
  }
  return text.length;
}

/** The number of fields of all objects in a value, at any depth. */
export function countFields(value: unknown): number {
  let count = 0;
  const left = [value];
  while (left.length > 0) {
    const part = left.pop();
    if (typeof part !== 'object' || part === null) continue;
    const parts: unknown[] = Array.isArray(part) ? part : Object.values(part);
    if (parts !== part) count += parts.length;
    for (const each of parts) if (typeof each === 'object') left.push(each);
  }
  return count;
}
