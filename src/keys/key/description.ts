import type { Issue } from '../errors.ts';
import { holdsSecret } from '../secret/secret.ts';
import { codePoints, hasControlCharacters, hasTooManyMarks, MAX_MARKS, normalizeText } from '../text.ts';

/** In code points. */
export const MAX_DESCRIPTION_LENGTH = 1000;

/** A description as it is stored: NFC and trimmed; null if it is blank. */
export function normalizeDescription(description: string | null | undefined): string | null {
  return normalizeText(description ?? '').trim() || null;
}

/** Checks a description: at most 1,000 code points, no control characters, no secret. Returns the issue, if any. */
export function validateDescription(description: string): Issue | undefined {
  const length = codePoints(normalizeText(description).trim());
  if (length > MAX_DESCRIPTION_LENGTH)
    return issue(`The description is ${length} characters long; at most ${MAX_DESCRIPTION_LENGTH} are allowed.`);
  if (hasTooManyMarks(description))
    return issue(`The description has more than ${MAX_MARKS} combining marks in a row.`);
  if (hasControlCharacters(description))
    return issue('The description may not contain control characters, such as line breaks or tabs.');
  if (holdsSecret(description))
    return issue('The description contains what looks like the secret of an API key. Leave it out.');
  return undefined;
}

function issue(message: string): Issue {
  return { code: 'DESCRIPTION_INVALID', message };
}
