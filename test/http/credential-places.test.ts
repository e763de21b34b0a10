import assert from 'node:assert/strict';
import { CredentialReader } from '../../src/http/credentials.ts';
import { headerValue } from '../../src/http/received.ts';
import { createSecret, type CredentialPlace } from '../../src/keys/secret/index.ts';
import { growthOf } from '../support/cpu.ts';

const BEARER: CredentialPlace[] = ['bearer'];
const BASIC: CredentialPlace[] = ['basic'];
const HEADER: CredentialPlace[] = [{ header: 'X-Api-Key' }];
const ALL: CredentialPlace[] = ['bearer', { header: 'X-Api-Key' }, 'basic', { header: 'Private-Token' }];

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
/** Turns header lines into Node's flat list. */
const raw = (lines: readonly string[]) =>
  lines.flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
const read = (places: readonly CredentialPlace[], lines: readonly string[]) =>
  new CredentialReader(places).read({ header: (name) => headerValue(raw(lines), name) });

describe('credentials', () => {
  const found: [places: CredentialPlace[], line: string, token: string, header: string][] = [
    [BEARER, 'Authorization: Bearer KEY', 'KEY', 'authorization'],
    [ALL, 'AUTHORIZATION: bearer   KEY', 'KEY', 'authorization'],
    [HEADER, 'x-api-key: KEY', 'KEY', 'x-api-key'],
    [ALL, 'X-API-KEY: KEY', 'KEY', 'x-api-key'],
    [ALL, 'Private-Token: KEY', 'KEY', 'private-token'],
    [HEADER, 'X-Api-Key: a,b=;"c', 'a,b=;"c', 'x-api-key'],
    [BASIC, `Authorization: ${basic('user:KEY')}`, 'KEY', 'authorization'],
    [ALL, `Authorization: ${basic('user:KEY')}`, 'KEY', 'authorization'],
    [BASIC, `Authorization: ${basic('user:KEY').replace('Basic ', 'bAsIc   ')}`, 'KEY', 'authorization'],
    [BASIC, `Authorization: ${basic(':KEY')}`, 'KEY', 'authorization'],
    [BASIC, `Authorization: ${basic('j\u00fcrgen@example.org:KEY')}`, 'KEY', 'authorization'],
    [BASIC, 'Authorization: Basic avxyZ2VuOktFWQ==', 'KEY', 'authorization'],
    [BASIC, `Authorization: ${basic('user:a:b:c')}`, 'a:b:c', 'authorization'],
    [BASIC, `Authorization: ${basic('user:pass w\u00f6rd')}`, 'pass w\u00f6rd', 'authorization'],
  ];
  for (const [places, line, token, header] of found)
    it(`of ${JSON.stringify(places)} are found in ${line}`, () =>
      assert.deepEqual(read(places, [line]), { kind: 'token', token, headers: [header] }));

  const ignored: [places: CredentialPlace[], lines: string[]][] = [
    [BEARER, []],
    [BEARER, [`Authorization: ${basic('user:KEY')}`]],
    [BEARER, ['Authorization: Digest username="a, b c", realm="r", nc = 1']],
    [BEARER, ['X-Api-Key: KEY', 'Private-Token: KEY', 'Cookie: x-api-key=KEY']],
    [BASIC, ['Authorization: Bearer KEY', 'X-Api-Key: KEY']],
    [HEADER, ['Authorization: Bearer KEY']],
    [HEADER, ['Authorization: Bearer KEY', 'Authorization: Bearer KEY']],
    [HEADER, ['Authorization: nonsense', 'X-Api-Key2: KEY', 'X_Api_Key: KEY', 'X-Api-Kez: KEY']],
    [ALL, ['Authorization: Digest username="u"']],
  ];
  for (const [places, lines] of ignored)
    it(`that stand where ${JSON.stringify(places)} does not look are not read: ${lines.join(' + ')}`, () =>
      assert.deepEqual(read(places, lines), { kind: 'none', headers: [] }));

  it('with Basic need a password, and a user name is never a key', () => {
    for (const text of ['KEY:', ':'])
      assert.deepEqual(read(ALL, [`Authorization: ${basic(text)}`]), { kind: 'none', headers: ['authorization'] });
  });

  const malformed: [places: CredentialPlace[], lines: string[]][] = [
    [BASIC, ['Authorization: Basic']],
    [BASIC, ['Authorization: Basic !!!']],
    [BASIC, [`Authorization: ${basic('user')}`]],
    [BASIC, [`Authorization: ${basic('user:KEY')}=`]],
    [BASIC, [`Authorization: ${basic('user:KE').replace('=', '')}`]],
    [BASIC, ['Authorization: Basic dXNlcjpLRVl=']],
    [BASIC, [`Authorization: ${basic('user:KEYx???').replace('/', '_')}`]],
    [BASIC, [`Authorization: ${basic('us\ner:KEY')}`]],
    [BASIC, [`Authorization: ${basic('user:KEY\0')}`]],
    [BASIC, [`Authorization: ${basic('user:KEY')} x`]],
    [BASIC, [`Authorization: ${basic('u:K')}`, `Authorization: ${basic('u:K')}`]],
    [ALL, [`Authorization: ${basic('u:K')}`, 'Authorization: Bearer KEY']],
    [ALL, ['Authorization: Bearer KEY', `Authorization: ${basic('u:K')}`]],
    [ALL, [`Authorization: Bearer KEY, ${basic('u:K')}`]],
    [ALL, [`Authorization: ${basic('u:K')}, Bearer KEY`]],
    [ALL, ['Authorization:']],
    [HEADER, ['X-Api-Key:']],
    [HEADER, ['X-Api-Key: KEY KEY']],
    [HEADER, ['X-Api-Key: Bearer KEY']],
    [HEADER, ['X-Api-Key: schl\u00fcssel']],
    [HEADER, ['X-Api-Key: KEY', 'x-api-key: KEY']],
    [HEADER, ['X-Api-Key: KEY', 'X-Api-Key:']],
    [HEADER, ['X-Api-Key:', 'X-Api-Key: KEY']],
  ];
  for (const [places, lines] of malformed)
    it(`of ${JSON.stringify(places)} are malformed: ${lines.join(' + ')}`, () => {
      const { kind, headers } = read(places, lines);
      assert.deepEqual([kind, headers], ['malformed', [lines[0]!.split(':')[0]!.toLowerCase()]]);
    });

  const several: [lines: string[], headers: string[]][] = [
    [
      ['Authorization: Bearer KEY', 'X-Api-Key: KEY'],
      ['authorization', 'x-api-key'],
    ],
    [
      ['X-Api-Key: KEY', `Authorization: ${basic('u:K')}`],
      ['authorization', 'x-api-key'],
    ],
    [
      ['X-Api-Key: KEY', `Authorization: ${basic('u:')}`],
      ['authorization', 'x-api-key'],
    ],
    [
      ['X-Api-Key: KEY', 'Authorization: Bearer'],
      ['authorization', 'x-api-key'],
    ],
    [
      ['X-Api-Key:', 'Authorization: Bearer KEY'],
      ['authorization', 'x-api-key'],
    ],
    [
      ['X-Api-Key: KEY', 'Private-Token: KEY'],
      ['x-api-key', 'private-token'],
    ],
    [
      ['X-Api-Key: a', 'Private-Token: b', 'Authorization: Bearer c'],
      ['authorization', 'x-api-key', 'private-token'],
    ],
  ];
  for (const [lines, headers] of several)
    it(`in several places are found in their headers: ${lines.join(' + ')}`, () =>
      assert.deepEqual(read(ALL, lines), { kind: 'several', headers }));

  const OWN = `svc_${'a'.repeat(12)}_${'b'.repeat(49)}`;
  for (const [lines, header] of [
    [[`Authorization: Bearer ${OWN}`, 'X-Api-Key: KEY'], 'authorization'],
    [['Authorization: Bearer KEY', `X-Api-Key: ${OWN}`], 'x-api-key'],
    [[`Authorization: ${basic(`u:${OWN}`)}`, 'X-Api-Key:', 'Private-Token: KEY'], 'authorization'],
    [[`Authorization: ${basic('u:p')}`, 'X-Api-Key: a', `Private-Token: ${OWN}`], 'private-token'],
    [['Authorization: Bearer', `X-Api-Key: ${OWN}`], 'x-api-key'],
    [[`Authorization: ${basic('u:')}`, `X-Api-Key: ${OWN}`], 'x-api-key'],
    [['X-Api-Key: KEY', 'X-Api-Key: KEY', `Private-Token: ${OWN}`], 'private-token'],
  ] as const)
    it(`in several places are those with the form of our keys: ${lines.join(' + ')}`, () =>
      assert.deepEqual(read(ALL, lines), { kind: 'token', token: OWN, headers: [header] }));

  for (const lines of [
    [`Authorization: Bearer ${OWN}`, `X-Api-Key: ${OWN}`],
    [`Authorization: Bearer ${OWN}`, `X-Api-Key: ${OWN}`, 'Private-Token: KEY'],
    [`Authorization: Bearer ${OWN}`, `X-Api-Key: ${OWN}`, `X-Api-Key: ${OWN}`],
    [`Authorization: ${basic(`u:${OWN}`)}`, `X-Api-Key: ${OWN.slice(0, -1)} ${OWN}`],
  ])
    it(`in several places are not clear where two hold one: ${lines.join(' + ')}`, () =>
      assert.equal(read(ALL, lines).kind, 'several'));

  it('can be a key with an earlier prefix of the installation', () => {
    const { text } = createSecret((size) => new Uint8Array(size).fill(7), 'earlier');
    const own = { kind: 'token', token: text };
    assert.deepEqual(read(ALL, ['Authorization: Bearer KEY', `X-Api-Key: ${text}`]), {
      ...own,
      headers: ['x-api-key'],
    });
    const escaped = basic(`u:${text.replaceAll('_', '%5F')}`);
    assert.deepEqual(read(BASIC, [`Authorization: ${escaped}`]), { ...own, headers: ['authorization'] });
    const mistyped = `${text.slice(0, -1)}_`;
    assert.equal(read(ALL, ['Authorization: Bearer KEY', `X-Api-Key: ${mistyped}`]).kind, 'several');
  });

  it('of another scheme may stand beside a key in a header of its own', () => {
    const lines = ['Authorization: Digest username="u"', 'X-Api-Key: KEY'];
    assert.deepEqual(read(ALL, lines), { kind: 'token', token: 'KEY', headers: ['x-api-key'] });
  });

  it('cost no more than their length to read, whatever they are', () => {
    const texts = [' ', 'a', ',', ', ', ',a ', '"', 'a=', '\\', '"a",', 'a b'];
    const reader = new CredentialReader(ALL);
    const growth = growthOf((length) => {
      for (const text of texts) {
        const endless = text.repeat(length / text.length);
        for (const value of [`x${endless}\x80`, `Basic ${endless}\x80`, `Bearer ${endless}\x80`, `x ${endless}`])
          reader.read({ header: () => value });
      }
    }, 1000);
    assert.ok(growth < 8, `${growth} times as long for 4 times as much`);
  });
});
