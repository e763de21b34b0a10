import assert from 'node:assert/strict';

/** Skips a test that this machine cannot run. In CI it fails: there, none may be left out unnoticed. */
export function skipUnlessCI(context: Mocha.Context, reason: string): never {
  if (process.env['CI']) assert.fail(reason);
  console.log(`Skipped: ${reason}.`);
  context.skip();
}
