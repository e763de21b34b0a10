import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Skips a test that this machine cannot run. In CI it fails: there, none may be left out unnoticed. */
export function skipUnlessCI(context: Mocha.Context, reason: string): never {
  if (process.env['CI']) assert.fail(reason);
  console.log(`Skipped: ${reason}.`);
  context.skip();
}

/** Leaves a test to machines on which programs are installed, and to CI. */
export function needsPrograms(context: Mocha.Context, ...programs: readonly string[]): void {
  for (const program of programs) if (!pathOf(program)) skipUnlessCI(context, `${program} is not installed`);
}

/** Leaves a test to root, and to CI. */
export function needsRoot(context: Mocha.Context): void {
  if (process.getuid?.() !== 0) skipUnlessCI(context, 'it needs root');
}

/** Leaves a test to Linux, and to CI. */
export function needsLinux(context: Mocha.Context): void {
  if (process.platform !== 'linux') skipUnlessCI(context, 'it needs Linux');
}

/** The path of a program: in the PATH, or where Debian has servers. */
export function pathOf(program: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'];
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}
