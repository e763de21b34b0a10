import assert from 'node:assert/strict';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FileWatch } from '../../src/file-watch.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

describe('a watched file', () => {
  let path: string;
  let changes: number;
  let due: (() => void)[];
  let watch: FileWatch;
  beforeEach(() => {
    path = join(tempFolder(), 'file');
    writeFileSync(path, 'one');
    [changes, due] = [0, []];
    watch = new FileWatch([path], (work) => due.push(work));
  });

  /** Triggers one check of the file. */
  const look = async () => {
    due.shift()!();
    await until(() => due.length > 0);
    return changes;
  };

  it('is reported once it stays as it is, not while it is written', async () => {
    watch.start(() => void (changes += 1));
    assert.deepEqual([await look(), await look()], [0, 0]);
    truncateSync(path);
    assert.equal(await look(), 0);
    writeFileSync(path, 'tw');
    assert.equal(await look(), 0);
    writeFileSync(path, 'two');
    assert.deepEqual([await look(), await look(), await look()], [0, 1, 1]);
  });

  it('is reported if it has changed before the watch starts', async () => {
    writeFileSync(path, 'two');
    watch.start(() => void (changes += 1));
    assert.deepEqual([await look(), await look()], [0, 1]);
  });

  it('is looked at no more once the watch stops', async () => {
    watch.start(() => void (changes += 1));
    await look();
    watch.stop();
    writeFileSync(path, 'two');
    due.shift()!();
    // The file system answers requests in order.
    await import('node:fs/promises').then(({ stat }) => stat(path));
    assert.deepEqual([due, changes], [[], 0]);
  });
});
