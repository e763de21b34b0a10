import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { formatCursor } from '../../../src/keys/service/management.ts';
import { MAX_PAGE_SIZE } from '../../../src/keys/basics/page-size.ts';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { describeAlwaysOnEach } from '../../support/dialects.ts';
import type { StoredKey } from '../../../src/keys/key/api-key.ts';
import { createPrincipal, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';

describeAlwaysOnEach('the list of keys', () => {
  let test: TestKeys;
  const create = (name: string, description?: string) =>
    test.keys.create({ name, description: description ?? null, roles: ['GUEST'] }, OPERATOR);
  const names = async (query: Parameters<TestKeys['keys']['list']>[0] = {}) =>
    (await test.keys.list(query, OPERATOR)).keys.map(({ name }) => name);

  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  it('is empty where there are no keys', async () => {
    assert.deepEqual(await test.keys.list({}, OPERATOR), {
      keys: [],
      hasNextPage: false,
      endCursor: null,
    });
  });

  it('is in order of creation, oldest first', async () => {
    for (const name of ['C', 'A', 'B']) {
      test.time.now += 1;
      await create(name);
    }
    assert.deepEqual(await names(), ['C', 'A', 'B']);
  });

  it('comes in pages that hold each key once, also where all were created in one moment', async () => {
    for (let index = 0; index < 7; index += 1) await create(`Key ${index}`);
    const all = await names();
    const seen: string[] = [];
    let after: string | null = null;
    for (const expected of [3, 3, 1]) {
      const page = await test.keys.list({ first: 3, after }, OPERATOR);
      assert.equal(page.keys.length, expected);
      seen.push(...page.keys.map(({ name }) => name));
      assert.equal(page.hasNextPage, seen.length < 7);
      after = page.endCursor;
    }
    assert.deepEqual(seen, all);
    assert.equal(new Set(seen).size, 7);
  });

  it('has no page behind one that is just full', async () => {
    for (const name of ['A', 'B']) await create(name);
    assert.equal((await test.keys.list({ first: 2 }, OPERATOR)).hasNextPage, false);
  });

  it('continues after a key that was deleted meanwhile', async () => {
    const keys = [];
    for (const name of ['A', 'B', 'C']) {
      test.time.now += 1;
      keys.push((await create(name)).apiKey);
    }
    await test.keys.delete([keys[1]!.id], OPERATOR);
    assert.deepEqual(await names({ after: formatCursor(keys[1]!) }), ['C']);
  });

  it('has 50 keys a page by default, and at most 500', async () => {
    const { apiKey: key } = await create('First');
    const more = Array.from({ length: MAX_PAGE_SIZE }, (_, index) => ({
      ...key,
      id: randomUUID(),
      name: `Key ${index}`,
      publicId: `${index}`,
      digest: `${index}`,
      previousDigest: null,
    }));
    await test.store.repository.write((writer) => writer.insert(more));
    assert.equal((await names()).length, 50);
    assert.equal((await names({ first: null, after: null, search: null })).length, 50);
    const page = await test.keys.list({ first: MAX_PAGE_SIZE }, OPERATOR);
    assert.equal(page.keys.length, MAX_PAGE_SIZE);
    assert.equal(page.hasNextPage, true);
    assert.deepEqual(await test.keys.list({ first: 0 }, OPERATOR), { keys: [], hasNextPage: true, endCursor: null });
  });

  for (const first of [-1, 501, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    it(`refuses a page of ${first}`, async () => {
      await assert.rejects(test.keys.list({ first }, OPERATOR), {
        code: 'INPUT_INVALID',
        message: `"first" is ${first}; a page has 0 to 500 keys.`,
      });
    });
  }

  const position = '1893456000000:00000000-0000-4000-8000-000000000000';
  const others = ['1:2', `x${position}`, `${position}x`].map((text) => Buffer.from(text).toString('base64url'));
  for (const after of ['x', 'MTIz', ...others, "' or 1=1", '🔑']) {
    it(`refuses ${after} as a cursor`, async () => {
      await assert.rejects(test.keys.list({ after }, OPERATOR), {
        code: 'INPUT_INVALID',
        message: /^"after" is not a cursor of this list/,
      });
    });
  }

  describe('searched', () => {
    const found: Record<string, [stored: string, search: string]> = {
      'a part of the name': ['Docker bot', 'ker b'],
      'another case': ['Docker bot', 'DOCKER'],
      'another case of other scripts': ['Ключ Ärger', 'кЛЮЧ äRGER'],
      'another form': ['Caf\u00e9', 'CAFE\u0301'],
      'a sharp s for two': ['Straße', 'STRASSE'],
      'a final sigma inside a word': ['ΟΔΟΣΑ', 'οδος'],
      'fullwidth letters': ['ＡＢＣ', 'abc'],
      nothing: ['Docker bot', ''],
    };
    for (const [what, [name, search]] of Object.entries(found)) {
      it(`finds ${what}`, async () => {
        await create(name);
        assert.deepEqual(await names({ search }), [name.normalize('NFC')]);
      });
    }

    it('finds a part of the description', async () => {
      await create('A', 'For the nightly build');
      await create('B');
      assert.deepEqual(await names({ search: 'NIGHTLY' }), ['A']);
    });

    it('takes every character for itself', async () => {
      await create('A', '100 % of a_b \\ \' "');
      await create('B', '100 of aXb');
      for (const search of ['%', '_', '0 %', 'a_b', '\\', "'", '"'])
        assert.deepEqual(await names({ search }), ['A'], search);
      for (const search of ['%b', 'A%', '__', '*', '?']) {
        assert.deepEqual(await names({ search }), [], JSON.stringify(search));
      }
    });

    it('refuses U+0000, which no text of a store has', async () => {
      for (const search of ['\0', '\0B', 'B\0'])
        await assert.rejects(names({ search }), { code: 'INPUT_INVALID' }, JSON.stringify(search));
    });

    it('refuses a text that is longer than any text of a store', async () => {
      await create('A');
      assert.deepEqual(await names({ search: 'A'.repeat(1000) }), []);
      await assert.rejects(names({ search: 'A'.repeat(1001) }), { code: 'INPUT_INVALID' });
    });

    it('comes in pages too, within what the actor may read', async () => {
      const { principal } = await createPrincipal(test.keys, {
        name: 'Bot 0',
        permissions: ['API_KEY:CREATE_OWN', 'API_KEY:READ_OWN'],
      });
      for (const name of ['Bot 1', 'Cat 2', 'Bot 3']) {
        test.time.now += 1;
        await test.keys.create({ name, permissions: ['API_KEY:READ_OWN'] }, principal);
      }
      await create('Bot 4');
      const first = await test.keys.list({ first: 2, search: 'bot' }, principal);
      const after = formatCursor(first.keys[1]!);
      const rest = await test.keys.list({ first: 2, search: 'bot', after }, principal);
      assert.deepEqual(
        [first, rest].map((page) => [page.keys.map(({ name }) => name), page.hasNextPage]),
        [
          [['Bot 0', 'Bot 1'], true],
          [['Bot 3'], false],
        ],
      );
    });
  });

  it('of a status counts the ancestors of each key, however far away they are', async () => {
    const [now, size] = [1_000_000, 1200];
    const endings: Record<string, Partial<StoredKey>> = {
      active: {},
      disabled: { disabledAt: 1 },
      expired: { expiresAt: now },
      'expired and disabled': { expiresAt: now, disabledAt: 1 },
    };
    const tops = Object.entries(endings).map(([name, ending], at) =>
      storedKey(`top ${at}`, { name, ...ending, createdAt: at }),
    );
    // More keys than one read returns lie between a key and its parents.
    const between = Array.from({ length: size }, (_, at) => storedKey(randomUUID(), { createdAt: 10 + at }));
    const children = tops.map(({ id, name }, at) =>
      storedKey(`child ${at}`, {
        name: `beneath ${name}`,
        createdBy: id,
        createdAt: 2 * size + at,
        disabledAt: name === 'expired' ? 1 : null,
      }),
    );
    const grandchildren = children.map(({ id, name }, at) =>
      storedKey(`grandchild ${at}`, { name: `far ${name}`, createdBy: id, createdAt: 3 * size + at }),
    );
    await test.store.repository.write((writer) => writer.insert([...tops, ...between, ...children, ...grandchildren]));
    const namesOf = async (status: string, first: number) => {
      test.time.now = now;
      const page = await test.keys.list({ status, first }, OPERATOR);
      return [page.keys.map(({ name }) => name), page.hasNextPage];
    };
    const family = (name: string) => [name, `beneath ${name}`, `far beneath ${name}`];
    const inOrder = (one: string, other: string) => [0, 1, 2].flatMap((at) => [family(one)[at], family(other)[at]]);
    assert.deepEqual(await namesOf('DISABLED', 500), [family('disabled'), false]);
    assert.deepEqual(await namesOf('DISABLED', 2), [family('disabled').slice(0, 2), true]);
    assert.deepEqual(await namesOf('EXPIRED', 500), [inOrder('expired', 'expired and disabled'), false]);
    const active = await test.keys.list({ status: 'ACTIVE', first: 500 }, OPERATOR);
    const last = formatCursor(between[size - 1]!);
    assert.deepEqual([active.keys.length, active.hasNextPage], [500, true]);
    assert.deepEqual(await names({ status: 'ACTIVE', after: last }), family('active').slice(1));
  });
});
