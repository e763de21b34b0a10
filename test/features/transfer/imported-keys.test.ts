import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { jsonLines } from '../../support/keys.ts';
import { collectingLog } from '../../support/log.ts';
import { query, startTestService, type TestService } from '../../support/server.ts';
import { importKeys } from './support/import-keys.ts';

const SECRETS: Record<string, string> = {
  'of our own form': createSecret(randomBytes).text,
  'like ours, but shorter': 'svc_live_x',
  'with the start of ours alone': 'svc_',
  'with a known prefix': 'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
  'of letters alone': 'QxVtRbKpLmNwZyHsGdFcJaQxVtRbKpLmNwZyHsGdFcJaQxVtRbKpLmNwZyHsGdFcJa',
  'in base64': `${Buffer.alloc(33, 0xfb).toString('base64')}+/==`,
  'with what a token may have': 'a+/=~.-_',
  'with all of visible ASCII': Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).join(''),
  'that looks like a scheme': 'Bearer',
  'with commas': 'a,b,c',
  'of one character': 'x',
  'as a UUID': '9f1c7a52-60f7-4a4e-9f0e-3f2f9b6d1c11',
  'as a JWT': 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
  'as long as may be': 'y'.repeat(8000),
};

describeOnEach('imported keys', () => {
  let test: TestService;
  const { log, lines } = collectingLog();
  before(async () => {
    test = await startTestService({ log, app: { failedCredentials: false } });
  });
  after(() => test.stop());
  let count = 0;
  const newName = () => `Imported ${(count += 1)}`;
  const send = async (secret: string) => {
    const { status, body } = await query(test.url, secret, '{ me { name prefix } }');
    return { status, me: body.data?.['me'] as { name: string; prefix: string } | undefined };
  };
  async function load(fields: object): Promise<{ name: string; id: string; prefix: string }> {
    const name = newName();
    const report = await importKeys(test.keys, jsonLines({ name, roles: ['GUEST'], ...fields }));
    assert.equal(report.imported, 1, JSON.stringify(report));
    return report.lines[0] as { name: string; id: string; prefix: string };
  }

  for (const [form, secret] of Object.entries(SECRETS)) {
    it(`are accepted with a secret ${form}`, async () => {
      assert.equal((await send(secret)).status, 401);
      const { name, prefix } = await load({ secret });
      assert.deepEqual(await send(secret), { status: 200, me: { name, prefix } });
      if (secret.length < 8000) assert.equal((await send(`${secret}x`)).status, 401);
    });

    for (const encoding of ['hex', 'base64', 'base64url'] as const) {
      it(`are accepted with a secret ${form} if only its digest in ${encoding} was imported`, async () => {
        // Made different, because the secret itself was imported above.
        const other = secret.length === 8000 ? `${secret.slice(6)}${encoding}` : `${encoding}-${secret}`;
        const { name } = await load({ sha256: createHash('sha256').update(other).digest(encoding) });
        assert.deepEqual((await send(other)).me?.name, name);
      });
    }
  }

  it('are refused when they are disabled or have expired, and accepted when they are enabled', async () => {
    const { id } = await load({ secret: 'sk_test_disabled-disabled', disabled: true });
    await load({ secret: 'sk_test_expired-expired-1', expiresAt: '2020-01-01T00:00:00Z' });
    assert.equal((await send('sk_test_disabled-disabled')).status, 401);
    assert.equal((await send('sk_test_expired-expired-1')).status, 401);
    await test.keys.setEnabled(id, true, OPERATOR);
    assert.equal((await send('sk_test_disabled-disabled')).status, 200);
  });

  it('are rotated, and rolled back, like any other', async () => {
    const secret = 'sk_test_rotated-rotated-1';
    const { id, prefix, name } = await load({ secret });
    const { key: fresh, after } = await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
    assert.match(fresh, /^svc_/);
    assert.equal(after.rotation?.previousPublicId, prefix);
    assert.deepEqual([(await send(fresh)).me?.name, (await send(secret)).me?.name], [name, name]);
    await test.keys.rollBackRotation(id, OPERATOR);
    assert.deepEqual([(await send(fresh)).status, (await send(secret)).me], [401, { name, prefix }]);
    const { key: third } = await test.keys.rotate(id, { grace: '1h' }, OPERATOR);
    await test.keys.finishRotation(id, OPERATOR);
    assert.deepEqual([(await send(third)).me?.name, (await send(secret)).status], [name, 401]);
  });

  it('leave no secret in the log', () => {
    const said = JSON.stringify(lines);
    assert.match(said, /key refused/);
    for (const secret of Object.values(SECRETS).filter(({ length }) => length > 10))
      assert.equal(said.includes(secret), false, secret);
  });
});
