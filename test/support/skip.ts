import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Skips a test that this machine cannot run. In CI it fails instead, so that no test is skipped unnoticed. */
export function skipUnlessCI(context: Mocha.Context, reason: string): never {
  if (process.env['CI']) assert.fail(reason);
  console.log(`Skipped: ${reason}.`);
  context.skip();
}

/** Skips a test if programs are missing; fails in CI. */
export function needsPrograms(context: Mocha.Context, ...programs: readonly string[]): void {
  for (const program of programs) if (!pathOf(program)) skipUnlessCI(context, `${program} is not installed`);
}

/** Skips a test unless root runs it; fails in CI. */
export function needsRoot(context: Mocha.Context): void {
  if (process.getuid?.() !== 0) skipUnlessCI(context, 'it needs root');
}

/** Skips a test on other systems than Linux; fails in CI. */
export function needsLinux(context: Mocha.Context): void {
  if (process.platform !== 'linux') skipUnlessCI(context, 'it needs Linux');
}

/** The path of a program: in the PATH, or where Debian installs servers. */
export function pathOf(program: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin'];
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}
