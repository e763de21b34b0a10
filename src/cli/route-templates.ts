/** The requests of one kind that a service takes. */
interface RequestKind {
  readonly path: string;
  readonly methods?: readonly string[];
  /** As the file has it, of the service's resource: `UPDATE_ANY`, `open`. By the method where it is left out. */
  readonly allow?: string;
}

/** A service that has one key for everything, and what its API has for whom. */
interface ServiceTemplate {
  readonly title: string;
  readonly port: number;
  /** The lines that say how it gets its own credential. */
  readonly send: string;
  /** What the file of that credential holds. */
  readonly secret: string;
  /** Where a caller's key may stand, if not as a bearer token alone. */
  readonly credentials?: string;
  /** What is for readers and operators. All else needs the resource for administrators. */
  readonly requests: readonly RequestKind[];
  /** Requests, each with what a reader, an operator and an administrator may do: `r`, `o` and `a`. */
  readonly expect: readonly (readonly [request: string, who: 'roa' | 'oa' | 'a'])[];
}

const by = (paths: string): RequestKind[] => paths.split(' ').map((path) => ({ path }));
const reading = (paths: string): RequestKind[] =>
  paths.split(' ').map((path) => ({ path, methods: ['GET', 'HEAD'], allow: 'READ_ANY' }));
const posting = (paths: string, allow: 'READ_ANY' | 'UPDATE_ANY'): RequestKind[] =>
  paths.split(' ').map((path) => ({ path, methods: ['POST'], allow }));
const open = (path: string): RequestKind => ({ path, methods: ['GET', 'HEAD'], allow: 'open' });
const under = (base: string, names: string) =>
  names
    .split(' ')
    .map((name) => `${base}/${name}`)
    .join(' ');

/** What Sonarr and Radarr have in common. Their settings and their page show the key, and are for administrators. */
const ARR_READ = 'diskspace health history/** qualityprofile rootfolder system/status tag/** wanted/**';

/** By the names that users type. */
export const TEMPLATES = {
  sonarr: {
    title: 'Sonarr (API v3)',
    port: 8989,
    send: 'send: { X-Api-Key: { file: FILE } }',
    secret: 'the API key of Settings, General',
    requests: [
      ...by(under('/api/v3', 'series/** episode/** episodefile/** calendar/** queue/** release/** command/**')),
      ...reading(under('/api/v3', ARR_READ)),
      open('/ping'),
    ],
    expect: [
      ['GET /api/v3/series', 'roa'],
      ['POST /api/v3/command', 'oa'],
      ['PUT /api/v3/series/7', 'oa'],
      ['DELETE /api/v3/series/7', 'a'],
      ['GET /api/v3/config/host', 'a'],
      ['GET /initialize.json', 'a'],
    ],
  },
  radarr: {
    title: 'Radarr (API v3)',
    port: 7878,
    send: 'send: { X-Api-Key: { file: FILE } }',
    secret: 'the API key of Settings, General',
    requests: [
      ...by(under('/api/v3', 'movie/** moviefile/** calendar/** collection/** queue/** release/** command/**')),
      ...reading(under('/api/v3', ARR_READ)),
      open('/ping'),
    ],
    expect: [
      ['GET /api/v3/movie', 'roa'],
      ['POST /api/v3/command', 'oa'],
      ['DELETE /api/v3/movie/7', 'a'],
      ['GET /api/v3/indexer', 'a'],
    ],
  },
  'home-assistant': {
    title: 'Home Assistant (REST API; its WebSocket takes the token in a message, and is for administrators)',
    port: 8123,
    send: 'send: { Authorization: { file: FILE, scheme: Bearer } }',
    secret: 'a long-lived access token',
    requests: [
      ...reading(under('/api', 'states/** history/** logbook/** calendars/** camera_proxy/** services config')),
      ...posting('/api/services/**', 'UPDATE_ANY'),
      ...reading('/api'),
    ],
    expect: [
      ['GET /api/states/light.kitchen', 'roa'],
      ['POST /api/services/light/turn_on', 'oa'],
      ['POST /api/states/light.kitchen', 'a'],
      ['POST /api/template', 'a'],
      ['GET /api/websocket', 'a'],
    ],
  },
  immich: {
    title: 'Immich',
    port: 2283,
    send: 'send: { X-Api-Key: { file: FILE } }',
    secret: 'an API key of the user whose pictures they are',
    requests: [
      ...by(under('/api', 'assets/** albums/** memories/** people/** faces/** tags/** stacks/** activities/**')),
      ...reading(under('/api', 'timeline/** map/** search/** server/about server/statistics')),
      ...posting(under('/api/search', 'metadata smart random statistics'), 'READ_ANY'),
      open('/api/server/ping'),
    ],
    expect: [
      ['GET /api/assets/7/thumbnail', 'roa'],
      ['POST /api/search/metadata', 'roa'],
      ['POST /api/assets', 'oa'],
      ['DELETE /api/assets', 'a'],
      ['GET /api/api-keys', 'a'],
      ['GET /api/admin/users', 'a'],
    ],
  },
  jellyfin: {
    title: 'Jellyfin',
    port: 8096,
    send: 'send: { Authorization: { file: FILE, scheme: MediaBrowser } }',
    secret: 'Token="…" with an API key of the dashboard',
    requests: [
      ...reading('/Items/** /Users/*/Items/** /Shows/** /Movies/** /Artists/** /Albums/** /Genres/** /Persons/**'),
      ...reading('/UserViews /Search/** /Videos/** /Audio/** /Sessions /System/Info'),
      ...posting('/Sessions/** /Library/Refresh /Items/*/Refresh', 'UPDATE_ANY'),
      open('/System/Info/Public'),
    ],
    expect: [
      ['GET /Items/7/Images/Primary', 'roa'],
      ['POST /Sessions/7/Playing/Pause', 'oa'],
      ['DELETE /Items/7', 'a'],
      ['GET /Auth/Keys', 'a'],
      ['GET /System/Configuration', 'a'],
    ],
  },
  grafana: {
    title: 'Grafana',
    port: 3000,
    send: 'send: { Authorization: { file: FILE, scheme: Bearer } }',
    secret: 'the token of a service account',
    requests: [
      ...by(under('/api', 'dashboards/** folders/** annotations/** playlists/**')),
      ...reading(under('/api', 'search org v1/provisioning/alert-rules/**')),
      ...posting('/api/ds/query', 'READ_ANY'),
      open('/api/health'),
    ],
    expect: [
      ['GET /api/dashboards/uid/7', 'roa'],
      ['POST /api/ds/query', 'roa'],
      ['POST /api/dashboards/db', 'oa'],
      ['DELETE /api/dashboards/uid/7', 'a'],
      ['GET /api/datasources', 'a'],
      ['GET /api/admin/settings', 'a'],
    ],
  },
  gitea: {
    title: 'Gitea (API; git itself is for administrators)',
    port: 3000,
    send: 'send: { Authorization: { file: FILE, scheme: token } }',
    secret: 'an access token',
    requests: [
      ...reading('/api/v1/version /api/v1/repos/search /api/v1/repos/issues/search'),
      ...reading('/api/v1/repos/*/* /api/v1/orgs/* /api/v1/orgs/*/repos /api/v1/users/* /api/v1/users/*/repos'),
      ...by(under('/api/v1/repos/*/*', 'issues/** labels/** milestones/** pulls/** releases/** contents/**')),
      ...reading(under('/api/v1/repos/*/*', 'branches/** commits/** tags/** topics git/** raw/** statuses/**')),
    ],
    expect: [
      ['GET /api/v1/repos/octo/app/issues', 'roa'],
      ['POST /api/v1/repos/octo/app/issues', 'oa'],
      ['DELETE /api/v1/repos/octo/app/releases/7', 'a'],
      ['DELETE /api/v1/repos/octo/app', 'a'],
      ['GET /api/v1/repos/octo/app/hooks', 'a'],
      ['GET /api/v1/admin/users', 'a'],
    ],
  },
  'docker-registry': {
    title: 'a Docker registry (Docker sends a key as the password of any user)',
    port: 5000,
    send: 'basic: { user: svc-api, password: { file: FILE } }',
    secret: 'the password of the user svc-api of its htpasswd file',
    credentials: 'basic',
    requests: [
      { path: '/v2', methods: ['GET', 'HEAD'], allow: 'key' },
      ...by('/v2/**'),
      { path: '/v2/_catalog', allow: '' },
    ],
    expect: [
      ['GET /v2/team/app/manifests/latest', 'roa'],
      ['POST /v2/team/app/blobs/uploads', 'oa'],
      ['PUT /v2/team/app/manifests/latest', 'oa'],
      ['DELETE /v2/team/app/manifests/sha256:0', 'a'],
      ['GET /v2/_catalog', 'a'],
    ],
  },
} satisfies Record<string, ServiceTemplate>;

/** The name of a template. */
export type TemplateName = keyof typeof TEMPLATES;

/** Where the service of a template is. */
interface TemplatePlace {
  /** The host that clients use. */
  readonly host: string;
  /** Where the service listens. Default: its usual port on this machine. */
  readonly url: string | undefined;
  /** The file of its credential. */
  readonly file: string | undefined;
}

/** A configuration for a service: complete, and its expectations hold. */
export function routeTemplate(name: TemplateName, { host, url, file }: TemplatePlace): string {
  const template: ServiceTemplate = TEMPLATES[name];
  const resource = name.toUpperCase().replaceAll('-', '_');
  const administration = `${resource}_ADMIN`;
  const secretFile = JSON.stringify(file ?? `/run/secrets/${name}`);
  const address = JSON.stringify(url ?? `http://127.0.0.1:${template.port}`);
  const reads = [`${resource}:READ_ANY`];
  const operates = [...reads, `${resource}:CREATE_ANY`, `${resource}:UPDATE_ANY`];
  const actions = ['READ_ANY', 'CREATE_ANY', 'UPDATE_ANY', 'DELETE_ANY'];
  const administers = [resource, administration].flatMap((each) => actions.map((action) => `${each}:${action}`));
  const route = (fields: string) => `  - { host: ${host}, ${fields}, to: ${name} }`;
  const routes = template.requests.map(({ path, methods, allow }) => {
    const only = methods ? `, methods: [${methods.join(', ')}]` : '';
    if (allow === '') return route(`path: ${path}, resource: ${administration}`);
    if (allow === undefined) return route(`path: ${path}${only}, resource: ${resource}`);
    return route(`path: ${path}${only}, allow: ${allow.includes('_') ? `${resource}:${allow}` : allow}`);
  });
  const expect = template.expect.flatMap(([request, who]) => {
    const [method, path] = request.split(' ');
    const outcome = (letter: string, grants: readonly string[]) => {
      const answer = who.includes(letter) ? 'allowed' : 'forbidden';
      return `  - ${method} https://${host}${path} with ${grants.join(', ')} is ${answer}`;
    };
    return [outcome('r', reads), outcome('o', operates), outcome('a', administers)];
  });
  return [
    `# Roles and routes for ${template.title}.`,
    ...(template.credentials === undefined ? [] : [`credentials: [${template.credentials}]`]),
    '# What administrators may read has passwords and keys, so VIEWER may not.',
    `resources: [${resource}, { name: ${administration}, credentials: true }]`,
    'roles:',
    `  ${resource}_READER: [${reads.join(', ')}]`,
    `  ${resource}_OPERATOR: [${operates.join(', ')}]`,
    `  ${resource}_ADMINISTRATOR: [${administers.join(', ')}]`,
    'upstreams:',
    `  # The file holds ${template.secret}. Its mode is 600.`,
    `  ${name}: { url: ${address}, ${template.send.replace('FILE', secretFile)} }`,
    'routes:',
    ...routes,
    route(`path: /**, resource: ${administration}`),
    'expect:',
    ...expect,
    '',
  ].join('\n');
}
