import { lstatSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { listOf, printable } from '../../keys/text.ts';

/** A hidden file of `SecretFiles`: the process that wrote it, and whether it keeps an older secret. */
const HIDDEN = /^\.svc-api-(?:(?<pid>\d{1,10})-)?[0-9a-f]{16}(?<previous>-previous)?$/;
/** Far more than a secret takes. */
const MAX_BYTES = 1000;
/** How many files are named. */
const MAX_SHOWN = 5;

/** The name of a hidden file of this process, to which `random` adds 16 hexadecimal digits. */
export function hiddenName(random: string): string {
  return `.svc-api-${process.pid}-${random}`;
}

type Outcome = 'Removed' | 'Recovered' | 'Left alone';
/** Why, behind the names of the files. */
const REASONS: Readonly<Record<Outcome, string>> = {
  Removed: 'secrets that work nowhere, or that another file has',
  Recovered: 'secrets that work, now in the files that were meant for them',
  'Left alone': 'not files with a secret, or their place is taken by another secret that works',
};

/**
 * Tidies a folder of secrets after an apply that was killed. A secret that works gets the file that was meant for it;
 * one that works nowhere is removed.
 * @param nameOf the name of the key that a secret belongs to and works for
 * @returns what was done, in sentences
 */
export async function tidyLeftovers(
  folder: string,
  nameOf: (secret: string) => Promise<string | undefined>,
): Promise<string[]> {
  const done: { outcome: Outcome; file: string }[] = [];
  for (const file of leftoversIn(folder)) done.push({ file, outcome: await tidy(join(folder, file), folder, nameOf) });
  return [...Map.groupBy(done, ({ outcome }) => outcome)].map(([outcome, files]) => {
    const shown = files.slice(0, MAX_SHOWN).map(({ file }) => file);
    if (files.length > MAX_SHOWN) shown.push(`${files.length - MAX_SHOWN} more`);
    const where = `of an apply that was killed, in ${printable(folder, 200)}`;
    return `${outcome}: ${listOf(shown)}, ${where}: ${REASONS[outcome]}.`;
  });
}

/** Those that keep older secrets come last: a newer one goes first. */
function leftoversIn(folder: string): string[] {
  const files = list(folder).flatMap((name) => {
    const { pid, previous } = HIDDEN.exec(name)?.groups ?? { pid: 'none' };
    return pid === 'none' || isRunning(Number(pid)) ? [] : [{ name, isPrevious: previous !== undefined }];
  });
  return files.toSorted((one, other) => Number(one.isPrevious) - Number(other.isPrevious)).map(({ name }) => name);
}

async function tidy(
  path: string,
  folder: string,
  nameOf: (secret: string) => Promise<string | undefined>,
): Promise<Outcome> {
  const secret = secretIn(path);
  if (secret === undefined) return 'Left alone';
  const name = await nameOf(secret);
  const target = name === undefined ? undefined : join(folder, name);
  const there = target === undefined ? undefined : secretIn(target);
  if (target === undefined || there === secret) {
    rmSync(path);
    return 'Removed';
  }
  const isFree = !lstatSync(target, { throwIfNoEntry: false });
  if (!isFree && (there === undefined || (await nameOf(there)) !== undefined)) return 'Left alone';
  renameSync(path, target);
  return 'Recovered';
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // Writing there will say what is wrong with it.
  }
}

function secretIn(path: string): string | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile() || stat.size > MAX_BYTES) return undefined;
  return readFileSync(path, 'utf8').trim();
}

/** Whether the process that wrote a file is still at work. Before it has written any, the own id is that of another. */
function isRunning(pid: number): boolean {
  if (!(pid > 0) || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
