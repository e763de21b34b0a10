import type { Identification, SecretStatus } from '../../keys/authentication/identify.ts';
import type { ProgressReport } from '../../keys/progress.ts';
import { prefixOf } from '../../keys/secret/secret.ts';
import { type FoundSecret, SecretFinder } from '../../keys/secret/secret-finder.ts';
import { printable } from '../../keys/text.ts';
import { type Source, sourcesOf } from './sources.ts';

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
  paths: readonly string[];
  /** Whether to skip what git ignores. */
  git: boolean;
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

/**
 * Looks for secrets in files, folders and stdin.
 * @returns how many files were read
 * @throws CliError USAGE; KeysError STORE_…
 */
export async function scan({ paths, git, identify, onFound, onUnreadable, onProgress }: ScanOptions): Promise<number> {
  const unreadable = (path: Buffer, error: unknown) =>
    onUnreadable(`${shown(path)} could not be read: ${reasonOf(error)}.`);
  let [files, bytes] = [0, 0];
  for await (const source of sourcesOf(paths, git, unreadable)) {
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
