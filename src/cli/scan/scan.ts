import { Buffer } from 'node:buffer';
import { closeSync, type Dirent, openSync, readdirSync, readSync, statSync } from 'node:fs';
import type { Identification, SecretStatus } from '../../keys/authentication/identify.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import { prefixOf } from '../../keys/secret/secret.ts';
import { type FoundSecret, SecretFinder } from '../../keys/secret/secret-finder.ts';
import { printable } from '../../keys/text.ts';
import { readReport } from './report.ts';

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
  /** Called with findings as they are found. */
  onFound: (findings: Finding[]) => Promise<void>;
  /** Called for what could not be read; the scan continues. */
  onUnreadable: (text: string) => void;
  /** Told after each piece how many bytes were read. */
  onProgress?: ProgressReport;
}

/** The longest path that is shown in full. */
const MAX_PATH_LENGTH = 4096;

/** Something to read. A chunk is valid until the next one is requested. */
interface Source {
  path: Buffer;
  chunks: Iterable<Buffer> | AsyncIterable<Buffer>;
  /** Whether the user named it. A file that was only found in a folder may be gone before it is read. */
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
 * @returns how many files were read
 * @throws CliError USAGE for a report that is none; KeysError STORE_…
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
        await onFound([findingOf(path, { ...found, line, column }, identified)]);
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
        findings.push(findingOf(source.path, found, await identify(found.secret, place)));
      }
      if (findings.length > 0) await onFound(findings);
      bytes += size;
      await onProgress?.(bytes);
    }
  }
  return files;
}

/** What paths lead to: files, the files in folders, and stdin for `-`. */
function* sourcesOf(paths: readonly string[], onUnreadable: OnUnreadable): Generator<Source> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (const name of paths) {
    const path = Buffer.from(name);
    if (name === STDIN) yield { path, chunks: process.stdin, named: true };
    else if (!isFolder(name)) yield { path, chunks: readFile(path, buffer), named: true };
    else
      for (const file of filesIn(path, onUnreadable))
        yield { path: file, chunks: readFile(file, buffer), named: false };
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
function* readFile(path: Buffer, buffer: Buffer): Generator<Buffer> {
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

function findingOf(path: Buffer, { publicId, line, column }: FoundSecret, found: Identification): Finding {
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
