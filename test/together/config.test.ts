import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../src/config/load-config.ts';
import { tempFolder } from '../support/temp.ts';

describe('the configuration of all features', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = tempFolder();
    file = join(folder, 'svc-api.yaml');
  });

  it('is the default one where there is no file', async () => {
    const { trust: _, ...others } = await loadConfig({ env: { XDG_CONFIG_HOME: folder } });
    assert.deepEqual(others, {
      file: undefined,
      resources: [],
      actions: [],
      prefix: undefined,
      builtinResources: 'shown',
      roles: {},
      credentials: ['bearer'],
      upstreams: [],
      routes: [],
      expect: [],
      cors: { origins: [] },
      tls: undefined,
      server: {},
      limits: { default: [], failedCredentials: '20/m' },
      policy: {},
      people: undefined,
      federation: [],
      audit: { keep: null },
      notices: undefined,
      introspection: 'on',
      publicUrl: undefined,
      title: undefined,
      added: {},
      consent: undefined,
      clients: [],
      clientDocuments: 'off',
      dynamicRegistration: false,
      refresh: { leeway: 1_800_000, lifetime: null },
      signIn: undefined,
      feed: undefined,
    });
  });

  it('has all that the file says in sections of features', async () => {
    writeFileSync(
      file,
      `
resources: [WIKI]
roles: { EDITOR: [WIKI:READ_ANY] }
routes:
  - { host: Wiki.Example.org, path: /api/**, methods: [GET, HEAD, GET], allow: wiki:read_any, preflight: open }
  - { host: wiki.example.org, path: /api/**, allow: [WIKI:READ_ANY, WIKI:UPDATE_ANY] }
  - { host: "*.example.org", path: /backup/, allow: { any: [BACKUP:READ_ANY, ME:READ_OWN] } }
  - { host: "*", path: /public/*, allow: open, to: wiki }
expect: [GET https://wiki.example.org/api/7 with WIKI:READ_ANY is allowed]
upstreams:
  wiki: http://127.0.0.1:3000
  files: { url: http+unix:///run/files.sock, basic: { user: "a b", password: { file: /run/secrets/files } }, rewriteHost: true }
  sonarr:
    url: https://sonarr.internal:8989
    passHeaders: [X-Forwarded-User, x-auth-request-email]
    ranges: true
    send: { X-Api-Key: { file: secrets/sonarr }, Authorization: { file: /run/token, scheme: Bearer } }
    query: { apikey: { file: secrets/sonarr } }
people:
  oidc: { issuer: https://id.example.org/realms/a, client-id: keys, client-secret: { file: oidc.secret }, groups: roles }
  grant: { admins: [role:admin, role:EDITOR], "*": [wiki:read_any] }
notices: { url: "https://hooks.example.org/n", secretFile: n.secret, events: [key.ended], refusedOften: 7 }
publicUrl: https://keys.example.org
consent: both
clients:
  registered: [{ id: wiki-sync, name: Wiki sync, redirects: ["http://127.0.0.1/done"] }, { id: tv, name: TV, refreshes: true }]
  metadata-documents: [claude.ai, "apps.example.org:8443"]
  dynamic-registration: true
  refresh: { leeway: 5m, lifetime: 90d }
sign-in: on
feed: { nats: { servers: ["nats://10.0.0.1:4222", "tls://nats"], credentials: { file: n.creds }, name: keys } }
`,
    );
    const defaults = await loadConfig({ env: { XDG_CONFIG_HOME: folder } });
    const config = await loadConfig({ file, env: {}, resources: ['BACKUP'] });
    assert.deepEqual(config, {
      ...defaults,
      file,
      resources: [{ name: 'WIKI' }],
      roles: { EDITOR: ['WIKI:READ_ANY'] },
      routes: [
        {
          host: 'wiki.example.org',
          path: '/api/**',
          methods: ['GET', 'HEAD'],
          allow: { kind: 'all', permissions: ['WIKI:READ_ANY'] },
          preflightOpen: true,
          line: 5,
        },
        {
          host: 'wiki.example.org',
          path: '/api/**',
          allow: { kind: 'all', permissions: ['WIKI:READ_ANY', 'WIKI:UPDATE_ANY'] },
          preflightOpen: false,
          line: 6,
        },
        {
          host: '*.example.org',
          path: '/backup',
          allow: { kind: 'any', permissions: ['BACKUP:READ_ANY', 'ME:READ_OWN'] },
          preflightOpen: false,
          line: 7,
        },
        { host: '*', path: '/public/*', allow: { kind: 'open' }, to: 'wiki', preflightOpen: false, line: 8 },
      ],
      expect: ['GET https://wiki.example.org/api/7 with WIKI:READ_ANY is allowed'],
      upstreams: [
        { name: 'wiki', address: { protocol: 'http:', host: '127.0.0.1', port: 3000 }, send: [], rewriteHost: false },
        {
          name: 'files',
          address: { protocol: 'http:', socketPath: '/run/files.sock' },
          send: [{ in: 'header', name: 'Authorization', file: '/run/secrets/files', user: 'a b' }],
          rewriteHost: true,
        },
        {
          name: 'sonarr',
          address: { protocol: 'https:', host: 'sonarr.internal', port: 8989 },
          send: [
            { in: 'header', name: 'X-Api-Key', file: join(folder, 'secrets/sonarr') },
            { in: 'header', name: 'Authorization', file: '/run/token', scheme: 'Bearer' },
            { in: 'query', name: 'apikey', file: join(folder, 'secrets/sonarr') },
          ],
          rewriteHost: false,
          passHeaders: ['x-forwarded-user', 'x-auth-request-email'],
          ranges: true,
        },
      ],
      feed: {
        nats: {
          servers: ['nats://10.0.0.1:4222', 'tls://nats'],
          credentials: { file: join(folder, 'n.creds') },
          name: 'keys',
        },
      },
      people: {
        by: {
          issuer: 'https://id.example.org/realms/a',
          clientId: 'keys',
          secretFile: join(folder, 'oidc.secret'),
          groups: 'roles',
        },
        grant: { admins: ['ADMIN', 'EDITOR'], '*': ['WIKI:READ_ANY'] },
      },
      notices: {
        url: 'https://hooks.example.org/n',
        secretFile: join(folder, 'n.secret'),
        events: ['key.ended'],
        refusedOften: 7,
      },
      publicUrl: 'https://keys.example.org',
      consent: 'both',
      clients: [
        { id: 'wiki-sync', name: 'Wiki sync', redirects: ['http://127.0.0.1/done'] },
        { id: 'tv', name: 'TV', redirects: [], refreshes: true },
      ],
      clientDocuments: ['claude.ai', 'apps.example.org:8443'],
      dynamicRegistration: true,
      refresh: { leeway: 300_000, lifetime: 90 * 86_400_000 },
      signIn: 'on',
    });
  });
});
