import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { OPERATOR } from '../../../src/keys/authorization/principal.ts';
import { identityFields, valuesOf } from '../../../src/keys/key/index.ts';
import { createSecret } from '../../../src/keys/secret/secret.ts';
import { describeOnEach } from '../../support/dialects.ts';
import { authenticate, countKeys, jsonLines, openTestKeys, storedKey, type TestKeys } from '../../support/keys.ts';
import { importKeys, type ImportReport } from './support/import-keys.ts';

const SECRET = 'sk_live_4eC39HqLyjWDarjtT1zdp7dc';
const DIGEST = createHash('sha256').update(SECRET).digest();
const HEX = DIGEST.toString('hex');
const OTHER = '0b7f3ad1-5d7e-4f1b-9c51-3f0f1c9a7d10';
const key = (fields: object = {}) => ({ name: 'CI', secret: SECRET, roles: ['VIEWER'], ...fields });
const hashed = (sha256: string, fields: object = {}) => ({ name: 'CI', sha256, roles: ['VIEWER'], ...fields });

describeOnEach('importing keys', () => {
  let test: TestKeys;
  beforeEach(async () => {
    test = await openTestKeys();
  });
  afterEach(() => test.store.close());

  const load = (...lines: (object | string)[]) => importKeys(test.keys, jsonLines(...lines));
  const count = () => countKeys(test.store.repository);
  const codes = ({ lines }: ImportReport) => lines.map(({ errors }) => errors.map(({ code }) => code));
  async function assertOpens(secret: string, name = 'CI'): Promise<void> {
    const found = await authenticate(test.keys, secret);
    assert.ok('principal' in found, JSON.stringify(found));
    assert.equal(found.principal.apiKey.name, name);
  }

  it('reads a digest in any form', async () => {
    assert.equal((await load(hashed(DIGEST.toString('base64url')))).imported, 1);
    await assertOpens(SECRET);
  });

  it('refuses invalid digests, without repeating them', async () => {
    const wrong = `${HEX}0`;
    const report = await load(hashed(wrong));
    assert.deepEqual(codes(report), [['SECRET_INVALID']]);
    assert.equal(JSON.stringify(report).includes(wrong), false);
  });

  it('keeps the fields of a line, and generates the others', async () => {
    const full = {
      ...key(),
      id: '0B7F3AD1-5D7E-4F1B-9C51-3F0F1C9A7D10',
      name: '  Cafe\u0301 ',
      description: ' for the\u00a0build ',
      owner: ' Build team ',
      tags: ['env=ci'],
      metadata: { plan: 'pro' },
      roles: ['viewer', 'VIEWER', 'guest'],
      permissions: ['docker:update_any'],
      limits: ['5/month', '100 / m'],
      allowFrom: ['2001:DB8::/32', '10.0.0.0/8'],
      expiresAt: '2031-01-01T01:00:00+01:00',
      disabled: true,
      createdAt: '2020-02-29T12:00:00Z',
      prefix: 'imported-0123456789Ab',
    };
    const created = await test.keys.create({ name: 'Parent', roles: ['GUEST'] }, OPERATOR);
    const report = await load(
      { ...full, createdBy: created.apiKey.id },
      hashed('0'.repeat(64), { name: 'Plain', description: null, id: null }),
    );
    assert.equal(report.imported, 2, JSON.stringify(report));
    assert.deepEqual(await test.keys.findByName('Caf\u00e9', OPERATOR), {
      id: OTHER,
      name: 'Caf\u00e9',
      description: 'for the\u00a0build',
      owner: 'Build team',
      tags: ['env=ci'],
      metadata: { plan: 'pro' },
      roles: ['VIEWER', 'GUEST'],
      permissions: ['DOCKER:UPDATE_ANY'],
      limits: ['100/m', '5/month'],
      allowFrom: ['2001:db8::/32', '10.0.0.0/8'],
      publicId: 'imported-0123456789Ab',
      createdAt: Date.UTC(2020, 1, 29, 12),
      createdBy: created.apiKey.id,
      expiresAt: Date.UTC(2031, 0, 1),
      disabledAt: test.time.now,
      managed: false,
      audience: null,
      ...valuesOf(identityFields, {}),
      rotation: null,
    });
    const { id, publicId, ...plain } = (await test.keys.findByName('Plain', OPERATOR))!;
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.match(publicId, /^imported-[0-9A-Za-z]{12}$/);
    assert.deepEqual(plain, {
      name: 'Plain',
      description: null,
      owner: null,
      tags: [],
      metadata: null,
      roles: ['VIEWER'],
      permissions: [],
      limits: [],
      allowFrom: null,
      createdAt: test.time.now,
      createdBy: null,
      expiresAt: null,
      disabledAt: null,
      managed: false,
      audience: null,
      ...valuesOf(identityFields, {}),
      rotation: null,
    });
    assert.deepEqual(report.lines[0], {
      line: 1,
      status: 'imported',
      name: 'Caf\u00e9',
      id: OTHER,
      prefix: 'imported-0123456789Ab',
      errors: [],
      warnings: [],
    });
  });

  it('keeps the public id of a secret of our own form, and refuses one that was mistyped', async () => {
    const { text, publicId } = createSecret(randomBytes);
    const report = await load(
      key({ secret: text, prefix: `svc_${publicId}_…` }),
      hashed(HEX, { name: 'By digest', prefix: 'svc_0a1B2c3D4e5F_…' }),
    );
    assert.deepEqual(
      report.lines.map(({ prefix }) => prefix),
      [`svc_${publicId}_…`, 'svc_0a1B2c3D4e5F_…'],
    );
    await assertOpens(text);
    const mistyped = `${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}`;
    const refused = await load(key({ name: 'Typo', secret: mistyped }));
    assert.match(refused.lines[0]!.errors[0]!.message, /checksum/);
    for (const [secret, prefix] of [
      [SECRET, 'svc_0a1B2c3D4e5F_…'],
      [createSecret(randomBytes).text, 'svc_0a1B2c3D4e5F_…'],
      [createSecret(randomBytes).text, 'imported-0a1B2c3D4e5F'],
      ['some-other-secret-of-a-kind', 'sk_live_'],
      ['some-other-secret-of-a-kind', 'ximported-0a1B2c3D4e5F'],
      ['some-other-secret-of-a-kind', 'imported-0a1B2c3D4e5Fx'],
      [text, `x${report.lines[0]!.prefix}`],
      [text, `${report.lines[0]!.prefix}x`],
    ])
      assert.deepEqual(codes(await load(key({ name: 'Wrong', secret, prefix }))), [['SECRET_INVALID']], prefix);
  });

  for (const secret of ['', 'with blank', 'tab\there', 'schl\u00fcssel', 'line\nfeed', 'x'.repeat(8001)]) {
    it(`refuses a secret that no header can carry: ${JSON.stringify(secret.slice(0, 20))}`, async () => {
      const report = await load(key({ secret }));
      assert.deepEqual(codes(report), [['SECRET_INVALID']]);
      assert.equal(secret !== '' && JSON.stringify(report).includes(JSON.stringify(secret).slice(1, -1)), false);
    });
  }

  it('warns of a secret that may be guessed, and of a key that has expired', async () => {
    const report = await load(
      key({ secret: 'x'.repeat(19) }),
      key({ name: 'Over', secret: 'y'.repeat(20), expiresAt: '2029-12-31T00:00:00Z' }),
      key({ name: 'Due', secret: 'z'.repeat(20), expiresAt: '2030-01-01T00:00:00Z' }),
      hashed(HEX, { name: 'Digest', createdAt: '1970-01-01T00:00:00Z' }),
    );
    assert.deepEqual(
      report.lines.map(({ warnings }) => warnings.map(({ code }) => code)),
      [['SECRET_GUESSABLE'], ['EXPIRED'], ['EXPIRED'], []],
    );
    assert.deepEqual(
      await authenticate(test.keys, 'y'.repeat(20)).then((found) => 'refused' in found && found.refused),
      'expired',
    );
  });

  const FAULTS: Record<string, [line: object | string, codes: string[], message?: RegExp]> = {
    'no JSON': ['{"name":', ['INPUT_INVALID'], /not a JSON object/],
    'a list': ['[]', ['INPUT_INVALID'], /not a JSON object/],
    'a list as deep as a line is long': [
      `{"name":"CI","secret":"${SECRET}","roles":${'['.repeat(30_000)}${']'.repeat(30_000)}}`,
      ['INPUT_INVALID'],
      /^"roles" must be a list of strings\.$/,
    ],
    'a text': ['"name"', ['INPUT_INVALID'], /not a JSON object/],
    null: ['null', ['INPUT_INVALID'], /not a JSON object/],
    'no name': [{ secret: SECRET, roles: ['GUEST'] }, ['INPUT_INVALID'], /name is missing/],
    'a name of null': [key({ name: null }), ['INPUT_INVALID'], /name is missing/],
    'a wrong name': [key({ name: 'a-b' }), ['NAME_INVALID']],
    'no secret': [{ name: 'CI', roles: ['GUEST'] }, ['SECRET_INVALID'], /Both are missing/],
    'two secrets': [key({ sha256: HEX }), ['SECRET_INVALID'], /Both are given/],
    'no grants': [{ name: 'CI', secret: SECRET }, ['NO_GRANTS']],
    'a wrong role': [key({ roles: ['BOSS'] }), ['ROLE_INVALID']],
    'a wrong permission': [key({ permissions: ['DOCKER'] }), ['PERMISSION_INVALID']],
    'a wrong description': [key({ description: 'a\nb' }), ['DESCRIPTION_INVALID']],
    'a wrong end': [key({ expiresAt: 'tomorrow' }), ['EXPIRY_INVALID']],
    'a day that is none': [key({ expiresAt: '2031-02-30T00:00:00Z' }), ['EXPIRY_INVALID']],
    'an end too far away': [key({ expiresAt: '2045-01-01T00:00:00Z' }), ['EXPIRY_INVALID'], /ten years/],
    'a wrong id': [key({ id: 'key_123' }), ['INPUT_INVALID'], /"id" is not a UUID/],
    'an id with more in front of it': [key({ id: `0${OTHER}` }), ['INPUT_INVALID'], /"id" is not a UUID/],
    'an id with more behind it': [key({ id: `${OTHER}0` }), ['INPUT_INVALID'], /"id" is not a UUID/],
    'a wrong creation': [key({ createdAt: '1893456000' }), ['INPUT_INVALID'], /"createdAt"/],
    'a creation before 1970': [key({ createdAt: '1969-12-31T23:59:59Z' }), ['INPUT_INVALID'], /"createdAt"/],
    'a wrong creator': [key({ createdBy: 'root' }), ['INPUT_INVALID'], /"createdBy" is not a UUID/],
    'an unknown creator': [key({ createdBy: OTHER }), ['NOT_FOUND']],
    'a text for a list': [key({ roles: 'VIEWER' }), ['INPUT_INVALID'], /"roles" must be a list of strings/],
    'a list with a number': [key({ roles: [1] }), ['INPUT_INVALID'], /"roles" must be a list of strings/],
    'a number for a truth': [key({ disabled: 0 }), ['INPUT_INVALID'], /"disabled" must be true or false/],
    'a number for a secret, and elsewhere': [
      key({ secret: 12_345_678, description: 12_345_678 }),
      ['INPUT_INVALID', 'INPUT_INVALID'],
      /"secret" must be a string/,
    ],
    'a number for a text': [key({ expiresAt: 1_893_456_000_000 }), ['INPUT_INVALID'], /"expiresAt" must be a string/],
    'a field twice': [
      JSON.stringify(key()).replace('{', '{"allowFrom":["10.0.0.0/8"],"allowFrom":["0.0.0.0/0"],'),
      ['INPUT_INVALID'],
      /The line has a repeated field\./,
    ],
    'a field that is none': [
      key({ rolls: [] }),
      ['INPUT_INVALID'],
      /"rolls" is not a field of a key\. Did you mean roles\?/,
    ],
    'a misspelled field that is required': [
      '{"nme":"CI","secrt":"abcdefghijklmnopqrstuvwxyz","role":["GUEST"]}',
      ['INPUT_INVALID', 'INPUT_INVALID', 'INPUT_INVALID'],
      /"nme" is not a field of a key\. Did you mean name\?/,
    ],
    'a misspelled field with another value': ['{"nme":7,"secret":"abcdefghijklmnopqrstuvwxyz"}', ['INPUT_INVALID']],
    'a field like none': [
      key({ userAgentHeader: 1 }),
      ['INPUT_INVALID'],
      /The fields are name, description, .* and \w+/,
    ],
    'a field of the prototype': [
      '{"__proto__":1,"name":"CI","secret":"abcdefghijklmnopqrstuvwxyz","roles":["GUEST"]}',
      ['INPUT_INVALID'],
    ],
    'many issues': [
      key({ name: 'a-b', roles: ['BOSS'], permissions: ['X:Y'], expiresAt: '?', id: '?', enabled: true }),
      ['INPUT_INVALID', 'NAME_INVALID', 'ROLE_INVALID', 'PERMISSION_INVALID', 'EXPIRY_INVALID', 'INPUT_INVALID'],
    ],
    'a line too long': [key({ description: 'x'.repeat(16 * 1024 ** 2) }), ['INPUT_INVALID'], /longer than 16 MiB/],
  };
  for (const [what, [line, expected, message = /./]] of Object.entries(FAULTS)) {
    it(`imports nothing when one line has ${what}`, async () => {
      const report = await load(key({ name: 'Fine', secret: 'another-secret-of-some-length' }), line);
      assert.deepEqual([report.imported, report.failed], [0, 1]);
      assert.deepEqual(codes(report), [[], expected]);
      assert.match(report.lines[1]!.errors[0]!.message, message);
      assert.deepEqual([report.lines[1]!.status, report.lines[1]!.warnings], ['failed', []]);
      assert.deepEqual(report.lines[0], {
        line: 1,
        status: 'not imported',
        name: 'Fine',
        id: null,
        prefix: null,
        errors: [],
        warnings: [],
      });
      assert.equal(await count(), 0);
      assert.equal(JSON.stringify(report).includes(SECRET), false);
    });
  }

  it('accepts a line of exactly 16 MiB, and its neighbors', async () => {
    const padded = JSON.stringify(key()).padEnd(16 * 1024 ** 2, ' ');
    const report = await load(
      padded,
      `${JSON.stringify(key({ name: 'B' }))}${' '.repeat(16 * 1024 ** 2)}`,
      key({ name: 'C', secret: 'c'.repeat(30) }),
    );
    assert.deepEqual(codes(report), [[], ['INPUT_INVALID'], []]);
  });

  it('reads past a byte order mark, empty lines and line ends of both kinds, and refuses other encodings', async () => {
    const lines = (...bytes: Uint8Array[]) =>
      importKeys(
        test.keys,
        (async function* () {
          yield* bytes;
        })(),
      );
    const [one, two] = [key(), key({ name: 'Zwei', secret: 'b'.repeat(30) })].map((line) => JSON.stringify(line));
    const latin = Buffer.from(JSON.stringify(key({ name: 'K\u00fcche' })), 'latin1');
    assert.deepEqual(
      (await lines(latin)).lines.map(({ errors }) => errors.map(({ message }) => message)),
      [['The line is not valid UTF-8.']],
    );
    assert.deepEqual(codes(await lines(Buffer.from(`\ufeff${one}\n`, 'utf16le'))), [
      ['INPUT_INVALID'],
      ['INPUT_INVALID'],
    ]);
    const report = await lines(Buffer.from(`\ufeff${one}\r\n\r\n  \n`), Buffer.from(`${two}\r\n`));
    assert.deepEqual([report.imported, report.lines.map(({ line }) => line)], [2, [1, 4]]);
    assert.deepEqual(await lines(), { imported: 0, unchanged: 0, failed: 0, lines: [] });
  });

  it('refuses what the store or another line has already, and names it', async () => {
    const { apiKey: old, key: secret } = await test.keys.create({ name: 'Old', roles: ['GUEST'] }, OPERATOR);
    const { key: newer } = await test.keys.rotate(old.id, { grace: '0s' }, OPERATOR);
    const now = (await test.keys.findById(old.id, OPERATOR))!;
    const report = await load(
      key({ name: 'Old', secret: 'a'.repeat(30) }),
      key({ name: 'B', secret }),
      key({ name: 'C', secret: newer }),
      key({ name: 'D', secret: 'd'.repeat(30), id: old.id.toUpperCase() }),
      hashed('e'.repeat(64), { name: 'E', prefix: `svc_${now.publicId}_…` }),
      key({ name: 'F', secret: 'f'.repeat(30), id: OTHER, prefix: 'imported-000000000000' }),
      key({ name: 'F', secret: '1'.repeat(30) }),
      hashed(createHash('sha256').update('f'.repeat(30)).digest('base64'), { name: 'H' }),
      key({ name: 'I', secret: '2'.repeat(30), id: OTHER }),
      hashed('3'.repeat(64), { name: 'J', prefix: 'imported-000000000000' }),
    );
    assert.deepEqual(
      report.lines.map(({ errors }) => errors.map(({ code, message }) => `${code} ${message}`)),
      [
        ['NAME_TAKEN An API key named "Old" already exists.'],
        ['SECRET_TAKEN The API key "Old" already has this secret.'],
        [
          'SECRET_TAKEN The API key "Old" already has this secret.',
          `PREFIX_TAKEN The API key "Old" already has the prefix svc_${now.publicId}_….`,
        ],
        ['ID_TAKEN The API key "Old" already has this id.'],
        [`PREFIX_TAKEN The API key "Old" already has the prefix svc_${now.publicId}_….`],
        [],
        ['NAME_TAKEN Line 6 has the same name.'],
        ['SECRET_TAKEN Line 6 has the same secret.'],
        ['ID_TAKEN Line 6 has the same id.'],
        ['PREFIX_TAKEN Line 6 has the same prefix.'],
      ],
    );
    assert.deepEqual([report.imported, report.failed, await count()], [0, 9, 1]);
  });

  it('takes a creator from the store or from an earlier line, and is deleted with it', async () => {
    const child = key({ name: 'Child', secret: 'c'.repeat(30), createdBy: OTHER });
    assert.deepEqual(codes(await load(child, key({ id: OTHER }))), [['NOT_FOUND'], []]);
    // The parent's issue is reported, and no other follows from it.
    assert.deepEqual(codes(await load(key({ id: OTHER, roles: [] }), child)), [['NO_GRANTS'], []]);
    assert.equal((await load(key({ id: OTHER }), child)).imported, 2);
    assert.equal((await load(key({ name: 'Later', secret: 'd'.repeat(30), createdBy: OTHER }))).imported, 1);
    const gone = (await test.keys.delete([OTHER], OPERATOR)).map(({ name }) => name);
    assert.deepEqual(gone.toSorted(), ['CI', 'Child', 'Later']);
  });

  it('compares a line only with those that are valid by themselves', async () => {
    assert.deepEqual(codes(await load(key({ roles: ['BOSS'] }), key())), [['ROLE_INVALID'], []]);
  });

  it('refuses a chain of more than 16 keys, in the store, in the file or across both', async () => {
    const id = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
    const link = (number: number, by?: number) =>
      key({
        name: `Key ${number}`,
        secret: `secret-number-${number}-of-a-chain`,
        id: id(number),
        ...(by !== undefined && { createdBy: id(by) }),
      });
    const chain = (from: number, to: number) =>
      Array.from({ length: to - from + 1 }, (_, index) => link(from + index, from + index - 1));
    const tooLong = (report: ImportReport) =>
      codes(report).flatMap((found, line) => (found.includes('CHAIN_TOO_LONG') ? [line + 1] : []));
    assert.deepEqual(tooLong(await load(link(1), ...chain(2, 18))), [17, 18]);
    assert.equal((await load(link(1), ...chain(2, 8))).imported, 8);
    assert.deepEqual(tooLong(await load(...chain(9, 17))), [9]);
    assert.equal((await load(...chain(9, 16))).imported, 8);
    assert.deepEqual(tooLong(await load(link(17, 16))), [1]);
    await test.store.repository.write((writer) =>
      writer.insert([17, 18, 19, 20].map((number) => storedKey(id(number), { createdBy: id(number - 1) }))),
    );
    assert.deepEqual(tooLong(await load(link(21, 20), link(22, 1))), [1]);
  });

  it('leaves keys unchanged that are in the store as the lines say, and imports the others', async () => {
    const parent = key({
      id: OTHER,
      createdAt: '2020-01-01T00:00:00Z',
      owner: 'Ops',
      tags: ['env=ci'],
      disabled: true,
    });
    const child = hashed('1'.repeat(64), { name: 'Child', createdBy: OTHER, limits: ['100/m', '5/month'] });
    const first = await load(parent, child);
    assert.deepEqual([first.imported, first.unchanged, first.failed], [2, 0, 0], JSON.stringify(first));
    test.time.now += 1000;
    const again = await load(parent, child, hashed('2'.repeat(64), { name: 'New' }));
    assert.deepEqual([again.imported, again.unchanged, again.failed], [1, 2, 0]);
    assert.deepEqual(
      again.lines.slice(0, 2),
      first.lines.map((line) => ({ ...line, status: 'unchanged' })),
    );
    assert.equal(again.lines[2]!.status, 'imported');
    const trial = await importKeys(test.keys, jsonLines(child, key({ name: 'X', secret: 'x'.repeat(30) })), {
      dryRun: true,
    });
    assert.deepEqual(
      [trial.imported, trial.unchanged, trial.lines.map(({ status }) => status)],
      [0, 1, ['unchanged', 'not imported']],
    );
    assert.equal((await test.keys.audit.read({ action: 'import' }, OPERATOR)).length, 3);
  });

  const DIFFERENCES: Record<string, object> = {
    name: { name: 'Other' },
    description: { description: 'other' },
    owner: { owner: 'Dev' },
    tags: { tags: [] },
    metadata: { metadata: { plan: 'pro' } },
    roles: { roles: ['GUEST'] },
    permissions: { permissions: ['DOCKER:READ_ANY'] },
    limits: { limits: ['1/h'] },
    allowFrom: { allowFrom: ['10.0.0.0/8'] },
    audience: { audience: 'https://mcp.example.org/mcp' },
    expiresAt: { expiresAt: '2031-01-01T00:00:00Z' },
    disabled: { disabled: true },
    id: { id: OTHER.replace('0', '1') },
    createdAt: { createdAt: '2020-01-01T00:00:01Z' },
    prefix: { prefix: 'imported-ABCDEFabcdef' },
  };
  for (const [field, fields] of Object.entries(DIFFERENCES))
    it(`does not take a key for unchanged whose ${field} is another`, async () => {
      const line = key({ id: OTHER, createdAt: '2020-01-01T00:00:00Z', owner: 'Ops', tags: ['env=ci'] });
      await load(line);
      const report = await load({ ...line, ...fields });
      assert.deepEqual([report.imported, report.unchanged, report.failed], [0, 0, 1]);
    });

  it('fails for a line that is there twice, also where the store has the key', async () => {
    assert.deepEqual(codes(await load(key(), key())), [[], ['NAME_TAKEN', 'SECRET_TAKEN']]);
    await load(key());
    assert.deepEqual(codes(await load(key(), key())), [[], ['NAME_TAKEN', 'SECRET_TAKEN']]);
  });

  it('imports nothing on a dry run, and reports the same issues', async () => {
    const trial = await importKeys(test.keys, jsonLines(key()), { dryRun: true });
    assert.deepEqual(
      [trial.imported, trial.failed, trial.lines[0]!.status, trial.lines[0]!.id, await count()],
      [0, 0, 'not imported', null, 0],
    );
    await load(key());
    const others = jsonLines(key({ roles: ['GUEST'] }));
    assert.deepEqual(codes(await importKeys(test.keys, others, { dryRun: true })), [['NAME_TAKEN', 'SECRET_TAKEN']]);
    assert.equal((await test.keys.audit.read({}, OPERATOR)).length, 1);
  });

  it('refuses a secret that also stands where it would be shown, and repeats it nowhere', async () => {
    for (const line of [
      key({ name: 'hunter2', secret: 'hunter2' }),
      key({ name: 'Key abcdefgh', secret: 'abcdefgh' }),
      key({ name: 'Key abcdefgh1234', secret: 'abcdefgh1234' }),
      key({ description: `It is ${SECRET}.` }),
      key({ roles: [SECRET] }),
      key({ permissions: [`${SECRET}:READ_ANY`] }),
      key({ expiresAt: SECRET }),
      hashed(HEX, { description: HEX }),
    ]) {
      const report = await load(line);
      assert.deepEqual(codes(report), [['SECRET_INVALID']]);
      for (const text of ['hunter2', 'abcdefgh1234', SECRET.slice(0, 20), HEX])
        assert.equal(JSON.stringify(report).includes(text), false, text);
    }
    assert.deepEqual(codes(await load({ [SECRET]: 'CI' }, { abcdefghijklmnopqrstuvwxyzabcdefghijkl: 1 })), [
      ['INPUT_INVALID', 'INPUT_INVALID', 'SECRET_INVALID'],
      ['INPUT_INVALID', 'INPUT_INVALID', 'SECRET_INVALID'],
    ]);
    for (const line of [
      { [SECRET]: 'CI' },
      SECRET,
      `{"name":"${SECRET}","secret":"x"}`,
      key({ secret: undefined, [`x${SECRET}`]: null, prefix: SECRET }),
    ])
      assert.equal(JSON.stringify(await load(line)).includes(SECRET), false);
    for (const field of ['sk_live_4eC39Hq', 'sk_4', 'sk__live', 'x'.repeat(31)])
      assert.match((await load(key({ [field]: 1 }))).lines[0]!.errors[0]!.message, /^The line has an unknown field\./);
    for (const field of ['user_agent', 'x'.repeat(30)])
      assert.match((await load(key({ [field]: 1 }))).lines[0]!.errors[0]!.message, new RegExp(`^"${field}" is`));
    // A short secret can occur in a name by chance.
    assert.equal((await load(key({ name: 'Team abcdefg', secret: 'abcdefg' }))).imported, 1);
  });

  it('is listed in the order of its lines', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `Line ${(index * 7) % 20}`);
    await load(...names.map((name, index) => hashed(String(index).padStart(64, '0'), { name })));
    const listed = await test.store.repository.list({ limit: 50 });
    assert.deepEqual(
      listed.map(({ name }) => name),
      names,
    );
  });

  it('is in the audit log, one entry a key, without digests', async () => {
    await load(key({ expiresAt: '2031-01-01T00:00:00Z' }), hashed('ab'.repeat(32), { name: 'Second' }));
    const entries = await test.keys.audit.read({ action: 'import' }, OPERATOR);
    assert.deepEqual(
      entries.map(({ actor, apiKey: about, before }) => [actor, about?.name, before]),
      ['Second', 'CI'].map((name) => [{ kind: 'CLI', id: null, name: 'tester' }, name, null]),
    );
    const { prefix, ...after } = entries[1]!.after!;
    assert.match(String(prefix), /^imported-/);
    assert.deepEqual(after, {
      name: 'CI',
      description: null,
      roles: ['VIEWER'],
      permissions: [],
      limits: [],
      allowFrom: null,
      createdBy: null,
      expiresAt: '2031-01-01T00:00:00.000Z',
      disabledAt: null,
      managed: false,
      rotation: null,
    });
    for (const text of [HEX, 'ab'.repeat(32), SECRET]) assert.equal(JSON.stringify(entries).includes(text), false);
    assert.equal('broken' in (await test.keys.audit.check()).verification, false);
  });

  it('takes more keys than one statement can name', async () => {
    const lines = Array.from({ length: 1200 }, (_, number) =>
      key({ name: `Key ${number}`, secret: `secret-number-${number}-of-many` }),
    );
    assert.equal((await load(...lines)).imported, 1200);
    await assertOpens('secret-number-1199-of-many', 'Key 1199');
    const again = await load(...lines.map((line) => ({ ...line, name: `${line.name} again` })));
    assert.deepEqual([again.imported, again.failed], [0, 1200]);
  });
});
