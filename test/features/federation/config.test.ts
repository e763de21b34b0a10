import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseConfig } from '../../../src/config/load-config.ts';
import { PRESETS } from '../../../src/features/federation/config.ts';
import { lacksOf } from '../../../src/features/federation/federation-rule.ts';
import type { KeysError } from '../../../src/keys/basics/errors.ts';
import { tempFolder } from '../../support/temp.ts';
import { PLATFORM_CLAIMS } from '../../support/platform-claims.ts';

const PUBLIC_URL = 'publicUrl: https://keys.example.org\n';

const read = async (text: string) => (await parseConfig({ path: '/f', text })).federation;

/** The faults of a file, with lines and columns. */
async function faultsIn(text: string): Promise<string> {
  try {
    await read(text);
    return '';
  } catch (error) {
    return (error as Error).message.replaceAll('/f:', '');
  }
}
const ruleWith = (fields: Record<string, string>) => {
  const rule = {
    name: 'deploys',
    issuer: 'github',
    when: '{ repository_id: "1" }',
    grant: '[DOCKER:READ_ANY]',
    ...fields,
  };
  const lines = Object.entries(rule).flatMap(([field, value]) => (value === '' ? [] : [`${field}: ${value}`]));
  return `${PUBLIC_URL}federation:\n  - ${lines.join('\n    ')}\n`;
};

describe('the rules of federation', () => {
  it('are read with defaults', async () => {
    const [rule] = await read(ruleWith({}));
    assert.deepEqual(rule, {
      name: 'deploys',
      issuer: {
        url: 'https://token.actions.githubusercontent.com',
        jwks: undefined,
        audience: 'https://keys.example.org',
        algorithms: ['RS256', 'ES256'],
      },
      when: [{ path: ['repository_id'], values: ['1'] }],
      grants: { roles: [], permissions: ['DOCKER:READ_ANY'] },
      ttl: 900,
      reuse: false,
    });
    const issuer =
      '{ url: "https://id.example.org", jwks: "https://id.example.org/k", audience: us, algorithms: [EdDSA] }';
    const [own] = await read(ruleWith({ issuer, when: '{ a: { b: [x, "y"] } }', ttl: '1h', reuse: 'true' }));
    assert.deepEqual(own, {
      name: 'deploys',
      issuer: {
        url: 'https://id.example.org',
        jwks: 'https://id.example.org/k',
        audience: 'us',
        algorithms: ['EdDSA'],
      },
      when: [{ path: ['a', 'b'], values: ['x', 'y'] }],
      grants: { roles: [], permissions: ['DOCKER:READ_ANY'] },
      ttl: 3600,
      reuse: true,
    });
  });

  it('explain that GitHub appends ids to a subject, with the expected and the actual one', async () => {
    const [rule] = await read(ruleWith({ when: '{ repository_id: "1", sub: "repo:acme/app:ref:refs/heads/main" }' }));
    const sub = 'repo:acme@10/app@1:ref:refs/heads/main';
    const [lack, ...others] = lacksOf(rule!, { repository_id: '1', sub });
    assert.deepEqual(others, []);
    for (const text of [sub, '"repo:acme/app:ref:refs/heads/main"', 'GitHub appends ids', 'repository_id'])
      assert.ok(lack!.includes(text), lack);
    const [plain] = lacksOf(rule!, { repository_id: '1', sub: 'repo:acme/app:ref:refs/heads/x' });
    assert.ok(!plain!.includes('GitHub'), plain);
  });

  it('say how long keys of an issuer are used that could not be read again, within bounds', async () => {
    const issuerWith = (age: string) => ruleWith({ issuer: `{ preset: github, keysMaxAge: ${age} }` });
    const [rule] = await read(issuerWith('12h'));
    assert.equal(rule!.issuer.keysMaxAge, 43_200);
    for (const age of ['30s', '31d', '12', 'soon', '""'])
      assert.match(
        await faultsIn(issuerWith(age)),
        /^4:\d+: The field "keysMaxAge" must be a time from 1m to 30d/,
        age,
      );
  });

  it('are faults where they are wrong, by line and column', async () => {
    const whens: [when: string, fault: RegExp][] = [
      ['{ ref: refs/heads/main }', /^5:11: A rule for github must name repository_id or repository_owner_id: /],
      ['{ repository: acme/app, sub: x }', /^5:11: A rule for github must name/],
      ['{ repository_id: 1 }', /^5:\d+: .*must be text\. Quote it/],
      ['{ repository_id: "1", ref: refs/heads/* }', /^5:\d+: "refs\/heads\/\*" is not a valid claim value/],
      ['{ repository_id: "" }', /is not a valid claim value/],
      ['{ repository_id: [] }', /A claim has from 1 to 100 values/],
      ['{}', /needs 1 to 100 claims/],
      ['repository_id', /must be a map of claims/],
      ['', /The field "when" is missing/],
    ];
    const fields: [fields: Record<string, string>, fault: RegExp][] = [
      ...whens.map(([when, fault]): [Record<string, string>, RegExp] => [{ when }, fault]),
      [{ name: 'a/b' }, /^3:11: The name .*may only contain letters/],
      [{ issuer: 'githb' }, /^4:13: "githb" is not an issuer\. Did you mean github or gitlab\?/],
      [{ issuer: 'kubernetes' }, /The issuer has no address\. Write \{ preset: kubernetes, url: /],
      [{ issuer: '{ jwks: "https://id.example.org" }' }, /The issuer has no address/],
      [{ issuer: '{ url: "http://id.example.org" }' }, /must begin with https:/],
      [{ issuer: '{ url: "https://a.example.org", jwks: "http://b.example.org" }' }, /is not an address of keys/],
      [{ issuer: '{ url: "https://a.example.org", jwks: { fil: x } }' }, /"fil" is not a field/],
      [{ issuer: '{ url: "https://a.example.org", jwks: { file: "" } }' }, /must be the path of a file/],
      [{ issuer: '{ url: "https://a.example.org", jwks: {} }' }, /The field "file" is missing/],
      [{ issuer: '{ url: "https://a.example.org", algorithms: [HS256] }' }, /"HS256" is not a signing algorithm/],
      [{ issuer: '{ url: "https://a.example.org", algorithms: [none] }' }, /"none" is not a signing algorithm/],
      [{ issuer: '{ url: "https://a.example.org", algorithms: [] }' }, /"algorithms" is empty/],
      [{ issuer: '{ preset: github, audience: "" }' }, /"audience" is empty/],
      [{ issuer: '{ preset: github, keys: x }' }, /"keys" is not a field/],
      [{ grant: '[]' }, /The rule grants nothing/],
      [{ grant: '[DOKER:READ_ANY]' }, /DOKER/],
      [{ ttl: '25h' }, /up to a day/],
      [{ ttl: '0s' }, /up to a day/],
      [{ ttl: '15' }, /up to a day/],
      [{ reuse: 'sometimes' }, /must be true or false/],
      [{ whn: 'x' }, /"whn" is not a field/],
    ];
    for (const [given, fault] of fields) {
      assert.match(await faultsIn(ruleWith(given)), fault, JSON.stringify(given));
    }
    const rule = ruleWith({});
    assert.match(
      await faultsIn(rule.replace(PUBLIC_URL, '')),
      /^3:\d+: The "audience" of tokens is unknown. Set "publicUrl"/,
    );
    assert.match(await faultsIn(`${rule}${rule.slice(rule.indexOf('  -'))}`), /Two rules have the name "deploys"/);
    assert.match(await faultsIn('federation: []'), /is empty/);
  });

  it('may have the keys of an issuer in a file, from the folder of this one, which must be that', async () => {
    const folder = tempFolder();
    const issuer = '{ url: "https://a.example.org", jwks: { file: jwks.json } }';
    const file = join(folder, 'jwks.json');
    const rule = () => parseConfig({ path: join(folder, 'svc-api.yaml'), text: ruleWith({ issuer }) });
    const pair = (bits: number) => generateKeyPairSync('rsa', { modulusLength: bits });
    const [{ publicKey, privateKey }, short] = [pair(2048), pair(1024)];
    const [open, secret] = [publicKey, privateKey].map((key) => key.export({ format: 'jwk' }));
    const keys = (...given: unknown[]) => JSON.stringify({ keys: given });
    writeFileSync(file, keys(open), { mode: 0o644 });
    const { federation } = await rule();
    assert.deepEqual(federation[0]!.issuer.jwks, { file });
    const faults: [text: string, fault: RegExp][] = [
      ['{', /is not JSON/],
      ['[]', /has no list "keys"/],
      [JSON.stringify(open), /has no list "keys"/],
      [keys(), /has no key/],
      [keys(...Array.from({ length: 101 }, () => open)), /has 101 keys; at most 100/],
      [keys(open, secret), /number 2 is a private key, which only the issuer should have/],
      [keys({ kty: 'oct', k: 'c2VjcmV0' }), /number 1 is a shared key/],
      [keys({ ...open, k: 'x' }), /private key/],
      [keys({ ...open, kty: 'RSE' }), /number 1 is not a key of RSA, EC or OKP/],
      [keys({ kty: 'EC', crv: 'P-256', x: 'x' }), /is not a key of RSA, EC or OKP/],
      [keys(short.publicKey.export({ format: 'jwk' })), /fewer than 2048 bits/],
      [keys(open) + ' '.repeat(256 * 1024), /is larger than 262144 bytes/],
    ];
    for (const [text, fault] of faults) {
      writeFileSync(file, text);
      const { message, code } = await rule().then(
        () => assert.fail(text),
        (error: KeysError) => error,
      );
      assert.match(message, fault);
      assert.match(message, /svc-api\.yaml:4:\d+: The file of the keys of an issuer, .*jwks\.json, /);
      assert.equal(code, 'CONFIG_INVALID');
      assert.ok(!message.includes(String(secret!.d)));
    }
    chmodSync(file, 0o666);
    await assert.rejects(rule(), /can be written by every user\. Run chmod o-w/);
    rmSync(file);
    await assert.rejects(rule(), /jwks\.json, does not exist/);
  });

  it('demand of each platform what cannot be registered again, and are met by its tokens', async () => {
    const whens: Record<string, [met: string, ...unmet: string[]]> = {
      github: [
        '{ repository_id: "74", environment: production, ref: refs/heads/main }',
        '{ repository: octo-org/octo-repo }',
      ],
      gitlab: ['{ project_id: "20", ref_path: refs/heads/feature-branch-1 }', '{ project_path: my-group/my-project }'],
      buildkite: ['{ pipeline_id: 0184990a-4782-42b5-afc1-16715b10b1l0, build_number: "1" }', '{ pipeline_slug: x }'],
      forgejo: ['{ repository_id: "456789" }', '{ sub: "repo:my-org/my-repo:ref:refs/heads/main" }'],
      kubernetes: [
        '{ kubernetes.io: { namespace: my-namespace, serviceaccount: { name: my-serviceaccount } } }',
        '{ kubernetes.io: { namespace: my-namespace } }',
      ],
      spiffe: ['{ sub: "spiffe://example.org/ns/prod/sa/deployer" }', '{ iss: x }'],
    };
    assert.deepEqual(Object.keys(whens), Object.keys(PRESETS));
    for (const [preset, [met, ...unmet]] of Object.entries(whens)) {
      const claims = PLATFORM_CLAIMS[preset]!;
      const issuer = `{ preset: ${preset}, url: "${claims['iss'] as string}" }`;
      const [rule] = await read(ruleWith({ issuer, when: met }));
      assert.equal(rule!.issuer.url, claims['iss']);
      assert.deepEqual(lacksOf(rule!, claims), []);
      assert.equal(PRESETS[preset]!.url ?? claims['iss'], claims['iss']);
      for (const when of unmet)
        assert.match(await faultsIn(ruleWith({ issuer, when })), new RegExp(`A rule for ${preset} must name`));
    }
  });

  it('name what a token lacks', () => {
    const when = [
      { path: ['ref'], values: ['refs/heads/main', 'refs/heads/release'] },
      { path: ['kubernetes.io', 'namespace'], values: ['prod'] },
      { path: ['toString'], values: ['x'] },
      { path: ['__proto__', 'x'], values: ['x'] },
    ];
    assert.deepEqual(lacksOf({ when }, { ref: 'refs/heads/dev', 'kubernetes.io': 'prod' }), [
      'ref is "refs/heads/dev", not "refs/heads/main" or "refs/heads/release"',
      'no kubernetes.io.namespace, which must be "prod"',
      'no toString, which must be "x"',
      'no __proto__.x, which must be "x"',
    ]);
  });
});
