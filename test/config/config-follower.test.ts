import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigFollower } from '../../src/config/config-follower.ts';
import { tempFolder } from '../support/temp.ts';
import { until } from '../support/until.ts';

describe('a file of configuration that is followed', () => {
  let folder: string;
  let path: string;
  let follower: ConfigFollower;
  let taken: string[];
  let refused: string[];
  let nothing: number;
  const follow = (isNamed = false) => {
    follower = new ConfigFollower({ path, isNamed }, (work) => setImmediate(work));
    const first = follower.read()?.text;
    follower.follow({
      take: async ({ text }) => {
        taken.push(text);
        if (text === 'broken') throw new Error('It is broken.');
      },
      nothing: () => void (nothing += 1),
      refused: (error) => void refused.push((error as Error).message),
    });
    return first;
  };
  beforeEach(() => {
    folder = tempFolder();
    path = join(folder, 'svc-api.yaml');
    [taken, refused, nothing] = [[], [], 0];
  });
  afterEach(() => follower.stop());

  it('is handed on when it is written, once each time', async () => {
    writeFileSync(path, 'one');
    assert.equal(follow(), 'one');
    for (const text of ['two', 'broken', 'three']) {
      writeFileSync(path, text);
      await until(() => taken.at(-1) === text);
    }
    assert.deepEqual([taken, refused], [['two', 'broken', 'three'], ['It is broken.']]);
    writeFileSync(path, 'three');
    writeFileSync(path, 'four');
    await until(() => taken.at(-1) === 'four');
    assert.equal(taken.length, 4);
  });

  it('is handed on when another one takes its place, as editors do it', async () => {
    writeFileSync(path, 'one');
    follow();
    for (const text of ['two', 'three']) {
      writeFileSync(`${path}~`, text);
      renameSync(`${path}~`, path);
      await until(() => taken.at(-1) === text);
    }
  });

  it('is handed on when links lead elsewhere, as Kubernetes does it', async () => {
    const version = (name: string, text: string) => {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, 'svc-api.yaml'), text);
      symlinkSync(name, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    version('..2030_1', 'one');
    symlinkSync('..data/svc-api.yaml', path);
    assert.equal(follow(), 'one');
    version('..2030_2', 'two');
    rmSync(join(folder, '..2030_1'), { recursive: true });
    await until(() => taken.at(-1) === 'two');
  });

  it('is handed on when it comes, in a folder that was not there', async () => {
    path = join(folder, 'svc-api', 'svc-api.yaml');
    assert.equal(follow(), undefined);
    mkdirSync(join(folder, 'svc-api'));
    writeFileSync(path, 'one');
    await until(() => taken.at(-1) === 'one');
  });

  it('is refused when it goes, or may be written by others, and is handed on when it is right again', async () => {
    writeFileSync(path, 'one');
    follow();
    rmSync(path);
    await until(() => refused.length === 1);
    writeFileSync(path, 'two');
    await until(() => taken.length === 1);
    chmodSync(path, 0o666);
    await until(() => refused.length === 2);
    chmodSync(path, 0o644);
    await until(() => taken.length === 2);
    assert.deepEqual(taken, ['two', 'two']);
    assert.match(refused[0]!, /does not exist/);
    assert.match(refused[1]!, /can be written by every user/);
  });

  it('is passed on at once on request, even unchanged; a missing one is reported', async () => {
    assert.equal(follow(), undefined);
    void follower.reload();
    await until(() => nothing === 1);
    writeFileSync(path, 'one');
    void follower.reload();
    void follower.reload();
    await until(() => taken.length >= 2);
    assert.deepEqual(refused, []);
  });
});
