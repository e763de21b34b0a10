import { violationsOfNew } from '../authorization/policy.ts';
import { OPERATOR } from '../authorization/principal.ts';
import type { StoredKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import type { ErrorCode, Issue } from '../errors.ts';
import { readExpiry } from '../key/expiry.ts';
import { formatTime, readDate } from '../time.ts';
import { type ImportedFields, readFields } from './imported-fields.ts';
import { type ImportedSecret, readImportedSecret } from './imported-secret.ts';
import { type Line, MAX_LINE_BYTES, linesOf } from './lines.ts';
import { validateName, normalizeName } from '../key/name.ts';
import type { RandomBytes } from '../secret/secret.ts';
import { readNewFields, validateNewKey } from '../key/validation.ts';

/** What reading an import depends on. */
export interface ImportContext {
  catalog: Catalog;
  /** Milliseconds since 1970. */
  now: number;
  randomBytes: RandomBytes;
  randomId: () => string;
}

/** Why a line cannot be imported. */
export interface ImportProblem {
  /** Stable between versions. */
  code: ErrorCode;
  /** A sentence, without any secret. */
  message: string;
}

/** What is worth knowing about a key that can be imported. */
export interface ImportWarning {
  /** Stable between versions. */
  code: 'SECRET_GUESSABLE' | 'EXPIRED' | 'NAME_CONFUSABLE';
  /** A sentence, without any secret. */
  message: string;
}

/** A parsed line. */
export interface ImportLine {
  /** Its number, counted from 1, including empty lines. */
  line: number;
  /** The name of the key; null if it is invalid. */
  name: string | null;
  /** The id of the key, if the line gives one. */
  id?: string | undefined;
  /** The key, if it is valid by itself. */
  key?: StoredKey;
  errors: readonly ImportProblem[];
  warnings: readonly ImportWarning[];
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const UNREADABLE = {
  TOO_LONG: `The line is longer than ${MAX_LINE_BYTES / 1024} KiB.`,
  NOT_UTF8: 'The line is not valid UTF-8.',
};

/** Reads keys from JSON lines. Empty lines are skipped. */
export async function readImport(input: AsyncIterable<Uint8Array>, context: ImportContext): Promise<ImportLine[]> {
  const read: ImportLine[] = [];
  for await (const line of linesOf(input)) {
    if ('text' in line && line.text.trim() === '') continue;
    read.push(readLine(line, context));
  }
  return read;
}

function readLine(line: Line, context: ImportContext): ImportLine {
  const base = { line: line.number, name: null, warnings: [] };
  if ('unreadable' in line) return { ...base, errors: [invalid(UNREADABLE[line.unreadable])] };
  const { fields, issues } = readFields(line.text);
  return fields ? { ...base, ...readKey(fields, issues, context) } : { ...base, errors: issues };
}

function readKey(
  { expiresAt, ...fields }: ImportedFields,
  issues: readonly Issue[],
  { catalog, now, randomBytes, randomId }: ImportContext,
): Omit<ImportLine, 'line'> {
  const errors: ImportProblem[] = [...issues, ...validateNewKey(fields, catalog, now)].map(({ code, message }) => ({
    code,
    message,
  }));
  const secret = accept(readImportedSecret(fields, randomBytes));
  const expiry = accept(expiresAt === undefined ? null : readImportedExpiry(expiresAt, now));
  const id = accept(readId(fields.id, 'id'));
  const createdAt = accept(readCreation(fields.createdAt, now));
  const createdBy = accept(readId(fields.createdBy, 'createdBy'));
  const name = validateName(fields.name) ? null : normalizeName(fields.name);
  if (!secret || name === null || errors.length > 0) return { name, id, errors, warnings: [] };
  const key = {
    id: id ?? randomId(),
    ...readNewFields(fields, catalog),
    publicId: secret.publicId,
    createdAt: createdAt ?? now,
    createdBy: createdBy ?? null,
    expiresAt: expiry ?? null,
    disabledAt: fields.disabled ? now : null,
    managed: false,
    rotation: null,
    digest: secret.digest,
    previousDigest: null,
  };
  const violations = violationsOfNew(key, { caller: OPERATOR, catalog, now });
  const forbidden = violations.map((message): ImportProblem => ({ code: 'POLICY_VIOLATED', message }));
  return { name, id, key, errors: forbidden, warnings: warningsOf(key, secret, now) };

  function accept<Value>(read: Value | Issue): Value | undefined {
    if (!isIssue(read)) return read;
    errors.push(read);
    return undefined;
  }
}

/** The expiry of an imported key, which may be past, unlike that of a new one. */
function readImportedExpiry(text: string, now: number): number | null | Issue {
  const instant = readDate(text);
  return instant !== undefined && instant <= now ? instant : readExpiry({ expiresAt: text }, now);
}

function readCreation(text: string | undefined, now: number): number | Issue {
  if (text === undefined) return now;
  const instant = readDate(text);
  // A cursor of the list cannot hold times before 1970.
  return instant === undefined || instant < 0
    ? invalid('"createdAt" is not an RFC 3339 date and time from 1970 on, such as 2025-12-31T23:59:59Z.')
    : instant;
}

function readId(text: string | undefined, field: string): string | undefined | Issue {
  if (text === undefined || UUID.test(text)) return text?.toLowerCase();
  return invalid(`"${field}" is not a UUID. Leave it out for a key that was made elsewhere.`);
}

function warningsOf({ expiresAt }: StoredKey, { guessable }: ImportedSecret, now: number): ImportWarning[] {
  const warnings: ImportWarning[] = [];
  if (guessable)
    warnings.push({
      code: 'SECRET_GUESSABLE',
      message: 'The secret is so short that it may be guessed. Give the key a new one soon.',
    });
  if (expiresAt !== null && expiresAt <= now)
    warnings.push({ code: 'EXPIRED', message: `It expired at ${formatTime(expiresAt)}.` });
  return warnings;
}

function isIssue(value: unknown): value is Issue {
  return typeof value === 'object' && value !== null && 'message' in value;
}

function invalid(message: string): Issue {
  return { code: 'INPUT_INVALID', message };
}
