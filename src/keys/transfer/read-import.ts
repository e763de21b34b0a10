import type { StoredKey } from '../key/api-key.ts';
import type { Catalog } from '../permissions/catalog.ts';
import { normalizeDescription } from '../key/description.ts';
import type { ErrorCode, Issue } from '../errors.ts';
import { readExpiry } from '../key/expiry.ts';
import { formatTime, readDate } from '../time.ts';
import { type ImportedFields, readFields } from './imported-fields.ts';
import { type ImportedSecret, readImportedSecret } from './imported-secret.ts';
import { type Line, MAX_LINE_BYTES, linesOf } from './lines.ts';
import { validateName, normalizeName } from '../key/name.ts';
import type { RandomBytes } from '../secret/secret.ts';
import { validateNewKey, readGrants } from '../key/validation.ts';

/** What reading a file of keys depends on. */
export interface ImportSurroundings {
  catalog: Catalog;
  /** Milliseconds since 1970. */
  now: number;
  randomBytes: RandomBytes;
  randomId: () => string;
}

/** Something that is worth knowing of a key that can be imported. */
export interface ImportWarning {
  code: 'SECRET_GUESSABLE' | 'EXPIRED';
  message: string;
}

/** A line of a file of keys. */
export interface ImportLine {
  /** Counted from 1, with the empty ones. */
  line: number;
  /** The name of the key, where it may be shown. */
  name: string | null;
  /** The id that it is to have, where the line says so. */
  id?: string | undefined;
  /** The key, where nothing is wrong with it by itself. */
  key?: StoredKey;
  errors: readonly { code: ErrorCode; message: string }[];
  warnings: readonly ImportWarning[];
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const UNREADABLE = {
  TOO_LONG: `The line is longer than ${MAX_LINE_BYTES / 1024} KiB.`,
  NOT_UTF8: 'The line is no text in UTF-8.',
};

/** Reads keys from JSON lines. Empty lines are passed over. */
export async function readImport(
  input: AsyncIterable<Uint8Array>,
  surroundings: ImportSurroundings,
): Promise<ImportLine[]> {
  const read: ImportLine[] = [];
  for await (const line of linesOf(input)) {
    if ('text' in line && line.text.trim() === '') continue;
    read.push(readLine(line, surroundings));
  }
  return read;
}

function readLine(line: Line, surroundings: ImportSurroundings): ImportLine {
  const none = { line: line.number, name: null, warnings: [] };
  if ('unreadable' in line) return { ...none, errors: [invalid(UNREADABLE[line.unreadable])] };
  const { fields, issues } = readFields(line.text);
  return fields ? { ...none, ...readKey(fields, issues, surroundings) } : { ...none, errors: issues };
}

function readKey(
  { expiresAt, ...fields }: ImportedFields,
  issues: readonly Issue[],
  { catalog, now, randomBytes, randomId }: ImportSurroundings,
): Omit<ImportLine, 'line'> {
  const errors = [...issues, ...validateNewKey(fields, catalog, now)];
  const secret = accept(readImportedSecret(fields, randomBytes));
  const end = accept(expiresAt === undefined ? null : readEnd(expiresAt, now));
  const id = accept(readId(fields.id, 'id'));
  const createdAt = accept(readCreation(fields.createdAt, now));
  const createdBy = accept(readId(fields.createdBy, 'createdBy'));
  const name = validateName(fields.name) ? null : normalizeName(fields.name);
  if (!secret || name === null || errors.length > 0) return { name, id, errors, warnings: [] };
  const key = {
    id: id ?? randomId(),
    name,
    description: normalizeDescription(fields.description),
    ...readGrants(fields, catalog),
    publicId: secret.publicId,
    createdAt: createdAt ?? now,
    createdBy: createdBy ?? null,
    expiresAt: end ?? null,
    disabledAt: fields.disabled ? now : null,
    managed: false,
    rotation: null,
    digest: secret.digest,
    previousDigest: null,
  };
  return { name, id, key, errors, warnings: warningsOf(key, secret, now) };

  function accept<Value>(read: Value | Issue): Value | undefined {
    if (!isIssue(read)) return read;
    errors.push(read);
    return undefined;
  }
}

/** When an imported key ends. Unlike that of a new one, its end may be past. */
function readEnd(text: string, now: number): number | null | Issue {
  const instant = readDate(text);
  return instant !== undefined && instant <= now ? instant : readExpiry({ expiresAt: text }, now);
}

function readCreation(text: string | undefined, now: number): number | Issue {
  if (text === undefined) return now;
  const instant = readDate(text);
  // Times before 1970 have no place in a cursor of the list.
  return instant === undefined || instant < 0
    ? invalid('"createdAt" is not a date and time by RFC 3339, such as 2025-12-31T23:59:59Z, from 1970 on.')
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
