import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { printable } from '../../keys/text.ts';
import { CliError } from '../errors.ts';

/** Something that another scanner has found. */
export interface ReportedFinding {
  /** The file; in a repository's history as git names it, `<commit>:<file>`. */
  place: string;
  /** Counts from 1. */
  line: number;
  column: number;
  /** What was found, as it stands there. */
  text: string;
}

/**
 * Reads a report of gitleaks 8 (`--report-format json`, an array) or TruffleHog 3 (`--json`, an object a line).
 * @param path of a file; - for stdin
 * @throws CliError USAGE if it is none, or was redacted
 */
export async function readReport(path: string): Promise<ReportedFinding[]> {
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
    const finding = findingOf(entry);
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

function findingOf(entry: unknown): ReportedFinding | undefined {
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
