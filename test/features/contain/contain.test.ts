import assert from 'node:assert/strict';
import { withKeys } from '../../../src/cli/with-keys.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { authenticate } from '../../support/keys.ts';
import { type CreatedKey, type TestCli, testCli } from '../../support/cli.ts';
import { describeOnEachAndRemotely } from '../../support/dialects.ts';
import { APP } from '../consent/support/consent.ts';
import { Consent } from '../../../src/features/consent/consent.ts';

describeOnEachAndRemotely("the command line and a key's changes to others", () => {
  let cli: TestCli;
  let ops: CreatedKey;
  let asleep: string;
  beforeEach(async () => {
    cli = testCli();
    ops = await cli.given('Ops', { roles: ['ADMIN'] });
    const [ci, web] = [await cli.given('CI', { roles: ['ADMIN'] }), await cli.given('Web', { roles: ['GUEST'] })];
    asleep = await withKeys({ database: cli.database }, async (keys) => {
      const result = await authenticate(keys, ops.key);
      assert.ok('principal' in result);
      const by = result.principal;
      const { key } = await keys.rotate(ci.id, { grace: '90d', activate: 'on-first-use' }, by);
      await keys.update(web.id, { roles: ['VIEWER'] }, by);
      const { request } = await keys.feature(Consent).ask({ client: APP, roles: ['GUEST'], permissions: [] });
      await keys.feature(Consent).approve(request, {}, by);
      return key;
    });
  });
  const apikey = (...args: string[]) => cli.run(['apikey', ...args]);
  const json = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { stdout, code } = await apikey(...args, '--json');
    return { exit: code, ...(JSON.parse(stdout) as object) };
  };
  const issuedIn = ({ issued }: Record<string, unknown>) =>
    (issued as { key: string; what: string; at: string }[]).map(({ key, what, at, ...more }) => {
      assert.ok(Date.parse(at) > 0 && Object.keys(more).length === 0);
      return `${what} ${key.replace(/^Grafana.*/, 'Grafana')}`;
    });
  const accepts = async (secret: string) =>
    withKeys({ database: cli.database }, async (keys) => 'principal' in (await authenticate(keys, secret)));
  const ALL = ['SECRET CI', 'WIDENING Web', 'APPROVAL Grafana'];

  it('show, disable, rotate --disable-created and delete name it', async () => {
    for (const args of [
      ['show', 'Ops'],
      ['disable', 'Ops'],
      ['rotate', 'Ops', '--disable-created'],
    ])
      assert.deepEqual(issuedIn(await json(...args)), ALL, args.join(' '));
    // If the approving key is gone, the application gets no key.
    assert.deepEqual(issuedIn(await json('delete', 'Ops')), ALL.slice(0, 2));
    assert.equal('issued' in (await json('delete', 'Web')), false);
  });

  it('the same in words, with what to do', async () => {
    const { stderr, stdout } = await apikey('delete', 'Ops');
    assert.equal(stdout, 'Successfully deleted 1 API key\n');
    assert.match(
      stderr,
      /^Warning: Its effects on other keys are still in force:\n {2}\S+Z issued a secret for "CI"\n {2}\S+Z gave more access to "Web"\n/m,
    );
    assert.match(stderr, new RegExp(`After a leak, undo them: svc-api apikey revoke ${ops.id} --undo-changes`));
    assert.match((await apikey('rotate', 'Web', '--disable-created')).stderr, /^Rotated.*\n$/);
  });

  it('revoke --undo-changes --dry-run shows what would be undone, and changes nothing', async () => {
    const { stdout, code, stderr } = await apikey('revoke', 'Ops', '--undo-changes', '--dry-run');
    assert.match(stdout, /^Changes by "Ops" to other keys, still in effect:\n {2}\S+ issued a secret for "CI"\n/);
    assert.match(
      stdout,
      /\n~ update "Ops"\n {4}enabled: true -> false\n~ update "CI"\n {4}prefix: svc_\S+ -> svc_\S+\n {4}previousPrefix: svc_\S+ -> -\n/,
    );
    assert.match(
      stdout,
      /\n~ update "Web"\n {4}roles: VIEWER -> GUEST\n- cancel the request of "Grafana sync" for "Graf/,
    );
    assert.match(stdout, /\nPlan: 3 keys to change, 1 request to cancel\.\n$/);
    assert.deepEqual([code, stderr, await accepts(ops.key)], [0, '', true]);
  });

  it('revoke --undo-changes undoes them, also after the key was deleted, and reports that', async () => {
    await apikey('delete', 'Ops');
    const { exit, ...done } = await json('revoke', 'Ops', '--undo-changes', '--yes');
    assert.deepEqual([exit, issuedIn(done)], [0, ALL.slice(0, 2)]);
    assert.deepEqual(Object.keys(done), ['dryRun', 'apiKey', 'exists', 'issued', 'changes', 'requests']);
    assert.deepEqual([done['dryRun'], done['apiKey'], done['exists']], [false, { id: ops.id, name: 'Ops' }, false]);
    const changes = done['changes'] as { name: string; changes: { field: string }[] }[];
    assert.deepEqual(
      changes.map(({ name, changes: fields }) => [name, fields.map(({ field }) => field)]),
      [
        ['CI', ['prefix', 'previousPrefix']],
        ['Web', ['roles']],
      ],
    );
    assert.equal(await accepts(asleep), false);
    const again = await apikey('revoke', ops.id, '--undo-changes', '--yes');
    assert.match(again.stderr + again.stdout, /no changes of a deleted one are in effect/);
  });

  it('reports keys as already disabled, but only as text', async () => {
    await withKeys({ database: cli.database }, async (keys) => {
      await keys.finishRotation((await keys.findByName('CI', OPERATOR))!.id, OPERATOR);
      const result = await authenticate(keys, asleep);
      assert.ok('principal' in result);
      await keys.create({ name: 'Planted', roles: ['GUEST'] }, result.principal);
    });
    await apikey('revoke', 'Ops', '--undo-changes', '--yes');
    const line = / {2}\S+ created "Planted", using a secret that it issued for another key \(disabled\)\n/;
    const { stdout } = await apikey('revoke', 'Ops', '--undo-changes', '--dry-run');
    assert.match(stdout, line);
    assert.match(stdout, /\nThere is nothing to undo\. "Ops" is disabled, and so are its parent keys\.\n$/);
    assert.deepEqual(issuedIn(await json('revoke', 'Ops', '--undo-changes', '--yes')), ['CREATION Planted']);
    assert.match((await apikey('show', 'Ops')).stdout, /created "Planted", .* \(disabled\)\n/);
    assert.match((await apikey('delete', 'Ops')).stderr, line);
  });

  it('revoke --undo-changes --since leaves earlier changes', async () => {
    const { changes } = await json(
      'revoke',
      '--undo-changes',
      '--name',
      'Ops',
      '--since',
      new Date().toISOString(),
      '--yes',
    );
    assert.deepEqual(
      (changes as { name: string }[]).map(({ name }) => name),
      ['Ops'],
    );
    assert.equal(await accepts(asleep), true);
  });

  it('revoke --undo-changes asks for --yes without a terminal, and refuses unknown keys', async () => {
    for (const [args, exit, error] of [
      [['Ops'], 2, 'USAGE'],
      [[], 2, 'USAGE'],
      [['Nobody', '--yes'], 1, 'NOT_FOUND'],
      [['Ops', '--yes', '--since', 'yesterday'], 2, 'INPUT_INVALID'],
      // With a mistyped year, nothing would be undone.
      [['Ops', '--yes', '--since', '2999-01-01'], 2, 'INPUT_INVALID'],
    ] as const) {
      const failed = await json('revoke', '--undo-changes', ...args);
      assert.deepEqual([failed['code'], failed['exit']], [error, exit], args.join(' '));
    }
    assert.equal(await accepts(ops.key), true);
  });
});
