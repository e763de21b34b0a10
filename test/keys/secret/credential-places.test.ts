import assert from 'node:assert/strict';
import { checkCredentialPlaces, type CredentialPlace } from '../../../src/keys/secret/secret.ts';

describe('the places for credentials', () => {
  it('are checked, with the names of headers in lower case', () => {
    const places: CredentialPlace[] = ['bearer', { header: 'X-Api-Key' }, 'basic', { header: 'PRIVATE-TOKEN' }];
    assert.deepEqual(checkCredentialPlaces(places), [
      'bearer',
      { header: 'x-api-key' },
      'basic',
      { header: 'private-token' },
    ]);
  });

  const taken = [
    'Cookie',
    'Host',
    'Content-Type',
    'Content-Length',
    'Connection',
    'Transfer-Encoding',
    'TE',
    'X-HTTP-Method-Override',
    'Upgrade',
  ];
  const forwarded = ['X-Forwarded-For', 'Forwarded', 'X-Auth-Key-Id', 'X-Original-Uri', 'Proxy-Authorization', 'Via'];
  for (const header of [...taken, ...forwarded, 'Expect', 'Origin', 'Sec-Fetch-Mode', 'If-Match', 'Accept-Encoding'])
    it(`are no header with another meaning: ${header}`, () => {
      const message = `The header "${header}" cannot hold credentials: it has another meaning: choose one of your own.`;
      assert.throws(() => checkCredentialPlaces([{ header }]), new RangeError(message));
    });

  for (const header of ['', 'X Api Key', 'X-Api-Key:', 'x_api_key', '-x', 'x--y', 'x-', 'schl\u00fcssel', 'x\r\ny: z'])
    it(`are no header that is not a name: ${JSON.stringify(header)}`, () => {
      const message = 'it is not a name of letters, digits and single hyphens, such as X-Api-Key.';
      const expected = new RangeError(`The header "${header}" cannot hold credentials: ${message}`);
      assert.throws(() => checkCredentialPlaces([{ header }]), expected);
    });

  it('are Authorization by the names of its schemes', () => {
    const message = 'The header "Authorization" cannot hold credentials: it is read by "bearer" and "basic".';
    assert.throws(() => checkCredentialPlaces([{ header: 'Authorization' }]), new RangeError(message));
  });

  it('are at least one, and each of them once', () => {
    const none = new RangeError('There must be at least one place for credentials.');
    assert.throws(() => checkCredentialPlaces([]), none);
    const twice = (name: string) => new RangeError(`"${name}" is listed twice as a place for credentials.`);
    assert.throws(() => checkCredentialPlaces(['bearer', 'bearer']), twice('bearer'));
    assert.throws(() => checkCredentialPlaces([{ header: 'X-Key' }, { header: 'x-key' }]), twice('x-key'));
  });

  for (const place of ['cookie', '', 7, null, {}, { header: 7 }])
    it(`are nothing else: ${JSON.stringify(place)}`, () => {
      const message = 'A place for credentials is "bearer", "basic" or { header: "X-Api-Key" }.';
      assert.throws(() => checkCredentialPlaces([place as CredentialPlace]), new RangeError(message));
    });
});
