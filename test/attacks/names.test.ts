import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DeclaredKey } from '../../src/features/apply/declaration.ts';
import { OPERATOR } from '../../src/keys/authorization/principal.ts';
import { CONFUSABLES } from '../../src/keys/key/confusables.ts';
import { computeSkeleton } from '../../src/keys/key/skeleton.ts';
import { type TestCli, testCli } from '../support/cli.ts';
import { describeOnEach } from '../support/dialects.ts';
import { createPrincipal, jsonLines, openTestKeys, type TestKeys } from '../support/keys.ts';
import { cliOnTerminal, KEYS } from '../support/pty.ts';
import { type GraphQLReply, query, startServer, type TestServer } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { importKeys } from '../features/transfer/support/import-keys.ts';
import { Declarations } from '../../src/features/apply/apply.ts';

/** Cyrillic А in place of the Latin A. */
const CYRILLIC = '\u0410dmin';
const LIKENESS = `The name "${CYRILLIC}" looks like that of the API key "Admin": it has "\u0410" (U+0410) in place of "A" (U+0041).`;

describe('two names look alike', () => {
  const alike = {
    'by a Cyrillic letter': [CYRILLIC, 'Admin'],
    'by Greek letters': ['\u0391\u03a1\u0399', 'API'],
    'by fullwidth letters': ['\uff21\uff44\uff4d\uff49\uff4e', 'Admin'],
    'by mathematical letters': ['\u{1d400}\u{1d41d}\u{1d426}\u{1d422}\u{1d427}', 'Admin'],
    'by l in place of I': ['Cl deploy', 'CI deploy'],
    'by 1 in place of l': ['depl0y 1', 'deplOy l'],
    'by rn in place of m': ['Adrnin', 'Admin'],
    'by another mark of the same look': ['Caf\u0435\u0341', 'Caf\u00e9'],
    'by a digit of another script': ['Key \u0665', 'Key o'],
  } as const;
  for (const [how, [one, other]] of Object.entries(alike))
    it(how, () => assert.equal(computeSkeleton(one), computeSkeleton(other)));

  for (const [one, other] of [
    ['Admin', 'admin'],
    ['CI deploy', 'CI deploy 2'],
    ['Cafe', 'Caf\u00e9'],
    ['日本', '日木'],
  ] as const)
    it(`not where they are ${one} and ${other}`, () => assert.notEqual(computeSkeleton(one), computeSkeleton(other)));

  it('as their skeletons look like themselves, for every character of Unicode', () => {
    const table = new Set(CONFUSABLES.match(/[0-9a-f]+/g));
    const wrong = [];
    for (let number = 0; number < 0x110000; number += 1) {
      const character = String.fromCodePoint(number);
      if (!/^[\p{L}\p{M}\p{Nd}]$/u.test(character)) continue;
      // Most characters are their own skeletons, and looking up each is slow.
      if (!table.has(number.toString(16)) && character.normalize('NFKD') === character) continue;
      const skeleton = computeSkeleton(character);
      if (computeSkeleton(skeleton) !== skeleton) wrong.push(number.toString(16));
    }
    assert.deepEqual(wrong, []);
  });
});

describeOnEach('a key that looks like another', () => {
  let test: TestKeys;
  let server: TestServer;
  let admin: string;
  beforeEach(async () => {
    test = await openTestKeys();
    server = await startServer(test.keys);
    await test.keys.create({ name: 'Admin', roles: ['GUEST'] }, OPERATOR);
    admin = (await createPrincipal(test.keys, { name: 'Boss', roles: ['ADMIN'] })).secret;
  });
  afterEach(async () => {
    await server.stop();
    await test.store.close();
  });

  const create = (secret: string, name: string, more: object = {}) =>
    query(server.url, secret, 'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { key } }', {
      input: { name, roles: ['GUEST'], ...more },
    });
  const refusal = ({ body }: GraphQLReply) => [body.errors?.[0]?.extensions['code'], body.errors?.[0]?.message];
  const names = async () => (await test.keys.list({}, OPERATOR)).keys.map(({ name }) => name).toSorted();

  it('is not created over GraphQL, and the other one is named', async () => {
    assert.deepEqual(refusal(await create(admin, CYRILLIC)), ['NAME_CONFUSABLE', `${LIKENESS} Choose another name.`]);
    assert.deepEqual(await names(), ['Admin', 'Boss']);
  });

  it('is not created by a key that may not read the other one, which stays unnamed', async () => {
    const { secret } = await createPrincipal(test.keys, {
      name: 'Creator',
      roles: ['GUEST'],
      permissions: ['API_KEY:CREATE_OWN'],
    });
    assert.deepEqual(refusal(await create(secret, CYRILLIC)), [
      'NAME_CONFUSABLE',
      `The name "${CYRILLIC}" looks like that of another API key. Choose another name.`,
    ]);
  });

  it('is not created by overwriting what does not exist', async () => {
    assert.equal(refusal(await create(admin, CYRILLIC, { overwrite: true }))[0], 'NAME_CONFUSABLE');
  });

  it('does not keep a key from being replaced under its own name', async () => {
    await test.keys.create({ name: CYRILLIC, roles: ['GUEST'] }, OPERATOR);
    assert.deepEqual(refusal(await create(admin, 'Admin', { overwrite: true })), [undefined, undefined]);
  });

  it('is not made by renaming over GraphQL, other changes of it are', async () => {
    const rename = (id: string, change: object) =>
      query(server.url, admin, 'mutation ($input: UpdateApiKeyInput!) { updateApiKey(input: $input) { name } }', {
        input: { id, ...change },
      });
    const { apiKey: key } = await test.keys.create({ name: 'Other', roles: ['GUEST'] }, OPERATOR);
    assert.equal(refusal(await rename(key.id, { name: CYRILLIC }))[0], 'NAME_CONFUSABLE');
    const twin = await test.keys.create({ name: CYRILLIC, roles: ['GUEST'] }, OPERATOR);
    assert.deepEqual(refusal(await rename(twin.apiKey.id, { name: CYRILLIC, description: 'Twin' })), [
      undefined,
      undefined,
    ]);
    assert.deepEqual(refusal(await rename(twin.apiKey.id, { name: 'Adrnin 2' })), [undefined, undefined]);
    assert.deepEqual(
      refusal(await rename(twin.apiKey.id, { name: 'Admin 2' })),
      [undefined, undefined],
      'its own old name',
    );
  });

  for (const dryRun of [false, true]) {
    it(`is not declared over GraphQL${dryRun ? ', not even for a dry run' : ''}`, async () => {
      const reply = await query(
        server.url,
        admin,
        'mutation ($input: ApplyApiKeysInput!) { applyApiKeys(input: $input) { unchanged } }',
        { input: { dryRun, keys: [{ name: CYRILLIC, roles: ['GUEST'] }] } },
      );
      assert.equal(refusal(reply)[0], 'NAME_CONFUSABLE');
      assert.deepEqual(await names(), ['Admin', 'Boss']);
    });
  }

  it('is warned of, and imported, also where it looks like one of the same file', async () => {
    const lines = jsonLines(
      { name: CYRILLIC, roles: ['GUEST'], secret: 'the-first-secret-of-the-file' },
      { name: 'Ci', roles: ['GUEST'], secret: 'the-second-secret-of-the-file' },
      { name: 'C\u0456', roles: ['GUEST'], secret: 'the-third-secret-of-the-file' },
    );
    const { imported, lines: report } = await importKeys(test.keys, lines);
    assert.equal(imported, 3);
    assert.deepEqual(
      report.map(({ warnings }) => warnings.map(({ code, message }) => [code, message.slice(0, 24)])),
      [[['NAME_CONFUSABLE', LIKENESS.slice(0, 24)]], [], [['NAME_CONFUSABLE', 'The name "C\u0456" looks like']]],
    );
  });

  it('is warned of, and declared by the operator, unless pruning deletes the other one', async () => {
    const declared = (name: string): DeclaredKey => ({
      name,
      description: null,
      roles: ['GUEST'],
      permissions: [],
      expiresAt: null,
    });
    const { plan } = await test.keys.feature(Declarations).apply([declared('Twin')], {}, OPERATOR);
    assert.deepEqual(plan.confusable, []);
    const next = await test.keys
      .feature(Declarations)
      .apply([declared(CYRILLIC), declared('Tw\u0456n')], { prune: true }, OPERATOR);
    assert.deepEqual(next.plan.confusable, [{ name: CYRILLIC, others: ['Admin'] }]);
  });
});

describe('the command line warns of a key that looks like another', () => {
  let cli: TestCli;
  beforeEach(async () => {
    cli = testCli();
    await cli.given('Admin');
  });
  const warning = `Warning: ${LIKENESS}\n`;

  for (const [what, ...args] of [
    ['create', 'create', '--name', CYRILLIC, '--roles', 'GUEST'],
    ['create --json', 'create', '--name', CYRILLIC, '--roles', 'GUEST', '--json'],
    ['create --dry-run', 'create', '--name', CYRILLIC, '--roles', 'GUEST', '--dry-run'],
    ['create --overwrite', 'create', '--name', CYRILLIC, '--roles', 'GUEST', '--overwrite'],
    ['exec', 'exec', '--name', CYRILLIC, '--roles', 'GUEST', '--', 'true'],
  ] as const) {
    it(`that ${what} makes`, async () => {
      const { code, stdout, stderr } = await cli.run(['apikey', ...args]);
      assert.equal(code, 0, stderr);
      assert.ok(stderr.endsWith(warning), stderr);
      assert.ok(!stdout.includes('Warning'));
      if (what === 'create --json') assert.deepEqual(Object.keys(JSON.parse(stdout) as object), ['key', 'name', 'id']);
    });
  }

  it('that update --rename makes', async () => {
    await cli.given('Other');
    const { code, stderr } = await cli.run(['apikey', 'update', 'Other', '--rename', CYRILLIC]);
    assert.deepEqual([code, stderr], [0, warning]);
  });

  it('that apply makes', async () => {
    const file = join(tempFolder(), 'keys.json');
    writeFileSync(file, JSON.stringify({ keys: [{ name: CYRILLIC, roles: ['GUEST'] }] }));
    const planned = await cli.run(['apikey', 'apply', '-f', file, '--dry-run']);
    assert.deepEqual([planned.code, planned.stderr], [2, warning]);
    const applied = await cli.run(['apikey', 'apply', '-f', file, '--json']);
    assert.deepEqual([applied.code, applied.stderr], [0, warning]);
  });

  it('that import makes, in its report', async () => {
    const file = join(tempFolder(), 'keys.jsonl');
    writeFileSync(file, JSON.stringify({ name: CYRILLIC, roles: ['GUEST'], secret: 'a-secret-made-elsewhere' }));
    const { code, stdout } = await cli.run(['apikey', 'import', file, '--dry-run']);
    assert.equal(code, 0);
    assert.ok(stdout.endsWith(`line 1: NAME_CONFUSABLE ${LIKENESS}\n`), stdout);
  });

  it('before it is made at the prompt, and asks for another name', async () => {
    const session = cliOnTerminal(['apikey', '--create', '--roles', 'GUEST'], { SVC_API_DATABASE: cli.database });
    try {
      await session.answer('? Name', `${CYRILLIC}${KEYS.enter}`);
      await session.answer('Create it anyway?', KEYS.enter);
      await session.answer('? Name', `Admin 2${KEYS.enter}`);
      await session.answer('? Description', KEYS.enter);
      await session.answer('? Expires', KEYS.enter);
      assert.equal(await session.end(), 0);
      assert.match(session.screen, /Created API key "Admin 2"/);
    } finally {
      session.close();
    }
  });
});
