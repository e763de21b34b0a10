import {
  anyText,
  anything,
  checkSearchText,
  DEFAULT_PAGE_SIZE,
  formatList,
  KeysError,
  MAX_PAGE_SIZE,
  normalizeText,
  orNull,
  printable,
  requirePastTime,
  type Rules,
  suggestion,
} from '../basics/index.ts';
import { AUDIT_ACTIONS, AUDIT_OUTCOMES } from './audit-entry.ts';
import type { AuditFilter } from './audit-reader.ts';

/** A user's request for entries of the audit log. Texts are as the user wrote them. */
export interface AuditRequest {
  /** The id or name of the key that was changed. */
  apiKey?: string | null;
  /** The id or name of the key, or the name of the user, that did it. */
  actor?: string | null;
  /** One of `AUDIT_ACTIONS`, case-insensitive. */
  action?: string | null;
  /** One of `AUDIT_OUTCOMES`, case-insensitive. */
  outcome?: string | null;
  /** Entries from this time on: an RFC 3339 date and time, or an age such as `24h`. */
  since?: string | null;
  /** Entries before this time, written like `since`. */
  until?: string | null;
  /** The maximum number of entries, up to 500. Default: 50. */
  first?: number | null;
}

/** The options of a request for entries. Null means that an option is not given. */
export const AUDIT_OPTIONS: Rules<AuditRequest> = {
  apiKey: orNull(anyText),
  actor: orNull(anyText),
  action: orNull(anyText),
  outcome: orNull(anyText),
  since: orNull(anyText),
  until: orNull(anyText),
  first: anything,
};

/** Parses a request for entries of the audit log. @throws KeysError INPUT_INVALID */
export function readAuditRequest(request: AuditRequest, now: number): AuditFilter & { limit: number } {
  const limit = request.first ?? DEFAULT_PAGE_SIZE;
  if (!Number.isInteger(limit) || limit < 0 || limit > MAX_PAGE_SIZE) {
    throw new KeysError('INPUT_INVALID', `"first" is ${limit}; a page has 0 to ${MAX_PAGE_SIZE} entries.`);
  }
  return {
    limit,
    apiKey: readName('key', request.apiKey),
    actor: readName('actor', request.actor),
    action: readWord('an audit action', AUDIT_ACTIONS, request.action),
    outcome: readWord('an outcome', AUDIT_OUTCOMES, request.outcome),
    since: request.since == null ? undefined : requirePastTime(request.since, now),
    until: request.until == null ? undefined : requirePastTime(request.until, now),
  };
}

/** Refuses an empty name, as from an unset variable: it must not select all entries. */
function readName(what: 'key' | 'actor', text: string | null | undefined): string | undefined {
  if (text == null) return undefined;
  checkSearchText(text);
  const name = normalizeText(text);
  if (name.trim() === '')
    throw new KeysError('INPUT_INVALID', `The ${what} is empty. Give a name or an id, or leave it out.`);
  return name;
}

/** One of several words, in any spelling. @param what the expected value, such as `an outcome` */
function readWord<Word extends string>(
  what: string,
  words: readonly Word[],
  text: string | null | undefined,
): Word | undefined {
  if (text == null) return undefined;
  const word = words.find((one) => one === text.trim().toUpperCase().replaceAll('-', '_'));
  if (!word)
    throw new KeysError(
      'INPUT_INVALID',
      `"${printable(text)}" is not ${what}. ${suggestion(text.trim(), words)}` +
        `The ${what.split(' ').at(-1)}s are ${formatList(words)}.`,
    );
  return word;
}
