/** Tells whether an object in a text of JSON has a field twice; `JSON.parse` gives the last value of such a field. */
export function hasFieldTwice(text: string, parsed: unknown): boolean {
  return countJson(text).fields !== countFields(parsed);
}

const [QUOTE, BACKSLASH, COLON, COMMA, BRACKET, BRACE] = Array.from('"\\:,[{', (character) => character.charCodeAt(0));

/**
 * How many fields objects have in a text of JSON, also those that are there twice, and how many values there are at
 * most: by its colons, commas and brackets outside of strings.
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

/** The end of a string that begins here in a text of JSON. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === BACKSLASH) at += 1;
    else if (character === QUOTE) return at;
  }
  return text.length;
}

/** How many fields the objects in a value have, however deep they nest. */
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
