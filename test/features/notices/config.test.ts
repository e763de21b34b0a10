import assert from 'node:assert/strict';
import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config/load-config.ts';
import { NOTICE_TYPES } from '../../../src/features/notices/notice.ts';
import { readSigningKeys } from '../../../src/features/notices/post.ts';
import { faultsIn, itRefuses } from '../../support/config-faults.ts';
import { needsRoot } from '../../support/skip.ts';
import { tempFolder } from '../../support/temp.ts';
import { newNoticeSecret } from '../../support/webhook.ts';

describe('notices in the configuration', () => {
  let folder: string;
  let file: string;
  const load = (text: string) => {
    writeFileSync(file, text);
    return loadConfig({ file, env: {} });
  };
  beforeEach(() => {
    folder = tempFolder();
    file = join(folder, 'svc-api.yaml');
  });

  it('are all events, and 100 refused requests an hour, unless it says otherwise', async () => {
    assert.deepEqual((await load('notices: { url: "https://hooks.example.org/a?b=c" }')).notices, {
      url: 'https://hooks.example.org/a?b=c',
      secretFile: undefined,
      events: NOTICE_TYPES,
      refusedOften: 100,
    });
    const own = 'url: "http://[::1]:8080/", secretFile: s/n, events: [key.leaked], refusedOften: 5';
    assert.deepEqual((await load(`notices: { ${own} }`)).notices, {
      url: 'http://[::1]:8080/',
      secretFile: join(folder, 's/n'),
      events: ['key.leaked'],
      refusedOften: 5,
    });
  });

  itRefuses([['notices: { ulr: "https://h.example" }', '1:12: "ulr" is not a field. Did you mean "url"?']]);

  it('go by https, or by http to loopback, and the address is not repeated: it may be secret', async () => {
    const scheme =
      'The address of the webhook must begin with https://, or with http:// on loopback, such as ' +
      'http://127.0.0.1:8080/.';
    const user =
      'The address of the webhook has a user name or password. Leave them out: the receiver checks the signature instead.';
    const none = 'The address of the webhook is not a URL. Write it as https://hooks.example.org/svc-api.';
    const at = '1:17: ';
    for (const [url, fault] of [
      ['http://hooks.example.org/t0ken', scheme],
      ['http://127.0.0.1.example.org/', scheme],
      ['http://10.0.0.1/', scheme],
      ['ftp://127.0.0.1/', scheme],
      ['https://user:t0ken@example.org/', user],
      ['https://example.org/#t0ken', 'The address of the webhook has a fragment (#). Leave it out.'],
      ['hooks.example.org', none],
      [' https://example.org', none],
      [`https://example.org/${'x'.repeat(2000)}`, none],
    ])
      assert.deepEqual(await faultsIn(`notices: { url: "${url}" }`), [at + fault], url);
    for (const url of ['http://localhost:1/', 'http://127.9.9.9/', 'https://10.0.0.1/x'])
      assert.deepEqual(await faultsIn(`notices: { url: "${url}" }`), [], url);
  });

  it('have all their faults named', async () => {
    assert.deepEqual(
      await faultsIn('notices:\n  secret: x\n  secretFile: ""\n  events: [key.create, 3]\n  refusedOften: 0\n'),
      [
        '2:3: "secret" is not a field. Did you mean "secretFile"?',
        '2:3: The field "url" is missing.',
        '3:15: The field "secretFile" must be the path of a file.',
        '4:12: "key.create" is not an event. Did you mean key.created, key.leaked or key.reused? ' +
          'The events are key.created, key.deleted, key.ending, key.ended, key.leaked, key.reused and key.refused_often.',
        '4:24: An item of this list must be text. Quote it if YAML reads it as another type.',
        '5:17: The field "refusedOften" must be a whole number from 1 to 1000000000.',
      ],
    );
    assert.deepEqual(await faultsIn('notices: { url: "https://example.org", events: [] }'), [
      '1:48: The field "events" is empty. Leave it out for all events, or leave out "notices".',
    ]);
    assert.deepEqual(await faultsIn('notices: true'), [
      '1:10: The field "notices" must be a map with fields of url, channel, secretFile, events and refusedOften.',
    ]);
  });
});

describe('the secret that signs notices', () => {
  const settings = (secretFile?: string) => ({ url: '', events: [], refusedOften: 1, secretFile });
  const thrown = (secretFile: string | undefined, env: NodeJS.ProcessEnv = {}) => {
    try {
      readSigningKeys(settings(secretFile), env);
    } catch (error) {
      const { code, message } = error as Error & { code: string };
      return [code, message];
    }
    return undefined;
  };
  let file: string;
  const name = () => `The file of the secrets that sign notices, ${file},`;
  const form =
    'Write each as whsec_ and 24 to 64 bytes in base64, with white space between several. ' +
    'A new one: echo "whsec_$(openssl rand -base64 32)"';
  beforeEach(() => {
    file = join(tempFolder(), 'secret');
  });

  it('is read from the environment, or from the file that the configuration names; several sign', () => {
    const [one, other] = [newNoticeSecret(), newNoticeSecret()];
    const bytes = (text: string) => Buffer.from(text.slice(6), 'base64');
    assert.deepEqual(readSigningKeys(settings(), { SVC_API_NOTICES_SECRET: one }), [bytes(one)]);
    writeFileSync(file, `${one}\n${other}\n`, { mode: 0o600 });
    assert.deepEqual(readSigningKeys(settings(file), { SVC_API_NOTICES_SECRET: 'x' }), [bytes(one), bytes(other)]);
  });

  it('is required, and must have the form of Standard Webhooks', () => {
    const variable = 'SVC_API_NOTICES_SECRET';
    assert.deepEqual(thrown(undefined), [
      'CONFIG_UNAVAILABLE',
      `The signing secret for notices is missing. Set ${variable}, or "secretFile" under "notices".`,
    ]);
    for (const text of ['whsec_short', 'hunter2', `whsec_${'A'.repeat(100)}`, `whsec_${'!'.repeat(40)}`])
      assert.deepEqual(thrown(undefined, { [variable]: text }), [
        'CONFIG_INVALID',
        `${variable}: secret 1 of 1 is not in the form of Standard Webhooks. ${form}`,
      ]);
    assert.deepEqual(thrown(undefined, { [variable]: Array.from({ length: 6 }, newNoticeSecret).join(' ') }), [
      'CONFIG_INVALID',
      `${variable} has 6 secrets; at most 5 sign. ${form}`,
    ]);
  });

  it('is in a file of another user that only its group can read', function () {
    needsRoot(this);
    writeFileSync(file, newNoticeSecret());
    chownSync(file, 65_534, 65_534);
    chmodSync(file, 0o444);
    assert.deepEqual(thrown(file), [
      'CONFIG_INSECURE',
      `${name()} can be accessed by other users. Run chmod 640 on it, with a group that this user is in.`,
    ]);
    chmodSync(file, 0o640);
    assert.equal(thrown(file), undefined);
  });

  it('is in a file that no other user can read', () => {
    assert.deepEqual(thrown(file), [
      'CONFIG_UNAVAILABLE',
      `${name()} does not exist. Correct "secretFile" under "notices".`,
    ]);
    writeFileSync(file, newNoticeSecret(), { mode: 0o600 });
    assert.equal(thrown(file), undefined);
    chmodSync(file, 0o640);
    assert.deepEqual(thrown(file), [
      'CONFIG_INSECURE',
      `${name()} can be accessed by other users. Run chmod 600 on it.`,
    ]);
    chmodSync(file, 0o600);
    writeFileSync(file, '\n');
    assert.deepEqual(thrown(file), ['CONFIG_INVALID', `${name()} is empty. ${form}`]);
  });
});
