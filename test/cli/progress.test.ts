import assert from 'node:assert/strict';
import { progressOf } from '../../src/cli/audit/progress.ts';
import { jsonLines, openTestKeys } from '../support/keys.ts';

describe('the progress of a long command', () => {
  async function notesOf(isErrorTerminal: boolean, steps: readonly number[]): Promise<string[]> {
    const notes: string[] = [];
    const note = async (text: string) => void notes.push(text);
    const report = progressOf({ isErrorTerminal, note }, { verb: 'Verified', plural: 'entries' });
    for (const done of steps) await report(done);
    return notes;
  }

  it('is noted at every 100,000, if somebody may be watching', async () => {
    const steps = [1000, 99_000, 100_500, 199_000, 201_000, 250_000, 1000, 100_000];
    assert.deepEqual(await notesOf(true, steps), [
      'Verified 100000 entries.',
      'Verified 200000 entries.',
      'Verified 100000 entries.',
    ]);
    assert.deepEqual(await notesOf(false, steps), []);
  });

  it('is that of the pages that were verified and compared', async () => {
    const { keys, store } = await openTestKeys();
    const line = (_: unknown, index: number) => ({
      name: `Imported ${index}`,
      sha256: index.toString(16).padStart(64, '0'),
      roles: ['GUEST'],
    });
    await keys.importKeys(jsonLines(...Array.from({ length: 1500 }, line)));
    const done: number[] = [];
    const report = async (count: number) => void done.push(count);
    await keys.verifyAuditLog(undefined, report);
    await keys.compareWithAuditLog(report);
    assert.deepEqual(done, [1000, 1500, 500, 1000, 1500, 1500]);
    await store.close();
  });
});
