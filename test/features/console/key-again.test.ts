import assert from 'node:assert/strict';
import { buildSchema, isObjectType, getNamedType } from 'graphql';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MAKES_SECRET } from '../../../src/features/console/operations.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { APP, askDevice, authorizeUrl, fieldsIn, postForm } from '../consent/support/consent.ts';
import { type ConsolePage, startConsoleService, Visitor, visitorWith } from './support/console.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { createPrincipal } from '../../support/keys.ts';
import { ROOT } from '../../support/process.ts';
import type { TestService } from '../../support/server.ts';

const MINUTE = 60_000;
const secretIn = ({ html }: ConsolePage) => /value="(svc_\w+)"/.exec(html)?.[1];

/** A page on which a signed-in person creates a secret. */
interface Door {
  /** Opens the form. */
  open: (visitor: Visitor) => Promise<ConsolePage>;
  /** Submits the form, with this text in its field for a key. */
  send: (visitor: Visitor, yourKey?: string) => Promise<ConsolePage>;
  isDone: (page: ConsolePage) => boolean;
}

describeOnEach('a form of the console that makes a secret', () => {
  let test: TestService;
  let visitor: Visitor;
  let key: string;
  beforeEach(async () => {
    test = await startConsoleService({ consent: 'both', app: { clients: [APP] } });
    ({ visitor, secret: key } = await visitorWith(test, { name: 'Ada', roles: ['ADMIN'] }));
  });
  afterEach(() => test.stop());

  const given = (yourKey?: string) => (yourKey === undefined ? {} : { yourKey });
  let made = 0;
  const doors: Record<string, Door> = {
    'of a new key': {
      open: async (by) => {
        await by.open('keys/new');
        return by.submit('keys/new', { name: `New ${(made += 1)}`, permission: ['ME:READ_OWN'], step: 'preview' });
      },
      send: (by, yourKey) => by.submit('keys/new', { step: 'create', ...given(yourKey) }),
      isDone: (page) => secretIn(page) !== undefined,
    },
    'of a rotation': {
      open: async (by) => {
        const { apiKey } = await test.keys.create({ name: `CI ${(made += 1)}`, roles: ['GUEST'] }, OPERATOR);
        return by.open(`keys/${apiKey.id}/rotation`);
      },
      send: (by, yourKey) => by.submit('/rotation', { grace: '3h', ...given(yourKey) }),
      isDone: (page) => secretIn(page) !== undefined,
    },
    'that agrees to what a device asks for': {
      open: async (by) => by.open(`../device?user_code=${(await askDevice(test.url)).user_code}`),
      send: (by, yourKey) => by.submit('device', { decision: 'approve', expiry: '7d', ...given(yourKey) }),
      isDone: ({ text }) => text.includes('Its name is'),
    },
    'that agrees on the page that an application opens': {
      open: (by) => by.open(`..${authorizeUrl(test.url).slice(test.url.length)}`),
      send: async (by, yourKey) => {
        const fields = Object.entries({ decision: 'approve', expiry: '7d', ...given(yourKey) });
        const body = [...fieldsIn(by.page!.html), ...fields].filter(([, value]) => value !== '');
        const { headers, status, text } = await postForm(`${test.url}/oauth/authorize`, body as [string, string][], {
          cookie: by.cookies,
        });
        for (const cookie of headers.getSetCookie()) by.keep(cookie);
        const answer = { ...by.page!, status, headers, html: text, text: headers.get('location') ?? '' };
        if (!headers.has('location')) by.page = answer;
        return answer;
      },
      isDone: ({ text }) => /\?code=/.test(text),
    },
  };

  for (const [name, { open, send, isDone }] of Object.entries(doors)) {
    it(`asks for no key within 5 minutes of signing in: ${name}`, async () => {
      test.time.now += 5 * MINUTE - 1;
      assert.ok(!(await open(visitor)).html.includes('yourKey'));
      assert.ok(isDone(await send(visitor)));
    });

    it(`asks for the key of the session after that, and not again for 5 minutes: ${name}`, async () => {
      test.time.now += 5 * MINUTE;
      const shown = await open(visitor);
      assert.match(shown.html, /<input id="yourKey" name="yourKey" autocomplete="current-password"[^>]* required/);
      const done = await send(visitor, ` ${key} `);
      assert.ok(isDone(done), done.text);
      test.time.now += 5 * MINUTE - 1;
      assert.ok(!(await open(visitor)).html.includes('yourKey'));
      assert.ok(isDone(await send(visitor)));
      test.time.now += 1;
      assert.match((await open(visitor)).html, /yourKey/);
      assert.ok(!isDone(await send(visitor)));
    });

    it(`does nothing without that key, and reports that at the field: ${name}`, async () => {
      const { secret: other } = await createPrincipal(test.keys, { name: 'Bea', roles: ['ADMIN'] });
      const count = async () => (await test.keys.list({}, OPERATOR)).keys.length;
      await open(visitor);
      test.time.now += 5 * MINUTE;
      const before = await count();
      for (const [yourKey, status, problem] of [
        [undefined, 400, /Enter your API key\./],
        [' ', 400, /Enter your API key\./],
        ['svc_nonsense', 403, /The API key is not valid\./],
        [other, 403, /This is not the key that you are signed in with\./],
      ] as const) {
        const refused = await send(visitor, yourKey);
        assert.deepEqual([refused.status, isDone(refused)], [status, false], refused.text);
        assert.match(/<p id="yourKey-problem"[^>]*>([^<]*)/.exec(refused.html)![1]!, problem);
        assert.ok(!refused.html.includes(other));
      }
      assert.equal(await count(), before);
      assert.ok(isDone(await send(visitor, key)));
    });

    it(`gives a cookie that was stolen before nothing by the key that its owner enters: ${name}`, async () => {
      test.time.now += 5 * MINUTE;
      const thief = visitor.twin();
      await open(visitor);
      assert.ok(isDone(await send(visitor, key)));
      assert.equal((await thief.open('keys')).status, 200);
      await open(thief);
      assert.ok(!isDone(await send(thief)));
    });
  }

  it('keeps its fields', async () => {
    const { open, send } = doors['of a rotation']!;
    test.time.now += 5 * MINUTE;
    await open(visitor);
    assert.match((await send(visitor, 'svc_nonsense')).html, /name="grace"[^>]* value="3h"/);
  });

  it('counts a wrong key as other doors do, and still accepts the right one', async () => {
    const { open, send, isDone } = doors['of a rotation']!;
    test.time.now += 5 * MINUTE;
    await open(visitor);
    for (let count = 0; count < 20; count += 1) assert.equal((await send(visitor, 'svc_nonsense')).status, 403);
    const limited = await send(visitor, 'svc_nonsense');
    assert.equal(limited.status, 429);
    assert.match(limited.headers.get('retry-after')!, /^\d+$/);
    assert.ok(isDone(await send(visitor, key)));
  });

  it('is done once where it is sent twice with the key, and again without it', async () => {
    const { open, send } = doors['of a new key']!;
    test.time.now += 5 * MINUTE;
    await open(visitor);
    const form = visitor.twin();
    const answers = await Promise.all([send(form.twin(), key), send(form.twin(), key)]);
    const [secret, again] = answers.map(secretIn);
    assert.ok(secret !== undefined);
    assert.equal(again, secret);
    assert.equal(secretIn(await send(form.twin())), secret);
    assert.equal((await test.keys.list({}, OPERATOR)).keys.length, 2);
  });

  it('is not a form that changes, disables or finishes', async () => {
    const { apiKey } = await test.keys.create({ name: 'CI', roles: ['GUEST'] }, OPERATOR);
    await test.keys.rotate(apiKey.id, {}, OPERATOR);
    test.time.now += 5 * MINUTE;
    await visitor.open(`keys/${apiKey.id}/rotation`);
    assert.match((await visitor.submit('/rotation/finish')).text, /Only the new secret works/);
    await test.keys.rotate(apiKey.id, {}, OPERATOR);
    await visitor.open(`keys/${apiKey.id}/rotation`);
    assert.match((await visitor.submit('/roll-back')).text, /Only the previous secret works/);
    await visitor.open(`keys/${apiKey.id}`);
    await visitor.submit('/disable');
    assert.notEqual((await test.keys.findById(apiKey.id, OPERATOR))!.disabledAt, null);
    const { user_code } = await askDevice(test.url);
    await visitor.open(`../device?user_code=${user_code}`);
    assert.match((await visitor.submit('device', { decision: 'deny' })).text, /gets no key/);
  });
});

describe('operations of the console that make a secret', () => {
  it('are all that the schema has', () => {
    const schema = buildSchema(readFileSync(join(ROOT, 'docs/schema.graphql'), 'utf8'), { assumeValidSDL: true });
    const makers = Object.values(schema.getMutationType()!.getFields()).filter(({ type }) => {
      const answer = getNamedType(type);
      return isObjectType(answer) && 'key' in answer.getFields();
    });
    assert.ok(makers.length >= 2);
    for (const { name } of makers) assert.match(`mutation { ${name}(input: $input) { key } }`, MAKES_SECRET);
  });
});
