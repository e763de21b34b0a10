import { Buffer } from 'node:buffer';
import { closeSync, type Dirent, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { CliError } from '../../../cli/errors.ts';
import type { Identification, SecretStatus } from '../../../keys/authentication/index.ts';
import { OPERATOR } from '../../../keys/authorization/index.ts';
import type { Leak } from '../../leaks/leaks.ts';
import { isKeysError, type KeysError, printable, type ProgressReport } from '../../../keys/basics/index.ts';
import type { ApiKey } from '../../../keys/key/index.ts';
import { prefixOf } from '../../../keys/secret/index.ts';
import type { OpenKeys } from '../../../service/open-keys.ts';
import { type FoundSecret, SecretFinder } from './secret-finder.ts';

/** A finding of another scanner. */
interface ReportedFinding {
  /** The file; in a repository's history as git names it, `<commit>:<file>`. */
  place: string;
  /** Counts from 1. */
  line: number;
  column: number;
  /** The found text, unchanged. */
  text: string;
}

/**
 * Reads a report of gitleaks 8 (`--report-format json`, an array) or TruffleHog 3 (`--json`, an object a line).
 * @param path of a file; - for stdin
 * @throws CliError USAGE if it is none, or was redacted
 */
async function readReport(path: string): Promise<ReportedFinding[]> {
  const invalid = (why: string) =>
    new CliError('USAGE', `${printable(path, 300)} is not a report of gitleaks or TruffleHog in JSON: ${why}.`);
  const text = await (path === '-' ? readAll(process.stdin) : readFile(path, 'utf8')).catch((error: unknown) => {
    throw invalid(`it could not be read (${(error as NodeJS.ErrnoException).code})`);
  });
  let entries: unknown[];
  try {
    const isArray = /^\s*\[/.test(text);
    entries = isArray
      ? (JSON.parse(text) as unknown[])
      : text
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line));
  } catch {
    throw invalid('it is not JSON');
  }
  return entries.map((entry, index) => {
    const finding = parseFinding(entry);
    if (!finding) throw invalid(`entry ${index + 1} is not a finding`);
    if (!finding.text.includes('REDACTED')) return finding;
    throw invalid(`entry ${index + 1} is redacted. Run gitleaks without --redact`);
  });
}

/** As far as an entry has these. */
interface Entry {
  File?: unknown;
  Commit?: unknown;
  StartLine?: unknown;
  StartColumn?: unknown;
  Secret?: unknown;
  Match?: unknown;
  Raw?: unknown;
  SourceMetadata?: { Data?: Record<string, { file?: unknown; commit?: unknown; line?: unknown }> };
}

function parseFinding(entry: unknown): ReportedFinding | undefined {
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { File, Commit, StartLine, StartColumn, Secret, Match, Raw, SourceMetadata } = entry as Entry;
  const [source] = Object.values(SourceMetadata?.Data ?? {});
  const [file, commit] = [File ?? source?.file, Commit ?? source?.commit];
  const texts = [Secret, Match, Raw].filter((text) => typeof text === 'string');
  if (typeof file !== 'string' || texts.length === 0) return undefined;
  const place = typeof commit === 'string' && commit !== '' ? `${commit}:${file}` : file;
  return { place, line: countFrom(StartLine ?? source?.line), column: countFrom(StartColumn), text: texts.join('\n') };
}

function countFrom(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 1;
}

/** A found secret as JSON: a closed list of fields, without the secret itself. */
export interface Finding {
  /** As it can be shown: without control characters, and with secrets redacted. */
  path: string;
  line: number;
  column: number;
  prefix: string;
  /** UNKNOWN if no key in the store has the secret. */
  status: SecretStatus | 'UNKNOWN';
  name: string | null;
  id: string | null;
}

export interface ScanOptions {
  /** Files, folders, and - for stdin. */
  paths: readonly string[];
  /** Reports of other scanners: see `readReport`. */
  reports: readonly string[];
  /** @param place where it was found, as it can be shown */
  identify: (secret: string, place: string) => Promise<Identification>;
  onFound: (findings: Finding[]) => Promise<void>;
  /** Called for what could not be read; the scan continues. */
  onUnreadable: (text: string) => void;
  /** Told after each piece how many bytes were read. */
  onProgress?: ProgressReport;
}

/** The longest path that is shown in full. */
const MAX_PATH_LENGTH = 4096;

/** A source to read. A chunk is valid until the next one is requested. */
interface Source {
  path: Buffer;
  chunks: Iterable<Buffer> | AsyncIterable<Buffer>;
  /** The user named it. A file found in a folder may be gone before it is read. */
  named: boolean;
}

/** Called for each path that can't be read. */
type OnUnreadable = (path: Buffer, error: unknown) => void;

const CHUNK_BYTES = 256 * 1024;
const STDIN = '-';
const SEPARATOR = Buffer.from('/');
const GIT = Buffer.from('.git');

/**
 * Looks for secrets in files, folders, stdin and reports of other scanners.
 * @returns the number of files read
 * @throws CliError USAGE for an invalid report; KeysError STORE_…
 */
export async function scan(options: ScanOptions): Promise<number> {
  const { paths, reports, identify, onFound, onUnreadable, onProgress } = options;
  const unreadable: OnUnreadable = (path, error) =>
    onUnreadable(`${shown(path)} could not be read: ${reasonOf(error)}.`);
  let [files, bytes] = [0, 0];
  for (const report of reports) {
    for (const { place, line, column, text } of await readReport(report)) {
      const path = Buffer.from(place);
      const once = new Map<string, FoundSecret>();
      for (const found of new SecretFinder().find(Buffer.from(text))) once.set(found.secret, found);
      for (const found of once.values()) {
        const identified = await identify(found.secret, `${shown(path)}:${line}:${column}`);
        await onFound([foundIn(path, { ...found, line, column }, identified)]);
      }
    }
    files += 1;
  }
  for (const source of sourcesOf(paths, unreadable)) {
    const finder = new SecretFinder();
    files += 1;
    const failed = (error: unknown) => {
      files -= 1;
      if (source.named || !isGone(error)) unreadable(source.path, error);
    };
    for await (const chunk of chunksOf(source, failed)) {
      const findings: Finding[] = [];
      const size = chunk.length;
      for (const found of finder.find(chunk)) {
        const place = `${shown(source.path)}:${found.line}:${found.column}`;
        findings.push(foundIn(source.path, found, await identify(found.secret, place)));
      }
      if (findings.length > 0) await onFound(findings);
      bytes += size;
      await onProgress?.(bytes);
    }
  }
  return files;
}

/** Lists sources of paths: files, files in folders, and stdin for `-`. */
function* sourcesOf(paths: readonly string[], onUnreadable: OnUnreadable): Generator<Source> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (const name of paths) {
    const path = Buffer.from(name);
    if (name === STDIN) yield { path, chunks: process.stdin, named: true };
    else if (!isFolder(name)) yield { path, chunks: readPieces(path, buffer), named: true };
    else
      for (const file of filesIn(path, onUnreadable))
        yield { path: file, chunks: readPieces(file, buffer), named: false };
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // Reading it will report the problem.
  }
}

/**
 * The files below a folder, sorted by name. Links are not followed, and folders named .git are skipped. Paths are
 * bytes: file names need not be UTF-8.
 */
function* filesIn(folder: Buffer, onUnreadable: OnUnreadable): Generator<Buffer> {
  let entries: Dirent<Buffer>[] = [];
  try {
    entries = readdirSync(folder, { withFileTypes: true, encoding: 'buffer' });
  } catch (error) {
    onUnreadable(folder, error);
  }
  for (const entry of entries.toSorted((one, other) => Buffer.compare(one.name, other.name))) {
    const path = Buffer.concat([folder, ...(folder.at(-1) === SEPARATOR[0] ? [] : [SEPARATOR]), entry.name]);
    if (entry.isFile()) yield path;
    else if (entry.isDirectory() && !entry.name.equals(GIT)) yield* filesIn(path, onUnreadable);
  }
}

/** The bytes of a file, each chunk read into the same buffer. */
function* readPieces(path: Buffer, buffer: Buffer): Generator<Buffer> {
  const descriptor = openSync(path, 'r');
  try {
    for (let length = readSync(descriptor, buffer); length > 0; length = readSync(descriptor, buffer))
      yield buffer.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/** The chunks of a source, up to the first that can't be read. */
async function* chunksOf({ chunks }: Source, failed: (error: unknown) => void): AsyncGenerator<Buffer> {
  try {
    yield* chunks;
  } catch (error) {
    failed(error);
  }
}

function foundIn(path: Buffer, { publicId, line, column }: FoundSecret, found: Identification): Finding {
  const { apiKey, status } = 'apiKey' in found ? found : { apiKey: undefined, status: 'UNKNOWN' as const };
  return {
    path: shown(path),
    line,
    column,
    prefix: prefixOf(publicId),
    status,
    name: apiKey?.name ?? null,
    id: apiKey?.id ?? null,
  };
}

function shown(path: Buffer): string {
  return printable(path.toString(), MAX_PATH_LENGTH);
}

function isGone(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' ? 'there is no such file' : (code ?? printable(message, 300));
}

/** Maximum number of remembered secrets, so that a repeated one is looked up once. */
const MAX_ENTRIES = 10_000;

export class FoundKeys {
  readonly #keys: OpenKeys;
  readonly #onRevoked: ((key: ApiKey) => Promise<void>) | undefined;
  readonly #known = new Map<string, Identification>();
  readonly #live = new Set<string>();
  #revoked = 0;
  #unnoted: KeysError | undefined;

  /** @param onRevoked called for each key after it was disabled; if undefined, none is */
  constructor(keys: OpenKeys, onRevoked: ((key: ApiKey) => Promise<void>) | undefined) {
    this.#keys = keys;
    this.#onRevoked = onRevoked;
  }

  get live(): number {
    return this.#live.size;
  }

  /** The reason that some findings are not in the audit log, if any. */
  get unnoted(): KeysError | undefined {
    return this.#unnoted;
  }

  /** Number of disabled keys. */
  get revoked(): number {
    return this.#revoked;
  }

  /**
   * Identifies a secret's key, with its status when it was first found. That it works is noted in the audit log.
   * @throws KeysError STORE_…
   */
  async identify(secret: string, place: string): Promise<Identification> {
    const known = this.#known.get(secret);
    if (known) return known;
    const found = await this.#keys.identify(secret, OPERATOR);
    if ('apiKey' in found && found.status === 'ACTIVE') this.#live.add(found.apiKey.id);
    // A key that is refused only because of a parent key would work again with that one.
    if ('apiKey' in found && found.status !== 'ROTATED' && this.#isActiveByItself(found.apiKey)) {
      await this.#note({ id: found.apiKey.id, publicId: found.publicId, place });
      await this.#revoke(found.apiKey);
    }
    if (this.#known.size >= MAX_ENTRIES) this.#known.clear();
    this.#known.set(secret, found);
    return found;
  }

  /** A finding counts even if it cannot be logged, as in a read-only store. */
  async #note(leak: Leak): Promise<void> {
    if (this.#unnoted) return;
    try {
      const { Leaks } = await import('../../leaks/leaks.ts');
      await this.#keys.feature(Leaks).note(leak);
    } catch (error) {
      if (!isKeysError(error) || !error.code.startsWith('STORE_')) throw error;
      this.#unnoted = error;
    }
  }

  #isActiveByItself(key: ApiKey): boolean {
    return this.#keys.statusOf({ keys: [key], isComplete: true }) === 'ACTIVE';
  }

  async #revoke(key: ApiKey): Promise<void> {
    if (!this.#onRevoked) return;
    const { before, after } = await this.#keys.setEnabled(key.id, false, OPERATOR);
    if (before.disabledAt !== null) return;
    this.#revoked += 1;
    await this.#onRevoked(after);
  }
}
