import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { chainHash } from '../../../src/keys/audit/chain.ts';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { OpenKeys } from '../../../src/service/open-keys.ts';
import { readAuditEntry } from '../../../src/store/rows.ts';
import type { AuditLogTable } from '../../../src/store/tables.ts';
import { isPostgresUrl } from '../../../src/store/postgres-address.ts';
import { type CreatedKey, type TestCli, testCli } from '../../support/cli.ts';
import { damageKey } from '../../support/damage.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { changeDirectly, contentOf, readDirectly, unlockAuditLog } from '../../support/direct.ts';
import { isAccepted, keyNamed, namesIn } from '../../support/stored.ts';
import { makeStore, tempFolder } from '../../support/temp.ts';
import { authenticate, idOf } from '../../support/keys.ts';

interface Named {
  name: string;
  fields?: string[];
  at?: string | null;
  by?: { name: string } | null;
}

interface Restored {
  compared: boolean;
  dryRun: boolean;
  deleted: Named[];
  kept: Named[];
  broughtBack: Named[];
  created: Named[];
  changed: number;
  damaged: Named[];
  altered: (Named & { reason: string })[];
  logDiffersFrom: number | null;
  previous: string | null;
}

const names = (keys: readonly Named[]) => keys.map(({ name }) => name).toSorted();

describeOnEach('restore', () => {
  let cli: TestCli;
  let backup: string;
  const given = new Map<string, CreatedKey>();
  const key = (name: string) => given.get(name)!;
  const act = (work: (keys: OpenKeys) => Promise<unknown>) => withKeys({ database: cli.database }, work);

  beforeEach(async () => {
    cli = testCli();
    backup = join(tempFolder(), 'backup.sqlite');
    await makeStore(cli.database);
    await act(async (keys) => {
      for (const name of ['Same', 'Deleted', 'Disabled', 'Rotated', 'Narrowed', 'Widened']) {
        const { key: secret, apiKey: made } = await keys.create({ name, roles: ['VIEWER'] }, OPERATOR);
        given.set(name, { key: secret, id: made.id, name });
      }
    });
    const { code, stderr } = await cli.run(['backup', backup]);
    assert.equal(code, 0, stderr);
    await act(async (keys) => {
      await keys.delete([key('Deleted').id], OPERATOR);
      await keys.setEnabled(key('Disabled').id, false, OPERATOR);
      const rotated = await keys.rotate(key('Rotated').id, { grace: '0s' }, OPERATOR);
      given.set('Rotated since', { ...key('Rotated'), key: rotated.key });
      await keys.update(key('Narrowed').id, { roles: ['GUEST'], description: 'narrowed' }, OPERATOR);
      await keys.update(key('Widened').id, { roles: ['ADMIN'], name: 'Renamed' }, OPERATOR);
      given.set(
        'Created',
        await keys
          .create({ name: 'Created', roles: ['GUEST'] }, OPERATOR)
          .then(({ key: secret, apiKey: made }) => ({ key: secret, id: made.id, name: made.name })),
      );
    });
  });

  const restore = async (...args: string[]): Promise<Restored> => {
    const { code, stdout, stderr } = await cli.run(['restore', backup, '--yes', '--json', ...args]);
    assert.equal(code, 0, stdout + stderr);
    return JSON.parse(stdout) as Restored;
  };
  const verifies = async () => {
    const { code, stdout } = await cli.run(['apikey', 'log', '--verify', '--json']);
    assert.equal(code, 0, stdout);
  };

  it('brings no revoked key back, and says which there are', async () => {
    const result = await restore();
    assert.deepEqual(
      [names(result.deleted), names(result.kept), names(result.created), result.broughtBack, result.changed],
      [['Deleted'], ['Disabled', 'Narrowed', 'Rotated'], ['Created'], [], 1],
    );
    assert.deepEqual(
      result.kept.toSorted((one, other) => (one.name < other.name ? -1 : 1)).map(({ fields }) => fields),
      [['enabled'], ['grants'], ['secret']],
    );
    for (const { at, by } of [...result.deleted, ...result.kept]) assert.ok(at && by?.name);
    assert.deepEqual(await namesIn(cli.database), ['Disabled', 'Narrowed', 'Rotated', 'Same', 'Widened']);
    const accepted = await Promise.all(
      ['Same', 'Deleted', 'Disabled', 'Rotated', 'Rotated since', 'Narrowed', 'Widened', 'Created'].map((name) =>
        isAccepted(cli.database, key(name).key),
      ),
    );
    assert.deepEqual(accepted, [true, false, false, false, true, true, true, false]);
    assert.deepEqual((await keyNamed(cli.database, 'Narrowed'))?.roles, ['GUEST']);
    assert.equal((await keyNamed(cli.database, 'Narrowed'))?.description, null);
    assert.deepEqual((await keyNamed(cli.database, 'Widened'))?.roles, ['VIEWER']);
    await verifies();
  });

  it('brings back the keys that are named, with their secrets', async () => {
    const result = await restore(
      '--restore-revoked',
      'Deleted',
      '--restore-revoked',
      'Rotated',
      '--restore-revoked',
      'Disabled',
    );
    assert.deepEqual(
      [names(result.broughtBack), names(result.kept)],
      [['Deleted', 'Disabled', 'Rotated'], ['Narrowed']],
    );
    for (const name of ['Deleted', 'Rotated', 'Disabled'])
      assert.equal(await isAccepted(cli.database, key(name).key), true, name);
    assert.equal(await isAccepted(cli.database, key('Rotated since').key), false);
    await verifies();
  });

  it('brings back all of them, as the backup has them', async () => {
    await restore('--restore-revoked-all');
    assert.deepEqual(await namesIn(cli.database), ['Deleted', 'Disabled', 'Narrowed', 'Rotated', 'Same', 'Widened']);
    assert.deepEqual((await keyNamed(cli.database, 'Narrowed'))?.roles, ['VIEWER']);
    await verifies();
  });

  it('keeps the audit log, which records the restore and its effect on each key', async () => {
    await restore('--restore-revoked', 'Deleted');
    const { stdout } = await cli.run(['apikey', 'log', '--json', '--action', 'restore']);
    const { entries } = JSON.parse(stdout) as {
      entries: { apiKey: { name: string } | null; after: Record<string, unknown> }[];
    };
    assert.deepEqual(
      new Set(entries.map((entry) => entry.apiKey?.name)),
      new Set([undefined, 'Deleted', 'Narrowed', 'Widened']),
    );
    const { after } = entries.find((entry) => entry.apiKey === null)!;
    assert.deepEqual(
      [after['backup'], after['number'], after['compared'], after['created']],
      ['backup.sqlite', 6, true, 1],
    );
    const { stdout: deletions } = await cli.run(['apikey', 'log', '--json', '--action', 'delete', '--key', 'Created']);
    assert.equal((JSON.parse(deletions) as { entries: object[] }).entries.length, 1);
  });

  it('leaves the store as it was beside it, as a way back', async () => {
    const { previous } = await restore();
    assert.ok(previous);
    assert.equal(statSync(previous).mode & 0o777, 0o600);
    assert.ok((await namesIn(previous)).includes('Created'));
    const back = await cli.run(['restore', previous, '--yes', '--restore-revoked-all']);
    assert.equal(back.code, 0, back.stderr);
    assert.equal(await isAccepted(cli.database, key('Created').key), true);
    await verifies();
  });

  it('still knows which application a key was given to that comes back, and how that refreshes it', async () => {
    const { id } = key('Deleted');
    const columns = 'key_id, client_id, refresh_family, refresh_digest';
    await changeDirectly(
      backup,
      `insert into application_keys (${columns}) values ('${id}', 'app', 'family', 'digest')`,
    );
    await restore('--restore-revoked', 'Deleted');
    assert.deepEqual(await readDirectly(cli.database, `select ${columns} from application_keys`), [
      { key_id: id, client_id: 'app', refresh_family: 'family', refresh_digest: 'digest' },
    ]);
  });

  it('still knows what other keys did to one that comes back', async () => {
    const { id } = key('Deleted');
    const [gone, above] = ['gone', 'above'].map(idOf);
    const effect = `'e', 5, 'ENABLING', '${gone}', 'secret', '${id}', null, null`;
    await changeDirectly(backup, `insert into key_effects values (${effect})`);
    for (const [actor, name] of [
      [gone, 'Ops'],
      [above, 'Root'],
    ])
      await changeDirectly(backup, `insert into key_effect_actors values ('e', '${actor}', '${name}')`);
    await restore('--restore-revoked', 'Deleted');
    const { stdout } = await cli.run(['apikey', 'revoke', 'Root', '--undo-changes', '--dry-run', '--json']);
    const { issued } = JSON.parse(stdout) as { issued: object[] };
    assert.deepEqual(issued, [{ key: 'Deleted', what: 'ENABLING', at: '1970-01-01T00:00:00.005Z' }]);
  });

  it('changes nothing in a dry run, without --yes, and where a name is unknown', async () => {
    const before = await contentOf(cli.database);
    const runs = [
      { args: ['--dry-run', '--json'], code: 0, error: undefined },
      { args: ['--json'], code: 2, error: 'USAGE' },
      { args: ['--yes', '--json', '--restore-revoked', 'Nobody'], code: 1, error: 'NOT_FOUND' },
      { args: ['--yes', '--json', '--restore-revoked', 'Deleted', '--restore-revoked-all'], code: 2, error: 'USAGE' },
    ];
    for (const { args, code, error } of runs) {
      const result = await cli.run(['restore', backup, ...args]);
      assert.deepEqual([result.code, (JSON.parse(result.stdout) as { code?: string }).code], [code, error]);
    }
    assert.equal(await contentOf(cli.database), before);
    const folder = isPostgresUrl(cli.database) ? dirname(backup) : dirname(cli.database);
    assert.deepEqual(
      readdirSync(folder).filter((name) => /replaced|restore|partial/.test(name)),
      [],
    );
  });

  it('names the keys in text before it asks for --yes', async () => {
    const { code, stderr } = await cli.run(['restore', backup]);
    assert.equal(code, 2);
    for (const text of [
      'stays deleted',
      'Deleted (svc_',
      'stays disabled',
      'keeps its newer secret',
      'will be deleted:',
    ])
      assert.ok(stderr.includes(text), stderr);
  });

  it('leaves no secret that had ended in the backup: not where the way back leads from a key that was brought back', async () => {
    const { id, key: first } = key('Same');
    await act((keys) => keys.rotate(id, { grace: '24h' }, OPERATOR));
    await cli.run(['backup', backup, '--overwrite']);
    await act((keys) => keys.finishRotation(id, OPERATOR));
    assert.equal(await isAccepted(cli.database, first), false);
    const { previous } = await restore('--restore-revoked', 'Same');
    assert.equal(await isAccepted(cli.database, first), true);
    const back = await cli.run(['restore', previous!, '--yes', '--restore-revoked-all']);
    assert.equal(back.code, 0, back.stderr);
    assert.equal(await isAccepted(cli.database, first), false);
    await verifies();
  });

  it('brings back a key that was adopted since, whose creator is deleted', async () => {
    const parent = await cli.create('Parent', '--roles', 'ADMIN');
    let child = '';
    await act(async (keys) => {
      const found = await authenticate(keys, parent.key);
      assert.ok('principal' in found);
      child = (await keys.create({ name: 'Child', roles: ['VIEWER'] }, found.principal)).apiKey.id;
    });
    await cli.run(['backup', backup, '--overwrite']);
    await act(async (keys) => {
      await keys.adopt(child, OPERATOR);
      await keys.delete([parent.id], OPERATOR);
      await keys.update(child, { roles: ['GUEST'] }, OPERATOR);
    });
    const { broughtBack, deleted } = await restore('--restore-revoked', 'Child');
    assert.deepEqual([names(broughtBack), names(deleted)], [['Child'], ['Parent']]);
    const { roles, createdBy } = (await keyNamed(cli.database, 'Child'))!;
    assert.deepEqual([roles, createdBy], [['VIEWER'], null]);
    await verifies();
  });

  it('does not mix the keys of different stores', async () => {
    const other = testCli();
    await other.given('Other');
    await other.run(['backup', backup, '--overwrite']);
    const before = await contentOf(cli.database);
    const { code, stdout } = await cli.run(['restore', backup, '--yes', '--json']);
    const { code: error, error: text } = JSON.parse(stdout) as { code: string; error: string };
    assert.deepEqual([code, error], [1, 'RESTORE_BLIND']);
    assert.match(text, /is not one of the key store .* pass --force/);
    assert.equal(await contentOf(cli.database), before);
  });

  it('still knows a backup whose log is longer, or shorter, than that of the store', async () => {
    await unlockAuditLog(cli.database);
    const { number, hash } = (
      await readDirectly(cli.database, 'select number, hash from audit_log where number = 3')
    )[0]!;
    await changeDirectly(
      cli.database,
      `insert into audit_start (one, number, hash) values (1, ${String(number)}, '${String(hash)}')`,
      'delete from audit_log where number <= 3',
    );
    assert.equal((await restore('--dry-run')).compared, true);
    await changeDirectly(cli.database, 'delete from audit_log where number <= 8');
    assert.equal((await restore('--dry-run')).compared, true);
  });

  it('lets keys exchange their names', async () => {
    await act(async (keys) => {
      await keys.update(key('Same').id, { name: 'Passing' }, OPERATOR);
      await keys.update(key('Widened').id, { name: 'Same' }, OPERATOR);
      await keys.update(key('Same').id, { name: 'Widened' }, OPERATOR);
    });
    await restore();
    assert.equal((await keyNamed(cli.database, 'Same'))?.id, key('Same').id);
    assert.equal((await keyNamed(cli.database, 'Widened'))?.id, key('Widened').id);
    await verifies();
  });

  it('says in a dry run as well that a name is taken by a key that is damaged in the backup', async () => {
    await act(async (keys) => {
      await keys.update(key('Same').id, { name: 'Passing' }, OPERATOR);
      await keys.update(key('Widened').id, { name: 'Same' }, OPERATOR);
      await keys.update(key('Same').id, { name: 'Widened' }, OPERATOR);
    });
    await damageKey(backup, 'Same', 'roles = \'["ADMIN"]\'');
    const before = await contentOf(cli.database);
    for (const args of [['--dry-run'], ['--yes']]) {
      const { code, stdout } = await cli.run(['restore', backup, '--json', ...args]);
      const { code: error, error: text } = JSON.parse(stdout) as { code: string; error: string };
      assert.deepEqual([code, error], [2, 'INPUT_INVALID'], stdout);
      assert.match(
        text,
        /^"Widened" is the name of svc_\w+… in the backup, and now that of svc_\w+…, .* Rename or delete that key first\.$/,
      );
    }
    assert.equal(await contentOf(cli.database), before);
    await act((keys) => keys.update(key('Same').id, { name: 'Aside' }, OPERATOR));
    assert.deepEqual(names((await restore()).damaged), ['Same']);
    assert.equal((await keyNamed(cli.database, 'Widened'))?.id, key('Widened').id);
    await verifies();
  });

  it('restores keys named by id, whatever they are called', async () => {
    const { broughtBack } = await restore(
      '--restore-revoked',
      key('Deleted').id,
      '--restore-revoked',
      key('Disabled').id,
    );
    assert.deepEqual(names(broughtBack), ['Deleted', 'Disabled']);
    assert.equal(await isAccepted(cli.database, key('Deleted').key), true);
    const id = '00000000-0000-4000-8000-000000000000';
    const { code, stdout } = await cli.run(['restore', backup, '--yes', '--json', '--restore-revoked', id]);
    assert.deepEqual([code, (JSON.parse(stdout) as { code: string }).code], [1, 'NOT_FOUND']);
    await verifies();
  });

  it('says before that a key which is to come back was changed in the backup', async () => {
    assert.deepEqual((await restore('--dry-run', '--restore-revoked-all')).altered, []);
    // By SQL: the triggers remove the checksum, which would reveal a disk error.
    await changeDirectly(backup, `update api_keys set roles = '["ADMIN"]' where name in ('Deleted', 'Disabled')`);
    assert.deepEqual((await restore('--dry-run')).altered, [], 'what does not come back gets nothing');
    const { altered, logDiffersFrom } = await restore('--dry-run', '--restore-revoked', 'Deleted');
    assert.deepEqual([names(altered), altered[0]!.reason, logDiffersFrom], [['Deleted'], 'differs in roles', null]);
    const { stderr } = await cli.run(['restore', backup, '--restore-revoked', 'Deleted']);
    assert.match(
      stderr,
      /1 key would get more access, but differs from what the audit log of the backup says:\n {2}Deleted \(svc_/,
    );
  });

  it('says before that the audit log of the backup was written anew', async () => {
    assert.equal((await restore('--dry-run')).logDiffersFrom, null);
    const entries = (await readDirectly(backup, 'select * from audit_log order by number')).map((row) =>
      readAuditEntry(row as unknown as AuditLogTable),
    );
    // A writer of the backup who has the second key changes everything that records it.
    await unlockAuditLog(backup);
    await changeDirectly(backup, `update api_keys set roles = '["ADMIN"]' where name = 'Deleted'`);
    let previous = entries[0]!.hash;
    for (const entry of entries.slice(1)) {
      const after = entry.number === 2 ? { ...entry.after, roles: ['ADMIN'] } : entry.after;
      const changed = { ...entry, after };
      previous = chainHash(changed, previous);
      await changeDirectly(
        backup,
        `update audit_log set after = '${JSON.stringify(after)}', hash = '${previous}' where number = ${entry.number}`,
        `update audit_head set hash = '${previous}'`,
      );
    }
    const { altered, logDiffersFrom } = await restore('--dry-run', '--restore-revoked', 'Deleted');
    assert.deepEqual([altered, logDiffersFrom], [[], 2]);
    const { stderr } = await cli.run(['restore', backup, '--restore-revoked', 'Deleted']);
    assert.match(stderr, /Its audit log differs from that of the store from entry 2 on/);
  });

  it('makes a key whole that is damaged, and leaves it disabled', async () => {
    await damageKey(cli.database, 'Same', 'roles = \'["ADMIN"]\'');
    const result = await restore();
    assert.deepEqual(result.kept.find(({ name }) => name === 'Same')?.fields, ['damaged']);
    const same = await keyNamed(cli.database, 'Same');
    assert.deepEqual([same?.damaged, same?.roles, same?.disabledAt !== null], [undefined, ['VIEWER'], true]);
    await verifies();
  });

  it('does not bring back a key without the one that created it', async () => {
    const parent = await cli.create('Parent', '--roles', 'ADMIN');
    await act(async (keys) => {
      const found = await authenticate(keys, parent.key);
      assert.ok('principal' in found);
      await keys.create({ name: 'Child', roles: ['GUEST'] }, found.principal);
    });
    await cli.run(['backup', backup, '--overwrite']);
    await act((keys) => keys.delete([parent.id], OPERATOR));
    const alone = await cli.run(['restore', backup, '--yes', '--json', '--restore-revoked', 'Child']);
    assert.deepEqual([alone.code, (JSON.parse(alone.stdout) as { code: string }).code], [2, 'INPUT_INVALID']);
    const { broughtBack } = await restore('--restore-revoked', 'Child', '--restore-revoked', 'Parent');
    assert.deepEqual(names(broughtBack), ['Child', 'Parent']);
    assert.equal((await keyNamed(cli.database, 'Child'))?.createdBy, parent.id);
    await verifies();
  });
});
