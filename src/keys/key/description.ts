import type { Fault } from '../errors.ts';
import { codePoints, hasControlCharacters } from '../text.ts';

export const DESCRIPTION_LIMIT = 1000;

/** A description as it is stored: NFC and trimmed; nothing at all where only blanks are left. */
export function normalizeDescription(description: string | null | undefined): string | null {
  return description?.normalize('NFC').trim() || null;
}

/** Checks a description: at most 1,000 code points and no control characters. Returns what is wrong, or nothing. */
export function descriptionFault(description: string): Fault | undefined {
  const length = codePoints(description.normalize('NFC').trim());
  if (length > DESCRIPTION_LIMIT)
    return fault(`The description is ${length} characters long; at most ${DESCRIPTION_LIMIT} are allowed.`);
  if (hasControlCharacters(description))
    return fault('The description may not contain control characters, such as line breaks or tabs.');
  return undefined;
}

function fault(message: string): Fault {
  return { code: 'DESCRIPTION_INVALID', message };
}
