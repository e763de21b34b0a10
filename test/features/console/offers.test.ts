import assert from 'node:assert/strict';
import { GrantableAccess } from '../../../src/features/console/grantable-access.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import type { KeyAction } from '../../../src/features/console/pages/key/shown-key.ts';
import { startConsoleService, Visitor } from './support/console.ts';
import { principalOf } from '../../support/keys.ts';
import { STRICT, WorldMaker } from '../../support/offers.ts';
import { Random } from '../../support/random.ts';
import { query, type TestService } from '../../support/server.ts';

const SEED = Number(process.env['TEST_SEED'] ?? 20);
const WORLDS = 40;

// test/attacks/offers.test.ts checks that these changes can then be made.
const QUERY = 'query ($id: ID!) { apiKey(id: $id) { disabledAt rotation { startedAt } } }';

interface Told {
  disabledAt: string | null;
  rotation: object | null;
}

for (const [demands, policy] of [
  ['nothing', {}],
  ['everything', STRICT],
] as const)
  describe(`what the console offers, where the policy demands ${demands}`, () => {
    let test: TestService;
    before(async () => void (test = await startConsoleService({ policy })));
    after(() => test.stop());

    it(`is what the key is permitted to do, and nothing else (seed ${SEED})`, async () => {
      const worlds = new WorldMaker(test, new Random(SEED));
      let seen = 0;
      for (let index = 0; index < WORLDS; index += 1) {
        const { secret, target, said } = await worlds.make(worlds.recipe());
        const { body } = await query(test.url, secret, QUERY, { id: target.id });
        const told = (body.data as { apiKey: Told | null } | null)?.apiKey;
        if (!told) continue;
        seen += 1;
        const principal = await principalOf(test.keys, secret);
        const apiKey = (await test.keys.findById(target.id, OPERATOR))!;
        const [changes] = await test.keys.permittedChanges.possibleChanges([apiKey], principal);
        const may = (change: KeyAction) => changes!.find((one) => one.change === change)!.refusal === null;
        const visitor = new Visitor(test.url);
        await visitor.signIn(secret);
        const { html } = await visitor.open(`keys/${target.id}`);
        const leads = (path: string) => html.includes(`keys/${target.id}/${path}"`);
        const isOff = told.disabledAt !== null;
        assert.deepEqual(
          {
            edit: leads('edit'),
            delete: leads('delete'),
            contain: leads('contain'),
            enable: leads('enable'),
            disable: leads('disable'),
            rotation: leads('rotation'),
          },
          {
            edit: may('UPDATE'),
            delete: may('DELETE'),
            contain: may('CONTAIN'),
            enable: isOff && may('ENABLE'),
            disable: !isOff && may('DISABLE'),
            rotation: may(told.rotation ? 'FINISH_ROTATION' : 'ROTATE'),
          },
          said,
        );
        for (const [path, change] of [
          ['edit', 'UPDATE'],
          ['delete', 'DELETE'],
          ['disable', 'DISABLE'],
          ['contain', 'CONTAIN'],
        ] as const)
          assert.equal((await visitor.open(`keys/${target.id}/${path}`)).status, may(change) ? 200 : 403, said);
        if (told.rotation && may('UPDATE')) {
          const page = await visitor.open(`keys/${target.id}/rotation`);
          assert.equal(page.html.includes('/rotation/roll-back"'), may('ROLL_BACK_ROTATION'), said);
        }
        if (!may('UPDATE')) continue;
        const form = (await visitor.open(`keys/${target.id}/edit`)).html;
        const offered = Array.from(form.matchAll(/<input type="checkbox"[^>]*>/g), ([tag]) => tag)
          .filter((tag) => !/\sdisabled/.test(tag))
          .map((tag) => /value="([^"]*)"/.exec(tag)![1]!);
        const granted = await test.keys.feature(GrantableAccess).of(principal, apiKey);
        const grantable = [...granted.roles, ...granted.permissions.permissions()];
        const kept = [...target.roles, ...target.permissions];
        assert.deepEqual(new Set(offered), new Set([...grantable, ...kept]), said);
        assert.equal(/name="expires"[^>]*readonly/.test(form), (await granted.ends()).refusal !== null, said);
      }
      assert.ok(seen > WORLDS / 2, `${seen}`);
    });
  });
